//! The store for people who run MariaDB or MySQL.

mod builder;
mod calls;
pub(super) mod connection;
pub(super) mod failure;
#[cfg(test)]
mod golden;
mod inner;
mod migrate;
#[cfg(all(test, feature = "testing"))]
mod mutants;
mod rows;
mod statements;
mod steps;
mod together;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use sqlx::MySqlPool;

pub use self::builder::MySqlBuilder;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub use self::builder::as_mysql;
pub(crate) use self::connection::has_transaction;
use self::{
    connection::{Connected, MySql, Session},
    inner::Inner,
    statements::Statements,
};
use crate::{
    identity::RecordId,
    record::{Draft, ListedStep, Record, Step, StepName, StepNames, Version},
    store::{
        JoinedConnection, Snapshot, StepStore, StepWrite, Store, StoreError, Swap,
        TransactionStore,
        pool::{ConnectionPool, Limits},
        spawned::spawned,
        sql::{self, Reads, TablePrefix, version::Inside},
        together::{CONNECTIONS, Together},
        transaction::connection_of,
        waiters::look::PollInterval,
    },
};

/// Keeps records in a table of a MariaDB or MySQL database: MariaDB 10.6 or newer, or MySQL 8 or
/// newer. Every run of the tests has MariaDB. They last had MySQL in version 9.7.4, and with
/// earlier statements in 8.0.46. Clones are the same store.
///
/// The clock is the server's. Every write is one statement that commits by itself, at READ
/// COMMITTED, on the primary. Heartbeats that are due together are sent together, up to 256 records
/// in one message. A replay is one statement, which takes no lock and writes nothing. A first call
/// is three: one looks, one claims, one records. The store remembers up to 8,192 records
/// that it has lately written or seen, without their outcomes, in mostly less than a kilobyte each.
/// Their replays cost the driver about half, and their completions the server four fifths. If such
/// a record went before its time, the first call is one statement more. It is also one more on
/// MySQL if a record is not remembered, as one whose scope and key have more than 512 bytes: MySQL
/// does not show what a statement wrote. Durability is that of the database: an outcome that was
/// recorded survives a crash of the server unless `innodb_flush_log_at_trx_commit` was changed. The
/// record of a version never changes, so a row that is edited by hand needs another `version`. An
/// outcome is written in one packet, so `max_allowed_packet` bounds it: 16 MiB on MariaDB and 64
/// MiB on MySQL unless set.
///
/// These servers notify no client. A call that waits is woken at once by its own process. It finds
/// the writes of other processes by looking, at most half a second later. One call looks for all
/// that wait for the same record in this process; if that one is not polled, it takes at most three
/// seconds.
///
/// The store opens connections of its own: see [`new`](Self::new).
///
/// # Tables
///
/// `idempotent_records` has a row for each record, `idempotent_steps` one for each
/// [step](crate::guide::steps) of a body, and `idempotent_schema` says which builds can use them.
/// The user needs SELECT, INSERT, UPDATE and DELETE on the first two, and SELECT on the third one.
/// A purge deletes steps together with their record. A record that is deleted by hand leaves its
/// steps, which no call sees any more: delete those of the same `record`, too.
///
/// # Failover
///
/// One server at a time may take writes. In a cluster with several, name one of them, because
/// leases count by the clock of the one that writes. A replica that takes over without what the
/// primary acknowledged has lost it. A call whose record is gone so runs again, also under
/// `on_crash = uncertain`, and is not told so. A call whose body was running gets
/// [`Error::LeaseLost`](crate::Error::LeaseLost) in place of its value. To prevent that, use
/// semi-synchronous replication that never gives up waiting, and promote only a replica that it
/// waits for.
///
/// # Encryption
///
/// With one of the `tls-` features, the URL switches it on, for heartbeats too:
/// `mysql://app@db.example/shop?ssl-mode=VERIFY_IDENTITY`, with `&ssl-ca=/path/authority.pem` for
/// an authority of your own. If the URL says nothing, sqlx encrypts only if the server offers it,
/// and does not verify which server answers. A certificate that is not trusted, and a server
/// without encryption, are of the kind
/// [`Configuration`](crate::store::StoreErrorKind::Configuration). MySQL wants its passwords
/// encrypted: without a `tls-` feature, take sqlx's own `mysql-rsa`.
///
/// # Examples
///
/// ```no_run
/// # use idempotent_runtime::{Idempotency, store::MySqlStore};
/// # async fn set_up() -> Result<(), Box<dyn std::error::Error>> {
/// let store = MySqlStore::connect("mysql://app@localhost/shop").await?;
/// Idempotency::new(store).install()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct MySqlStore {
    inner: Arc<Inner>,
}

