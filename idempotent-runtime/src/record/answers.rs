//! The answers of a store.

use std::sync::Arc;

use super::{FencingToken, Record, Step, Time, Version};

/// The record under an id at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The time by the store's clock when it looked.
    pub now: Time,
    /// The record, if one stands there, expired or not.
    pub record: Option<Arc<Record>>,
}

/// The result of a swap.
#[derive(Clone, Debug)]
pub enum Swap {
    /// The draft stands.
    Applied(Stamp),
    /// Another version stood there; nothing was written.
    Refused(Snapshot),
}

/// The result of a step that was to be written.
#[derive(Clone, Debug)]
pub enum StepWrite {
    /// It stands.
    Written,
    /// Another version stands under its name; nothing was written.
    Stands(Arc<Step>),
    /// The record does not take steps of this attempt, as it stands here; nothing was written.
    Lost(Snapshot),
}

/// The values that a store resolved while it wrote a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The version that stands now.
    pub version: Version,
    /// The fencing token.
    pub token: FencingToken,
    /// When the lease ends.
    pub lease_end: Time,
    /// When the record stops binding calls.
    pub expires: Time,
    /// The time by the store's clock at the write.
    pub now: Time,
}

impl Stamp {
    /// The stamp of a record that was written at `now`.
    #[must_use]
    pub fn from_record(record: &Record, now: Time) -> Self {
        Self {
            version: record.version,
            token: record.token,
            lease_end: record.lease_end,
            expires: record.expires,
            now,
        }
    }
}
