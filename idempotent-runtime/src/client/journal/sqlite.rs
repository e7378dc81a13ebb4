//! The journal that survives the process: a SQLite file with a table of its own.

use std::{path::Path, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use reqwest::Url;
use sqlx::{
    AssertSqlSafe, Connection as _, Executor as _, Row as _, SqliteConnection, SqlitePool,
    query::Query,
    sqlite::{
        Sqlite, SqliteArguments, SqliteConnectOptions, SqliteJournalMode, SqliteRow,
        SqliteSynchronous,
    },
};

use super::{ClientJournal, Ending, Entry, EntryId};
use crate::{
    client::key::Key,
    framing::{read_framed, write_framed},
    record::Time,
    store::{
        StoreError, StoreErrorKind,
        sql::{TablePrefix, chosen, version as schema},
        sqlite::{Connections, Held, failure},
    },
};

/// Remembers calls in a SQLite file, which several processes may share. What is written is on the disk before the call is
/// sent.
///
/// Keys, targets and bodies stand in it as they were sent, and so do the responses of calls that have an intent: set the
/// permissions of its folder where others must not read them. Of the headers that say who is asking, only a digest is in it.
///
/// # Examples
///
/// ```
/// use idempotent_runtime::client::{IdempotencyKeys, Profile, SqliteJournal};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("calls.db");
/// let (http, keys) = IdempotencyKeys::builder(Profile::ietf())
///     .journal(SqliteJournal::open(path).await?)
///     .build(reqwest::Client::builder())?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SqliteJournal {
    connections: Arc<Connections>,
    prefix: TablePrefix,
}

impl SqliteJournal {
    /// Opens the file at `path`, or makes it, and brings its table up to date. It may be the file of a `SqliteStore`.
    ///
    /// # Errors
    ///
    /// Where the file cannot be opened or written, where it is no database, or where a newer release wrote it.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        const DOING: &str = "opening the journal";
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(std::time::Duration::from_secs(5));
        let held = Held::open(options, DOING).await?;
        let journal = Self {
            connections: Arc::new(Connections::Held(held)),
            prefix: TablePrefix::default(),
        };
        journal.migrate().await?;
        Ok(journal)
    }

    /// Takes connections from the application's own pool, and begins the names of its tables with `prefix`: `idempotent_`
    /// is what [`open`](Self::open) takes. Durability is what the application chose. Call [`migrate`](Self::migrate) once.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Configuration`] where the prefix cannot begin a table's name.
    pub fn new(pool: SqlitePool, prefix: &str) -> Result<Self, StoreError> {
        Ok(Self {
            connections: Arc::new(Connections::Pool(pool)),
            prefix: chosen(prefix, "opening the journal")?,
        })
    }

    /// Makes the journal's tables, or brings them up to date. Safe at every start, also of several processes at once.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Schema`] where a newer release wrote the tables.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        const DOING: &str = "migrating the journal";
        let mut connection = self.connections.acquire(DOING).await?;
        let answer = migrate(&mut connection, &self.prefix, DOING).await;
        connection.settle(answer)
    }

    async fn run(
        &self,
        doing: &'static str,
        query: Query<'static, Sqlite, SqliteArguments>,
    ) -> Result<Vec<SqliteRow>, StoreError> {
        let mut connection = self.connections.acquire(doing).await?;
        let answer = connection.fetch_all(query).await;
        connection.settle(answer.map_err(|error| failure::of(error, doing)))
    }

    fn query(&self, before: &str, after: &str) -> Query<'static, Sqlite, SqliteArguments> {
        let prefix = &self.prefix;
        sqlx::query(AssertSqlSafe(format!("{before} {prefix}calls {after}")))
    }
}

/// Every step that was ever released, oldest first. A released step never changes.
fn steps(prefix: &TablePrefix) -> [String; 2] {
    let first = format!(
        "CREATE TABLE {prefix}calls (
    origin TEXT NOT NULL,
    call_key TEXT NOT NULL,
    method TEXT NOT NULL,
    url TEXT NOT NULL,
    headers BLOB NOT NULL,
    digest BLOB,
    body BLOB,
    created INTEGER NOT NULL,
    deadline INTEGER NOT NULL,
    ending INTEGER,
    status INTEGER,
    answer_headers BLOB,
    answer_body BLOB,
    PRIMARY KEY (origin, call_key)
) STRICT;
CREATE INDEX {prefix}calls_open ON {prefix}calls (created) WHERE ending IS NULL;
CREATE INDEX {prefix}calls_over ON {prefix}calls (created) WHERE ending IS NOT NULL;
"
    );
    // SQLite changes no primary key, so the table is made anew.
    let accounts = format!(
        "CREATE TABLE {prefix}calls_new (
    origin TEXT NOT NULL,
    account TEXT NOT NULL,
    call_key TEXT NOT NULL,
    method TEXT NOT NULL,
    url TEXT NOT NULL,
    headers BLOB NOT NULL,
    caller BLOB,
    digest BLOB,
    body BLOB,
    created INTEGER NOT NULL,
    deadline INTEGER NOT NULL,
    ending INTEGER,
    status INTEGER,
    answer_headers BLOB,
    answer_body BLOB,
    PRIMARY KEY (origin, account, call_key)
) STRICT;
INSERT INTO {prefix}calls_new
    SELECT origin, '', call_key, method, url, headers, NULL, digest, body, created, deadline, ending, status,
        answer_headers, answer_body FROM {prefix}calls;
