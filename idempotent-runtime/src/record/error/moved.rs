//! The version that stands where an operator meant another one.

use std::{fmt, sync::Arc};

use super::super::{Note, Record, Step, Time, Version};

/// The version of a record, or of a step, that stands where an operator meant another one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Moved {
    /// The version that stands.
    pub version: Version,
    /// The person who wrote it; `None` if a program did, or a person who gave no name.
    pub by: Option<Arc<str>>,
    /// The label of the process that holds the record, or held it last.
    pub holder: Arc<str>,
    /// When the record last left [`State::Running`](crate::operate::State::Running), by the store's
    /// clock; `None` where it runs, and of a step.
    pub at: Option<Time>,
}

impl Moved {
    pub(crate) fn record(record: &Record) -> Self {
        Self {
            version: record.version,
            by: by(record.note.as_deref()),
            holder: Arc::clone(&record.holder.label),
            at: record.finished,
        }
    }

    pub(crate) fn step(record: &Record, step: &Step) -> Self {
        Self {
            version: step.version,
            by: by(step.note.as_deref()),
            holder: Arc::clone(&record.holder.label),
            at: None,
        }
    }
}

fn by(note: Option<&Note>) -> Option<Arc<str>> {
    note.and_then(|note| note.by.clone())
}

impl fmt::Display for Moved {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let holder = self.holder.escape_debug();
        formatter.write_str("it was written since you looked")?;
        match self.by.as_deref().map(str::escape_debug) {
            Some(by) => write!(formatter, ", by {by}")?,
            None => write!(formatter, ", and `{holder}` holds it, or held it last")?,
        }
        match self.at {
            Some(at) => write!(formatter, " (it ended at {at})"),
            None => Ok(()),
        }
    }
}
