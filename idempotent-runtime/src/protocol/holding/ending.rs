//! The ways in which a holder ends.

use crate::record::RawOutcome;

/// How a holder ends.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// It records the outcome.
    Done(RawOutcome),
    /// The body's own word, by its verdict on the error it returned, that it did nothing.
    Release,
    /// The same, or an error of ours, after steps that are recorded: the next call goes on with
    /// them.
    GiveBack,
    /// The body's own word, or a reconciliation's, that it is unknown whether it happened.
    Uncertain,
    /// The body failed for good, with this error, and its steps are to be undone.
    Undo(RawOutcome),
    /// The same, and it leaves that to the next holder.
    LeftToUndo(RawOutcome),
    /// Some of them could not be undone.
    NotUndone,
    /// It was dropped while it undid them: its caller left, and nothing vanished.
    Left,
    /// It was dropped, or panicked, before the body was polled.
    Unpolled,
    /// It was dropped, or panicked, after the body was polled.
    Stopped,
}

impl Ending {
    /// The error of a call whose steps are to be undone.
    #[must_use]
    pub fn error(&self) -> Option<RawOutcome> {
        match self {
            Ending::Undo(error) => Some(error.clone()),
            _ => None,
        }
    }
}
