//! The errors that refuse a call.

use std::{cmp::Reverse, sync::Arc, time::Duration};

use super::{Admission, Admitting};
use crate::{
    error::Error,
    observe::RecordChange,
    outcome::OutOfOrder,
    protocol::{
        Meaning,
        sequence::{Damaged, StoredStream},
    },
    record::{Draft, ListedStep, Record, StepState, Time},
    store::{StoreError, StoreErrorKind},
};

impl Admitting<'_> {
    pub(in crate::drive::run) fn in_progress(
        &self,
        record: &Record,
        seen_at: Time,
        left: Duration,
    ) -> Error {
        Error::InProgress {
            operation: self.operation(),
            since: seen_at.since(record.created),
            retry_after: left,
            // A heartbeat comes after a third of the lease, and may take a while.
            silent: left < self.claim.lease / 2,
            attempt: record.attempt,
            holder: Arc::clone(&record.holder.label),
            trace_parent: record.holder.trace_parent.clone(),
        }
    }

    pub(super) fn key_reused(&self, record: &Record) -> Error {
        let (mine, theirs) = (&self.claim.subject.fingerprint, &record.subject.fingerprint);
        Error::KeyReused {
            operation: self.operation(),
            differing: mine.differing(&theirs.digests()),
        }
    }

    pub(in crate::drive::run) fn gap(&self, expected: u64) -> Admission {
        let got = self.claim.numbered.map_or(0, |numbered| numbered.number);
        Admission::OutOfOrder(OutOfOrder::Gap { expected, got })
    }

    /// Tells that a record was left to be settled, and gives the error that refuses the call.
    pub(super) fn left(&self, draft: &Draft, meaning: Meaning) -> Error {
        let (change, refusal) = self.leaves(draft, meaning);
        self.tell(draft.attempt, change);
        refusal
    }

    /// The change of a record that is left to be settled, and the error that refuses the call.
    pub(in crate::drive::run) fn leaves(
        &self,
        draft: &Draft,
        meaning: Meaning,
    ) -> (RecordChange, Error) {
        let (attempts, stream) = (draft.attempt, StoredStream::written(draft));
        let number = stream.as_ref().and_then(running);
        match meaning {
            Meaning::Park => (RecordChange::Parked, self.parked(attempts, number)),
            _ => (RecordChange::LeftUncertain, self.uncertain(number)),
        }
    }

    pub(super) fn uncertain(&self, number: Option<u64>) -> Error {
        Error::Uncertain {
            operation: self.operation(),
            id: self.id,
            number,
        }
    }

    pub(in crate::drive::run) fn parked(&self, attempts: u32, number: Option<u64>) -> Error {
        Error::Parked {
            operation: self.operation(),
            attempts,
            id: self.id,
            number,
        }
    }

    async fn list_steps(&self) -> Result<Vec<ListedStep>, StoreError> {
        let store = self.request.handle.store().step_store()?;
        store.list_steps(&self.id).await
    }

    /// Looks which steps could not be undone.
    pub(super) async fn not_undone(&self, record: &Record) -> Admission {
        let mut steps = match self.list_steps().await {
            Ok(steps) => steps,
            Err(error) => return error.into(),
        };
        steps.sort_by_key(|step| Reverse(step.undo));
        let of = |which: fn(&ListedStep) -> bool| -> Vec<_> {
            let steps = steps.iter().filter(|step| which(step));
            steps.map(|step| step.label.to_string()).collect()
        };
        let left = of(ListedStep::is_to_be_undone);
        // Its holders vanished, and no step is known to be left.
        if left.is_empty() {
            return self.parked(record.attempt, None).into();
        }
        let not_undone = Error::NotUndone {
            operation: self.operation(),
            undone: of(|step| step.state == StepState::Undone),
            left,
            id: self.id,
        };
        not_undone.into()
    }

    pub(in crate::drive::run) fn recursive(&self) -> Admission {
        let operation = self.operation();
        Error::Recursive { operation }.into()
    }
}

/// The number at which the stream of this record stops; `None` where it is that of a plain call.
pub(super) fn number_of(record: &Record) -> Option<u64> {
    StoredStream::read(record).as_ref().ok().and_then(running)
}

fn running(stored: &StoredStream) -> Option<u64> {
    stored.stream.running.map(|running| running.number)
}

/// The record of a sequence cannot be read.
pub(crate) fn damaged() -> Error {
    let error = StoreError::new(StoreErrorKind::Corrupt, "reading a sequence");
    error.with_source(Damaged).into()
}
