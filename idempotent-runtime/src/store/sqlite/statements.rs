//! The statements of the SQLite dialect, and the functions that run them over a connection.

use std::sync::Arc;

use sqlx::{
    AssertSqlSafe, Executor,
    query::Query,
    sqlite::{Sqlite, SqliteArguments, SqliteConnection, SqliteRow},
};

use super::{failure, rows};
use crate::{
    identity::RecordId,
    policy::OnCrash,
    record::{Draft, Record, State, Version},
    store::{
        Snapshot, Stamp, StoreError, StoreErrorKind, Swap,
        sql::{self, COLUMNS, TablePrefix},
    },
};

/// The time in microseconds. `unixepoch('subsec')` is a float of seconds with three exact decimals, so it is rounded to
/// milliseconds before it becomes an integer. Within one statement SQLite answers the same time everywhere, and reads the
/// clock after it has the lock it writes under.
pub(super) const NOW: &str = "CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000";

/// The text of every statement, for one table.
#[derive(Debug)]
pub(super) struct Statements {
    load: Arc<str>,
    create: Arc<str>,
    replace: Arc<str>,
    purge: Arc<str>,
    scan: Arc<str>,
}

impl Statements {
    pub(super) fn new(prefix: &TablePrefix) -> Self {
        let table = format!("{prefix}records");
        let columns = COLUMNS.join(", ");
        let running = State::Running.code();
        let (done, released) = (State::Done.code(), State::Released.code());
        let rerun = OnCrash::Rerun.code();
        let max = i64::MAX;
        let stands = format!("{NOW}, {columns} FROM (SELECT 1) LEFT JOIN {table} ON id = ?1");
        let load = format!("SELECT {stands}");
        // Three statements in one round trip, which ends at the first row: a replay is a look and takes no lock. The
        // insert has no row, so that it is committed, or has failed, before the third statement tells what became of it.
        let create = format!(
            "SELECT 0, {NOW}, {columns} FROM {table} WHERE id = ?1;
             INSERT INTO {table} ({columns})
             SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, coalesce(max(?9, now), 0), ?10, ?11, ?12, ?13, ?14,
                    now + coalesce(min(?15, {max} - now), 0), now,
                    CASE ?8 WHEN {running} THEN NULL ELSE now END,
                    now + coalesce(min(?16, {max} - now), 0), ?17, ?18, ?19
             FROM (SELECT {NOW} AS now) WHERE true
             ON CONFLICT (id) DO NOTHING;
             SELECT changes(), {stands}"
        );
        // The second statement looks only where the first one wrote nothing.
        let replace = format!(
            "UPDATE {table} SET
                    version = ?2, operation = coalesce(?3, operation), scope = coalesce(?4, scope),
                    call_key = coalesce(?5, call_key), fingerprint = coalesce(?6, fingerprint),
                    digests = coalesce(?7, digests), state = ?8, attempt = ?10, attempt_id = ?11,
                    holder = ?12, trace_parent = ?13, on_crash = ?14,
                    (token, lease_end, created, finished, expires) = (
                        SELECT coalesce(max(?9, now), token),
                               coalesce(now + min(?15, {max} - now), lease_end),
                               CASE WHEN ?3 IS NULL THEN created ELSE now END,
                               CASE ?8 WHEN {running} THEN NULL ELSE now END,
                               coalesce(now + min(?16, {max} - now), expires)
                        FROM (SELECT {NOW} AS now)),
                    outcome_kind = ?17, outcome_schema = ?18, outcome = ?19
             WHERE id = ?1 AND version = ?20
             RETURNING 1, {NOW}, token, lease_end, expires;
             SELECT 0, {stands} WHERE changes() = 0"
        );
        let purge = format!(
            "DELETE FROM {table} WHERE rowid IN (
                 SELECT {table}.rowid FROM (SELECT {NOW} AS now) CROSS JOIN {table}
                 WHERE expires <= now
                   AND (state IN ({done}, {released})
                        OR state = {running} AND on_crash = {rerun} AND lease_end <= now)
                 LIMIT ?1)
             RETURNING id"
        );
        let scan = format!("SELECT {columns} FROM {table} WHERE id > ?1 ORDER BY id LIMIT ?2");
        Self {
            load: load.into(),
            create: create.into(),
            replace: replace.into(),
            purge: purge.into(),
            scan: scan.into(),
        }
    }

    pub(super) async fn load(
        &self,
        connection: &mut SqliteConnection,
        id: &RecordId,
    ) -> Result<Snapshot, StoreError> {
        const DOING: &str = "loading a record";
        let query = query(&self.load).bind(&id.as_bytes()[..]);
        let rows = all(connection, query, DOING).await?;
        let row = rows.first().ok_or_else(|| failure::no_row(DOING))?;
        rows::snapshot(row, 0, DOING)
    }

    /// Puts `next` where nothing stands.
    pub(super) async fn create(
        &self,
        connection: &mut SqliteConnection,
        id: &RecordId,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        const DOING: &str = "claiming a record";
        let query = written(&self.create, id, None, next);
        // Ends at the first row, where everything that was to be written is committed.
        let row = connection.fetch_optional(query).await;
        let row = row.map_err(|error| failure::of(error, DOING))?;
        let row = row.ok_or_else(|| failure::no_row(DOING))?;
        let snapshot = rows::snapshot(&row, 1, DOING)?;
        match (rows::is_applied(&row, DOING)?, snapshot.record) {
            (false, record) => Ok(Swap::Refused(Snapshot { record, ..snapshot })),
            (true, Some(record)) if record.version == next.version => {
                Ok(Swap::Applied(Stamp::of(&record, record.created)))
            }
            // Another process wrote over it between the two statements: the stamp is gone.
            (true, _) => Err(StoreError::new(StoreErrorKind::Unavailable, DOING)
                .with_source("the record was overwritten before its stamp was read")),
        }
    }

    /// Puts `next` where version `seen` stands.
    pub(super) async fn replace(
        &self,
        connection: &mut SqliteConnection,
        id: &RecordId,
        seen: Version,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        const DOING: &str = "writing a record";
        let rows = all(
            connection,
            written(&self.replace, id, Some(seen), next),
            DOING,
        )
        .await?;
        let row = rows.first().ok_or_else(|| failure::no_row(DOING))?;
        if rows::is_applied(row, DOING)? {
            rows::stamp(row, 1, next.version, DOING).map(Swap::Applied)
        } else {
            rows::snapshot(row, 1, DOING).map(Swap::Refused)
        }
    }

    pub(super) async fn purge(
        &self,
        connection: &mut SqliteConnection,
        limit: u32,
    ) -> Result<Vec<RecordId>, StoreError> {
        const DOING: &str = "purging expired records";
        let rows = all(connection, query(&self.purge).bind(limit), DOING).await?;
        rows.iter().map(|row| rows::id(row, DOING)).collect()
    }

    pub(super) async fn scan(
        &self,
        connection: &mut SqliteConnection,
        after: Option<RecordId>,
        limit: u32,
    ) -> Result<Vec<(RecordId, Arc<Record>)>, StoreError> {
        const DOING: &str = "listing records";
        // Shorter than every id, and so before all of them.
        let after = after.map_or(Vec::new(), |after| after.as_bytes().to_vec());
        let rows = all(connection, query(&self.scan).bind(after).bind(limit), DOING).await?;
        rows.iter().map(|row| rows::listed(row, DOING)).collect()
    }
}

fn query(text: &Arc<str>) -> Query<'static, Sqlite, SqliteArguments> {
    sqlx::query(AssertSqlSafe(Arc::clone(text)))
}

fn written(
    text: &Arc<str>,
    id: &RecordId,
    seen: Option<Version>,
    next: &Draft,
) -> Query<'static, Sqlite, SqliteArguments> {
    sql::written(id, seen, next)
        .into_iter()
        .fold(query(text), rows::bind)
}

/// Runs a query to its end. Never `fetch_one` for a write with `RETURNING`: the driver would stop at its row and swallow what
/// goes wrong when the write is committed, which is after it.
async fn all(
    connection: &mut SqliteConnection,
    query: Query<'static, Sqlite, SqliteArguments>,
    doing: &'static str,
) -> Result<Vec<SqliteRow>, StoreError> {
    connection
        .fetch_all(query)
        .await
        .map_err(|error| failure::of(error, doing))
}
