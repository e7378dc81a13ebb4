//! The rows of a list, and ids that stand alone in a row.

use std::sync::Arc;

use super::{COLUMNS, Cell, Row, answers::corrupt, decode};
#[cfg(feature = "mysql")]
use crate::record::Time;
#[cfg(any(feature = "mysql", feature = "postgres"))]
use crate::store::Snapshot;
use crate::{
    identity::RecordId,
    record::Record,
    store::{StoreError, StoreErrorKind},
};

/// Reads a row of a list.
pub(crate) fn listed(
    row: &impl Row,
    doing: &'static str,
) -> Result<(RecordId, Arc<Record>), StoreError> {
    match decode::record(row, 0).map_err(|damaged| corrupt(damaged, doing))? {
        Some((id, record)) => Ok((id, Arc::new(record))),
        None => {
            Err(StoreError::new(StoreErrorKind::Corrupt, doing)
                .with_source("the column `id` is NULL"))
        }
    }
}

/// Reads a row of a look at many records, which has the time behind the record.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) fn shown(
    row: &impl Row,
    doing: &'static str,
) -> Result<(RecordId, Snapshot), StoreError> {
    let (id, record) = listed(row, doing)?;
    let now = Cell {
        row,
        place: COLUMNS.len(),
        column: "now",
    };
    let now = now.time().map_err(|damaged| corrupt(damaged, doing))?;
    let record = Some(record);
    Ok((id, Snapshot { now, record }))
}

/// Reads an id that stands alone in a row.
pub(crate) fn id(row: &impl Row, doing: &'static str) -> Result<RecordId, StoreError> {
    id_at(row, 0, doing)
}

/// Reads an id that stands at this place of a row.
pub(crate) fn id_at(
    row: &impl Row,
    place: usize,
    doing: &'static str,
) -> Result<RecordId, StoreError> {
    let id = Cell {
        row,
        place,
        column: COLUMNS[0],
    };
    let bytes = id.array().map_err(|damaged| corrupt(damaged, doing))?;
    Ok(RecordId::from_bytes(bytes))
}

/// Reads a time that stands at this place of a row.
#[cfg(feature = "mysql")]
pub(crate) fn time_at(
    row: &impl Row,
    place: usize,
    doing: &'static str,
) -> Result<Time, StoreError> {
    let now = Cell {
        row,
        place,
        column: "now",
    };
    now.time().map_err(|damaged| corrupt(damaged, doing))
}

/// Reads a version that stands at this place of a row.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) fn version_at(
    row: &impl Row,
    place: usize,
    doing: &'static str,
) -> Result<[u8; 16], StoreError> {
    let version = Cell {
        row,
        place,
        column: "version",
    };
    version.array().map_err(|damaged| corrupt(damaged, doing))
}
