//! Pruning: the fields of old entries go, and their leaves stay as long as anything of their batch
//! is kept. Then the batch goes, and its seal stays.
//!
//! A pruning is declared before anything goes: up to which batch, and how many entries it keeps
//! there. Only the owner of the tables can write that entry. So a verification finds whatever else
//! is gone, also after a pruning that was cut off.

mod walk;

use std::time::Duration;

use idempotent_runtime::{__audit::Row as _, StoreError, StoreErrorKind};
use serde_json::{Value as Json, json};
use sqlx::{Connection as _, pool::PoolConnection};

use self::walk::find;
use crate::{
    database::TrailDatabase,
    entry::FIELDS,
    error::AuditError,
    event,
    hold::{self, Keeper},
    names::Names,
    seal::{damaged, seal_batch},
};

const PRUNING: &str = "pruning the audit";

/// The source and the kind of an entry whose fields are gone.
pub(crate) const PRUNED: &str = "pruned";

/// The source of the entry that declares a pruning.
pub(crate) const DECLARED: &str = "pruning";

/// About how many entries are looked at in one round, and how many one statement writes.
const ROUND: u32 = 1_000_000;
const CHUNK: usize = 1_000;

/// How long a pruning waits until its declaration is sealed.
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

/// A pruning, as its entry declares it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pruning {
    /// Up to this batch, entries may be gone.
    pub(crate) to: i64,
    /// So many entries up to there are kept.
    pub(crate) kept: i64,
    /// Up to this batch, it takes entries itself.
    until: i64,
    /// The last event about a hold that it knows.
    holds: i64,
}

impl Pruning {
    /// Reads the note of its entry.
    pub(crate) fn read(note: &str) -> Option<Self> {
        let note: Json = serde_json::from_str(note).ok()?;
        let number = |field: &str| note.get(field)?.as_i64();
        Some(Self {
            to: number("to")?,
            kept: number("kept")?,
            until: number("until")?,
            holds: number("holds")?,
        })
    }

    fn note(&self) -> String {
        let Self {
            to,
            kept,
            until,
            holds,
        } = self;
        json!({ "to": to, "kept": kept, "until": until, "holds": holds }).to_string()
    }
}

/// The pruning that reaches furthest, of the last ones that were declared, and the batch of its
/// entry if it is `sealed`.
pub(crate) async fn last_declared<DB: TrailDatabase>(
    connection: &mut DB::Connection,
    names: &Names,
    sealed: bool,
) -> Result<Option<(Pruning, Option<i64>)>, AuditError> {
    let entries = names.entries();
    let only = if sealed { "AND batch IS NOT NULL" } else { "" };
    // Two that run at once may declare in any order.
    let look = format!(
        "SELECT note, batch FROM {entries} WHERE source = '{DECLARED}' {only} ORDER BY number DESC LIMIT 8"
    );
    let rows = DB::query(connection, look, PRUNING).await?;
    let mut furthest: Option<(Pruning, Option<i64>)> = None;
    for row in &rows {
        let note = row.text(0).map_err(damaged)?.unwrap_or_default();
        let pruning = Pruning::read(&note);
        let pruning = pruning.ok_or_else(|| damaged("a pruning says nothing".into()))?;
        if furthest.is_none_or(|(other, _)| pruning.to > other.to) {
            furthest = Some((pruning, row.number(1).map_err(damaged)?));
        }
    }
    Ok(furthest)
}

pub(crate) async fn prune<DB: TrailDatabase>(
    connection: &mut PoolConnection<DB>,
    names: &Names,
    keep: Duration,
) -> Result<Pruned, AuditError> {
    let mut pruned = Pruned::default();
    let Some(until) = old_enough::<DB>(connection, names, keep).await? else {
        return Ok(pruned);
    };
    let last = last_declared::<DB>(connection, names, false).await?;
    let mut last = last.map(|(last, _)| last);
    if let Some(last) = &last {
        // It may have been cut off.
        carry_out::<DB>(connection, names, last, &mut pruned).await?;
        is_whole::<DB>(connection, names, last).await?;
    }
    let mut at = 0;
    while let Some(next) = round::<DB>(connection, names, (at, until)).await? {
        at = next;
        let before = last.map_or(0, |last| last.to);
        let declared = declare::<DB>(connection, names, (before.max(at), at)).await?;
        if let Some(declared) = declared {
            carry_out::<DB>(connection, names, &declared, &mut pruned).await?;
            last = Some(declared);
        }
    }
    pruned.until = until;
    Ok(pruned)
}

