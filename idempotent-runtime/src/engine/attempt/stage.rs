//! Stages of a body.

/// How far a body has come, or the reconciliation before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stage {
    /// The body runs; no function is to be asked.
    Body,
    /// The reconciling function is to be asked first.
    Ask,
    /// It knew: the body block returns its answer.
    Answered,
    /// It did not know.
    Unknown,
    /// It said *run again*.
    RunAgain,
    /// The body has said that it happened, and only gives away an outcome that is not kept.
    Happened,
    /// Likewise, and it said that it is unknown what happened.
    InDoubt,
}
