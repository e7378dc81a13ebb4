//! The observers of a handle.

use std::{sync::Arc, time::Duration};

#[cfg(feature = "_sql")]
use super::OutboxEvent;
use super::{
    CallEvent, FrontEndEvent, Observer, Purged, RecordChange, RecordEvent, RevealEvent, Sample,
    StepEvent, StepOutcome, outages::Outages,
};
use crate::{
    attempt::Attempt,
    clock::Timer,
    engine::last_words,
    identity::RecordId,
    store::{StoreError, observed::StoreObserver},
};

/// All observers that are told.
#[derive(Clone, Default)]
pub(crate) struct Observers {
    list: Vec<Arc<dyn Observer>>,
    outages: Arc<Outages>,
}

impl Observers {
    pub(crate) fn add(&mut self, observer: Arc<dyn Observer>) {
        self.list.push(observer);
    }

    pub(crate) fn are_there(&self) -> bool {
        !self.list.is_empty()
    }

    pub(crate) fn transition(
        &self,
        operation: &str,
        id: &RecordId,
        attempt: u32,
        change: RecordChange,
    ) {
        match change {
            RecordChange::LeaseLost | RecordChange::Parked | RecordChange::LeftUncertain => {
                let id = id.to_hex();
                tracing::warn!(operation, id, attempt, ?change, "idempotent call");
            }
            RecordChange::TakenOver
            | RecordChange::Passed
            | RecordChange::Skipped
            | RecordChange::Undoing => {
                tracing::info!(operation, %id, attempt, ?change, "idempotent call");
            }
            // A store that fails is told of with its cause, where that is known.
            _ => tracing::debug!(operation, %id, attempt, ?change, "idempotent call"),
        }
        self.tell(|observer| {
            observer.transition(&RecordEvent {
                operation,
                id: *id,
                change,
                attempt,
            });
        });
    }

    /// Tells of a change of the record that this attempt holds.
    pub(crate) fn changed(&self, attempt: &Attempt, change: RecordChange) {
        self.transition(attempt.operation(), attempt.id(), attempt.number(), change);
    }

    /// Warns of a store that failed a call or a heartbeat of this operation.
    pub(crate) fn store_failed(&self, operation: &str, error: &StoreError, now: Duration) {
        self.outages.failed(operation, error, now);
    }

    pub(crate) fn answered(&self, answered: &CallEvent<'_>) {
        self.tell(|observer| observer.answered(answered));
    }

    /// Tells of a step of this attempt.
    pub(crate) fn step(&self, attempt: &Attempt, step: &str, outcome: StepOutcome) {
        self.tell(|observer| {
            observer.step(&StepEvent {
                operation: attempt.operation(),
                id: *attempt.id(),
                step,
                outcome,
            });
        });
    }

    pub(crate) fn front_end(&self, event: &FrontEndEvent<'_>) {
        self.tell(|observer| observer.front_end(event));
    }

    pub(crate) fn sampled(&self, sample: &Sample<'_>) {
        self.tell(|observer| observer.sampled(sample));
    }

    pub(crate) fn revealed(&self, event: &RevealEvent<'_>) {
        let RevealEvent { operation, id, by } = *event;
        tracing::info!(operation, %id, by, "an outcome is revealed");
        self.tell(|observer| observer.revealed(event));
    }

    pub(crate) fn purged(&self, deleted: u64, failure: Option<&StoreError>) {
        match failure {
            Some(error) => tracing::warn!(deleted, %error, "a purge of expired records failed"),
            None => tracing::debug!(deleted, "purged expired records"),
        }
        self.tell(|observer| observer.purged(&Purged { deleted, failure }));
    }

    /// Returns the observer of the store's calls, if an observer of the handle wants them.
    pub(crate) fn of_store(&self, timer: &Arc<dyn Timer>) -> Option<StoreObserver> {
        let wants = |it: &&Arc<dyn Observer>| last_words::tell(|| it.wants_store_events());
        let wants = self.list.iter().filter(|it| wants(it) == Some(true));
        let observers = Self {
            list: wants.cloned().collect(),
            ..Self::default()
        };
        observers.are_there().then(|| StoreObserver {
            timer: Arc::clone(timer),
            tell: Arc::new(move |event| observers.tell(|observer| observer.store(event))),
        })
    }

    #[cfg(feature = "_sql")]
    pub(crate) fn outbox(&self, event: &OutboxEvent<'_>) {
        match event {
            OutboxEvent::Parked { .. } | OutboxEvent::SetAside { .. } => {
                tracing::error!(?event, "a message of an outbox could not be published");
            }
            OutboxEvent::Failed { .. } | OutboxEvent::Outage { .. } => {
                tracing::warn!(?event, "messages of an outbox wait");
            }
            OutboxEvent::Sent { .. } | OutboxEvent::Oldest { .. } => {
                tracing::debug!(?event, "outbox");
            }
        }
        self.tell(|observer| observer.outbox(event));
    }

    fn tell(&self, mut what: impl FnMut(&dyn Observer)) {
        for observer in &self.list {
            if last_words::tell(|| what(&**observer)).is_none() {
                tracing::error!("an observer panicked, which changes nothing");
            }
        }
    }
}
