//! A point that a body passes only when a test lets it.

use tokio::sync::watch;

/// Holds every call that comes to it until it is opened, so that "while A is inside" is exact.
/// Clones are the same gate.
///
/// # Examples
///
/// ```
/// # use idempotent_runtime::testing::Gate;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let gate = Gate::new();
/// let body = tokio::spawn({
///     let gate = gate.clone();
///     async move { gate.pass().await }
/// });
/// gate.arrived(1).await;       // the body stands at the gate, and nothing else happens meanwhile
/// assert!(!body.is_finished());
/// gate.open();
/// body.await.unwrap();
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Gate {
    state: watch::Sender<State>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    arrived: usize,
    open: bool,
}

impl Gate {
    /// Makes a closed gate.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: watch::Sender::new(State::default()),
        }
    }

    /// Arrives, and resolves when the gate is open.
    ///
    /// # Cancel safety
    ///
    /// A call that is dropped has arrived nonetheless.
    pub async fn pass(&self) {
        self.state.send_modify(|state| state.arrived += 1);
        self.until(|state| state.open).await;
    }

    /// Resolves when `n` calls have arrived since the gate was made, whether they passed or not.
    pub async fn arrived(&self, n: usize) {
        self.until(|state| state.arrived >= n).await;
    }

    /// How many calls have arrived since the gate was made.
    #[must_use]
    pub fn arrivals(&self) -> usize {
        self.state.borrow().arrived
    }

    /// Lets every call through, from now on.
    pub fn open(&self) {
        self.state.send_modify(|state| state.open = true);
    }

    /// Holds every call that arrives from now on.
    pub fn close(&self) {
        self.state.send_modify(|state| state.open = false);
    }

    async fn until(&self, condition: impl FnMut(&State) -> bool) {
        // The sender lives in `self`, so the channel cannot close.
        let _ = self.state.subscribe().wait_for(condition).await;
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}
