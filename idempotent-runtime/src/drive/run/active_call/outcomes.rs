//! How calls are answered, in the words of observers.

use crate::{
    attempt::Stage,
    error::Error,
    observe::CallOutcome,
    protocol::{Ending, Meaning},
    record::{OutcomeKind, Record},
};

pub(crate) fn is_kept(record: &Record) -> bool {
    let outcome = record.outcome.as_ref();
    outcome.is_some_and(|outcome| outcome.kind != OutcomeKind::NotReplayable)
}

/// The outcome of a call that ran its own body.
pub(in crate::drive::run) fn executed(meaning: Meaning, stage: Stage) -> CallOutcome {
    match (meaning, stage) {
        (_, Stage::Answered) => CallOutcome::Reconciled,
        (_, Stage::Unknown) => CallOutcome::Uncertain,
        (Meaning::Fresh, _) => CallOutcome::Executed,
        _ => CallOutcome::ExecutedAfterTakeover,
    }
}

/// The same, where the body ended so.
pub(super) fn ended(meaning: Meaning, stage: Stage, ending: &Ending) -> CallOutcome {
    match (ending, stage) {
        (_, Stage::Answered | Stage::Unknown) => executed(meaning, stage),
        (Ending::Release | Ending::GiveBack | Ending::Unpolled, _) => CallOutcome::Released,
        (Ending::Uncertain, _) => CallOutcome::LeftUncertain,
        _ => executed(meaning, stage),
    }
}

pub(super) fn answer_of(error: &Error) -> CallOutcome {
    match error {
        Error::InProgress { .. } => CallOutcome::InProgress,
        Error::KeyReused { .. } => CallOutcome::KeyReused,
        Error::Uncertain { .. } => CallOutcome::Uncertain,
        Error::Parked { .. } | Error::NotUndone { .. } => CallOutcome::Parked,
        Error::LeaseLost { .. } => CallOutcome::LeaseLost,
        Error::Unreadable { .. } | Error::NotLoaded { .. } | Error::NotReplayable { .. } => {
            CallOutcome::NotReplayable
        }
        Error::Expired { .. } => CallOutcome::Expired,
        Error::Store(_) | Error::CommitUnknown { .. } | Error::AuditMissing { .. } => {
            CallOutcome::StoreFailed
        }
        Error::Commit { .. } => CallOutcome::RolledBack,
        Error::TransactionEnded { .. } => CallOutcome::TransactionEnded,
        _ => CallOutcome::Refused,
    }
}
