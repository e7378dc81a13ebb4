//! The call that most scenarios make: one effect, in any mode, that stops where a scenario wants it
//! to.

use std::{fmt::Debug, future::Future, pin::Pin, time::Duration};

use idempotent_runtime::{
    Error, Idempotency, InFlight, OnCrash, Reconciled, Settle, testing::Gate,
};
use tokio::task::{JoinHandle, yield_now};

use crate::harness::{Owner, World};

/// The lease of a handle that says nothing about it.
pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// How a call goes on when its holder vanished, and when its caller goes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The next call runs it again.
    Rerun,
    /// At most once.
    Uncertain,
    /// The next call asks, and finds this out.
    Reconcile(Found),
    /// As `Rerun`, and the body runs on when the caller goes away.
    Detach,
}

/// The finding of a reconciling function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It happened, with the value `"found"`.
    Happened,
    /// It is unknown whether it happened.
    Unknown,
    /// It did not happen.
    Nothing,
}

pub(crate) const MODES: [Mode; 6] = [
    Mode::Rerun,
    Mode::Uncertain,
    Mode::Reconcile(Found::Happened),
    Mode::Reconcile(Found::Unknown),
    Mode::Reconcile(Found::Nothing),
    Mode::Detach,
];

pub(crate) type Answer = Result<String, Error>;

/// A charge that was described; each `call` makes it anew.
#[derive(Clone)]
pub(crate) struct Charge {
    world: World,
    owner: Owner,
    key: String,
    amount: u32,
    answer: String,
    mode: Mode,
    in_flight: Option<InFlight>,
    gate: Option<Gate>,
    awaits: usize,
    panics_at: Option<usize>,
}

impl Charge {
    /// A charge under the key `"k"` that answers `"charged"` at once.
    pub(crate) fn of(world: &World, owner: &Owner) -> Self {
        Self {
            world: world.clone(),
            owner: owner.clone(),
            key: "k".into(),
            amount: 1,
            answer: "charged".into(),
            mode: Mode::Rerun,
            in_flight: None,
            gate: None,
            awaits: 0,
            panics_at: None,
        }
    }

    pub(crate) fn key(mut self, key: impl Into<String>) -> Self {
        self.key = key.into();
        self
    }

    /// The argument that the fingerprint is taken of.
    pub(crate) fn amount(mut self, amount: u32) -> Self {
        self.amount = amount;
        self
    }

    pub(crate) fn answers(mut self, answer: &str) -> Self {
        self.answer = answer.into();
        self
    }

    pub(crate) fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// A duplicate is told at once that the first call is running.
    pub(crate) fn rejecting(mut self) -> Self {
        self.in_flight = Some(InFlight::Reject);
        self
    }

    /// A duplicate waits for so long.
    pub(crate) fn waiting(mut self, time: Duration) -> Self {
        self.in_flight = Some(InFlight::Wait(time));
        self
    }

