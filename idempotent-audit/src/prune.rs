//! Pruning: the fields of old entries go, and their leaves stay as long as anything of their batch
//! is kept. Then the batch goes, and its seal stays.

use std::time::Duration;

use idempotent_runtime::{__audit::Row, BoxError, StoreError, StoreErrorKind};
use serde_json::{Value as Json, json};
use sqlx::{Either, pool::PoolConnection};

use crate::{
    database::TrailDatabase,
    entry::FIELDS,
    error::AuditError,
    event::{self, NewEvent},
    hold::{self, Keeper},
    names::Names,
    seal::{damaged, seal_batch},
};

const PRUNING: &str = "pruning the audit";

/// The source and the kind of an entry whose fields are gone.
pub(crate) const PRUNED: &str = "pruned";

/// The events of a pruning: it begins, and it ends.
pub(crate) const BEGINS: &str = "prune";
pub(crate) const ENDS: &str = "pruned";

/// About how many entries are looked at in one round, and how many one statement writes.
const ROUND: u32 = 100_000;
const CHUNK: usize = 1_000;

/// How long a pruning waits until its beginning is sealed.
const PATIENCE: Duration = Duration::from_secs(30);

/// The result of a pruning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pruned {
    /// The last batch that was old enough; 0 if there was none.
    pub until: i64,
    /// How many entries lost their fields.
    pub entries: u64,
    /// How many batches went.
    pub batches: u64,
}

/// The facts of the last pruning that is sealed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pruning {
    /// The last batch that it may have pruned.
    pub(crate) to: i64,
    /// How many batches and entries were gone when it ended; `None` if it did not end.
    pub(crate) gone: Option<(i64, i64)>,
}

impl Pruning {
    /// Reads the details of the events, the newest first.
    pub(crate) fn read<'a>(events: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut pruning = Self::default();
        for (event, detail) in events {
            let detail: Json = serde_json::from_str(detail).unwrap_or_default();
            let number = |field| detail.get(field).and_then(Json::as_i64);
            match event {
                ENDS => pruning.gone = pruning.gone.or(number("batches").zip(number("entries"))),
                _ => {
                    pruning.to = number("to").unwrap_or(0);
                    break;
                }
            }
        }
        pruning
    }
}

pub(crate) async fn prune<DB: TrailDatabase>(
    connection: &mut PoolConnection<DB>,
    names: &Names,
    keep: Duration,
) -> Result<Pruned, AuditError> {
    let (entries, seals) = (names.entries(), names.seals());
    let keep = i64::try_from(keep.as_micros()).unwrap_or(i64::MAX);
    let old = format!(
        "SELECT max(batch) FROM {seals} WHERE sealed <= {} - {keep}",
        DB::NOW
    );
    let Some(until @ 1..) = number::<DB>(connection, old).await? else {
        return Ok(Pruned::default());
    };
    let detail = json!({ "to": until }).to_string();
    event::add::<DB>(connection, names, &NewEvent::new(BEGINS, &detail)).await?;
    seal_begin::<DB>(connection, names).await?;
    let mut pruned = Pruned {
        until,
        ..Pruned::default()
    };
    let mut to = 0;
    loop {
        let next = format!(
            "SELECT max(batch) FROM (SELECT batch FROM {entries} WHERE batch > {to} AND batch <= {until} ORDER BY batch LIMIT {ROUND}) AS next"
        );
        let Some(next) = number::<DB>(connection, next).await? else {
            break;
        };
        to = next;
        pruned.entries += take_fields::<DB>(connection, names, to).await?;
        pruned.batches += remove_batches::<DB>(connection, names, to).await?;
    }
    end::<DB>(connection, names).await?;
    Ok(pruned)
}

/// Seals until the beginning has its place: otherwise what is gone would be missing.
async fn seal_begin<DB: TrailDatabase>(
    connection: &mut PoolConnection<DB>,
    names: &Names,
) -> Result<(), AuditError> {
    let entries = names.entries();
    let open = format!(
        "SELECT count(*) FROM {entries} WHERE batch IS NULL AND source = 'event' AND label = '{BEGINS}'"
    );
    let begun = tokio::time::Instant::now();
    while number::<DB>(connection, open.clone()).await? != Some(0) {
        if begun.elapsed() > PATIENCE {
            return Err(StoreError::new(StoreErrorKind::Busy, PRUNING)
                .with_source("another sealer is at it")
                .into());
        }
        if seal_batch::<DB>(connection, names).await? == 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    Ok(())
}

/// Takes the fields of entries up to this batch. Returns how many lost them.
async fn take_fields<DB: TrailDatabase>(
    connection: &mut PoolConnection<DB>,
    names: &Names,
    to: i64,
) -> Result<u64, AuditError> {
    let events = event::named::<DB>(connection, names, &hold::EVENTS).await?;
    let keeper = Keeper::new(&hold::standing(&events));
    let numbers = prunable::<DB>(connection, names, keeper, to).await?;
    let (entries, outcomes) = (names.entries(), names.outcomes());
    let fields = FIELDS.iter().filter(|(field, _)| *field != "number");
    let taken = fields.map(|(field, _)| match *field {
        "source" | "kind" => format!("{field} = '{PRUNED}'"),
        "written" => format!("{field} = 0"),
        _ => format!("{field} = NULL"),
    });
    let taken = taken.collect::<Vec<_>>().join(", ");
    for chunk in numbers.chunks(CHUNK) {
        let listed: Vec<_> = chunk.iter().map(i64::to_string).collect();
        let listed = listed.join(", ");
        let text = format!(
            "DELETE FROM {outcomes} WHERE number IN ({listed}); UPDATE {entries} SET {taken} WHERE number IN ({listed})"
        );
        DB::query(connection, text, PRUNING).await?;
    }
    Ok(numbers.len() as u64)
}

/// An entry, as far as it decides whether it may go.
#[derive(Default)]
struct Line {
    number: i64,
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
            source: row.text(1)?.unwrap_or_default(),
            kind: row.text(2)?.unwrap_or_default(),
            record: row.bytes(3)?,
            step: row.bytes(4)?,
            operation: row.text(5)?,
            written: row.number(6)?.unwrap_or_default(),
        })
    }

    /// Whether it is held against the row itself by a verification.
    fn is_of_row(&self) -> bool {
        matches!(&*self.source, "record" | "step")
    }
}