DROP TABLE {prefix}calls;
ALTER TABLE {prefix}calls_new RENAME TO {prefix}calls;
CREATE INDEX {prefix}calls_open ON {prefix}calls (created) WHERE ending IS NULL;
CREATE INDEX {prefix}calls_over ON {prefix}calls (created) WHERE ending IS NOT NULL;
"
    );
    [first, accounts]
}

async fn migrate(
    connection: &mut SqliteConnection,
    prefix: &TablePrefix,
    doing: &'static str,
) -> Result<(), StoreError> {
    let failed = |error| failure::of(error, doing);
    let steps = steps(prefix);
    let mut transaction = connection
        .begin_with("BEGIN IMMEDIATE")
        .await
        .map_err(failed)?;
    let table = format!(
        "CREATE TABLE IF NOT EXISTS {prefix}calls_schema (version INTEGER NOT NULL PRIMARY KEY) STRICT;"
    );
    transaction
        .execute(AssertSqlSafe(table))
        .await
        .map_err(failed)?;
    let version = format!("SELECT coalesce(max(version), 0) FROM {prefix}calls_schema");
    let row = transaction.fetch_one(AssertSqlSafe(version)).await;
    let found: i64 = row.and_then(|row| row.try_get(0)).map_err(failed)?;
    if !schema::is_current(found, steps.len(), doing)? {
        for (version, step) in schema::missing(&steps, found) {
            let step =
                format!("{step}INSERT INTO {prefix}calls_schema (version) VALUES ({version});");
            transaction
                .execute(AssertSqlSafe(step))
                .await
                .map_err(failed)?;
        }
    }
    transaction.commit().await.map_err(failed)
}

const COLUMNS: &str = "origin, account, call_key, method, url, headers, caller, digest, body, created, deadline, ending, status, answer_headers, answer_body";

const ANSWERED: i64 = 0;
const GONE: i64 = 1;
const BURNED: i64 = 2;

#[async_trait]
impl ClientJournal for SqliteJournal {
    async fn begin(&self, entry: &Entry) -> Result<Option<Entry>, StoreError> {
        const DOING: &str = "writing a call into the journal";
        loop {
            let insert = self
                .query(
                    "INSERT INTO",
                    "(origin, account, call_key, method, url, headers, caller, digest, body, created, deadline) \
                     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING 1",
                )
                .bind(entry.id.origin.clone())
                .bind(entry.id.account.clone())
                .bind(entry.id.key.as_str().to_owned())
                .bind(entry.method.as_str().to_owned())
                .bind(entry.url.as_str().to_owned())
                .bind(encoded(&entry.headers))
                .bind(entry.caller.map(Vec::from))
                .bind(entry.digest.map(Vec::from))
                .bind(entry.body.as_ref().map(|body| body.to_vec()))
                .bind(entry.created.as_micros())
                .bind(entry.deadline.as_micros());
            if !self.run(DOING, insert).await?.is_empty() {
                return Ok(None);
            }
            let select = self
                .query(
                    &format!("SELECT {COLUMNS} FROM"),
                    "WHERE origin = ? AND account = ? AND call_key = ?",
                )
                .bind(entry.id.origin.clone())
                .bind(entry.id.account.clone())
                .bind(entry.id.key.as_str().to_owned());
            // Where it was forgotten in between, nothing stands there any more.
            if let Some(row) = self.run(DOING, select).await?.first() {
                return decoded(row, DOING).map(Some);
            }
        }
    }

    async fn finish(
        &self,
        id: &EntryId,
        caller: &[u8; 32],
        ending: &Ending,
    ) -> Result<(), StoreError> {
        let (kind, status, headers, body) = match ending {
            Ending::Answered {
                status,
                headers,
                body,
            } => (
                ANSWERED,
                Some(i64::from(status.as_u16())),
                Some(encoded(headers)),
                body.as_ref().map(|body| body.to_vec()),
            ),
            Ending::Gone => (GONE, None, None, None),
            Ending::Burned => (BURNED, None, None, None),
        };
        // What was sent is no longer needed once its outcome is known.
        let update = self
            .query(
                "UPDATE",
                "SET caller = ?, ending = ?, status = ?, answer_headers = ?, answer_body = ?, body = NULL \
                 WHERE origin = ? AND account = ? AND call_key = ?",
            )
            .bind(caller.to_vec())
            .bind(kind)
            .bind(status)
            .bind(headers)
            .bind(body)
            .bind(id.origin.clone())
            .bind(id.account.clone())
            .bind(id.key.as_str().to_owned());
        self.run("writing the ending of a call into the journal", update)
            .await
            .map(drop)
    }

