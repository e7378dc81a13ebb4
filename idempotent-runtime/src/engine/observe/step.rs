//! The ends of steps, and of their undos.

use crate::identity::RecordId;

/// A step that has ended, or an undo.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct StepEvent<'a> {
    /// The operation of the call.
    pub operation: &'a str,
    /// The record of the call.
    pub id: RecordId,
    /// The literal text of the step's name.
    pub step: &'a str,
    /// How it ended.
    pub outcome: StepOutcome,
}

/// How a step ended, or its undo. A step that is refused, or that is dropped, has no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StepOutcome {
    /// Its body ran, and the outcome is recorded.
    Executed,
    /// An earlier outcome answered, and its body did not run.
    Replayed,
    /// Its body ran, and nothing is recorded: it runs again.
    Released,
    /// Its body ran, and it is for an operator to find out what became of it.
    LeftUncertain,
    /// It is undone.
    Undone,
    /// It could not be undone: an operator has to.
    NotUndone,
}

impl StepOutcome {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Executed,
        Self::Replayed,
        Self::Released,
        Self::LeftUncertain,
        Self::Undone,
        Self::NotUndone,
    ];

    /// Its name, as metrics spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Executed => "executed",
            Self::Replayed => "replayed",
            Self::Released => "released",
            Self::LeftUncertain => "left_uncertain",
            Self::Undone => "undone",
            Self::NotUndone => "not_undone",
        }
    }
}
