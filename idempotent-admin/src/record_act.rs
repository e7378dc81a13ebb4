//! The acts on a record.

use crate::access::Act;

/// An act on a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordAct {
    Settle,
    Resume,
    Undo,
    Invalidate,
}

impl RecordAct {
    pub(crate) const ALL: [Self; 4] = [Self::Settle, Self::Resume, Self::Undo, Self::Invalidate];

    /// The right that it needs.
    pub(crate) fn right(self) -> Act {
        match self {
            Self::Settle => Act::Settle,
            Self::Resume => Act::Resume,
            Self::Undo => Act::Undo,
            Self::Invalidate => Act::Invalidate,
        }
    }

    /// Its name in links.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Settle => "settle",
            Self::Resume => "resume",
            Self::Undo => "undo",
            Self::Invalidate => "invalidate",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|act| act.name() == name)
    }
}
