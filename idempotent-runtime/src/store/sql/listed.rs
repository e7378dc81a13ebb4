//! The rows of a list, and ids that stand alone in a row.

use std::sync::Arc;

use super::{COLUMNS, Cell, Row, answers::corrupt, decode};
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

/// Reads an id that stands alone in a row.
pub(crate) fn id(row: &impl Row, doing: &'static str) -> Result<RecordId, StoreError> {
    let id = Cell {
        row,
        place: 0,
        column: COLUMNS[0],
    };
    let bytes = id.array().map_err(|damaged| corrupt(damaged, doing))?;
    Ok(RecordId::from_bytes(bytes))
}
