//! Ends a holding: writes how it ended, over whatever version is still its own.

use std::sync::Arc;

use crate::{
    engine::lease::Lease,
    engine::swap::answered,
    observe::{Observers, RecordChange},
    protocol::{Ending, Refusal},
    record::{OutcomeKind, RawOutcome, Record, State, Version},
    store::{Snapshot, Store, StoreError, Swap},
};

/// How an ending came out.
#[derive(Debug)]
pub(crate) enum Ended {
    /// It stands, at this version.
    Stands(Version),
    /// It stood already, or something equal does.
    StoodAlready(Arc<Record>),
    /// The lease was lost; the outcome that stands there now, if one does.
    Lost(Option<Arc<Record>>),
}

impl Ended {
    /// The version that stands, where it is one of this holder's.
    pub(crate) fn stands(&self) -> Option<Version> {
        match self {
            Ended::Stands(version) => Some(*version),
            Ended::StoodAlready(record) => Some(record.version),
            Ended::Lost(_) => None,
        }
    }

    /// The outcome that an earlier try of this holder wrote.
    pub(crate) fn outcome(&self) -> Option<RawOutcome> {
        match self {
            Ended::StoodAlready(record) => record.outcome.clone(),
            Ended::Stands(_) | Ended::Lost(_) => None,
        }
    }
}

/// Writes `ending`. Repeating it after an error is safe: what was applied is recognised.
pub(crate) async fn end(
    store: &dyn Store,
    observers: &Observers,
    lease: &Lease,
    ending: &Ending,
    reran: bool,
) -> Result<Ended, StoreError> {
    let attempt = &lease.attempt;
    let tell = |change| observers.changed(attempt, change);
    let again = reran.then(|| {
        let mut holding = lease.holding.clone();
        holding.run_again();
        Box::new(holding)
    });
    let holding = again.as_deref().unwrap_or(&lease.holding);
    let mut seen = lease.version();
    loop {
        let draft = lease.kept(holding.end(ending, Version::random()));
        let answer = store.swap(attempt.id(), Some(seen), &draft).await;
        match answered(Some(seen), answer)? {
            // The lease does not learn this version: a heartbeat over it would undo the ending.
            Swap::Applied(_) => {
                tell(step(ending, draft.state));
                return Ok(Ended::Stands(draft.version));
            }
            Swap::Refused(snapshot) => match holding.refused(ending, &snapshot) {
                Refusal::Again(version) => seen = version,
                Refusal::Stands(record) => {
                    // The answer to an earlier try was lost, so observers were not told yet. If it
                    // is uncertain, its finder has told them.
                    if record.state != State::Uncertain && record.outcome == draft.outcome {
                        tell(step(ending, draft.state));
                    }
                    let version = record.version;
                    return Ok(match lease.holding.answer(&record) {
                        Some(record) => Ended::StoodAlready(record),
                        None => Ended::Stands(version),
                    });
                }
                Refusal::Lost(record) => {
                    if attempt.lose() {
                        tell(RecordChange::LeaseLost);
                    }
                    let record = record.and_then(|record| lease.holding.answer(&record));
                    let record = record.filter(|record| answers(record, &snapshot));
                    return Ok(Ended::Lost(record));
                }
            },
        }
    }
}

fn answers(record: &Record, snapshot: &Snapshot) -> bool {
    record.state == State::Done && !record.is_expired(snapshot.now)
}

pub(crate) fn step(ending: &Ending, state: State) -> RecordChange {
    match (ending, state) {
        (Ending::Done(outcome), _) if outcome.kind == OutcomeKind::NotReplayable => {
            RecordChange::RecordedNotReplayable
        }
        (Ending::Done(_), _) => RecordChange::Recorded,
        (Ending::Undo(_) | Ending::LeftToUndo(_), _) => RecordChange::Undoing,
        (Ending::NotUndone, _) => RecordChange::Parked,
        (_, State::Released) => RecordChange::Released,
        (_, State::Uncertain) => RecordChange::LeftUncertain,
        _ => RecordChange::Stopped,
    }
}
