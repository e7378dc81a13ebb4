//! Many records in one statement, for heartbeats.
//!
//! The text of the statement is that of the one that replaces a single record, with a column of a
//! list in the place of each parameter. So each condition and each assignment stands in one place,
//! and what is known of the single statement is known of this one. Only the lock is new: it decides
//! which records are written at all, and no condition is left to it.

use std::collections::{HashMap, HashSet};

use sqlx::postgres::PgConnection;

use super::{
    Inner, PostgresStore,
    connection::Connected,
    failure,
    lists::{self, listed},
    many::with_columns,
    rows::check_identity,
    statements::{NAME, NOW, Statements},
};
use crate::{
    identity::RecordId,
    store::{
        Snapshot, Stamp, StoreError, StoreErrorKind, Swap,
        moment::Moment,
        sql::{self, COLUMNS, bytes},
        together::{Write, WriteAnswer, WriteTogether},
    },
};

const WRITING: &str = "writing records together";
const LOOKING: &str = "loading records together";

/// The places of the stamp and of the id in an answer.
const STAMP: usize = 1;
const ID: usize = 6;

/// The types of the parameters of a write, as [`sql::written`] orders them.
pub(super) const WRITTEN: [&str; 23] = [
    "bytea", "bytea", "text", "bytea", "bytea", "bytea", "bytea", "bigint", "bigint", "bigint",
    "bytea", "text", "text", "bigint", "bigint", "bigint", "bigint", "bigint", "bytea", "text",
    "text", "bytea", "bytea",
];

/// The types of the parameters of a look.
pub(super) const LOOKED: [&str; 1] = ["bytea"];

/// How long an outcome may be that is shown beside others, in bytes.
const LONGEST_SHOWN: usize = 4096;

/// The statement that replaces many records. A record that is locked is left out: the others do not
/// wait for it, and no batch waits for another one.
pub(super) fn replace_all(table: &str, replace: &str) -> String {
    let list = listed(&WRITTEN);
    let text = with_columns(replace, &WRITTEN)
        .replace("FROM clock\n", "FROM clock, many, free\n")
        .replace("WHERE id = c1", "WHERE id = free_id AND id = c1")
        .replace("RETURNING now", "RETURNING c1, c8, c15, now")
        .replace(&format!(", {NAME}"), &format!(", c1, {NAME}"));
    let lists = format!(
        "many AS MATERIALIZED (SELECT * FROM {list}),
         free AS MATERIALIZED (
             SELECT id AS free_id FROM {table}, many WHERE id = c1
             FOR NO KEY UPDATE OF {table} SKIP LOCKED),
         written AS"
    );
    text.replace("written AS", &lists)
}

/// The statement that shows many records, for writes that were refused. Records with a long outcome
/// are left out, because many of these may be too large for one answer.
pub(super) fn load_all(table: &str) -> String {
    let (columns, list) = (COLUMNS.join(", "), listed(&LOOKED));
    format!(
        "SELECT {columns}, {NOW}, {NAME} FROM {list}, {table}
         WHERE id = c1 AND coalesce(octet_length(outcome), 0) <= {LONGEST_SHOWN}"
    )
}

impl Statements {
    /// Returns the stamps of those that were written; `None` if the server undid the statement.
    async fn replace_all(
        &self,
        connection: &mut PgConnection,
        writes: &[Write],
    ) -> Result<Option<HashMap<RecordId, Stamp>>, StoreError> {
        let list: Vec<_> = writes
            .iter()
            .map(|write| sql::written(&write.id, Some(write.seen), &write.next))
            .collect();
        let list: Vec<_> = list.iter().map(|values| &values[..]).collect();
        let (statement, protocol) = (&self.replace_all, self.protocol);
        let channel = Some(&*self.channel);
        let sent = lists::send(connection, protocol, statement, &WRITTEN, &list, channel);
        let rows = match sent.await {
            Err(error) if failure::is_undone(&error) => {
                let error = failure::of(error, WRITING);
                return match error.kind() {
                    StoreErrorKind::Denied | StoreErrorKind::Unavailable => Err(error),
                    _ => Ok(None),
                };
            }
            rows => check_identity(&self.replace_all, rows, WRITING)?,
        };
        let versions = writes.iter().map(|write| (write.id, write.next.version));
        let versions: HashMap<_, _> = versions.collect();
        let stamp = |row| {
            let id = sql::id_at(row, ID, WRITING)?;
            let version = versions.get(&id).copied();
            let version = version.ok_or_else(|| sql::no_row(WRITING))?;
            Ok((id, sql::stamp(row, STAMP, version, WRITING)?))
        };
        rows.iter().map(stamp).collect::<Result<_, _>>().map(Some)
    }

