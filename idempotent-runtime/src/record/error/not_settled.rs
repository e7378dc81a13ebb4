//! Why nothing was settled.

/// Why nothing was settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum NotSettled {
    /// The store has no record of this operation. A store with a thousand records or more is not
    /// looked through, and the key is named.
    #[error("the store knows no operation of this name")]
    UnknownOperation,
    /// No record stands under this scope and key: none was made, it was released, or it has
    /// expired.
    #[error("no call with this scope and key is known, or it was released, or has expired")]
    UnknownKey,
    /// It has an outcome.
    #[error("it has an outcome already")]
    AlreadySettled,
    /// Its holder lives, or this handle is about to record what its body returned.
    #[error("it is still running: wait until its lease is over")]
    StillRunning,
    /// It is not parked. Only a parked record can be resumed, and one that the next call would
    /// park.
    #[error("it is not parked: settle it with an outcome, or let the next call take over")]
    NotParked,
    /// The call has no step of this name.
    #[error("the call has no step of this name")]
    UnknownStep,
    /// Steps of it are not undone: `undo` or `resume` has the next call do so.
    #[error("steps of it are not undone: let the next call do so by `resume` or `undo`")]
    OpenUndos,
    /// The call has not failed for good, so no step of it is undone yet: `undo` has it fail.
    #[error("the call has not failed for good: `undo` has it fail with an error")]
    NotUndoing,
    /// It is the record of a sequence, which settles a number: see
    /// [`Sequence::settle`](crate::sequence::Sequence::settle).
    #[error("it is a sequence: settle its number by `Idempotency::sequence(…).settle(number)`")]
    IsSequence,
    /// It is the record of a call, which has no numbers: see [`Settle`](crate::Settle).
    #[error("it is a call, and no sequence: settle it by `Idempotency::settle_id`")]
    IsCall,
    /// It has no outcome that answers duplicates, so that none can be invalidated.
    #[error("it has no outcome to give up: only a finished record is invalidated")]
    NotFinished,
    /// The sequence does not stop at this number.
    #[error("the sequence does not stop at this number: ask `position` where it stands")]
    OtherNumber,
    /// The function that was settled could not read the value, or the error, back.
    #[error(
        "the function could not read this back: give a value of the type that it returns, or an error where it replays errors"
    )]
    Unreadable,
}
