//! Which calls of a store a fault meets, and what becomes of them.

use crate::{
    record::{Draft, Moment, State, TokenRule},
    store::StoreErrorKind,
    testing::Gate,
};

/// The kind of a call of a store. Swaps are told apart by their drafts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreOperation {
    /// [`Store::load`](crate::Store::load).
    Load,
    /// Every [`Store::swap`](crate::Store::swap).
    Swap,
    /// A swap that draws a new token: a claim or a takeover.
    Claim,
    /// A swap to running that keeps the token and prolongs the lease.
    Heartbeat,
    /// Every other swap: it ends a holding, or leaves a record to be settled.
    Ending,
    /// An ending that brings an outcome to replay, as a store may refuse for its size. Each of them
    /// is an [`Ending`](Self::Ending), too.
    Outcome,
    /// An ending that says that there was an outcome and that it cannot be replayed. Each of them
    /// is an [`Ending`](Self::Ending), too.
    NotReplayable,
    /// [`StepStore::load_steps`](crate::store::StepStore::load_steps).
    LoadSteps,
    /// [`StepStore::write_step`](crate::store::StepStore::write_step), also inside a transaction.
    WriteStep,
    /// [`Store::wait`](crate::Store::wait).
    Wait,
    /// [`Store::purge`](crate::Store::purge).
    Purge,
    /// [`Store::scan`](crate::Store::scan), and the pages of [`Store::lists`](crate::Store::lists).
    Scan,
    /// [`Store::for_heartbeats`](crate::Store::for_heartbeats).
    ForHeartbeats,
}

/// Which calls of an operation a fault meets. Calls are counted from 1 since the store was wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum On {
    /// The one with this number.
    Call(u64),
    /// The next one.
    Next,
    /// Every one until [`FaultyStore::heal`](crate::testing::FaultyStore::heal).
    Every,
}

/// How a fault changes a call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// It is answered with an error of this kind and not applied.
    Fail(StoreErrorKind),
    /// It never arrives: not applied, and the caller is told that the store did not answer.
    LoseRequest,
    /// It is applied, and the caller is told that the store did not answer.
    LoseAnswer,
    /// It is applied, and the caller is told an error of this kind.
    FailAnswer(StoreErrorKind),
    /// It is held at the gate before it is applied.
    Delay(Gate),
    /// It is applied, and its answer is held at the gate.
    DelayAnswer(Gate),
    /// The store panics, and it is not applied.
    Panic,
}

impl StoreOperation {
    /// The kind of a swap of this draft.
    pub(in crate::testing) fn of(draft: &Draft) -> Self {
        match (draft.token, draft.state, draft.lease) {
            (TokenRule::Above(_), ..) => StoreOperation::Claim,
            (TokenRule::Keep, State::Running, Moment::In(lease)) if !lease.is_zero() => {
                StoreOperation::Heartbeat
            }
            _ => StoreOperation::Ending,
        }
    }

    /// The work that an error names.
    pub(super) fn doing(self) -> &'static str {
        match self {
            StoreOperation::Load => "loading a record",
            StoreOperation::LoadSteps => "loading steps",
            StoreOperation::WriteStep => "writing a step",
            StoreOperation::Wait => "waiting for a record",
            StoreOperation::Purge => "purging expired records",
            StoreOperation::Scan => "listing records",
            StoreOperation::ForHeartbeats => "connecting for heartbeats",
            _ => "writing a record",
        }
    }
}
