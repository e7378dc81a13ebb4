//! Changes that left no entry: each record is held against its last entry, and each entry against
//! the one before.
//!
//! One statement reads both, ordered by the record, so that all of it is of one moment. It holds
//! the state of one record at a time.

use idempotent_runtime::{
    __audit::{Hex, Row},
    BoxError,
};
use sqlx::Either;

use crate::{
    database::TrailDatabase,
    error::AuditError,
    merkle::sha256,
    names::Names,
    report::{Divergence, DivergenceKind},
    seal::damaged,
    source::Source,
};

const COMPARING: &str = "comparing records with their entries";

/// Stands for the number of the row itself, behind those of all its entries.
const ROW: i64 = i64::MAX;

/// The state of a row, as far as entries have it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    state: Option<i64>,
    attempt: Option<i64>,
    token: Option<i64>,
    kind: Option<i64>,
    hash: Option<Vec<u8>>,
}

/// An entry, or the row itself.
struct Line {
    record: Vec<u8>,
    step: Vec<u8>,
    number: i64,
    /// Whether a pruning may have taken the entry before.
    is_old: bool,
    kind: String,
    before: Option<i64>,
    after: State,
    hash_before: Option<Vec<u8>>,
}

impl Line {
    fn read(row: &impl Row, hashes_late: bool, pruned_until: i64) -> Result<Self, BoxError> {
        let is_raw = hashes_late && row.number(10)? == Some(1);
        let hash = |place| -> Result<Option<Vec<u8>>, BoxError> {
            let bytes = row.bytes(place)?;
            Ok(match is_raw {
                true => bytes.map(|bytes| sha256(&bytes).to_vec()),
                false => bytes,
            })
        };
        Ok(Self {
            record: row.bytes(0)?.unwrap_or_default(),
            step: row.bytes(1)?.unwrap_or_default(),
            number: row.number(2)?.unwrap_or_default(),
            is_old: row.number(11)?.is_some_and(|batch| batch <= pruned_until),
            kind: row.text(3)?.unwrap_or_default(),
            before: row.number(4)?,
            after: State {
                state: row.number(5)?,
                attempt: row.number(6)?,
                token: row.number(7)?,
                kind: row.number(12)?,
                hash: hash(8)?,
            },
            hash_before: hash(9)?,
        })
    }
}

/// The entries of records and steps, and these themselves, in the order of their names.
fn text<DB: TrailDatabase>(names: &Names) -> String {
    let (entries, nothing) = (names.entries(), DB::bytes(b""));
    let hash = DB::hash("outcome");
    let rows = [Source::Record, Source::Step].map(|source| {
        let (table, name) = (names.of(source), source.name());
        let (id, step, numbers) = match source {
            Source::Record => ("id", nothing.as_str(), "attempt, token"),
            _ => ("record", "name", "NULL, NULL"),
        };
        format!(
            "SELECT {id}, {step}, {ROW}, '{name}', NULL, state, {numbers}, {hash}, NULL, 1, NULL, outcome_kind FROM {table}"
        )
    });
    format!(
        "SELECT record, COALESCE(step, {nothing}) AS step, number, kind, state_before, state_after, attempt, token, outcome_hash, hash_before,
             CASE WHEN batch IS NULL THEN 1 ELSE 0 END AS is_raw, batch, outcome_kind
         FROM {entries} WHERE source IN ('record', 'step')
         UNION ALL {} ORDER BY 1, 2, 3",
        rows.join(" UNION ALL ")
    )
}

/// Finds the first row that is not what its entries say.
pub(crate) async fn find<DB: TrailDatabase>(
    connection: &mut DB::Connection,
    names: &Names,
    pruned_until: i64,
) -> Result<Option<Divergence>, AuditError> {
    let versions = names.versions();
    let found = format!("SELECT max(found) FROM {versions} WHERE source IN ('record', 'step')");
    let found = DB::query(connection, found, COMPARING).await?;
    let found = found.first().map(|row| row.number(0)).transpose();
    let mut walk = Walk {
        found_until: found.map_err(damaged)?.flatten().unwrap_or(0),
        ..Walk::default()
    };
    let mut failed = None;
    let take = |next: Either<DB::QueryResult, DB::Row>| {
        let Either::Right(row) = next else { return };
        match Line::read(&row, DB::HASHES_LATE, pruned_until) {
            Ok(line) => walk.take(line),
            Err(error) => failed = failed.take().or(Some(error)),
        }
    };
    let read = DB::each(connection, text::<DB>(names), take).await;
    read.map_err(|error| DB::store_error(error, COMPARING))?;
    if let Some(error) = failed {
        return Err(damaged(error).into());
    }
    Ok(walk.end())
}

/// The state of the row at hand, as its entries have it so far.
#[derive(Default)]
struct Walk {
    at: (Vec<u8>, Vec<u8>),
    /// Whether it stands, and as what.
    stands: Option<State>,
    last: i64,
    /// Before this number, the first entry of an older row may be that of a change.
    found_until: i64,
    found: Option<Divergence>,
}

impl Walk {
    fn take(&mut self, line: Line) {
        if self.found.is_some() {
            return;
        }
        let is_first = self.at.0 != line.record || self.at.1 != line.step;
        if is_first {
            self.leave();
            self.at = (line.record.clone(), line.step.clone());
        }
        let holds = match (&self.stands, line.number == ROW, line.kind.as_str()) {
            (Some(stands), true, _) => *stands == line.after,
            (None, true, _) => false,
            (_, false, "found") => true,
            (Some(stands), false, "deleted") => {
                line.before == stands.state
                    && line.after.hash == stands.hash
                    && line.after.kind == stands.kind
                    && line.after.token == stands.token
            }
            (Some(stands), false, _) => {
                line.before == stands.state && line.hash_before == stands.hash
            }
            (None, false, kind) => {
                let may_be_first = line.is_old || line.number < self.found_until;
                let begins = kind != "deleted" && line.before.is_none();
                begins || is_first && may_be_first
            }
        };
        if self.found.is_none() && !holds {
            self.diverges((line.number != ROW).then_some(line.number));
        }
        self.last = line.number;
        self.stands = (line.kind != "deleted" && line.number != ROW).then_some(line.after);
    }

    /// Leaves the row at hand: if it stands by its entries, it must have been met.
    fn leave(&mut self) {
        if self.stands.take().is_some() {
            self.diverges(Some(self.last));
        }
    }

    fn diverges(&mut self, number: Option<i64>) {
        self.found = self.found.take().or_else(|| {
            Some(Divergence {
                kind: DivergenceKind::Unaudited,
                batch: None,
                number,
                record: Some(Hex(&self.at.0).to_string()),
            })
        });
    }

    fn end(mut self) -> Option<Divergence> {
        self.leave();
        self.found
    }
}