/// The last batch before the first one that is too young. A clock that went wrong for a moment
/// makes no later batch old.
async fn old_enough<DB: TrailDatabase>(
    connection: &mut PoolConnection<DB>,
    names: &Names,
    keep: Duration,
) -> Result<Option<i64>, AuditError> {
    let (seals, now) = (names.seals(), DB::NOW);
    let keep = i64::try_from(keep.as_micros()).unwrap_or(i64::MAX);
    let young =
        format!("SELECT min(batch) FROM {seals} WHERE batch > 0 AND sealed > {now} - {keep}");
    let last = format!("SELECT max(batch) FROM {seals}");
    let young = number::<DB>(connection, young).await?;
    let until = match young {
        Some(young) => Some(young - 1),
        None => number::<DB>(connection, last).await?,
    };
    Ok(until.filter(|until| *until > 0))
}

/// The last batch of the next round.
async fn round<DB: TrailDatabase>(
    connection: &mut PoolConnection<DB>,
    names: &Names,
    (at, until): (i64, i64),
) -> Result<Option<i64>, AuditError> {
    let entries = names.entries();
    let next = format!(
        "SELECT max(batch) FROM (SELECT batch FROM {entries} WHERE batch > {at} AND batch <= {until} ORDER BY batch LIMIT {ROUND}) AS next"
    );
    number::<DB>(connection, next).await
}

/// Writes the entry of a pruning, if there is anything to take, and waits until it is sealed:
/// otherwise what is gone would be missing.
async fn declare<DB: TrailDatabase>(
    connection: &mut PoolConnection<DB>,
    names: &Names,
    (to, until): (i64, i64),
) -> Result<Option<Pruning>, AuditError> {
    let (keeper, holds) = keeper::<DB>(connection, names, i64::MAX).await?;
    let found = find::<DB>(connection, names, keeper, (to, until)).await?;
    if found.prunable.is_empty() {
        return Ok(None);
    }
    let taken = i64::try_from(found.prunable.len()).unwrap_or(i64::MAX);
    let kept = found.seen - taken;
    let pruning = Pruning {
        to,
        kept,
        until,
        holds,
    };
    let (entries, now, user) = (names.entries(), DB::NOW, DB::USER);
    let note = DB::text(&pruning.note());
    let insert = format!(
        "INSERT INTO {entries} (written, source, kind, label, note, db_user)
         SELECT {now}, '{DECLARED}', 'event', 'prune', {note}, {user}"
    );
    in_transaction::<DB>(connection, &insert).await?;
    let open =
        format!("SELECT count(*) FROM {entries} WHERE batch IS NULL AND source = '{DECLARED}'");
    let begun = tokio::time::Instant::now();
    while number::<DB>(connection, open.clone()).await? != Some(0) {
        if begun.elapsed() > PATIENCE {
            let busy = StoreError::new(StoreErrorKind::Busy, PRUNING);
            return Err(busy.with_source("another sealer is at it").into());
        }
        if seal_batch::<DB>(connection, names).await? == 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    Ok(Some(pruning))
}

/// Takes the fields that a pruning has declared, and removes the batches of which nothing is kept.
async fn carry_out<DB: TrailDatabase>(
    connection: &mut PoolConnection<DB>,
    names: &Names,
    pruning: &Pruning,
    pruned: &mut Pruned,
) -> Result<(), AuditError> {
    'again: loop {
        let (keeper, newest) = keeper::<DB>(connection, names, pruning.holds).await?;
        let of = (pruning.to, pruning.until);
        let found = find::<DB>(connection, names, keeper, of).await?;
        for chunk in found.prunable.chunks(CHUNK) {
            if !take_fields::<DB>(connection, names, chunk, newest).await? {
                // There is another hold by now.
                continue 'again;
            }
            pruned.entries += chunk.len() as u64;
        }
        break;
    }
    pruned.batches += remove_batches::<DB>(connection, names, pruning.until).await?;
    Ok(())
}

