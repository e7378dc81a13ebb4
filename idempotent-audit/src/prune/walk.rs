//! The entries that a pruning may take, record by record.

use idempotent_runtime::{__audit::Row, BoxError};
use sqlx::{Either, pool::PoolConnection};

use super::{PRUNED, PRUNING};
use crate::{
    database::TrailDatabase, error::AuditError, hold::Keeper, names::Names, seal::damaged,
};

/// An entry, as far as it decides whether it may go.
#[derive(Default)]
struct Line {
    number: i64,
    batch: i64,
    source: String,
    kind: String,
    record: Option<Vec<u8>>,
    step: Option<Vec<u8>>,
    operation: Option<String>,
    written: i64,
}

impl Line {
    fn read(row: &impl Row) -> Result<Self, BoxError> {
        Ok(Self {
            number: row.number(0)?.unwrap_or_default(),
            batch: row.number(1)?.unwrap_or_default(),
            source: row.text(2)?.unwrap_or_default(),
            kind: row.text(3)?.unwrap_or_default(),
            record: row.bytes(4)?,
            step: row.bytes(5)?,
            operation: row.text(6)?,
            written: row.number(7)?.unwrap_or_default(),
        })
    }

    /// Whether it is held against the row itself by a verification.
    fn is_of_row(&self) -> bool {
        matches!(&*self.source, "record" | "step")
    }
}

/// Finds the entries that a pruning may take: of those up to the first batch it counts all, and of
/// those up to the second one it takes some.
pub(super) async fn find<DB: TrailDatabase>(
    connection: &mut PoolConnection<DB>,
    names: &Names,
    keeper: Keeper,
    (to, until): (i64, i64),
) -> Result<Walk, AuditError> {
    let entries = names.entries();
    let text = format!(
        "SELECT number, batch, source, kind, record, step, operation, written FROM {entries}
         WHERE batch <= {to} AND source <> '{PRUNED}' ORDER BY record, source, step, number"
    );
    let mut walk = Walk {
        keeper,
        until,
        ..Walk::default()
    };
    let mut failed = None;
    let take = |next: Either<DB::QueryResult, DB::Row>| {
        let Either::Right(row) = next else { return };
        match Line::read(&row) {
            Ok(line) => walk.take(line),
            Err(error) => failed = failed.take().or(Some(error)),
        }
    };
    let read = DB::each(connection, text, take).await;
    read.map_err(|error| DB::store_error(error, PRUNING))?;
    if let Some(error) = failed {
        return Err(damaged(error).into());
    }
    walk.end();
    Ok(walk)
}

/// The source, the record and the step of a row.
type RowName = (String, Option<Vec<u8>>, Option<Vec<u8>>);

/// The entries, record by record.
#[derive(Default)]
pub(super) struct Walk {
    keeper: Keeper,
    until: i64,
    /// How many there are, whatever becomes of them.
    pub(super) seen: i64,
    /// The entry before, if it may go unless it is the last one of a row that stands.
    last: Option<Line>,
    /// The row of which one is kept, and so all behind it.
    kept: Option<RowName>,
    pub(super) prunable: Vec<i64>,
}

impl Walk {
    fn take(&mut self, line: Line) {
        self.seen += 1;
        if line.batch > self.until {
            return;
        }
        let of = |line: &Line| (line.source.clone(), line.record.clone(), line.step.clone());
        let row = of(&line);
        if let Some(last) = self.last.take() {
            let has_next = of(&last) == row;
            self.leave(&last, has_next);
        }
        let (record, operation) = (line.record.as_ref(), line.operation.as_ref());
        let is_held = self.keeper.keeps(record, operation, line.written);
        if line.is_of_row() && self.kept.as_ref() == Some(&row) {
            return;
        }
        match is_held {
            true => self.kept = Some(row),
            false => self.last = Some(line),
        }
    }

    fn leave(&mut self, line: &Line, has_next: bool) {
        if has_next || line.kind == "deleted" || !line.is_of_row() {
            self.prunable.push(line.number);
        }
    }

    fn end(&mut self) {
        if let Some(last) = self.last.take() {
            self.leave(&last, false);
        }
    }
}
