//! The write of an operator's word: it is put where the version stands that was looked at.

use std::sync::Arc;

use super::Idempotency;
use crate::{
    engine::swap::swap,
    error::{Error, Moved},
    identity::RecordId,
    observe::RecordChange,
    record::{Draft, Record, State, Version},
    store::{Snapshot, Stamp, StoreError, Swap},
};

impl Idempotency {
    /// Puts the version that `settled` makes of what stands, and asks it again while another one
    /// comes between; then observers are told of the change. Returns whether it made one. An act
    /// that was meant `for_version` finds no other one.
    pub(crate) async fn settled(
        &self,
        (operation, id): (&Arc<str>, &RecordId),
        for_version: Option<Version>,
        change: RecordChange,
        settled: impl Fn(&Snapshot) -> Result<Option<Draft>, Error>,
    ) -> Result<bool, Error> {
        if let Some(audit) = self.engine().unseen_audit() {
            audit.confirm(operation).await?;
        }
        let mut snapshot = self.store().load(id).await?;
        loop {
            let record = snapshot.record.as_deref();
            if record.is_none() && for_version.is_some() {
                return Ok(false);
            }
            if let Some(record) = record {
                is_meant(operation, for_version, record.version, || {
                    Moved::record(record)
                })?;
            }
            let Some(draft) = settled(&snapshot)? else {
                return Ok(false);
            };
            let attempt = record.map_or(1, |record| record.attempt);
            let seen = record.map(|record| record.version);
            match put(self, id, seen, &draft).await? {
                Swap::Applied(_) => {
                    self.observers().transition(operation, id, attempt, change);
                    return Ok(true);
                }
                Swap::Refused(stands) => snapshot = stands,
            }
        }
    }
}

/// Checks that an act was meant for the version that `stands`, if it was meant for one.
pub(crate) fn is_meant(
    operation: &Arc<str>,
    for_version: Option<Version>,
    stands: Version,
    moved: impl FnOnce() -> Moved,
) -> Result<(), Error> {
    match for_version {
        Some(meant) if meant != stands => Err(Error::Moved {
            operation: Arc::clone(operation),
            moved: Arc::new(moved()),
        }),
        _ => Ok(()),
    }
}

/// Writes the setter of the version that an act of an operator's is meant for. `at` is where its
/// builder keeps the version.
macro_rules! aimed {
    (|$it:ident| $at:expr) => {
        crate::value::setters! {
            /// Does it to this version alone, as a list showed it. Where another one stands by now,
            /// nothing is written, and the act fails with `Error::Moved`, which has the person who
            /// wrote that one.
            at_version($it, version: crate::record::Version) { $at = Some(version) }
        }
    };
}
pub(crate) use aimed;

/// Whether the body has returned here, and its outcome could not be written yet.
pub(crate) fn is_about_to_be_recorded(handle: &Idempotency, record: &Record) -> bool {
    matches!(
        record.state,
        State::Running | State::Uncertain | State::Undoing
    ) && handle.engine().heartbeats().flush_ending(record.attempt_id)
}

/// Puts `draft` where version `seen` stands; once more if it is unknown whether it was put. If it
/// was, its own version refuses the second one. Under any other version it may have been put and
/// replaced since, so the error stays.
pub(crate) async fn put(
    handle: &Idempotency,
    id: &RecordId,
    seen: impl Into<Option<Version>>,
    draft: &Draft,
) -> Result<Swap, StoreError> {
    let (store, seen) = (handle.store(), seen.into());
    let lost = match swap(store, id, seen, draft).await {
        Err(error) if error.is_transient() => error,
        answer => return answer,
    };
    match swap(store, id, seen, draft).await {
        Ok(Swap::Refused(Snapshot {
            now,
            record: Some(record),
        })) if record.version == draft.version => {
            Ok(Swap::Applied(Stamp::from_record(&record, now)))
        }
        Ok(Swap::Applied(stamp)) => Ok(Swap::Applied(stamp)),
        Ok(Swap::Refused(_)) | Err(_) => Err(lost),
    }
}
