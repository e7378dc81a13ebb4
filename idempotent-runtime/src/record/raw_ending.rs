//! The ending of a body on bytes.

use super::RawOutcome;

/// How a body on bytes ends; its own caller gets the outcome in each case.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RawEnding {
    /// This is the outcome: it is recorded, and answers duplicates.
    Record(RawOutcome),
    /// It happened, and its outcome is not to be kept: duplicates get
    /// [`Error::NotReplayable`](crate::Error::NotReplayable).
    RecordWithoutOutcome(RawOutcome),
    /// Nothing happened: a retry runs again.
    Release(RawOutcome),
    /// The body was not let begin. It says nothing of what an earlier attempt did: a retry runs as
    /// if this one had not been.
    NotBegun(RawOutcome),
    /// It is unknown what happened.
    Uncertain(RawOutcome),
}
