//! Lists of records for operators, by pages.

use std::sync::Arc;

use async_trait::async_trait;

use super::StoreError;
use crate::{
    identity::RecordId,
    record::{Record, Time},
};

/// Lists records along an index. [`Store::lists`](super::Store::lists) offers it.
///
/// Errors and cancel safety are those of [`Store`](super::Store). A list is no snapshot: a record
/// that is written or deleted meanwhile may be listed as it was, or not at all.
#[async_trait]
pub trait RecordList: Send + Sync {
    /// Lists at most `limit` records in this order, those behind `after`, in one round trip. `None`
    /// says that the store has no index for the order: its caller then walks over
    /// [everything](ListOrder::Everything), or where the store does not list that either, by
    /// [`scan`](super::Store::scan).
    async fn list(
        &self,
        order: ListOrder<'_>,
        after: Option<&ListPosition>,
        limit: u32,
    ) -> Result<Option<ListedPage>, StoreError>;

    /// Returns the next handful of all records, in an order of the store's own; from the beginning
    /// where no `place` is given. So long as the same server answers, a record that is there all
    /// the time is in one of them at least, and may be in two. Returns `None`, the default, where
    /// the store has no such order: its caller then walks over them by their ids. Records that are
    /// not of the `operation`, where one is given, may be left out.
    async fn handful(
        &self,
        place: Option<u64>,
        operation: Option<&str>,
    ) -> Result<Option<Handful>, StoreError> {
        let _ = (place, operation);
        Ok(None)
    }
}

/// Some of all records, as they come.
#[derive(Clone, Debug)]
pub struct Handful {
    /// The time by the clock of the store.
    pub now: Time,
    /// The records, in any order.
    pub records: Vec<ListedRecord>,
    /// How many records beside them could not be read.
    pub damaged: u64,
    /// How many records beside these are of another operation, and were left out.
    pub left_out: u64,
    /// The place of the next handful; `None` at the end.
    pub next: Option<u64>,
}

/// An order in which records are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListOrder<'a> {
    /// Those that [need somebody](crate::record::State::needs_attention), by their ids.
    Attention,
    /// Those of this operation, the newest first, and by their ids where they are equally new.
    Operation(&'a str),
    /// All of them, by their ids.
    Everything,
}

/// The place of a record in a list: another page begins behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListPosition {
    /// When the record was created.
    pub created: Time,
    /// The id of the record.
    pub id: RecordId,
}

/// One page of a list.
#[derive(Clone, Debug)]
pub struct ListedPage {
    /// The time by the clock of the store.
    pub now: Time,
    /// The records, in the order that was asked for.
    pub records: Vec<ListedRecord>,
    /// How many records beside them could not be read.
    pub damaged: u64,
    /// Whether the list ends here.
    pub is_last: bool,
}

/// A record as it is listed: without the bytes of its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedRecord {
    /// The id of the record.
    pub id: RecordId,
    /// The record, whose outcome has no bytes.
    pub record: Arc<Record>,
    /// How many bytes the outcome has.
    pub outcome_bytes: u64,
}

impl ListedRecord {
    /// Lists a record that was read whole.
    #[must_use]
    pub fn of(id: RecordId, record: &Record) -> Self {
        let mut record = record.clone();
        let outcome = record.outcome.as_mut();
        let bytes = outcome.map(|outcome| std::mem::take(&mut outcome.bytes));
        Self {
            id,
            record: Arc::new(record),
            outcome_bytes: bytes.map_or(0, |bytes| bytes.len() as u64),
        }
    }

    /// The place behind which another page begins.
    #[must_use]
    pub fn position(&self) -> ListPosition {
        ListPosition {
            created: self.record.created,
            id: self.id,
        }
    }
}
