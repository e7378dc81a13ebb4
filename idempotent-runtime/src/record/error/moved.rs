//! The version that stands where an operator meant another one.

use std::{fmt, sync::Arc};

use super::super::{Note, Record, Step, Time, Version};

/// The version of a record, or of a step, that stands where an operator meant another one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Moved {
    /// The version that stands.
    pub version: Version,
    /// The person who wrote it, or else the label of the process that holds or held the record.
    pub by: Arc<str>,
    /// When the record last left [`State::Running`](crate::operate::State::Running), by the store's
    /// clock; `None` where it runs, and of a step.
    pub at: Option<Time>,
}

impl Moved {
    pub(crate) fn record(record: &Record) -> Self {
        Self {
            version: record.version,
            by: by(record.note.as_deref(), record),
            at: record.finished,
        }
    }

    pub(crate) fn step(record: &Record, step: &Step) -> Self {
        Self {
            version: step.version,
            by: by(step.note.as_deref(), record),
            at: None,
        }
    }
}

fn by(note: Option<&Note>, record: &Record) -> Arc<str> {
    let person = note.and_then(|note| note.by.as_ref());
    Arc::clone(person.unwrap_or(&record.holder.label))
}

impl fmt::Display for Moved {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "it was written since you looked, by {}", self.by)?;
        match self.at {
            Some(at) => write!(formatter, " at {at}"),
            None => Ok(()),
        }
    }
}
