//! How a call ended.

use std::time::Duration;

use crate::{identity::RecordId, store::StoreErrorKind};

/// The end of a call.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CallEvent<'a> {
    /// The operation.
    pub operation: &'a str,
    /// The template of the path that its request came by, such as `/orders/{id}`: a call of the
    /// HTTP layer has it, where axum's router matched the path.
    pub route: Option<&'a str>,
    /// The record; `None` when the call was refused before it had one.
    pub id: Option<RecordId>,
    /// Which answer it was, and so why the body ran or did not.
    pub outcome: CallOutcome,
    /// How long the call took, body and waiting included.
    pub elapsed: Duration,
    /// How long it waited for another call, or for a number before its own; zero if it never did.
    /// A wait for a lock of the database is no part of it, and neither is a wait in which the call
    /// was dropped.
    pub waited: Duration,
    /// The attempt that ran the body of this call, or whose outcome answered it. The first attempt
    /// is 1. `None` if no attempt did.
    pub attempt: Option<u32>,
    /// The kind of the store's error that refused the call, or for which its outcome is not
    /// recorded yet.
    pub store_error: Option<StoreErrorKind>,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallOutcome {
    /// Its own body ran, and how it ended is recorded, or will be.
    Executed,
    /// Its own body ran, after another holder had vanished.
    ExecutedAfterTakeover,
    /// Its own body ran in a transaction of the application's: the outcome stands if that commits.
    ExecutedInTransaction,
    /// Its own body ran, and nothing is recorded: the next call runs it again.
    Released,
    /// Its own body ran, and it is for an operator to find out what became of it.
    LeftUncertain,
    /// Its own body ran in a transaction that was rolled back: nothing of it stands.
    RolledBack,
    /// Its caller dropped it, or its runtime ended, before it had an answer.
    Dropped,
    /// Code of the application's panicked: its body, another part of it that the call ran, or the
    /// code that awaited the call.
    Panicked,
    /// Its reconciling function said what became of an attempt that had vanished.
    Reconciled,
    /// The recorded outcome, found at once.
    Replayed,
    /// The recorded outcome, after waiting for the call that ran.
    ReplayedAfterWait,
    /// [`Error::InProgress`](crate::Error::InProgress).
    InProgress,
    /// [`Error::KeyReused`](crate::Error::KeyReused).
    KeyReused,
    /// [`Error::Uncertain`](crate::Error::Uncertain).
    Uncertain,
    /// [`Error::Parked`](crate::Error::Parked).
    Parked,
    /// Its own body ran, but the lease was lost.
    LeaseLost,
    /// [`Error::Store`](crate::Error::Store), where no body ran whose work was rolled back, or
    /// [`Error::CommitUnknown`](crate::Error::CommitUnknown).
    StoreFailed,
    /// The transaction that the call was a part of had ended when its body returned; nothing is
    /// recorded.
    TransactionEnded,
    /// The stored outcome could not be given: unreadable, not loaded, or not replayable.
    NotReplayable,
    /// [`Error::Expired`](crate::Error::Expired).
    Expired,
    /// Its number is below the last one of its sequence.
    Past,
    /// Its number does not follow the last one of its sequence.
    Gap,
    /// The body ran unprotected.
    Unprotected,
    /// The call was refused before the store was asked.
    Refused,
}

impl CallOutcome {
    /// All of them.
    pub const ALL: [Self; 24] = [
        Self::Executed,
        Self::ExecutedAfterTakeover,
        Self::ExecutedInTransaction,
        Self::Released,
        Self::LeftUncertain,
        Self::RolledBack,
        Self::Dropped,
        Self::Panicked,
        Self::Reconciled,
        Self::Replayed,
        Self::ReplayedAfterWait,
        Self::InProgress,
        Self::KeyReused,
        Self::Uncertain,
        Self::Parked,
        Self::LeaseLost,
        Self::StoreFailed,
        Self::TransactionEnded,
        Self::NotReplayable,
        Self::Expired,
        Self::Past,
        Self::Gap,
        Self::Unprotected,
        Self::Refused,
    ];

    /// Its name, as metrics spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Executed => "executed",
            Self::ExecutedAfterTakeover => "executed_after_takeover",
            Self::ExecutedInTransaction => "executed_in_transaction",
            Self::Released => "released",
            Self::LeftUncertain => "left_uncertain",
            Self::RolledBack => "rolled_back",
            Self::Dropped => "dropped",
            Self::Panicked => "panicked",
            Self::Reconciled => "reconciled",
            Self::Replayed => "replayed",
            Self::ReplayedAfterWait => "replayed_after_wait",
            Self::InProgress => "in_progress",
            Self::KeyReused => "key_reused",
            Self::Uncertain => "uncertain",
            Self::Parked => "parked",
            Self::LeaseLost => "lease_lost",
            Self::StoreFailed => "store_failed",
            Self::TransactionEnded => "transaction_ended",
            Self::NotReplayable => "not_replayable",
            Self::Expired => "expired",
            Self::Past => "past",
            Self::Gap => "gap",
            Self::Unprotected => "unprotected",
            Self::Refused => "refused",
        }
    }

    /// Says in words how the call ended, for people who read the log.
    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::Executed => "ran the body",
            Self::ExecutedAfterTakeover => "ran the body after another holder had vanished",
            Self::ExecutedInTransaction => "ran the body in the caller's transaction",
            Self::Released => "ran the body and recorded nothing",
            Self::LeftUncertain => "ran the body and left its outcome uncertain",
            Self::RolledBack => "ran the body in a transaction that was rolled back",
            Self::Dropped => "was dropped before it had an answer",
            Self::Panicked => "panicked",
            Self::Reconciled => "found out what became of an earlier attempt",
            Self::Replayed => "replayed the recorded outcome",
            Self::ReplayedAfterWait => "replayed the recorded outcome after a wait",
            Self::InProgress => "refused: another call runs",
            Self::KeyReused => "refused: the key came with other arguments",
            Self::Uncertain => "refused: it is unknown whether an earlier attempt happened",
            Self::Parked => "refused: an operator has to decide",
            Self::LeaseLost => "ran the body and lost its lease",
            Self::StoreFailed => "refused: the store failed",
            Self::TransactionEnded => "ran the body, and its transaction had ended",
            Self::NotReplayable => "refused: the outcome cannot be replayed",
            Self::Expired => "refused: the outcome has expired",
            Self::Past => "answered: the number is past",
            Self::Gap => "refused: numbers before its own are missing",
            Self::Unprotected => "ran the body without a record",
            Self::Refused => "refused before the store was asked",
        }
    }
}
