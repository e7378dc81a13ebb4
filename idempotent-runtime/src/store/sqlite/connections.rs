//! The source of a connection.

use std::{
    future::pending,
    ops::{Deref, DerefMut},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use sqlx::{
    ConnectOptions, Error, Executor, Row, Sqlite, SqliteConnection, SqlitePool,
    pool::PoolConnection,
    sqlite::{SqliteConnectOptions, SqliteLockingMode},
};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::failure;
use crate::{
    clock::{SystemTimer, Timer},
    store::{StoreError, StoreErrorKind},
};

/// How long a caller stands in line for the connection, or for a lock that another process holds
/// while a file is opened.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// How long a caller waits for the application's pool without a word.
const SILENCE: Duration = Duration::from_secs(2);

/// Asks whether what is written lies in a file with a log.
pub(super) const JOURNAL_MODE: &str = "PRAGMA main.journal_mode";

/// Asks whether a connection keeps every other one from the file.
pub(super) const LOCKING_MODE: &str = "PRAGMA main.locking_mode";

/// Is refused inside a transaction when it is prepared, and changes nothing elsewhere.
pub(super) const HARMLESS: &str = "PRAGMA temp.synchronous = FULL";

/// Gives connections, one at a time to each caller.
#[derive(Debug)]
pub enum Connections {
    /// The one of our own.
    Held(Box<Held>),
    /// Those of the application.
    Pool(SqlitePool),
}

/// One connection of our own.
///
/// There is one, because SQLite has one writer. A second connection of the same process would find
/// the file locked and sleep in SQLite's own back-off. A caller in line for the first one is woken
/// at once. Sixteen callers took twice as long through four connections. And it is not a pool of
/// one, because a pool pings each connection that comes back, in a task that it spawns on the
/// caller's runtime. While user code blocks that runtime, no call, not even a heartbeat on another
/// thread, would get the connection.
#[derive(Debug)]
pub struct Held {
    options: SqliteConnectOptions,
    connection: Arc<Mutex<Option<SqliteConnection>>>,
}

/// A connection that goes back when it is dropped.
#[derive(Debug)]
pub enum Lent {
    /// The one of our own.
    Held(OwnedMutexGuard<Option<SqliteConnection>>),
    /// One of the application's.
    Pool(PoolConnection<Sqlite>),
}

impl Connections {
    /// Waits for a connection.
    ///
    /// # Errors
    ///
    /// It fails if none is free for as long as a caller waits, or none can be opened.
    pub async fn acquire(&self, doing: &'static str) -> Result<Lent, StoreError> {
        match self {
            Connections::Held(held) => held.acquire(doing).await.map(Lent::Held),
            Connections::Pool(pool) => {
                let acquired = acquire_aloud(pool).await;
                let mut connection = acquired.map_err(|error| failure::of(error, doing))?;
                check_alone(&mut connection, doing).await?;
                Ok(Lent::Pool(connection))
            }
        }
    }

    /// Whether what is written lies in a file with a log. Nothing else has one, whatever its name:
    /// neither a database in memory nor one that is deleted when it is closed.
    pub(super) async fn is_in_wal(&self, doing: &'static str) -> Result<bool, StoreError> {
        let mut connection = self.acquire(doing).await?;
        let mode = sqlx::query_scalar(JOURNAL_MODE);
        let mode = mode.fetch_one(&mut *connection).await;
        let mode: String = mode.map_err(|error| failure::of(error, doing))?;
        Ok(mode == "wal")
    }

    /// Whether another call has the one connection in hands.
    pub(super) fn is_in_use(&self) -> bool {
        match self {
            Connections::Held(held) => held.connection.try_lock().is_err(),
            Connections::Pool(_) => false,
        }
    }

    /// A connection of its own to the same database; `None` if the database is inside the one
    /// connection. It locks the file for itself in no case: that would keep the application from
    /// it.
    pub(super) async fn another(&self, doing: &'static str) -> Result<Option<Self>, StoreError> {
        let options = match self {
            Connections::Held(held) => held.options.clone(),
            Connections::Pool(pool) => {
                let options = (*pool.connect_options()).clone();
                options.locking_mode(SqliteLockingMode::Normal)
            }
        };
        let name = options.get_filename().as_os_str();
        if name.is_empty() || name == ":memory:" {
            return Ok(None);
        }
        let held = Held::open(options, doing).await?;
        Ok(Some(Connections::Held(held)))
    }

    /// Resolves once it is known that a connection of the application's keeps every other one from
    /// the file, and never otherwise.
    ///
    /// The task that asks does not give up. If it did, a pool would close the connection that it
    /// was about to give, and a database in memory would be gone with it.
    pub(super) async fn keep_others_out(&self) {
        if let Connections::Pool(pool) = self {
            let pool = pool.clone();
            let asking = tokio::spawn(async move { is_exclusive(&pool).await });
            if let Ok(Ok(true)) = asking.await {
                return;
            }
        }
        pending::<()>().await;
    }
}

/// Waits for a connection as long as the pool says, and tells after a while that it waits: the
/// caller may be the one that holds the last.
async fn acquire_aloud(pool: &SqlitePool) -> sqlx::Result<PoolConnection<Sqlite>> {
    let mut acquiring = pin!(pool.acquire());
    let limit = tokio::time::timeout(SILENCE, acquiring.as_mut());
    if let Ok(acquired) = limit.await {
        return acquired;
    }
    let most = pool.options().get_max_connections();
    tracing::warn!(
        max_connections = most,
        "the application's SQLite pool has no free connection: a caller that holds one while it makes a protected call waits for itself; \
         give it back before the call, or give the pool one connection more"
    );
    acquiring.await
}

async fn is_exclusive(pool: &SqlitePool) -> sqlx::Result<bool> {
    let mode = sqlx::raw_sql(LOCKING_MODE);
    let row = pool.acquire().await?.fetch_one(mode).await?;
    Ok(row.try_get::<&str, _>(0)? == "exclusive")
}

/// Tells whether a transaction is open on a connection. Inside one, this statement is refused when
/// it is prepared, and elsewhere it changes nothing.
pub(crate) async fn has_transaction(
    connection: &mut SqliteConnection,
    doing: &'static str,
) -> Result<bool, StoreError> {
    const ERROR: &str = "1";
    let harmless = sqlx::raw_sql(HARMLESS);
    match connection.execute(harmless).await {
        Ok(_) => Ok(false),
        Err(Error::Database(said)) if said.code().as_deref() == Some(ERROR) => Ok(true),
        Err(error) => Err(failure::of(error, doing)),
    }
}

/// Refuses a connection in which the application left a transaction open: a write there is
/// answered, and lost if that transaction is rolled back.
async fn check_alone(
    connection: &mut SqliteConnection,
    doing: &'static str,
) -> Result<(), StoreError> {
    if !has_transaction(connection, doing).await? {
        return Ok(());
    }
    let source = "a connection came back to the pool with a transaction open: commit or roll back what begins with a `BEGIN` of your own, or give the store a pool of its own";
    Err(StoreError::new(StoreErrorKind::Configuration, doing).with_source(source))
}

impl Held {
    /// Opens the connection.
    pub async fn open(
        options: SqliteConnectOptions,
        doing: &'static str,
    ) -> Result<Box<Self>, StoreError> {
        let opened = connect(&options).await;
        let connection = opened.map_err(|error| failure::of(error, doing))?;
        Ok(Box::new(Self {
            options,
            connection: Arc::new(Mutex::new(Some(connection))),
        }))
    }

    async fn acquire(
        &self,
        doing: &'static str,
    ) -> Result<OwnedMutexGuard<Option<SqliteConnection>>, StoreError> {
        let connection = || Arc::clone(&self.connection);
        let mut connection = match connection().try_lock_owned() {
            Ok(connection) => connection,
            Err(_) => tokio::time::timeout(PATIENCE, connection().lock_owned())
                .await
                .map_err(|waited| {
                    StoreError::new(StoreErrorKind::Busy, doing).with_source(waited)
                })?,
        };
        if connection.is_none() {
            let opened = connect(&self.options).await;
            *connection = Some(opened.map_err(|error| failure::of(error, doing))?);
        }
        Ok(connection)
    }
}

/// Connects. If several processes turn a new file into a WAL file at once, SQLite does not wait for
/// the lock, so this tries again.
async fn connect(options: &SqliteConnectOptions) -> Result<SqliteConnection, Error> {
    connect_within(PATIENCE, options).await
}

/// Tries for no longer than this, of which SQLite may have waited most.
async fn connect_within(
    patience: Duration,
    options: &SqliteConnectOptions,
) -> Result<SqliteConnection, Error> {
    let began = SystemTimer.now();
    let mut pause = Duration::from_millis(2);
    loop {
        match options.connect().await {
            Err(error) if is_busy(&error) && SystemTimer.now().saturating_sub(began) < patience => {
                tokio::time::sleep(pause.mul_f64(rand::random_range(0.5..=1.0))).await;
                pause = (pause * 2).min(Duration::from_millis(100));
            }
            answer => return answer,
        }
    }
}

/// SQLite is locked by another connection for the moment.
fn is_busy(error: &Error) -> bool {
    failure::kind(error) == StoreErrorKind::Busy
}

impl Lent {
    /// Closes it, whatever runs on it. It is one of our own, and the next caller opens another one
    /// in its place.
    pub(super) fn close(&mut self) {
        if let Lent::Held(connection) = self {
            **connection = None;
        }
    }

    /// Passes an answer on. If the thread behind the connection has died, the next caller opens
    /// another one.
    pub fn release<T>(mut self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(error) = &answer
            && error.kind() == StoreErrorKind::Unavailable
        {
            self.close();
        }
        answer
    }
}

impl Deref for Lent {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        match self {
            Lent::Held(connection) => connection.as_ref().expect("`acquire` fills it"),
            Lent::Pool(connection) => connection,
        }
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        match self {
            Lent::Held(connection) => connection.as_mut().expect("`acquire` fills it"),
            Lent::Pool(connection) => connection,
        }
    }
}

#[cfg(test)]
mod tests {
    use sqlx::Executor;

    use super::*;

    /// SQLite itself has waited for the lock each time: a try for each sleep that fits into the
    /// patience takes half a minute.
    #[tokio::test]
    async fn a_file_that_stays_locked_is_given_up_when_patience_ends() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let options = SqliteConnectOptions::new()
            .filename(folder.path().join("records.db"))
            .create_if_missing(true);
        let mut other = options.connect().await.expect("the file is made");
        let locked = other.execute("CREATE TABLE t (n); BEGIN EXCLUSIVE").await;
        locked.expect("nobody else has it");

        let durable = options
            .journal_mode(sqlx::sqlite::SqliteJournalMode::Wal)
            .busy_timeout(Duration::from_secs(1));
        let opening = connect_within(Duration::from_secs(3), &durable);
        let opened = tokio::time::timeout(PATIENCE, opening).await;

        let refused = opened.expect("it does not hang");
        assert!(refused.is_err_and(|error| is_busy(&error)));
    }
}
