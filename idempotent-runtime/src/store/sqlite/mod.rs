//! The embedded store: one SQLite file, or memory, and no server.

mod builder;
mod calls;
pub(crate) mod connections;
pub(crate) mod failure;
#[cfg(test)]
mod golden;
mod group_commit;
mod inner;
mod migrate;
#[cfg(all(test, feature = "testing"))]
mod mutants;
mod rows;
mod statements;
mod steps;

use std::{path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use sqlx::{SqliteConnection, SqlitePool};

pub use self::builder::SqliteBuilder;
pub(crate) use self::connections::{Connections, has_transaction};
use self::{group_commit::Queue, inner::Inner, statements::Statements};
use crate::{
    identity::RecordId,
    race::race,
    record::{Draft, ListedStep, Record, Step, StepName, StepNames, Version},
    store::{
        JoinedConnection, Snapshot, StepStore, StepWrite, Store, StoreError, Swap,
        TransactionStore,
        spawned::spawned,
        sql::{self, Reads, TablePrefix, version::Inside},
        transaction::connection_of,
        waiters::look::PollInterval,
    },
};

/// Keeps records in a SQLite file, shared by every process that opens it, or in memory. Clones are
/// the same store.
///
/// The file is in WAL mode with full synchronisation: an outcome that was recorded survives a loss
/// of power. The clock is that of the machine, read by SQLite, in milliseconds.
///
/// Every statement stands alone. Only in a file that the store opened itself, claims that had to
/// wait for each other stand after one commit, and outcomes likewise. That is one message to the
/// thread behind the connection. If one of them fails, the file stays locked until the runtime has
/// come to undo the others: leave no runtime behind that lives on and is not driven.
///
/// Move, replace or delete the file only while no process has it open. A process that has it open
/// goes on in the old one, a process that opens it then begins in another, and neither sees the
/// other's calls.
///
/// The file, and those that SQLite keeps beside it, are made with the permissions that the umask of
/// the process leaves. Keys, scopes and outcomes are readable in it, so set the umask, or the
/// permissions of the folder, if others must not read them;
/// [`Builder::redact_keys`](crate::Builder::redact_keys) leaves keys and scopes out.
///
/// The table `idempotent_records` has a row for each record, `idempotent_steps` one for each
/// [step](crate::guide::steps) of a body, and `idempotent_schema` says which builds can use them. A
/// trigger deletes the steps of a record that is deleted, by a purge or by hand.
///
/// Outcomes may be as large as SQLite's limit on a value, a thousand million bytes unless it was
/// built otherwise; beyond it, a completion fails with
/// [`StoreErrorKind::Full`](crate::store::StoreErrorKind::Full).
///
/// # Examples
///
/// ```
/// # use idempotent_runtime::store::SqliteStore;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("idempotency.db");
/// let store = SqliteStore::open(path).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

impl SqliteStore {
    /// Opens the file at `path`, or makes it, and brings its tables up to date. `":memory:"` names
    /// no file, but a database in memory, which heartbeats share with the calls;
    /// [`in_memory`](Self::in_memory) says so and gives them a connection of their own.
    ///
    /// # Errors
    ///
    /// [`Configuration`] where the folder is missing or the file cannot be opened, [`Denied`] where
    /// it may not be written, [`Corrupt`] where it is no database, [`Schema`] where a newer release
    /// left no room for this one or a table is gone, [`Busy`] where it stays locked, and [`Full`]
    /// where there is no room.
    ///
    /// [`Configuration`]: crate::store::StoreErrorKind::Configuration
    /// [`Denied`]: crate::store::StoreErrorKind::Denied
    /// [`Corrupt`]: crate::store::StoreErrorKind::Corrupt
    /// [`Schema`]: crate::store::StoreErrorKind::Schema
    /// [`Busy`]: crate::store::StoreErrorKind::Busy
    /// [`Full`]: crate::store::StoreErrorKind::Full
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::builder().open(path).await
    }

    /// Makes a database in memory, which lives as long as the store and its clones.
    ///
    /// # Errors
    ///
    /// It fails if SQLite cannot be used at all.
    pub async fn in_memory() -> Result<Self, StoreError> {
        Self::builder().in_memory().await
    }

    /// Takes connections from the application's own pool, which is never closed. Call
    /// [`migrate`](Self::migrate) once.
    ///
    /// Heartbeats have one of their own, with the options of the pool: its `after_connect` is not
    /// run for it. The table may not be found over it, for example if `after_connect` gives the key
    /// of an encrypted file. The pool may also lock the file for itself (`locking_mode =
    /// EXCLUSIVE`). In either case heartbeats take connections from the pool, too: have one more
    /// there than bodies can hold at once.
    ///
    /// A connection that lies in the pool with a transaction open is refused with
    /// [`Configuration`](crate::store::StoreErrorKind::Configuration), and nothing is written.
    /// Leave `read_uncommitted` off if connections share a cache: a call would be answered with
    /// what another transaction may still roll back.
    #[must_use]
    pub fn new(pool: SqlitePool) -> Self {
        Self::over(Connections::Pool(pool), TablePrefix::default(), None)
    }

    /// Sets up a store with options.
    pub fn builder() -> SqliteBuilder {
        SqliteBuilder::new()
    }

    fn over(connections: Connections, prefix: TablePrefix, queue: Option<Queue>) -> Self {
        let statements = Arc::new(Statements::new(&prefix));
        Self {
            inner: Arc::new(Inner {
                connections,
                statements,
                prefix,
                waiters: Arc::default(),
                inside: Inside::default(),
                queue,
            }),
        }
    }

    /// Makes the store's tables, or brings them up to date. Safe at every start, also of several
    /// processes at once, and apart from the application's own migrations.
    ///
    /// Call it again after all tables were emptied, as a test suite does between its tests. The
    /// store is another one then, and refuses transactions of the application's until it is
    /// called.
    ///
    /// # Errors
    ///
    /// [`Schema`](crate::store::StoreErrorKind::Schema) where a newer release left no room for this
    /// one, or a table is gone, and as [`open`](Self::open).
    pub async fn migrate(&self) -> Result<(), StoreError> {
        let inner = &self.inner;
        let mut connection = inner.connections.acquire("migrating the schema").await?;
        let migrated = migrate::migrate(&mut connection, &inner.prefix).await;
        let answer = inner.learn(&mut connection, migrated).await;
        connection.release(answer)
    }

    /// Tells whether this build can use the tables, for people who run their own migrations.
    ///
    /// # Errors
    ///
    /// [`Schema`](crate::store::StoreErrorKind::Schema) where one of them is missing, they are
    /// older, or a newer release left no room for this one.
    pub async fn check_schema(&self) -> Result<(), StoreError> {
        let inner = &self.inner;
        let mut connection = inner.connections.acquire("checking the schema").await?;
        let checked = migrate::check_schema(&mut connection, &inner.prefix).await;
        let answer = inner.learn(&mut connection, checked).await;
        connection.release(answer)
    }

    /// The statements that [`migrate`](Self::migrate) runs on an empty database, for people who run
    /// their own migrations.
    #[must_use]
    pub fn ddl(&self) -> String {
        migrate::ddl(&self.inner.prefix)
    }

    /// The same over a connection of its own, which has looked at the table: the table may be found
    /// only after the set-up that a pool gives to its connections.
    async fn another(&self) -> Result<Option<Self>, StoreError> {
        const DOING: &str = "opening a connection for heartbeats";
        let inner = &self.inner;
        let Some(connections) = inner.connections.another(DOING).await? else {
            return Ok(None);
        };
        let own = Inner {
            connections,
            statements: Arc::clone(&inner.statements),
            prefix: inner.prefix.clone(),
            waiters: Arc::clone(&inner.waiters),
            inside: Inside::default(),
            queue: None,
        };
        own.wait_for_a_look().await?;
        Ok(Some(Self {
            inner: Arc::new(own),
        }))
    }
}

