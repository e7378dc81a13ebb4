//! The store for people who run Postgres.

mod builder;
mod bytea;
mod calls;
mod connection;
pub(super) mod failure;
#[cfg(test)]
mod golden;
mod inner;
pub(crate) mod listen;
mod lists;
mod migrate;
#[cfg(all(test, feature = "testing"))]
mod mutants;
mod packed;
mod rows;
mod statements;
mod steps;
mod together;
mod waiting;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use sqlx::{
    PgPool,
    postgres::{PgConnectOptions, PgConnection},
};

pub use self::builder::PostgresBuilder;
use self::{
    connection::{Connected, Postgres},
    inner::Inner,
    rows::Protocol,
    statements::Statements,
};
use crate::{
    identity::RecordId,
    record::{Draft, ListedStep, Record, Step, StepName, StepNames, Version},
    store::{
        JoinedConnection, Snapshot, StepStore, StepWrite, Store, StoreError, Swap,
        TransactionStore,
        pool::{ConnectionPool, Limits, ServerPlace},
        spawned::spawned,
        sql::{self, Reads, TablePrefix, version::Inside},
        together::{CONNECTIONS, Together},
        transaction::connection_of,
    },
};

/// Keeps records in a table of a Postgres database, version 13 or newer. Clones are the same store.
/// In a database whose encoding is not `UTF8`, a call whose operation has a name with other
/// characters is refused; keys and scopes may have any.
///
/// The clock is the server's. Every write is one statement that commits by itself, at READ
/// COMMITTED, on the primary. Heartbeats that are due together are one statement, of up to 256
/// records. A first call costs two round trips. A replay costs one, takes no lock and writes
/// nothing. The store remembers up to 8,192 records that it has lately written or seen,
/// without their outcomes, in mostly less than a kilobyte each. Their replays cost the server about
/// half, and their completions two thirds. The first call costs three round trips if such a record
/// went before its time. Durability is that of the database: an outcome that was recorded survives
/// a crash of the server unless `synchronous_commit` was turned off. The store opens connections of
/// its own: see [`new`](Self::new).
///
/// # Failover
///
/// A standby that takes over without what the primary acknowledged has lost it. A call whose record
/// is gone so runs again, also under `on_crash = uncertain`, and is not told so. A call whose body
/// was running gets [`Error::LeaseLost`](crate::Error::LeaseLost) in place of its value. To keep
/// that from happening, set `synchronous_standby_names`, and promote only a standby that it waits
/// for. While a primary may only be read, outcomes are kept in the processes that have them. They
/// are tried again for as long as [`max_run_time`](crate::handle::Builder::max_run_time) says;
/// after a lease, another call may take over first.
///
/// # Tables
///
/// `idempotent_records` has a row for each record, `idempotent_steps` one for each
/// [step](crate::guide::steps) of a body, and `idempotent_schema` says which builds can use them. A
/// purge deletes steps together with their record. A record that is deleted by hand leaves its
/// steps, which no call sees any more: delete those of the same `record`, too.
///
/// # Rights
///
/// The user needs SELECT, INSERT, UPDATE and DELETE on the tables of the records and of the steps,
/// and SELECT on the third one. It also needs EXECUTE on `pg_notify`, which every user has unless
/// it was revoked. A purge needs DELETE on both, also where no call has steps. A user that may not
/// update, or not tell, is given what is recorded, and runs nothing: a call that begins is refused
/// with [`Denied`](crate::store::StoreErrorKind::Denied). If the server's queue of notifications is
/// full, no call is told, and calls that wait elsewhere look. [`migrate`](Self::migrate) needs
/// CREATE on the schema if there is something to do.
///
/// # Encryption
///
/// With one of the `tls-` features, the URL switches it on, for heartbeats and notifications too:
/// `postgres://app@db.example/shop?sslmode=verify-full`, with `&sslrootcert=/path/authority.pem`
/// for an authority of your own. If the URL says nothing, sqlx encrypts only if the server offers
/// it, and does not verify the server. A certificate that is not trusted, and a server without
/// encryption, are of the kind [`Configuration`](crate::store::StoreErrorKind::Configuration).
///
/// # Examples
///
/// ```no_run
/// # use idempotent_runtime::{Idempotency, store::PostgresStore};
/// # async fn set_up() -> Result<(), Box<dyn std::error::Error>> {
/// let store = PostgresStore::connect("postgres://app@localhost/shop").await?;
/// Idempotency::new(store).install()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct PostgresStore {
    inner: Arc<Inner>,
}

