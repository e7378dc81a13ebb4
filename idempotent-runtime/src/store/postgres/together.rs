//! Many records in one statement, for heartbeats.

use std::collections::HashMap;

use sqlx::postgres::{PgConnection, PgRow};

use super::{
    PostgresStore,
    connection::Connected,
    failure,
    inner::Inner,
    lists::{self, listed},
    rows::check_identity,
    statements::{NAME, NOW, Statements},
};
use crate::{
    identity::RecordId,
    store::{
        Snapshot, Stamp, StoreError, StoreErrorKind, Swap,
        moment::Moment,
        sql::{self, COLUMNS, bytes},
        together::{Answer, Write, WriteTogether},
    },
};

const WRITING: &str = "writing records together";
const LOOKING: &str = "loading records together";

/// The places of the stamp and of the id in an answer.
const STAMP: usize = 1;
const ID: usize = 6;

/// The types of the parameters of a write, as [`sql::written`] orders them.
pub(super) const WRITTEN: [&str; 20] = [
    "bytea", "bytea", "text", "bytea", "bytea", "bytea", "bytea", "bigint", "bigint", "bigint",
    "bytea", "text", "text", "bigint", "bigint", "bigint", "bigint", "bigint", "bytea", "bytea",
];

/// The types of the parameters of a look.
pub(super) const LOOKED: [&str; 1] = ["bytea"];

/// The statement that replaces many records: the text of the one that replaces a single record,
/// with a column of a list in the place of each parameter. A record that is locked is left out: the
/// others do not wait for it, and no batch waits for another one.
pub(super) fn replace_all(table: &str, replace: &str) -> String {
    let list = listed(&WRITTEN);
    let parameters = WRITTEN.iter().enumerate();
    let text = parameters.fold(replace.to_owned(), |text, (place, kind)| {
        let number = place + 1;
        text.replace(&format!("${number}::{kind}"), &format!("c{number}"))
    });
    let text = text
        .replace("FROM clock\n", "FROM clock, many, free\n")
        .replace("WHERE id = c1", "WHERE id = free_id AND id = c1")
        .replace("RETURNING now", "RETURNING c1, c8, c15, now")
        .replace(&format!(", {NAME}"), &format!(", c1, {NAME}"));
    let lists = format!(
        "many AS MATERIALIZED (SELECT * FROM {list}),
         free AS MATERIALIZED (
             SELECT id AS free_id FROM {table}, many WHERE id = c1 AND version = c20
             FOR NO KEY UPDATE OF {table} SKIP LOCKED),
         written AS"
    );
    text.replace("written AS", &lists)
}

/// The statement that shows many records, for writes that were refused. Records with an outcome are
/// left out, because many outcomes may be too large for one answer.
pub(super) fn load_all(table: &str) -> String {
    let (columns, list) = (COLUMNS.join(", "), listed(&LOOKED));
    format!(
        "SELECT {columns}, {NOW}, {NAME} FROM {list}, {table} WHERE id = c1 AND outcome IS NULL"
    )
}

impl Statements {
    /// Returns the stamps of those that were written; `None` if the server undid the statement.
    async fn replace_all(
        &self,
        connection: &mut PgConnection,
        writes: &[Write],
    ) -> Result<Option<HashMap<RecordId, Stamp>>, StoreError> {
        let rows = match self.send_all(connection, writes).await {
            Err(error) if failure::is_undone(&error) => {
                let error = failure::of(error, WRITING);
                return match error.kind() {
                    StoreErrorKind::Denied | StoreErrorKind::Unavailable => Err(error),
                    _ => Ok(None),
                };
            }
            rows => check_identity(&self.replace_all, rows, WRITING)?,
        };
        let versions: HashMap<_, _> = writes
            .iter()
            .map(|write| (write.id, write.next.version))
            .collect();
        let stamp = |row| {
            let id = sql::id_at(row, ID, WRITING)?;
            let version = versions.get(&id).copied();
            let version = version.ok_or_else(|| sql::no_row(WRITING))?;
            Ok((id, sql::stamp(row, STAMP, version, WRITING)?))
        };
        rows.iter().map(stamp).collect::<Result<_, _>>().map(Some)
    }

    /// If the server has no room left for what it is to tell, the statement is sent again without
    /// telling.
    async fn send_all(
        &self,
        connection: &mut PgConnection,
        writes: &[Write],
    ) -> sqlx::Result<Vec<PgRow>> {
        let list: Vec<_> = writes
            .iter()
            .map(|write| sql::written(&write.id, Some(write.seen), &write.next))
            .collect();
        let list: Vec<_> = list.iter().map(|values| &values[..]).collect();
        let (statement, protocol) = (&self.replace_all, self.protocol);
        let channel = Some(&*self.channel);
        match lists::send(connection, protocol, statement, &WRITTEN, &list, channel).await {
            Err(error) if failure::has_no_room_to_tell(&error) => {
                lists::send(connection, protocol, statement, &WRITTEN, &list, None).await
            }
            rows => rows,
        }
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
    async fn write_together(&self, writes: &[Write]) -> Vec<Answer> {
        let inner = &*self.inner;
        let writing = async |connection: &mut Connected| {
            inner.statements.replace_all(connection, writes).await
        };
        let sent_at = Moment::now();
        let stamps = match inner.connections.run(WRITING, writing).await {
            Ok(Some(stamps)) => stamps,
            Ok(None) => return writes.iter().map(|_| None).collect(),
            Err(error) => return writes.iter().map(|_| Some(Err(error.clone()))).collect(),
        };
        let refused = writes.iter().map(|write| write.id);
        let refused: Vec<_> = refused.filter(|id| !stamps.contains_key(id)).collect();
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
    async fn load_all(&self, ids: &[RecordId]) -> Result<HashMap<RecordId, Snapshot>, StoreError> {
        let looking =
            async |connection: &mut Connected| self.statements.load_all(connection, ids).await;
        self.connections.run_again(LOOKING, looking).await
    }
}
