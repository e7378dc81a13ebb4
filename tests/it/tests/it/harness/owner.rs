//! A client of the store: it stands for one process.

use std::{future::Future, time::Duration};

use idempotent_runtime::{
    __private::{Recorded, Whole},
    AsHandle, Builder, CallBuilder, CallOutcome, Idempotency, RecordChange, StoreErrorKind,
    testing::{Fault, FaultyStore, Gate, ManualClock, On, StoreOperation},
};

use super::Log;

/// A handle over a store that fails on command, with a timer and an event log of its own. Clones
/// are the same owner.
#[derive(Clone)]
pub(crate) struct Owner {
    pub(crate) idem: Idempotency,
    /// Counts the calls of the store, and fails those that a scenario names.
    pub(crate) store: FaultyStore,
    /// The clock of the handle's waits, heartbeats and leases; moved by `World::advance`, or alone.
    pub(crate) timer: ManualClock,
    pub(crate) log: Log,
}

impl Owner {
    pub(super) fn new(
        label: &str,
        store: FaultyStore,
        timer: ManualClock,
        of_all: Log,
        set_up: impl FnOnce(Builder) -> Builder,
    ) -> Self {
        let log = Log::new();
        let builder = Idempotency::builder(store.clone())
            .timer(timer.clone())
            .observer(log.clone())
            .observer(of_all)
            .holder_name(label);
        let idem = set_up(builder).build().expect("the set-up is sound");
        Self {
            idem,
            store,
            timer,
            log,
        }
    }

    /// Runs annotated functions with this owner's handle.
    pub(crate) fn enter<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        self.idem.enter(future)
    }

    /// Begins a call in the method form.
    pub(crate) fn call(&self, name: &str) -> CallBuilder<Recorded, Whole> {
        self.idem.call(name)
    }

    /// Runs an annotated function in a task of its own, with this owner's handle.
    pub(crate) fn spawn<F>(&self, future: F) -> tokio::task::JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        tokio::spawn(self.enter(future))
    }

    /// Has this fault meet these calls of the store.
    pub(crate) fn fault(&self, operation: StoreOperation, on: On, fault: Fault) {
        self.store.fault(operation, on, fault);
    }

    /// Has these calls of the store fail.
    pub(crate) fn fails(&self, operation: StoreOperation, on: On, kind: StoreErrorKind) {
        self.fault(operation, on, Fault::Fail(kind));
    }

    /// Holds these calls at the gate before they reach the store.
    pub(crate) fn delays(&self, operation: StoreOperation, on: On) -> Gate {
        let gate = Gate::new();
        self.fault(operation, on, Fault::Delay(gate.clone()));
        gate
    }

    /// Holds the answers to these calls at the gate.
    pub(crate) fn delays_answer(&self, operation: StoreOperation, on: On) -> Gate {
        let gate = Gate::new();
        self.fault(operation, on, Fault::DelayAnswer(gate.clone()));
        gate
    }

    /// Asserts that these transitions happened so far, heartbeats apart.
    #[track_caller]
    pub(crate) fn assert_steps(&self, expected: &[RecordChange]) {
        assert_eq!(self.log.steps(), expected);
    }

    /// Asserts that the calls so far were answered so.
    #[track_caller]
    pub(crate) fn assert_answers(&self, expected: &[CallOutcome]) {
        assert_eq!(self.log.answers(), expected);
    }

    /// Cuts the owner off from the store for good, as the death of its process would. From then on
    /// nothing of it reaches the store, neither a heartbeat nor a release. Abort its tasks as well
    /// if they would go on.
    pub(crate) fn die(&self) {
        self.store.outage(StoreErrorKind::Unavailable);
    }

    /// Ends the owner with the task that it runs, as the death of its process would.
    pub(crate) async fn die_in<T>(&self, task: tokio::task::JoinHandle<T>) {
        self.die();
        task.abort();
        assert!(task.await.is_err(), "the task ended before it could die");
    }

    /// Waits until no call holds a record and nothing is left to be written in the background.
    pub(crate) async fn settled(&self) {
        let drained = self.idem.shutdown(Duration::MAX).await;
        assert!(drained, "time stands still, so the limit is never reached");
    }
}

impl AsHandle for Owner {
    fn as_handle(&self) -> &Idempotency {
        &self.idem
    }
}