/// The numbers of the entries up to this batch that may go.
async fn prunable<DB: TrailDatabase>(
    connection: &mut PoolConnection<DB>,
    names: &Names,
    keeper: Keeper,
    to: i64,
) -> Result<Vec<i64>, AuditError> {
    let entries = names.entries();
    let text = format!(
        "SELECT number, source, kind, record, step, operation, written FROM {entries}
         WHERE batch <= {to} AND source <> '{PRUNED}' ORDER BY record, source, step, number"
    );
    let mut walk = Walk {
        keeper,
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
    Ok(walk.end())
}

/// The source, the record and the step of a row.
type RowName = (String, Option<Vec<u8>>, Option<Vec<u8>>);

/// The entries, record by record.
#[derive(Default)]
struct Walk {
    keeper: Keeper,
    /// The entry before, if it may go unless it is the last one of a row that stands.
    last: Option<Line>,
    /// The row of which one is kept, and so all behind it.
    kept: Option<RowName>,
    prunable: Vec<i64>,
}

impl Walk {
    fn take(&mut self, line: Line) {
        let of = |line: &Line| (line.source.clone(), line.record.clone(), line.step.clone());
        let row = of(&line);
        if let Some(last) = self.last.take() {
            self.leave(&last, of(&last) == row);
        }
        let Line {
            record,
            operation,
            written,
            ..
        } = &line;
        let is_held = self
            .keeper
            .keeps(record.as_ref(), operation.as_ref(), *written);
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

    fn end(mut self) -> Vec<i64> {
        if let Some(last) = self.last.take() {
            self.leave(&last, false);
        }
        self.prunable
    }
}

/// Removes the batches of which nothing is kept. Returns how many there were.
async fn remove_batches<DB: TrailDatabase>(
    connection: &mut PoolConnection<DB>,
    names: &Names,
    to: i64,
) -> Result<u64, AuditError> {
    let entries = names.entries();
    let whole = format!(
        "SELECT batch FROM {entries} WHERE batch <= {to} GROUP BY batch
         HAVING max(CASE WHEN source = '{PRUNED}' THEN 0 ELSE 1 END) = 0"
    );
    let rows = DB::query(connection, whole, PRUNING).await?;
    let batches = rows.iter().map(|row| row.number(0));
    let batches: Result<Vec<_>, _> = batches.collect();
    let batches: Vec<_> = batches.map_err(damaged)?.into_iter().flatten().collect();
    for batch in &batches {
        let text = format!("DELETE FROM {entries} WHERE batch = {batch}");
        DB::query(connection, text, PRUNING).await?;
    }
    Ok(batches.len() as u64)
}

/// Writes how much is gone by now, and seals it.
async fn end<DB: TrailDatabase>(
    connection: &mut PoolConnection<DB>,
    names: &Names,
) -> Result<(), AuditError> {
    let (entries, seals) = (names.entries(), names.seals());
    let gone = format!("SELECT count(*) FROM {entries} WHERE source = '{PRUNED}'");
    let without = format!(
        "SELECT count(*) FROM {seals} AS seal WHERE seal.entries > 0
         AND NOT EXISTS (SELECT 1 FROM {entries} AS entry WHERE entry.batch = seal.batch)"
    );
    let gone = number::<DB>(connection, gone).await?;
    let without = number::<DB>(connection, without).await?;
    let detail = json!({ "batches": without, "entries": gone }).to_string();
    event::add::<DB>(connection, names, &NewEvent::new(ENDS, &detail)).await?;
    seal_batch::<DB>(connection, names).await?;
    Ok(())
}

async fn number<DB: TrailDatabase>(
    connection: &mut DB::Connection,
    text: String,
) -> Result<Option<i64>, AuditError> {
    let rows = DB::query(connection, text, PRUNING).await?;
    let number = rows.first().map(|row| row.number(0)).transpose();
    Ok(number.map_err(damaged)?.flatten())
}