    async fn forget(&self, id: &EntryId) -> Result<(), StoreError> {
        let delete = self
            .query(
                "DELETE FROM",
                "WHERE origin = ? AND account = ? AND call_key = ?",
            )
            .bind(id.origin.clone())
            .bind(id.account.clone())
            .bind(id.key.as_str().to_owned());
        self.run("deleting a call from the journal", delete)
            .await
            .map(drop)
    }

    async fn unfinished(&self, limit: u32) -> Result<Vec<Entry>, StoreError> {
        const DOING: &str = "listing the calls of the journal";
        let select = self
            .query(
                &format!("SELECT {COLUMNS} FROM"),
                "WHERE ending IS NULL ORDER BY created, origin, account, call_key LIMIT ?",
            )
            .bind(limit);
        let rows = self.run(DOING, select).await?;
        rows.iter().map(|row| decoded(row, DOING)).collect()
    }

    async fn purge(&self, before: Time, limit: u32) -> Result<u64, StoreError> {
        let prefix = &self.prefix;
        let delete = self
            .query(
                "DELETE FROM",
                &format!(
                    "WHERE rowid IN (SELECT rowid FROM {prefix}calls \
                     WHERE ending IS NOT NULL AND created < ? LIMIT ?) RETURNING 1"
                ),
            )
            .bind(before.as_micros())
            .bind(limit);
        let rows = self.run("purging the journal", delete).await?;
        Ok(rows.len() as u64)
    }
}

fn encoded(headers: &HeaderMap) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in headers {
        write_framed(&mut bytes, name.as_str().as_bytes());
        write_framed(&mut bytes, value.as_bytes());
    }
    bytes
}

fn decoded_headers(mut bytes: &[u8]) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    while !bytes.is_empty() {
        let name = HeaderName::from_bytes(read_framed(&mut bytes)?).ok()?;
        let value = HeaderValue::from_bytes(read_framed(&mut bytes)?).ok()?;
        headers.append(name, value);
    }
    Some(headers)
}

fn decoded(row: &SqliteRow, doing: &'static str) -> Result<Entry, StoreError> {
    let read = entry(row).map_err(|error| failure::of(error, doing))?;
    read.ok_or_else(|| {
        StoreError::new(StoreErrorKind::Corrupt, doing)
            .with_source("a call in the journal is not one that this crate wrote")
    })
}

/// `None` where a column holds what was never written there.
fn entry(row: &SqliteRow) -> sqlx::Result<Option<Entry>> {
    let ending = match row.try_get::<Option<i64>, _>(11)? {
        Some(kind) => match ending(row, kind)? {
            Some(ending) => Some(ending),
            None => return Ok(None),
        },
        None => None,
    };
    let (key, method): (String, String) = (row.try_get(2)?, row.try_get(3)?);
    let (url, headers): (String, Vec<u8>) = (row.try_get(4)?, row.try_get(5)?);
    let caller: Option<Vec<u8>> = row.try_get(6)?;
    let digest: Option<Vec<u8>> = row.try_get(7)?;
    let body: Option<Vec<u8>> = row.try_get(8)?;
    let (Ok(key), Ok(method), Ok(url), Some(headers)) = (
        Key::new(key),
        Method::from_bytes(method.as_bytes()),
        Url::parse(&url),
        decoded_headers(&headers),
    ) else {
        return Ok(None);
    };
    let [Ok(caller), Ok(digest)] =
        [caller, digest].map(|digest| digest.map(<[u8; 32]>::try_from).transpose())
    else {
        return Ok(None);
    };
    Ok(Some(Entry {
        id: EntryId {
            origin: row.try_get(0)?,
            account: row.try_get(1)?,
            key,
        },
        method,
        url,
        headers,
        caller,
        digest,
        body: body.map(Bytes::from),
        created: Time::from_micros(row.try_get(9)?),
        deadline: Time::from_micros(row.try_get(10)?),
        ending,
    }))
}

fn ending(row: &SqliteRow, kind: i64) -> sqlx::Result<Option<Ending>> {
    Ok(match kind {
        ANSWERED => {
            let status: Option<u16> = row.try_get(12)?;
            let headers: Option<Vec<u8>> = row.try_get(13)?;
            let body: Option<Vec<u8>> = row.try_get(14)?;
            let status = status.and_then(|status| StatusCode::from_u16(status).ok());
            let headers = headers.as_deref().and_then(decoded_headers);
            status
                .zip(headers)
                .map(|(status, headers)| Ending::Answered {
                    status,
                    headers,
                    body: body.map(Bytes::from),
                })
        }
        GONE => Some(Ending::Gone),
        BURNED => Some(Ending::Burned),
        _ => None,
    })
}
