//! Observers of calls, for metrics and for explanations.

mod observers;
mod outbox;

use std::{sync::Arc, time::Duration};

pub(crate) use self::observers::Observers;
pub use self::outbox::OutboxEvent;
use crate::{
    identity::RecordId, protocol::Meaning, record::FencingToken, record::Time, store::StoreError,
};

/// Is told of every transition of a record, every answer to a call and every purge, on the task
/// where it happens: it must be quick. It can change nothing, and a panic in it is swallowed.
pub trait Observer: Send + Sync {
    /// A record changed, or a heartbeat failed.
    fn transition(&self, transition: &RecordEvent<'_>) {
        let _ = transition;
    }

    /// A call was answered, or refused: once for each call that gave its caller something. A call
    /// that was dropped gave nothing, and so did one whose body panicked: the
    /// [transition](Self::transition) tells of its record. A call in a task of its own is answered
    /// when its body has ended. This is not called if its runtime ends first.
    fn answered(&self, answered: &CallEvent<'_>) {
        let _ = answered;
    }

    /// A front end refused a request before there was a call, or a consumer settled a message.
    fn front_end(&self, event: &FrontEndEvent<'_>) {
        let _ = event;
    }

    /// A relay of [the handle](crate::outbox::RelayBuilder::idempotency) did something.
    fn outbox(&self, event: &OutboxEvent<'_>) {
        let _ = event;
    }

    /// A purge ended: one that was asked for, or a turn of a [`PurgeTask`](crate::PurgeTask).
    fn purged(&self, purged: &Purged<'_>) {
        let _ = purged;
    }
}

/// A change of a record.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RecordEvent<'a> {
    /// The operation.
    pub operation: &'a str,
    /// The record.
    pub id: RecordId,
    /// The kind of the change.
    pub change: RecordChange,
    /// The attempt that it happened to.
    pub attempt: u32,
}

/// The kind of a change of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecordChange {
    /// A first claim stands: the body is about to run.
    Claimed,
    /// A claim over a holder that vanished stands: the body is about to run again.
    TakenOver,
    /// A claim over a holder that vanished stands: the reconciling function is about to be asked.
    Reconciling,
    /// A claim of a larger number stands over one whose holder vanished, and which may never run.
    Passed,
    /// Another transaction was in the way of a call's own, and it is tried again.
    TriedAgain,
    /// A duplicate waits for the call that runs.
    Waiting,
    /// The outcome is recorded.
    Recorded,
    /// The outcome is written in a transaction of the application's: it stands if that commits.
    Staged,
    /// The outcome is recorded as *done, not replayable*.
    RecordedNotReplayable,
    /// The outcome could not be recorded yet; the lease is kept, and the write is tried again.
    NotYetRecorded,
    /// The record was released.
    Released,
    /// The record was left uncertain.
    LeftUncertain,
    /// The record was parked.
    Parked,
    /// The call failed for good, and what its steps did is being undone.
    Undoing,
    /// The lease was ended, and the next call goes on. This call was dropped, or panicked, or says
    /// that nothing happened and cannot know what the holder before it had done.
    Stopped,
    /// A heartbeat prolonged the lease.
    Heartbeat,
    /// A heartbeat failed; the lease still holds.
    HeartbeatFailed,
    /// The lease is lost.
    LeaseLost,
    /// An operator settled the record.
    Settled,
    /// An operator used up a number.
    Skipped,
    /// An operator gave up the outcome of a finished record: the next call runs.
    Invalidated,
}

impl RecordChange {
    /// The change that observers are told of for a claim that stands.
    pub(crate) fn of_claim(meaning: Meaning, passes: bool) -> Self {
        match meaning {
            Meaning::Reconcile => Self::Reconciling,
            Meaning::Takeover if passes => Self::Passed,
            Meaning::Takeover | Meaning::GoOn | Meaning::Undo => Self::TakenOver,
            _ => Self::Claimed,
        }
    }
}

/// How a purge ended.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Purged<'a> {
    /// How many records it deleted.
    pub deleted: u64,
    /// The error that cut it short; a [`PurgeTask`](crate::PurgeTask) tries again at its next turn.
    pub failure: Option<&'a StoreError>,
}

/// An answer to a call.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CallEvent<'a> {
    /// The operation.
    pub operation: &'a str,
    /// The record; `None` when the call was refused before it had one.
    pub id: Option<RecordId>,
    /// Which answer it was, and so why the body ran or did not.
    pub outcome: CallOutcome,
    /// How long the call took, body and waiting included.
    pub elapsed: Duration,
}

/// A request that a front end refused by itself, or a message and its disposition.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FrontEndEvent<'a> {
    /// The front end: `http`, or `consumer`.
    pub front_end: &'static str,
    /// The operation.
    pub operation: &'a str,
    /// The kind of the refusal, in the words of the front end, such as `idempotency_key_missing`.
    /// For a message it is `ack`, `duplicate`, `retry`, or the reason of a dead letter.
    pub kind: &'a str,
    /// The record, where the request or the message names one.
    pub record: Option<RecordId>,
}

impl<'a> FrontEndEvent<'a> {
    /// Makes an event.
    #[must_use]
    pub fn new(
        front_end: &'static str,
        operation: &'a str,
        kind: &'a str,
        record: Option<RecordId>,
    ) -> Self {
        Self {
            front_end,
            operation,
            kind,
            record,
        }
    }
}

/// Which answer a call got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallOutcome {
    /// Its own body ran.
    Executed,
    /// Its own body ran, after another holder had vanished.
    ExecutedAfterTakeover,
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
    /// [`Error::Store`](crate::Error::Store).
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

/// How a call came by its result: the detailed form's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallReport {
    /// Its own body ran, or its reconciling function answered.
    #[non_exhaustive]
    Executed {
        /// The number of the attempt.
        attempt: u32,
        /// Its fencing token.
        token: FencingToken,
        /// Whether the given outcome stands in the store; if not, the write is being tried again in
        /// the background.
        recorded: bool,
        /// Whether another attempt took over meanwhile, and its outcome is given.
        taken_over: bool,
    },
    /// An earlier outcome was replayed.
    #[non_exhaustive]
    Replayed {
        /// When that outcome was recorded, by the store's clock.
        finished: Time,
        /// How long ago that was.
        age: Duration,
        /// The number of the attempt that made it.
        attempt: u32,
        /// Whether this call waited for it.
        waited: bool,
        /// The `traceparent` of the call that made it, where it gave one.
        trace_parent: Option<Arc<str>>,
    },
    /// The body ran without a record.
    Unprotected(UnprotectedReason),
    /// There was no answer except an [`Error`](crate::Error).
    Refused,
}

impl CallReport {
    /// Whether the outcome that is given is that of another call or attempt.
    pub(crate) fn is_of_another(&self) -> bool {
        match self {
            Self::Replayed { .. } => true,
            Self::Executed { taken_over, .. } => *taken_over,
            Self::Unprotected(_) | Self::Refused => false,
        }
    }
}

/// Why a body ran without a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UnprotectedReason {
    /// The handle is switched off.
    Disabled,
    /// This call opted out.
    OptedOut,
    /// The key, or a part of it, was `None`, and the policy says to run.
    MissingKey,
    /// The store could not be reached, and the policy says to run.
    StoreOutage,
}
