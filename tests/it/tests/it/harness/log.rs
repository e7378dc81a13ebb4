//! The reports of a handle, in the order in which things happened.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use idempotent_runtime::{CallEvent, CallOutcome, Observer, RecordChange, RecordEvent};
use tokio::sync::watch;

/// An observer that writes everything down, and wakes its waiters. Clones are the same log.
#[derive(Clone)]
pub(crate) struct Log {
    events: Arc<Mutex<Vec<Event>>>,
    count: Arc<watch::Sender<usize>>,
}

/// Something that was reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    RecordChange {
        operation: String,
        step: RecordChange,
        attempt: u32,
    },
    CallOutcome {
        operation: String,
        answer: CallOutcome,
        /// By the owner's timer.
        elapsed: Duration,
    },
}

impl Log {
    pub(crate) fn new() -> Self {
        Self {
            events: Arc::default(),
            count: Arc::new(watch::Sender::new(0)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every transition so far, heartbeats apart.
    pub(crate) fn steps(&self) -> Vec<RecordChange> {
        let events = self.lock();
        let steps = events.iter().filter_map(|event| match event {
            Event::RecordChange { step, .. } if *step != RecordChange::Heartbeat => Some(*step),
            _ => None,
        });
        steps.collect()
    }

    /// Every answer so far: one for each call.
    pub(crate) fn answers(&self) -> Vec<CallOutcome> {
        let events = self.lock();
        let answers = events.iter().filter_map(|event| match event {
            Event::CallOutcome { answer, .. } => Some(*answer),
            Event::RecordChange { .. } => None,
        });
        answers.collect()
    }

    /// Everything so far.
    pub(crate) fn events(&self) -> Vec<Event> {
        self.lock().clone()
    }

    /// How often this transition happened so far.
    pub(crate) fn count(&self, step: RecordChange) -> usize {
        let is_it = |event: &&Event| matches!(event, Event::RecordChange { step: happened, .. } if *happened == step);
        self.lock().iter().filter(is_it).count()
    }

    /// Waits until this transition has happened.
    pub(crate) async fn await_step(&self, step: RecordChange) {
        self.await_steps(step, 1).await;
    }

    /// Waits until this transition has happened `n` times.
    pub(crate) async fn await_steps(&self, step: RecordChange, n: usize) {
        // The sender lives in `self`, so the channel cannot close.
        let happened = |_: &usize| self.count(step) >= n;
        let _ = self.count.subscribe().wait_for(happened).await;
    }

    /// Waits until `n` calls have been answered.
    pub(crate) async fn await_answers(&self, n: usize) {
        let answered = |_: &usize| self.answers().len() >= n;
        let _ = self.count.subscribe().wait_for(answered).await;
    }

    fn push(&self, event: Event) {
        let mut events = self.lock();
        events.push(event);
        let count = events.len();
        drop(events);
        self.count.send_replace(count);
    }
}

impl Observer for Log {
    fn transition(&self, transition: &RecordEvent<'_>) {
        self.push(Event::RecordChange {
            operation: transition.operation.to_owned(),
            step: transition.change,
            attempt: transition.attempt,
        });
    }

    fn answered(&self, answered: &CallEvent<'_>) {
        self.push(Event::CallOutcome {
            operation: answered.operation.to_owned(),
            answer: answered.outcome,
            elapsed: answered.elapsed,
        });
    }
}