    async fn load_all(
        &self,
        connection: &mut PgConnection,
        ids: &[RecordId],
    ) -> Result<HashMap<RecordId, Snapshot>, StoreError> {
        let list: Vec<_> = ids.iter().map(|id| [bytes(id.as_bytes())]).collect();
        let list: Vec<_> = list.iter().map(|values| &values[..]).collect();
        let (statement, protocol) = (&self.load_all, self.protocol);
        let rows = lists::send(connection, protocol, statement, &LOOKED, &list, None).await;
        let rows = check_identity(statement, rows, LOOKING)?;
        rows.iter().map(|row| sql::shown(row, LOOKING)).collect()
    }
}

impl WriteTogether for PostgresStore {
    async fn write_together(&self, writes: &[Write]) -> Vec<WriteAnswer> {
        let inner = &*self.inner;
        let sent_at = Moment::now();
        let (stamps, alone) = match inner.replace_all(writes).await {
            Ok(written) => written,
            Err(error) => return writes.iter().map(|_| Some(Err(error.clone()))).collect(),
        };
        let refused = writes.iter().map(|write| write.id);
        let is_refused = |id: &RecordId| !stamps.contains_key(id) && !alone.contains(id);
        let refused: Vec<_> = refused.filter(is_refused).collect();
        let mut shown = match refused.is_empty() {
            true => HashMap::new(),
            // A write that finds nothing here goes alone, and meets the same error.
            false => inner.load_all(&refused).await.unwrap_or_default(),
        };
        let answer = |write: &Write| {
            let swap = match stamps.get(&write.id) {
                Some(stamp) => Swap::Applied(*stamp),
                None => write.refused(shown.remove(&write.id))?,
            };
            inner.note(&write.id, Some(write.seen), &write.next, &swap, sent_at);
            Some(Ok(swap))
        };
        writes.iter().map(answer).collect()
    }
}

impl Inner {
    /// Returns the stamps of those that were written, and the ids of those that have to go alone.
    /// If the server undid a statement, each half of its records is tried again, so that the one
    /// that is in the way is found among many that are not.
    async fn replace_all(
        &self,
        writes: &[Write],
    ) -> Result<(HashMap<RecordId, Stamp>, HashSet<RecordId>), StoreError> {
        let (mut stamps, mut alone) = (HashMap::new(), HashSet::new());
        let mut parts = vec![writes];
        while let Some(part) = parts.pop() {
            let writing = async |connected: &mut Connected| {
                let connection = &mut connected.connection;
                self.statements.replace_all(connection, part).await
            };
            match self.connections.run(WRITING, writing).await {
                Ok(Some(written)) => stamps.extend(written),
                Ok(None) if part.len() > 1 => {
                    parts.extend(<[_; 2]>::from(part.split_at(part.len() / 2)));
                }
                Ok(None) => alone.extend(part.iter().map(|write| write.id)),
                // Those before it stand.
                Err(error) if stamps.is_empty() => return Err(error),
                Err(_) => alone.extend(part.iter().map(|write| write.id)),
            }
        }
        Ok((stamps, alone))
    }

    async fn load_all(&self, ids: &[RecordId]) -> Result<HashMap<RecordId, Snapshot>, StoreError> {
        let looking = async |connected: &mut Connected| {
            let connection = &mut connected.connection;
            self.statements.load_all(connection, ids).await
        };
        self.connections.run_again(LOOKING, looking).await
    }
}
