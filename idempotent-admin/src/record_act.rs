//! The acts on a record, and how they end.

use crate::access::Act;

/// An act on a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordAct {
    Settle,
    Resume,
    Undo,
    Invalidate,
    /// One step of the call is settled.
    Step,
    /// The number is settled at which the stream stops.
    Number,
}

impl RecordAct {
    const ALL: [Self; 6] = [
        Self::Settle,
        Self::Resume,
        Self::Undo,
        Self::Invalidate,
        Self::Step,
        Self::Number,
    ];

    /// Those on the record as a whole.
    pub(crate) fn on_record() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|act| *act != Self::Step)
    }

    /// Those that can be done to many records at once: they need no value. A call is settled as
    /// done.
    pub(crate) const IN_BULK: [Self; 3] = [Self::Settle, Self::Resume, Self::Invalidate];

    /// The ways in which it may have ended, by their names in the form.
    pub(crate) fn ways(self) -> &'static [(&'static str, &'static str)] {
        const VALUE: (&str, &str) = ("value", "It happened, with this value.");
        const ERROR: (&str, &str) = ("error", "It failed for good, with this error.");
        const DONE: (&str, &str) = (
            "done",
            "It happened, and its value is not known: duplicates are refused.",
        );
        const NOT_DONE: (&str, &str) = ("not_done", "It did not happen: it runs again.");
        match self {
            Self::Settle => &[VALUE, ERROR, DONE],
            Self::Step => &[
                VALUE,
                ERROR,
                NOT_DONE,
                (
                    "undone",
                    "It was undone by hand: its undo does not run any more.",
                ),
            ],
            Self::Number => &[
                VALUE,
                ERROR,
                DONE,
                NOT_DONE,
                (
                    "skip",
                    "It is used up without an outcome: the stream goes on behind it.",
                ),
            ],
            Self::Resume | Self::Undo | Self::Invalidate => &[],
        }
    }

    /// The right that it needs.
    pub(crate) fn right(self) -> Act {
        match self {
            Self::Settle => Act::Settle,
            Self::Resume => Act::Resume,
            Self::Undo => Act::Undo,
            Self::Invalidate => Act::Invalidate,
            Self::Step => Act::SettleStep,
            Self::Number => Act::SettleNumber,
        }
    }

    /// Its name in links.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Settle => "settle",
            Self::Resume => "resume",
            Self::Undo => "undo",
            Self::Invalidate => "invalidate",
            Self::Step => "step",
            Self::Number => "number",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|act| act.name() == name)
    }
}

/// How an act ended. Nothing was changed, except by one that is done or not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Done,
    /// A field of the form makes no sense.
    Invalid(&'static str),
    /// Another version stands than the one that was seen.
    Moved(String),
    Refused(String),
    /// It is proposed to a second person.
    Proposed,
    NotProposed(String),
    /// The store did not answer.
    Unknown(String),
}