impl MySqlStore {
    /// Connects to the server that a URL names, and brings the store's tables up to date.
    ///
    /// # Errors
    ///
    /// As [`MySqlBuilder::connect`].
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::builder().connect(url).await
    }

    /// Makes a store beside the application's own pool. Call [`migrate`](Self::migrate) once.
    ///
    /// The store opens connections of its own, at most ten unless set, with the options of the
    /// pool; it takes none out of the pool and never closes it. A pool pings connections that come
    /// and go, which is the larger part of a replay's time. A connection in it may wait in a
    /// transaction that a cancelled `begin()` left open, where a write is answered and then lost
    /// (sqlx 0.9.0, issue 4385). Bodies that hold all of its connections would keep a heartbeat
    /// waiting. The options must name a database. The pool's `after_connect` does not run for these
    /// connections: they set isolation, SQL mode, how transactions end, and character set
    /// themselves.
    #[must_use]
    pub fn new(pool: MySqlPool) -> Self {
        let made = Self::builder().pool(pool);
        made.expect("the options of a new builder can be used")
    }

    /// Sets up a store with options.
    pub fn builder() -> MySqlBuilder {
        MySqlBuilder::new()
    }

    fn over(server: MySql, limits: Limits, prefix: TablePrefix) -> Self {
        Self {
            inner: Arc::new(Inner {
                connections: ConnectionPool::new(server, limits),
                statements: Arc::new(Statements::new(&prefix)),
                prefix,
                inside: Inside::default(),
                waiters: Arc::default(),
                versions: Arc::default(),
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
    /// [`Schema`] where a newer release left no room for this one or a table is gone, [`Denied`]
    /// where the user may not create them, [`Busy`] where another process migrates for longer than
    /// 30 seconds, [`Unavailable`] where the server does not tell in time what is there.
    ///
    /// [`Schema`]: crate::store::StoreErrorKind::Schema
    /// [`Denied`]: crate::store::StoreErrorKind::Denied
    /// [`Busy`]: crate::store::StoreErrorKind::Busy
    /// [`Unavailable`]: crate::store::StoreErrorKind::Unavailable
    pub async fn migrate(&self) -> Result<(), StoreError> {
        const DOING: &str = "migrating the schema";
        let inner = &*self.inner;
        let looking = async |connected: &mut Connected| {
            let is_done = migrate::is_done(&mut connected.connection, &inner.prefix).await?;
            if is_done {
                inner.learn(&mut connected.connection).await?;
            }
            Ok(is_done)
        };
        if inner.connections.run(DOING, looking).await? {
            return Ok(());
        }
        let mut connected = inner.connections.acquire(DOING).await?;
        let answer = match migrate::migrate(&mut connected.connection, &inner.prefix).await {
            Ok(()) => inner.learn(&mut connected.connection).await,
            refused => refused,
        };
        connected.release(answer)
    }

    /// Tells whether this build can use the tables, for people who run their own migrations.
    ///
    /// # Errors
    ///
    /// [`Schema`](crate::store::StoreErrorKind::Schema) where one of them is missing, they are
    /// older, or a newer release left no room for this one.
    pub async fn check_schema(&self) -> Result<(), StoreError> {
        let inner = &*self.inner;
        let checking = async |connected: &mut Connected| {
            migrate::check_schema(&mut connected.connection, &inner.prefix).await?;
            inner.learn(&mut connected.connection).await
        };
        inner.connections.run("checking the schema", checking).await
    }

    /// The statements that [`migrate`](Self::migrate) runs on an empty database, for people who run
    /// their own migrations.
    #[must_use]
    pub fn ddl(&self) -> String {
        migrate::ddl(&self.inner.prefix)
    }
}

impl MySqlStore {
    async fn look_at_steps(
        &self,
        call: &RecordId,
        names: &StepNames,
        reads: Reads,
    ) -> Result<Vec<Arc<Step>>, StoreError> {
        let Some(_permit) = self.inner.connections.inline_permit() else {
            let (inner, call, names) = (Arc::clone(&self.inner), *call, names.clone());
            let loading = async move { inner.load_steps(&call, &names, reads).await };
            return spawned("loading steps", loading).await;
        };
        self.inner.load_steps(call, names, reads).await
    }
}

#[async_trait]
impl Store for MySqlStore {
    async fn load(&self, id: &RecordId) -> Result<Snapshot, StoreError> {
        let Some(_permit) = self.inner.connections.inline_permit() else {
            let (inner, id) = (Arc::clone(&self.inner), *id);
            return spawned("loading a record", async move { inner.load(&id).await }).await;
        };
        self.inner.load(id).await
    }

    async fn swap(
        &self,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        let Some(_permit) = self.inner.connections.inline_permit() else {
            let (inner, id, next) = (Arc::clone(&self.inner), *id, next.clone());
            let swapping = async move { inner.swap(&id, seen, &next).await };
            return spawned("writing a record", swapping).await;
        };
        self.inner.swap(id, seen, next).await
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

    /// Connections of its own, on the thread that beats: blocked user code keeps the others from
    /// being read.
    async fn for_heartbeats(&self) -> Result<Option<Arc<dyn Store>>, StoreError> {
        let inner = &self.inner;
        Ok(Some(Arc::new(Together::new(Self {
            inner: Arc::new(Inner {
                connections: inner.connections.another(CONNECTIONS),
                statements: Arc::clone(&inner.statements),
                prefix: inner.prefix.clone(),
                inside: Inside::default(),
                waiters: Arc::clone(&inner.waiters),
                versions: Arc::clone(&inner.versions),
            }),
        }))))
    }

    fn steps(&self) -> Option<&dyn StepStore> {
        Some(self)
    }

    fn transactions(&self) -> Option<&dyn TransactionStore> {
        Some(self)
    }
}

#[async_trait]
impl StepStore for MySqlStore {
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
        let Some(_permit) = self.inner.connections.inline_permit() else {
            let (inner, call, next) = (Arc::clone(&self.inner), *call, next.clone());
            let writing = async move { inner.write_step(&call, seen, &next).await };
            return spawned("writing a step", writing).await;
        };
        self.inner.write_step(call, seen, next).await
    }
}

#[async_trait]
impl TransactionStore for MySqlStore {
    async fn swap_in(
        &self,
        connection: &mut JoinedConnection<'_>,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        let connection = connection_of(connection, KIND)?;
        let session = &mut Session::in_transaction(connection, self);
        let statements = self.inner.inside();
        let versions = &self.inner.versions;
        let Some(seen) = seen else {
            let swap = statements.create(session, id, next).await?;
            versions.record_claim_inside(id, next, &swap);
            return Ok(swap);
        };
        let known = versions.version(id, Some(seen));
        statements
            .replace(session, id, seen, next, known.as_deref())
            .await
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
        let connection = connection_of(connection, KIND)?;
        let session = &mut Session::in_transaction(connection, self);
        let statements = self.inner.inside();
        statements.write_step(session, call, seen, next).await
    }
}

/// The databases whose transactions it takes part in.
const KIND: &str = "one of MariaDB or MySQL";
