//! Records to and from SQLite's rows.

use std::{error::Error, sync::Arc};

use sqlx::{
    Row as _,
    query::Query,
    sqlite::{Sqlite, SqliteArguments, SqliteRow},
};

use crate::{
    identity::RecordId,
    record::{Record, Version},
    store::{
        Snapshot, Stamp, StoreError, StoreErrorKind,
        sql::{self, Cell, Damaged, Value},
    },
};

impl sql::Row for SqliteRow {
    fn bytes(&self, place: usize) -> Result<Option<Vec<u8>>, Box<dyn Error + Send + Sync>> {
        Ok(self.try_get(place)?)
    }
    fn text(&self, place: usize) -> Result<Option<String>, Box<dyn Error + Send + Sync>> {
        Ok(self.try_get(place)?)
    }
    fn number(&self, place: usize) -> Result<Option<i64>, Box<dyn Error + Send + Sync>> {
        Ok(self.try_get(place)?)
    }
}

/// Adds a parameter to a query.
pub(super) fn bind<'q>(
    query: Query<'q, Sqlite, SqliteArguments>,
    value: Value<'_>,
) -> Query<'q, Sqlite, SqliteArguments> {
    match value {
        Value::Bytes(bytes) => query.bind(bytes.map(std::borrow::Cow::into_owned)),
        Value::Text(text) => query.bind(text.map(str::to_owned)),
        Value::Number(number) => query.bind(number),
    }
}

/// Reads what a write answers in its first column.
pub(super) fn answer(row: &SqliteRow, doing: &'static str) -> Result<Option<i64>, StoreError> {
    sql::Row::number(row, 0)
        .map_err(|error| StoreError::new(StoreErrorKind::Corrupt, doing).with_source(error))
}

/// Reads the time at `first` and the record after it.
pub(super) fn snapshot(
    row: &SqliteRow,
    first: usize,
    doing: &'static str,
) -> Result<Snapshot, StoreError> {
    let corrupt = |damaged| corrupt(damaged, doing);
    let now = Cell {
        row,
        place: first,
        column: "now",
    }
    .time()
    .map_err(corrupt)?;
    let record = sql::record(row, first + 1).map_err(corrupt)?;
    Ok(Snapshot {
        now,
        record: record.map(|(_, record)| Arc::new(record)),
    })
}

pub(super) fn stamp(
    row: &SqliteRow,
    first: usize,
    version: Version,
    doing: &'static str,
) -> Result<Stamp, StoreError> {
    sql::stamp(row, first, version).map_err(|damaged| corrupt(damaged, doing))
}

pub(super) fn listed(
    row: &SqliteRow,
    doing: &'static str,
) -> Result<(RecordId, Arc<Record>), StoreError> {
    match sql::record(row, 0).map_err(|damaged| corrupt(damaged, doing))? {
        Some((id, record)) => Ok((id, Arc::new(record))),
        None => {
            Err(StoreError::new(StoreErrorKind::Corrupt, doing)
                .with_source("the column `id` is NULL"))
        }
    }
}

pub(super) fn id(row: &SqliteRow, doing: &'static str) -> Result<RecordId, StoreError> {
    sql::id(row, 0).map_err(|damaged| corrupt(damaged, doing))
}

fn corrupt(damaged: Damaged, doing: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, doing).with_source(damaged)
}
