//! The answer of a statement, as the protocol sees it. Damage is a typed error that says what was
//! being done.

use std::sync::Arc;

use super::{Cell, Damaged, Row, decode};
#[cfg(any(feature = "postgres", feature = "sqlite"))]
use crate::store::Swap;
#[cfg(any(feature = "mysql", feature = "postgres"))]
use crate::store::version_cache::CachedVersion;
use crate::{
    record::Version,
    store::{Snapshot, Stamp, StoreError, StoreErrorKind},
};

/// The first column of a write's answer if another version stood there. The time follows, and then
/// the record.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) const REFUSED: i64 = 0;

/// The first column of a write's answer if it was applied. The stamp follows, which begins with the
/// time.
#[cfg(any(feature = "postgres", feature = "redis", feature = "sqlite"))]
pub(crate) const APPLIED: i64 = 1;

/// Tells whether a write was applied. If that cannot be read, it may have been.
#[cfg(any(feature = "postgres", feature = "redis", feature = "sqlite"))]
pub(crate) fn is_applied(row: &impl Row, doing: &'static str) -> Result<bool, StoreError> {
    row.number(0)
        .map(|answer| answer == Some(APPLIED))
        .map_err(|error| StoreError::new(StoreErrorKind::Other, doing).with_source(error))
}

/// Reads the answer to a write of `version`. If it was refused, the columns of the record begin at
/// `record`.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) fn swapped(
    row: &impl Row,
    record: usize,
    version: Version,
    doing: &'static str,
) -> Result<Swap, StoreError> {
    const NOW: usize = 1;
    if is_applied(row, doing)? {
        stamp(row, NOW, version, doing).map(Swap::Applied)
    } else {
        snapshot(row, NOW, record, doing).map(Swap::Refused)
    }
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

/// Reads the time and the outcome of a record that still stands as it is known; `None` if the
/// outcome must be there and is not.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) fn again(
    row: &impl Row,
    known: &CachedVersion,
    doing: &'static str,
) -> Result<Option<Snapshot>, StoreError> {
    let corrupt = |damaged| corrupt(damaged, doing);
    let cell = |place, column| Cell { row, place, column };
    let now = cell(0, "now").time().map_err(corrupt)?;
    let outcome = cell(1, "outcome").bytes().map_err(corrupt)?;
    Ok(known.with(outcome).map(|record| Snapshot {
        now,
        record: Some(record),
    }))
}

/// Reads the stamp of a write, whose time, token, end of lease and end of retention begin at
/// `first`. If one of them is damaged, the write stands all the same.
pub(crate) fn stamp(
    row: &impl Row,
    first: usize,
    version: Version,
    doing: &'static str,
) -> Result<Stamp, StoreError> {
    decode::stamp(row, first, version)
        .map_err(|damaged| StoreError::new(StoreErrorKind::Other, doing).with_source(damaged))
}

pub(super) fn corrupt(damaged: Damaged, doing: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, doing).with_source(damaged)
}