impl PostgresStore {
    /// Connects to the server that a URL names, and brings the store's tables up to date.
    ///
    /// # Errors
    ///
    /// As [`PostgresBuilder::connect`].
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::builder().connect(url).await
    }

    /// Makes a store beside the application's own pool. Call [`migrate`](Self::migrate) once.
    ///
    /// The store opens connections of its own, at most ten unless set, with the options of the
    /// pool; it takes none out of the pool and never closes it. A pool pings connections that come
    /// and go, which is the larger part of a replay's time. A connection in it may wait in a
    /// transaction that a cancelled `begin()` left open, where a write is answered and then lost
    /// (sqlx 0.9.0, issue 4385). And bodies that hold all of its connections would keep a heartbeat
    /// waiting. The pool's `after_connect` is not run for these connections: put a `search_path` or
    /// a role into the options.
    #[must_use]
    pub fn new(pool: PgPool) -> Self {
        let made = Self::builder().pool(pool);
        made.expect("the options of a new builder can be used")
    }

    /// Sets up a store with options.
    pub fn builder() -> PostgresBuilder {
        PostgresBuilder::new()
    }

    fn over(
        place: ServerPlace<PgConnectOptions>,
        limits: Limits,
        protocol: Protocol,
        prefix: TablePrefix,
    ) -> Self {
        let lock_wait = limits.answer / 2;
        let server = Postgres {
            place,
            protocol,
            lock_wait,
            prefix: prefix.clone(),
        };
        Self {
            inner: Arc::new(Inner {
                connections: ConnectionPool::new(server, limits),
                statements: Arc::new(Statements::new(&prefix, protocol)),
                prefix,
                inside: Inside::default(),
                waiters: Arc::default(),
                listener: Arc::default(),
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
        let looking = async |connection: &mut Connected| {
            let is_done = migrate::is_done(connection, &inner.prefix).await?;
            if is_done {
                inner.learn(connection).await?;
            }
            Ok(is_done)
        };
        if inner.connections.run(DOING, looking).await? {
            return Ok(());
        }
        let mut connection = inner.connections.acquire(DOING).await?;
        // If that fails, the connection is closed, and its transaction holds nothing any more.
        migrate::migrate(&mut connection, &inner.prefix).await?;
        let learned = inner.learn(&mut connection).await;
        connection.release(learned)
    }

    /// Tells whether this build can use the tables, for people who run their own migrations.
    ///
    /// # Errors
    ///
    /// [`Schema`](crate::store::StoreErrorKind::Schema) where one of them is missing, they are
    /// older, or a newer release left no room for this one.
    pub async fn check_schema(&self) -> Result<(), StoreError> {
        let inner = &self.inner;
        let checking = async |connection: &mut Connected| {
            migrate::check_schema(connection, &inner.prefix).await?;
            inner.learn(connection).await
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

/// The kind of database in whose transactions it takes part.
const KIND: &str = "one of Postgres";

impl PostgresStore {
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
impl Store for PostgresStore {
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
        self.wait_for(id, seen, at_most).await
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
                listener: Arc::clone(&inner.listener),
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
impl StepStore for PostgresStore {
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
impl TransactionStore for PostgresStore {
    async fn swap_in(
        &self,
        connection: &mut JoinedConnection<'_>,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        let connection = connection_of::<PgConnection>(connection, KIND)?;
        let statements = self.inner.inside();
        let versions = &self.inner.versions;
        let Some(seen) = seen else {
            let swap = statements.create(connection, id, next).await?;
            versions.record_claim_inside(id, next, &swap);
            return Ok(swap);
        };
        let known = versions.version(id, Some(seen));
        statements
            .replace(connection, id, seen, next, known.as_deref())
            .await
    }

    fn version_query(&self, id: &RecordId) -> Option<String> {
        let (prefix, id) = (&self.inner.prefix, id.to_hex());
        Some(format!(
            "SELECT version FROM {prefix}records WHERE id = decode('{id}', 'hex')"
        ))
    }

    async fn write_step_in(
        &self,
        connection: &mut JoinedConnection<'_>,
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> Result<StepWrite, StoreError> {
        let connection = connection_of::<PgConnection>(connection, KIND)?;
        let statements = self.inner.inside();
        statements.write_step_in(connection, call, seen, next).await
    }
}
