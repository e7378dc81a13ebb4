//! Observers of calls, for metrics and for explanations.

mod call;
mod observers;
mod outages;
mod outbox;
mod sample;
mod step;

use std::{sync::Arc, time::Duration};

pub(crate) use self::observers::Observers;
pub use self::{
    call::{CallEvent, CallOutcome},
    outbox::OutboxEvent,
    sample::Sample,
    step::{StepEvent, StepOutcome},
};
use crate::{
    identity::RecordId,
    protocol::Meaning,
    record::{FencingToken, Time},
    store::{StoreError, StoreEvent},
};

/// Is told of every transition of a record, every answer to a call and every purge, on the task
/// where it happens: it must be quick. It can change nothing, and a panic in it is swallowed.
pub trait Observer: Send + Sync {
    /// A record changed, or a heartbeat failed.
    fn transition(&self, transition: &RecordEvent<'_>) {
        let _ = transition;
    }

    /// A call ended: once for each call that began. A call begins when its future is polled first,
    /// so one that was refused before it had a record has an event, too. A call in a task of its
    /// own ends with its body, or with its runtime.
    fn answered(&self, answered: &CallEvent<'_>) {
        let _ = answered;
    }

    /// A step ended, or its undo.
    fn step(&self, event: &StepEvent<'_>) {
        let _ = event;
    }

    /// A front end refused a request before there was a call, a consumer settled a message, or it
    /// was decided about a number.
    fn front_end(&self, event: &FrontEndEvent<'_>) {
        let _ = event;
    }

    /// A relay of [the handle](crate::outbox::RelayBuilder::idempotency) did something.
    fn outbox(&self, event: &OutboxEvent<'_>) {
        let _ = event;
    }

    /// A call of the store was answered, or failed; a heartbeat is one, too. Only an observer that
    /// [wants](Self::wants_store_events) these events is told of them.
    fn store(&self, event: &StoreEvent) {
        let _ = event;
    }

    /// Returns whether it wants the calls of the store. It is asked once, when the handle is built.
    /// The default is no: then no call is measured.
    fn wants_store_events(&self) -> bool {
        false
    }

    /// A [sampler](crate::Idempotency::sampler) of the handle read something.
    fn sampled(&self, sample: &Sample<'_>) {
        let _ = sample;
    }

    /// A person [reveals](crate::Idempotency::reveal) an outcome.
    fn revealed(&self, revealed: &RevealEvent<'_>) {
        let _ = revealed;
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
    /// A first claim is written: the body is about to run.
    Claimed,
    /// A claim over a holder that vanished is written: the body is about to run again.
    TakenOver,
    /// A claim over a holder that vanished is written: the reconciling function is about to run.
    Reconciling,
    /// A claim of a larger number is written over one whose holder vanished, which may never run.
    Passed,
    /// Another transaction was in the way of a call's own, and it is tried again.
    TriedAgain,
    /// A duplicate waits for the call that runs.
    Waiting,
    /// The outcome is recorded.
    Recorded,
    /// The outcome is written in a transaction of the application's: it counts if that commits.
    Staged,
    /// The body ran in a transaction of its own, which was rolled back: nothing of the call is left.
    RolledBack,
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
    /// Returns the change that observers hear of for a claim that was written.
    pub(crate) fn of_claim(meaning: Meaning, passes: bool) -> Self {
        match meaning {
            Meaning::Reconcile => Self::Reconciling,
            Meaning::Takeover if passes => Self::Passed,
            Meaning::Takeover | Meaning::GoOn | Meaning::Undo => Self::TakenOver,
            _ => Self::Claimed,
        }
    }
}

/// An outcome that a person reads.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RevealEvent<'a> {
    /// The operation.
    pub operation: &'a str,
    /// The record.
    pub id: RecordId,
    /// The person.
    pub by: &'a str,
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

/// A request that a front end refused by itself, a message and its disposition, or a number and
/// the decision about it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FrontEndEvent<'a> {
    /// The front end: `http`, `consumer`, or `sequence`.
    pub front_end: &'static str,
    /// The operation.
    pub operation: &'a str,
    /// The kind of the refusal, in the words of the front end, such as `idempotency_key_missing`.
    /// For a message it is `ack`, `duplicate`, `retry`, or the reason of a dead letter. For a
    /// number it is `applied`, `replayed`, `past`, `gap`, or `failed`.
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
        /// Whether the given outcome stands in the store. If not, the write is being tried again in
        /// the background, or the transaction of the call was rolled back.
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
