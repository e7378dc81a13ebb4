//! The journal that survives the process: a SQLite file with a table of its own.

mod file;
mod rows;
mod schema;

use std::{path::Path, sync::Arc};

use async_trait::async_trait;
use sqlx::{
    AssertSqlSafe, Executor as _, Row as _, SqlitePool,
    query::Query,
    sqlite::{
        Sqlite, SqliteArguments, SqliteConnectOptions, SqliteJournalMode, SqliteRow,
        SqliteSynchronous,
    },
};

pub use self::file::JournalFileGone;
use self::file::OpenFile;
use self::rows::{ANSWERED, BURNED, COLUMNS, GONE, damaged, decoded, encoded};
use super::{ClientJournal, CorruptEntry, Ending, Entry, EntryId};
use idempotent_runtime::{
    __client::{Connections, Held, TablePrefix, chosen, spawned, sqlite_failure},
    StoreError, Time,
};

/// Remembers calls in a SQLite file, which several processes may share. Each entry is on the disk
/// before its call is sent.
///
/// A file that is deleted, or replaced, while the journal is open takes no more calls
/// ([`JournalFileGone`](crate::journal::JournalFileGone)), and none is sent.
///
/// Keys, targets and bodies stand in it as they were sent, and so do the responses of calls that
/// have an intent. Set the permissions of its folder if others must not read them. The headers that
/// say who is asking stand in it only as a digest.
///
/// # Examples
///
/// ```
/// use idempotent_client::{IdempotencyKeys, Profile, SqliteJournal};
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
    file: Arc<OpenFile>,
    prefix: TablePrefix,
}

impl SqliteJournal {
    /// Opens the file at `path`, or makes it, and brings its table up to date. It may be the file
    /// of a `SqliteStore`.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened or written, if it is no database, or if a newer release wrote
    /// it.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        const DOING: &str = "opening the journal";
        let file = OpenFile::new(path.as_ref());
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(std::time::Duration::from_secs(5));
        let held = Held::open(options, DOING).await?;
        file.remember();
        let journal = Self {
            connections: Arc::new(Connections::Held(held)),
            file: Arc::new(file),
            prefix: TablePrefix::default(),
        };
        journal.migrate().await?;
        Ok(journal)
    }

    /// Takes connections from the application's own pool, and begins the names of its tables with
    /// `prefix`: [`open`](Self::open) takes `idempotent_`. The application chooses the durability.
    /// Call [`migrate`](Self::migrate) once.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Configuration`](idempotent_runtime::StoreErrorKind::Configuration) where
    /// the prefix cannot begin a table's name.
    pub fn new(pool: SqlitePool, prefix: &str) -> Result<Self, StoreError> {
        let prefix = chosen(prefix, "opening the journal")?;
        let file = OpenFile::new(pool.connect_options().get_filename());
        Ok(Self {
            connections: Arc::new(Connections::Pool(pool)),
            file: Arc::new(file),
            prefix,
        })
    }

    /// Makes the journal's tables, or brings them up to date. It is safe at every start, also of
    /// several processes at once.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::Schema`](idempotent_runtime::StoreErrorKind::Schema) where a newer release
    /// wrote the tables.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        const DOING: &str = "migrating the journal";
        // A connection that is opened now would make another file.
        self.file.check(DOING)?;
        let mut connection = self.connections.acquire(DOING).await?;
        self.file.remember();
        let answer = schema::migrate(&mut connection, &self.prefix, DOING).await;
        connection.release(answer)?;
        self.file.check(DOING)
    }

    async fn run(
        &self,
        doing: &'static str,
        query: Query<'static, Sqlite, SqliteArguments>,
    ) -> Result<Vec<SqliteRow>, StoreError> {
        let (connections, file) = (Arc::clone(&self.connections), Arc::clone(&self.file));
        let running = async move {
            // A connection that is opened now would make another file.
            file.check(doing)?;
            let mut connection = connections.acquire(doing).await?;
            file.remember();
            let answer = connection.fetch_all(query).await;
            let answer = connection.release(answer.map_err(|error| sqlite_failure(error, doing)));
            // The file may have been deleted before this was written.
            file.check(doing)?;
            answer
        };
        spawned(doing, running).await
    }

    fn query(&self, before: &str, after: &str) -> Query<'static, Sqlite, SqliteArguments> {
        let prefix = &self.prefix;
        sqlx::query(sent(format!("{before} {prefix}calls {after}")))
    }
}

/// The condition whose parameters [`bind`] binds.
const OF_CALL: &str = "WHERE origin = ? AND account = ? AND call_key = ?";

/// Binds the id of a call to the next parameters.
fn bind(
    query: Query<'static, Sqlite, SqliteArguments>,
    id: &EntryId,
) -> Query<'static, Sqlite, SqliteArguments> {
    let query = query.bind(id.origin.clone()).bind(id.account.clone());
    query.bind(id.key.as_str().to_owned())
}

/// Passes a text on to the driver. A test of ours notes it.
fn sent(text: String) -> AssertSqlSafe<String> {
    #[cfg(test)]
    tests::golden::note(&text);
    AssertSqlSafe(text)
}

