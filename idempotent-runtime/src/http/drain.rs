//! Ends a service without cutting off what it is doing.

use std::sync::Arc;

use tokio::sync::watch;

/// Counts the handlers that run, and is shut once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Door(Arc<watch::Sender<State>>);

#[derive(Clone, Copy, Debug, Default)]
struct State {
    inside: usize,
    shut: bool,
}

/// A handler that runs.
#[derive(Debug)]
pub(crate) struct Inside(Door);

impl Door {
    /// Lets a handler in, unless `most` are inside already.
    pub(crate) fn enter(&self, most: usize) -> Option<Inside> {
        let mut entered = false;
        self.0.send_if_modified(|state| {
            entered = state.inside < most;
            state.inside += usize::from(entered);
            entered
        });
        entered.then(|| Inside(self.clone()))
    }

    pub(crate) fn shut(&self) {
        self.0.send_modify(|state| state.shut = true);
    }

    pub(crate) fn is_shut(&self) -> bool {
        self.0.borrow().shut
    }

    /// Resolves when no handler runs.
    pub(crate) async fn empty(&self) {
        let mut states = self.0.subscribe();
        // The sender is this very door, so it cannot be gone.
        let _ = states.wait_for(|state| state.inside == 0).await;
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.0.send_modify(|state| state.inside -= 1);
    }
}
