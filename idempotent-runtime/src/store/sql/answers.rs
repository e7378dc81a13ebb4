//! What a statement answered, as the protocol sees it; damage is a typed error that says what was being done.

use std::sync::Arc;

use super::{Cell, Damaged, Row, decode};
use crate::{
    record::Version,
    store::{Snapshot, Stamp, StoreError, StoreErrorKind},
};

/// Reads what a write answers in its first column.
#[cfg(any(feature = "postgres", feature = "redis", feature = "sqlite"))]
pub(crate) fn answer(row: &impl Row, doing: &'static str) -> Result<Option<i64>, StoreError> {
    row.number(0)
        .map_err(|error| StoreError::new(StoreErrorKind::Corrupt, doing).with_source(error))
}

/// Reads the time at `now`, and the record whose columns begin at `record`.
pub(crate) fn snapshot(
    row: &impl Row,
    now: usize,
    record: usize,
    doing: &'static str,
) -> Result<Snapshot, StoreError> {
    let corrupt = |damaged| corrupt(damaged, doing);
    let now = Cell {
        row,
        place: now,
        column: "now",
    }
    .time()
    .map_err(corrupt)?;
    let record = decode::record(row, record).map_err(corrupt)?;
    Ok(Snapshot {
        now,
        record: record.map(|(_, record)| Arc::new(record)),
    })
}

/// Reads the stamp of a write, whose time, token, end of lease and end of retention begin at `first`.
pub(crate) fn stamp(
    row: &impl Row,
    first: usize,
    version: Version,
    doing: &'static str,
) -> Result<Stamp, StoreError> {
    decode::stamp(row, first, version).map_err(|damaged| corrupt(damaged, doing))
}

pub(super) fn corrupt(damaged: Damaged, doing: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, doing).with_source(damaged)
}