/// Holds of now, and those that a pruning knew; and the newest event about one.
async fn keeper<DB: TrailDatabase>(
    connection: &mut PoolConnection<DB>,
    names: &Names,
    known: i64,
) -> Result<(Keeper, i64), AuditError> {
    let events = event::named::<DB>(connection, names, &hold::EVENTS, None).await?;
    let newest = events.last().map_or(0, |event| event.number);
    let then = events.iter().filter(|event| event.number <= known);
    let then: Vec<_> = then.cloned().collect();
    let holds = [hold::standing(&events), hold::standing(&then)].concat();
    Ok((Keeper::new(&holds), newest))
}

/// Takes the fields of these entries, unless there is an event about a hold behind this one. No
/// such event comes meanwhile.
async fn take_fields<DB: TrailDatabase>(
    connection: &mut PoolConnection<DB>,
    names: &Names,
    numbers: &[i64],
    newest: i64,
) -> Result<bool, AuditError> {
    let (entries, outcomes) = (names.entries(), names.outcomes());
    let fields = FIELDS.iter().filter(|(field, _)| *field != "number");
    let taken = fields.map(|(field, _)| match *field {
        "source" | "kind" => format!("{field} = '{PRUNED}'"),
        "written" => format!("{field} = 0"),
        _ => format!("{field} = NULL"),
    });
    let taken = taken.collect::<Vec<_>>().join(", ");
    let listed: Vec<_> = numbers.iter().map(i64::to_string).collect();
    let (listed, by_number) = (listed.join(", "), DB::BY_NUMBER);
    let take = format!(
        "DELETE FROM {outcomes} WHERE number IN ({listed}); UPDATE {entries}{by_number} SET {taken} WHERE number IN ({listed})"
    );
    let failed = |error| DB::store_error(error, PRUNING);
    if let Some(before) = DB::BEFORE_PRUNING {
        DB::query(connection, before.to_owned(), PRUNING).await?;
    }
    let begun = connection.begin_with(DB::BEGIN_PRUNING).await;
    let mut transaction = begun.map_err(failed)?;
    let rows = DB::query(&mut transaction, DB::last_hold(names), PRUNING).await?;
    let last = rows.last().map(|row| row.number(0)).transpose();
    let is_last = last.map_err(damaged)?.flatten() == Some(newest);
    if is_last {
        DB::query(&mut transaction, take, PRUNING).await?;
        transaction.commit().await.map_err(failed)?;
    } else {
        transaction.rollback().await.map_err(failed)?;
    }
    Ok(is_last)
}

/// Fails if more is gone than a pruning took: it would count as taken from now on.
async fn is_whole<DB: TrailDatabase>(
    connection: &mut PoolConnection<DB>,
    names: &Names,
    pruning: &Pruning,
) -> Result<(), AuditError> {
    let (entries, to) = (names.entries(), pruning.to);
    let kept =
        format!("SELECT count(*) FROM {entries} WHERE batch <= {to} AND source <> '{PRUNED}'");
    match number::<DB>(connection, kept).await? {
        Some(kept) if kept >= pruning.kept => Ok(()),
        _ => Err(damaged(
            "more entries are gone than the last pruning took: verify the trail, and find out why"
                .into(),
        )
        .into()),
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
    let batches = numbers::<DB>(connection, whole).await?;
    for batch in &batches {
        let of_batch = format!("SELECT number FROM {entries} WHERE batch = {batch}");
        let of_batch = numbers::<DB>(connection, of_batch).await?;
        let listed: Vec<_> = of_batch.iter().map(i64::to_string).collect();
        if !listed.is_empty() {
            let remove = DB::remove_entries(names, &listed.join(", "));
            in_transaction::<DB>(connection, &remove).await?;
        }
    }
    Ok(batches.len() as u64)
}

/// A session of MariaDB may commit nothing by itself.
async fn in_transaction<DB: TrailDatabase>(
    connection: &mut PoolConnection<DB>,
    text: &str,
) -> Result<(), AuditError> {
    let failed = |error| DB::store_error(error, PRUNING);
    let mut transaction = connection.begin().await.map_err(failed)?;
    DB::query(&mut transaction, text.to_owned(), PRUNING).await?;
    transaction.commit().await.map_err(failed)?;
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

async fn numbers<DB: TrailDatabase>(
    connection: &mut DB::Connection,
    text: String,
) -> Result<Vec<i64>, AuditError> {
    let rows = DB::query(connection, text, PRUNING).await?;
    let numbers = rows.iter().map(|row| row.number(0));
    let numbers: Result<Vec<_>, _> = numbers.collect();
    Ok(numbers.map_err(damaged)?.into_iter().flatten().collect())
}
