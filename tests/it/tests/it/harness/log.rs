//! What a handle reports, in the order in which it happened.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use idempotent_runtime::{Answer, Answered, Observer, Step, Transition};
use tokio::sync::watch;

/// An observer that writes everything down, and wakes who waits for it. Clones are the same log.
#[derive(Clone)]
pub(crate) struct Log {
    events: Arc<Mutex<Vec<Event>>>,
    count: Arc<watch::Sender<usize>>,
}

/// Something that was reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Step {
        operation: String,
        step: Step,
        attempt: u32,
    },
    Answer {
        operation: String,
        answer: Answer,
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

    /// Every transition so far, heartbeats apart.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let steps = events.iter().filter_map(|event| match event {
            Event::Step { step, .. } if *step != Step::Heartbeat => Some(*step),
            _ => None,
        });
        steps.collect()
    }

    /// Every answer so far: one for each call.
    pub(crate) fn answers(&self) -> Vec<Answer> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let answers = events.iter().filter_map(|event| match event {
            Event::Answer { answer, .. } => Some(*answer),
            Event::Step { .. } => None,
        });
        answers.collect()
    }

    /// Everything so far.
    pub(crate) fn events(&self) -> Vec<Event> {
        self.events
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// How often this transition happened so far.
    pub(crate) fn count(&self, step: Step) -> usize {
        let is_it = |event: &&Event| matches!(event, Event::Step { step: happened, .. } if *happened == step);
        self.events
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .filter(is_it)
            .count()
    }

    /// Waits until this transition has happened.
    pub(crate) async fn await_step(&self, step: Step) {
        self.await_steps(step, 1).await;
    }

    /// Waits until this transition has happened `n` times.
    pub(crate) async fn await_steps(&self, step: Step, n: usize) {
        // The sender lives in `self`, so the channel cannot close.
        let _ = self
            .count
            .subscribe()
            .wait_for(|_| self.count(step) >= n)
            .await;
    }

    /// Waits until `n` calls have been answered.
    pub(crate) async fn await_answers(&self, n: usize) {
        let answered = |_: &usize| self.answers().len() >= n;
        let _ = self.count.subscribe().wait_for(answered).await;
    }

    fn push(&self, event: Event) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.push(event);
        let count = events.len();
        drop(events);
        self.count.send_replace(count);
    }
}

impl Observer for Log {
    fn transition(&self, transition: &Transition<'_>) {
        self.push(Event::Step {
            operation: transition.operation.to_owned(),
            step: transition.step,
            attempt: transition.attempt,
        });
    }

    fn answered(&self, answered: &Answered<'_>) {
        self.push(Event::Answer {
            operation: answered.operation.to_owned(),
            answer: answered.answer,
            elapsed: answered.elapsed,
        });
    }
}