impl SqliteStore {
    async fn look_at_steps(
        &self,
        call: &RecordId,
        names: &StepNames,
        reads: Reads,
    ) -> Result<Vec<Arc<Step>>, StoreError> {
        let (inner, call, names) = (Arc::clone(&self.inner), *call, names.clone());
        let loading = async move { inner.load_steps(&call, &names, reads).await };
        spawned("loading steps", loading).await
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn load(&self, id: &RecordId) -> Result<Snapshot, StoreError> {
        let (inner, id) = (Arc::clone(&self.inner), *id);
        spawned("loading a record", async move { inner.load(&id).await }).await
    }

    async fn swap(
        &self,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        let (inner, id, next) = (Arc::clone(&self.inner), *id, next.clone());
        let swapping = async move { inner.swap(&id, seen, &next).await };
        spawned("writing a record", swapping).await
    }

    async fn wait(
        &self,
        id: &RecordId,
        seen: Version,
        at_most: Duration,
    ) -> Result<(), StoreError> {
        let waiters = &self.inner.waiters;
        waiters
            .wait(self, id, seen, at_most, || PollInterval::POLLING)
            .await
    }

    async fn purge(&self, limit: u32, keep: Duration) -> Result<u64, StoreError> {
        let inner = Arc::clone(&self.inner);
        let purging = async move { inner.purge(limit, keep).await };
        spawned("purging expired records", purging).await
    }

    async fn scan(
        &self,
        after: Option<RecordId>,
        limit: u32,
    ) -> Result<Vec<(RecordId, Arc<Record>)>, StoreError> {
        let inner = Arc::clone(&self.inner);
        let listing = async move { inner.scan(after, limit).await };
        spawned("listing records", listing).await
    }

    /// A connection of its own: the one that calls share may be in the hands of a task that blocked
    /// code keeps from running. There is none if the application's connection keeps every other one
    /// from the file.
    async fn for_heartbeats(&self) -> Result<Option<Arc<dyn Store>>, StoreError> {
        let own = race(self.another(), self.inner.connections.keep_others_out()).await;
        let own = own.transpose()?.flatten();
        Ok(own.map(|own| Arc::new(own) as Arc<dyn Store>))
    }

    fn steps(&self) -> Option<&dyn StepStore> {
        Some(self)
    }

    fn transactions(&self) -> Option<&dyn TransactionStore> {
        Some(self)
    }
}

#[async_trait]
impl StepStore for SqliteStore {
    async fn load_steps(
        &self,
        call: &RecordId,
        names: &StepNames,
    ) -> Result<Vec<Arc<Step>>, StoreError> {
        self.look_at_steps(call, names, Reads::Whole).await
    }

