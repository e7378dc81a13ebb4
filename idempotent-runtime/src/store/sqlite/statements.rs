//! The statements of the SQLite dialect, and the functions that run them over a connection.

use std::sync::Arc;

use sqlx::{
    AssertSqlSafe, Executor, Row as _,
    query::Query,
    sqlite::{Sqlite, SqliteArguments, SqliteConnection, SqliteRow},
};

use super::{failure, rows};
use crate::{
    identity::RecordId,
    policy::OnCrash,
    record::{Draft, Record, State, Version},
    store::{
        Snapshot, StoreError, Swap,
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
        let look = format!("{NOW}, {columns} FROM (SELECT 1) LEFT JOIN {table} ON id = ?1");
        // A second statement in the same round trip looks only where the first one wrote nothing.
        let else_look = format!("SELECT 0, {look} WHERE changes() = 0");
        let load = format!("SELECT {look}");
        let create = format!(
            "INSERT INTO {table} ({columns})
             SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, coalesce(max(?9, now), 0), ?10, ?11, ?12, ?13, ?14,
                    now + coalesce(min(?15, {max} - now), 0), now,
                    CASE ?8 WHEN {running} THEN NULL ELSE now END,
                    now + coalesce(min(?16, {max} - now), 0), ?17, ?18, ?19
             FROM (SELECT {NOW} AS now) WHERE true
             ON CONFLICT (id) DO NOTHING
             RETURNING 1, created, token, lease_end, expires;
             {else_look}",
            max = i64::MAX,
        );
        let replace = format!(
            "UPDATE {table} SET
                    version = ?2, operation = coalesce(?3, operation), scope = coalesce(?4, scope),
                    call_key = coalesce(?5, call_key), fingerprint = coalesce(?6, fingerprint),
                    digests = coalesce(?7, digests), state = ?8, token = coalesce(max(?9, {NOW}), token),
                    attempt = ?10, attempt_id = ?11, holder = ?12, trace_parent = ?13, on_crash = ?14,
                    lease_end = coalesce({NOW} + min(?15, {max} - {NOW}), lease_end),
                    created = CASE WHEN ?3 IS NULL THEN created ELSE {NOW} END,
                    finished = CASE ?8 WHEN {running} THEN NULL ELSE {NOW} END,
                    expires = coalesce({NOW} + min(?16, {max} - {NOW}), expires),
                    outcome_kind = ?17, outcome_schema = ?18, outcome = ?19
             WHERE id = ?1 AND version = ?20
             RETURNING 1, {NOW}, token, lease_end, expires;
             {else_look}",
            max = i64::MAX,
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

    pub(super) async fn swap(
        &self,
        connection: &mut SqliteConnection,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        const DOING: &str = "writing a record";
        let text = if seen.is_some() {
            &self.replace
        } else {
            &self.create
        };
        let query = sql::written(id, seen, next)
            .into_iter()
            .fold(query(text), rows::bind);
        let rows = all(connection, query, DOING).await?;
        let row = rows.first().ok_or_else(|| failure::no_row(DOING))?;
        if row
            .try_get::<i64, _>(0)
            .map_err(|error| failure::of(error, DOING))?
            == 1
        {
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

/// Runs a query to its end. Never `fetch_one`: the driver would stop at the first row and swallow what goes wrong when
/// the write is committed, which is after it.
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