#[async_trait]
impl ClientJournal for SqliteJournal {
    async fn begin(&self, entry: &Entry) -> Result<Option<Entry>, StoreError> {
        const DOING: &str = "writing a call into the journal";
        loop {
            let insert = self.query(
                "INSERT INTO",
                "(origin, account, call_key, method, url, headers, caller, begun, digest, body, created, deadline) \
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING 1",
            );
            let insert = bind(insert, &entry.id)
                .bind(entry.method.as_str().to_owned())
                .bind(entry.url.as_str().to_owned())
                .bind(encoded(&entry.headers))
                .bind(entry.caller.map(Vec::from))
                .bind(entry.begun.map(Vec::from))
                .bind(entry.digest.map(Vec::from))
                .bind(entry.body.as_ref().map(|body| body.to_vec()))
                .bind(entry.created.as_micros())
                .bind(entry.deadline.as_micros());
            if !self.run(DOING, insert).await?.is_empty() {
                return Ok(None);
            }
            // If it was deleted in between, nothing stands there any more.
            if let Some(standing) = self.find(&entry.id).await? {
                return Ok(Some(standing));
            }
        }
    }

    async fn find(&self, id: &EntryId) -> Result<Option<Entry>, StoreError> {
        const DOING: &str = "looking for a call in the journal";
        let select = self.query(&format!("SELECT {COLUMNS} FROM"), OF_CALL);
        let rows = self.run(DOING, bind(select, id)).await?;
        rows.first().map(|row| decoded(row, DOING)).transpose()
    }

    async fn take_up(
        &self,
        id: &EntryId,
        seen: Option<&[u8; 16]>,
        begun: &[u8; 16],
    ) -> Result<bool, StoreError> {
        const DOING: &str = "taking up a call that stands in the journal";
        let set = format!("SET begun = ? {OF_CALL} AND ending IS NULL AND begun IS ? RETURNING 1");
        let update = bind(self.query("UPDATE", &set).bind(begun.to_vec()), id);
        let update = update.bind(seen.map(|seen| seen.to_vec()));
        Ok(!self.run(DOING, update).await?.is_empty())
    }

    async fn finish(
        &self,
        id: &EntryId,
        caller: &[u8; 32],
        ending: &Ending,
    ) -> Result<(), StoreError> {
        const DOING: &str = "writing the ending of a call into the journal";
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
        // The request is no longer needed once its outcome is known.
        let set = format!(
            "SET caller = ?, ending = ?, status = ?, answer_headers = ?, answer_body = ?, body = NULL {OF_CALL}"
        );
        let update = self.query("UPDATE", &set).bind(caller.to_vec());
        let update = update.bind(kind).bind(status).bind(headers).bind(body);
        self.run(DOING, bind(update, id)).await.map(drop)
    }

    async fn withdraw(&self, id: &EntryId, begun: Option<&[u8; 16]>) -> Result<bool, StoreError> {
        const DOING: &str = "withdrawing a call from the journal";
        let open = format!("{OF_CALL} AND ending IS NULL AND begun IS ? RETURNING 1");
        let delete = bind(self.query("DELETE FROM", &open), id);
        let delete = delete.bind(begun.map(|begun| begun.to_vec()));
        Ok(!self.run(DOING, delete).await?.is_empty())
    }

    async fn forget(&self, id: &EntryId) -> Result<(), StoreError> {
        let delete = bind(self.query("DELETE FROM", OF_CALL), id);
        let deleted = self.run("deleting a call from the journal", delete).await;
        deleted.map(drop)
    }

    async fn unfinished(&self, limit: u32) -> Result<Vec<Result<Entry, CorruptEntry>>, StoreError> {
        const DOING: &str = "listing the calls of the journal";
        let select = self.query(
            &format!("SELECT {COLUMNS}, rowid FROM"),
            "WHERE ending IS NULL ORDER BY created, origin, account, call_key LIMIT ?",
        );
        let rows = self.run(DOING, select.bind(limit)).await?;
        let table = format!("{}calls", self.prefix);
        let listed = rows.iter().map(|row| {
            let entry = decoded(row, DOING);
            entry.map_err(|source| damaged(row, &table, source))
        });
        Ok(listed.collect())
    }

    async fn count_unfinished(&self, limit: u32) -> Result<(u64, Option<Time>), StoreError> {
        const DOING: &str = "counting the open calls of the journal";
        let prefix = &self.prefix;
        let text = format!(
            "SELECT count(*), min(created) FROM \
             (SELECT created FROM {prefix}calls WHERE ending IS NULL ORDER BY created LIMIT ?)"
        );
        let rows = self.run(DOING, sqlx::query(sent(text)).bind(limit)).await?;
        let failed = |error| sqlite_failure(error, DOING);
        let row = rows
            .first()
            .ok_or(sqlx::Error::RowNotFound)
            .map_err(failed)?;
        let count: i64 = row.try_get(0).map_err(failed)?;
        let oldest: Option<i64> = row.try_get(1).map_err(failed)?;
        Ok((count.unsigned_abs(), oldest.map(Time::from_micros)))
    }

    async fn purge(&self, before: Time, limit: u32) -> Result<u64, StoreError> {
        let prefix = &self.prefix;
        let over = format!(
            "WHERE rowid IN (SELECT rowid FROM {prefix}calls \
             WHERE ending IS NOT NULL AND created < ? LIMIT ?) RETURNING 1"
        );
        let delete = self.query("DELETE FROM", &over).bind(before.as_micros());
        let rows = self.run("purging the journal", delete.bind(limit)).await?;
        Ok(rows.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    pub(super) mod golden;
}