    async fn list_steps(&self, call: &RecordId) -> Result<Vec<ListedStep>, StoreError> {
        let steps = self
            .look_at_steps(call, &StepName::ALL, Reads::Heads)
            .await?;
        Ok(sql::heads(&steps))
    }

    async fn write_step(
        &self,
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> Result<StepWrite, StoreError> {
        let (inner, call, next) = (Arc::clone(&self.inner), *call, next.clone());
        let writing = async move { inner.write_step(&call, seen, &next).await };
        spawned("writing a step", writing).await
    }
}

#[async_trait]
impl TransactionStore for SqliteStore {
    async fn swap_in(
        &self,
        connection: &mut JoinedConnection<'_>,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        let connection = connection_of::<SqliteConnection>(connection, KIND)?;
        let statements = self.inner.inside();
        statements.swap(connection, id, seen, next).await
    }

    fn version_query(&self, id: &RecordId) -> Option<String> {
        let (prefix, id) = (&self.inner.prefix, id.to_hex());
        Some(format!(
            "SELECT version FROM {prefix}records WHERE id = x'{id}'"
        ))
    }

    async fn write_step_in(
        &self,
        connection: &mut JoinedConnection<'_>,
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> Result<StepWrite, StoreError> {
        let connection = connection_of::<SqliteConnection>(connection, KIND)?;
        let statements = self.inner.inside();
        statements.write_step_in(connection, call, seen, next).await
    }
}

/// The kind of database in whose transactions it takes part.
const KIND: &str = "one of SQLite";

#[cfg(test)]
mod tests;