    /// The body stands at `gate` once its effect has happened.
    pub(crate) fn held_at(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    /// The body is polled this many times more before it answers.
    pub(crate) fn awaits(mut self, awaits: usize) -> Self {
        self.awaits = awaits;
        self
    }

    /// The body panics before this one of its awaits.
    pub(crate) fn panics_at(mut self, at: usize) -> Self {
        self.panics_at = Some(at);
        self
    }

    /// The call, not begun.
    pub(crate) fn call(&self) -> Pin<Box<dyn Future<Output = Answer> + Send>> {
        self.call_with(&self.owner.idem)
    }

    /// The call, not begun, by another handle.
    pub(crate) fn call_with(
        &self,
        idem: &Idempotency,
    ) -> Pin<Box<dyn Future<Output = Answer> + Send>> {
        let body = self.clone();
        let call = idem.call("charge").key(self.key.as_str());
        let mut call = call.arguments(&self.amount);
        if let Some(in_flight) = self.in_flight {
            call = call.in_flight(in_flight);
        }
        match self.mode {
            Mode::Rerun => Box::pin(call.run(|_| body.body())),
            Mode::Uncertain => Box::pin(call.on_crash(OnCrash::Uncertain).run(|_| body.body())),
            Mode::Detach => Box::pin(call.run_detached(|_| body.body())),
            Mode::Reconcile(found) => Box::pin(call.reconcile(
                move |_| async move {
                    match found {
                        Found::Happened => Reconciled::Happened("found".to_owned()),
                        Found::Unknown => Reconciled::Unknown,
                        Found::Nothing => Reconciled::RunAgain,
                    }
                },
                |_| body.body(),
            )),
        }
    }

    /// Makes the call, which answers with the answer of its body.
    pub(crate) async fn charges(&self) {
        let (answer, Self { key, mode, .. }) = (self.call().await, self);
        assert_eq!(answer.as_ref(), Ok(&self.answer), "{key}, {mode:?}");
    }

    /// The call, in a task of its own.
    pub(crate) fn spawn(&self) -> JoinHandle<Answer> {
        tokio::spawn(self.call())
    }

    /// The call in a task of its own, once its body stands inside.
    pub(crate) async fn begun(self) -> (JoinHandle<Answer>, Gate) {
        let gate = Gate::new();
        let call = self.held_at(&gate).spawn();
        gate.arrived(1).await;
        (call, gate)
    }

    /// Dies inside the body: from then on nothing from the owner reaches the store.
    pub(crate) async fn vanishes(self) {
        let owner = self.owner.clone();
        let (call, _) = self.begun().await;
        owner.die_in(call).await;
    }

    async fn body(self) -> Answer {
        self.world.happened(&self.key);
        if let Some(gate) = &self.gate {
            gate.pass().await;
        }
        for at in 0..self.awaits {
            assert!(self.panics_at != Some(at), "a planned panic");
            yield_now().await;
        }
        Ok(self.answer)
    }
}

/// Makes the call, and asserts that its answer is of this kind.
pub(crate) async fn is_told(charge: &Charge, this: fn(&Answer) -> bool) {
    let (answer, Charge { key, mode, .. }) = (charge.call().await, charge);
    assert!(this(&answer), "{key}, {mode:?}: {answer:?}");
}

/// Lets a call that stands at `gate` go on until it answers `"charged"`.
pub(crate) async fn charges_behind(gate: &Gate, call: JoinHandle<Answer>) {
    gate.open();
    assert_eq!(call.await.expect("no panic"), Ok("charged".into()));
}

/// Lets a call that stands at `gate` go on until it is told that it has lost its lease.
pub(crate) async fn loses_behind<T: Debug>(gate: &Gate, call: JoinHandle<Result<T, Error>>) {
    gate.open();
    let answer = call.await.expect("no panic");
    assert!(matches!(answer, Err(Error::LeaseLost { .. })), "{answer:?}");
}

/// An operator who settles a charge.
pub(crate) fn settle<'a>(owner: &'a Owner, key: &str) -> Settle<'a> {
    let settle = owner.idem.settle("charge", None::<&str>, key);
    settle.expect("a key")
}

/// Has the caller of a call go away.
pub(crate) async fn abort<T>(call: JoinHandle<T>) {
    call.abort();
    assert!(call.await.is_err(), "it had ended before");
}

/// A client of the world that has died inside the body of a charge in this mode.
pub(crate) async fn vanished(world: &World, mode: Mode) -> Owner {
    vanished_under(world, "k", mode).await
}

/// The same, and its lease has ended.
pub(crate) async fn lapsed(world: &World, mode: Mode) {
    lapsed_under(world, "k", mode).await;
}

/// The same, of a charge under this key.
pub(crate) async fn lapsed_under(world: &World, key: &str, mode: Mode) {
    vanished_under(world, key, mode).await;
    world.advance(LEASE).await;
}

/// A client of the world that has died inside the body of a charge under this key.
pub(crate) async fn vanished_under(world: &World, key: &str, mode: Mode) -> Owner {
    let owner = world.owner().await;
    let charge = Charge::of(world, &owner).key(key).mode(mode);
    charge.vanishes().await;
    owner
}
