//! The store over a server: connections of its own, the statements of a dialect, and what all
//! clones share.
//!
//! A dialect runs each statement over a [`Session`], which is a connection of the store's own or
//! one on which the application has a transaction open. The pool lends the first kind; a write goes
//! out on it once, and a look again if the connection broke.

pub(crate) mod builder;
mod dialect;
mod lanes;

use std::{sync::Arc, time::Duration};

use tokio::sync::SemaphorePermit;

use self::dialect::ConnectionOf;
pub(crate) use self::dialect::{Connected, ServerDialect, Session};
use super::{
    Reads, TablePrefix, list,
    migrate::{self, Schema as _},
    version::{self, Inside},
};
use crate::{
    identity::RecordId,
    record::{Draft, Record, Step, StepNames, Version},
    store::{
        JoinedConnection, ListedPage, Snapshot, StepWrite, Store, StoreError, StoreHealth, Swap,
        lane::Lanes,
        moment::Moment,
        pool::{ConnectionPool, Limits},
        transaction::connection_of,
        version_cache::VersionCache,
        waiters::Waiters,
    },
    value::opaque,
};

/// The state that a store and its clones share.
pub(crate) struct Inner<D: ServerDialect> {
    pub(crate) connections: ConnectionPool<D::Server>,
    pub(crate) statements: Arc<D>,
    pub(crate) prefix: TablePrefix,
    inside: Inside<D>,
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) listener: D::Listener,
    pub(crate) versions: Arc<VersionCache>,
    /// `None` where each operation is done alone.
    pub(crate) lanes: Option<Lanes>,
}

opaque!(Inner<D: ServerDialect>, |it| connections = it.connections, prefix = it.prefix);

impl<D: ServerDialect> Inner<D> {
    pub(crate) fn new(
        server: D::Server,
        limits: Limits,
        statements: Arc<D>,
        prefix: TablePrefix,
    ) -> Self {
        Self::with(ConnectionPool::new(server, limits), statements, prefix)
    }

    /// A store of its own over these connections.
    pub(crate) fn with(
        connections: ConnectionPool<D::Server>,
        statements: Arc<D>,
        prefix: TablePrefix,
    ) -> Self {
        Self {
            lanes: statements.has_lanes().then(Lanes::new),
            connections,
            statements,
            prefix,
            inside: Inside::default(),
            waiters: Arc::default(),
            listener: D::Listener::default(),
            versions: Arc::default(),
        }
    }

    /// The same with as many connections of its own, for operations that each go alone.
    pub(crate) fn another(&self, connections: u32) -> Self {
        Self {
            connections: self.connections.another(connections),
            statements: Arc::clone(&self.statements),
            prefix: self.prefix.clone(),
            inside: Inside::default(),
            waiters: Arc::clone(&self.waiters),
            listener: self.listener.clone(),
            versions: Arc::clone(&self.versions),
            lanes: None,
        }
    }

    pub(crate) fn health(&self) -> StoreHealth {
        let in_use = self.connections.in_use();
        StoreHealth::of(Some(in_use), D::listening(&self.listener))
    }

    pub(crate) fn inline_permit(&self) -> Option<SemaphorePermit<'_>> {
        self.connections.inline_permit()
    }

    pub(crate) async fn migrate(&self) -> Result<(), StoreError> {
        let looking = async |connected: &mut Connected<D>| {
            let connection = &mut connected.connection;
            let (prefix, steps) = (&self.prefix, D::Database::steps(&self.prefix));
            let is_done = migrate::is_done::<D::Database>(&steps, connection, prefix).await?;
            if is_done {
                self.learn(connection).await?;
            }
            Ok(is_done)
        };
        if self.connections.run(migrate::DOING, looking).await? {
            return Ok(());
        }
        let mut connected = self.connections.acquire(migrate::DOING).await?;
        let connection = &mut connected.connection;
        // If that fails, the connection is closed, and its transaction holds nothing any more.
        migrate::migrate::<D::Database>(connection, &self.prefix).await?;
        let learned = self.learn(connection).await;
        connected.release(learned)
    }

    pub(crate) async fn store_id(&self) -> Result<String, StoreError> {
        let looking = async |connected: &mut Connected<D>| {
            migrate::find_id::<D::Database>(&mut connected.connection, &self.prefix).await
        };
        let doing = "looking for the store";
        self.connections.run_again(doing, looking).await
    }

    pub(crate) async fn check_schema(&self) -> Result<(), StoreError> {
        let checking = async |connected: &mut Connected<D>| {
            let connection = &mut connected.connection;
            migrate::check::<D::Database>(connection, &self.prefix).await?;
            self.learn(connection).await
        };
        self.connections.run("checking the schema", checking).await
    }

    /// Takes note of the id of the store, whose tables are there.
    async fn learn(&self, connection: &mut ConnectionOf<D>) -> Result<(), StoreError> {
        let id = migrate::find_id::<D::Database>(connection, &self.prefix).await?;
        let here = version::here(&self.prefix, &id);
        self.inside.set(self.statements.inside(Some(&here)));
        Ok(())
    }

    /// The statements for a transaction of the application's.
    fn inside(&self) -> Arc<D> {
        let inside = self.inside.get();
        inside.unwrap_or_else(|| Arc::new(self.statements.inside(None)))
    }

    pub(crate) async fn load(&self, id: &RecordId) -> Result<Snapshot, StoreError> {
        const DOING: &str = "loading a record";
        let loading = async |connected: &mut Connected<D>| {
            self.statements.load(&mut connected.session(), id).await
        };
        let sent_at = Moment::now();
        let snapshot = self.connections.run_again(DOING, loading).await?;
        self.versions.observe(id, &snapshot, sent_at);
        Ok(snapshot)
    }

    pub(crate) async fn swap(
        &self,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        if seen.is_none() && next.subject.is_none() {
            // Nothing can begin without a subject.
            return self.load(id).await.map(Swap::Refused);
        }
        let writing = async |connected: &mut Connected<D>| {
            let (session, statements) = (&mut connected.session(), &self.statements);
            let Some(seen) = seen else {
                if let Some(known) = self.versions.done(id)
                    && let Some(snapshot) = statements.again(session, id, &known).await?
                {
                    return Ok(Swap::Refused(snapshot));
                }
                return statements.create(session, id, next).await;
            };
            let known = self.versions.version(id, Some(seen));
            let known = known.as_deref();
            statements.replace(session, id, seen, next, known).await
        };
        let sent_at = Moment::now();
        let answer = self.connections.run("writing a record", writing).await?;
        self.note(id, seen, next, &answer, sent_at);
        Ok(answer)
    }

    /// Takes note of the answer to a write that was sent at this moment.
    pub(crate) fn note(
        &self,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
        answer: &Swap,
        sent_at: Moment,
    ) {
        self.versions.record_write(id, seen, next, answer, sent_at);
        // No call waits yet for a record that begins, except calls that have seen it already, and
        // those would look in vain.
        if seen.is_some() && matches!(answer, Swap::Applied(_)) {
            self.waiters.wake(id);
        }
    }

    /// As [`TransactionStore::swap_in`](crate::store::TransactionStore::swap_in), of `store`.
    pub(crate) async fn swap_in(
        &self,
        store: &dyn Store,
        connection: &mut JoinedConnection<'_>,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        let session = &mut Session {
            connection: connection_of(connection, D::KIND)?,
            about: &D::About::default(),
            outside: Some(store),
        };
        let (statements, versions) = (self.inside(), &self.versions);
        let Some(seen) = seen else {
            let swap = statements.create(session, id, next).await?;
            versions.record_claim_inside(id, next, &swap);
            return Ok(swap);
        };
        let known = versions.version(id, Some(seen));
        let known = known.as_deref();
        statements.replace(session, id, seen, next, known).await
    }

    pub(crate) async fn load_steps(
        &self,
        call: &RecordId,
        names: &StepNames,
        reads: Reads,
    ) -> Result<Vec<Arc<Step>>, StoreError> {
        let loading = async |connected: &mut Connected<D>| {
            let session = &mut connected.session();
            let statements = &self.statements;
            statements.load_steps(session, call, names, reads).await
        };
        self.connections.run_again("loading steps", loading).await
    }

    pub(crate) async fn write_step(
        &self,
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> Result<StepWrite, StoreError> {
        let writing = async |connected: &mut Connected<D>| {
            let session = &mut connected.session();
            self.statements.write_step(session, call, seen, next).await
        };
        self.connections.run("writing a step", writing).await
    }

    /// As [`TransactionStore::write_step_in`](crate::store::TransactionStore::write_step_in), of
    /// `store`.
    pub(crate) async fn write_step_in(
        &self,
        store: &dyn Store,
        connection: &mut JoinedConnection<'_>,
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> Result<StepWrite, StoreError> {
        let session = &mut Session {
            connection: connection_of(connection, D::KIND)?,
            about: &D::About::default(),
            outside: Some(store),
        };
        self.inside().write_step(session, call, seen, next).await
    }

    pub(crate) async fn purge(&self, limit: u32, keep: Duration) -> Result<u64, StoreError> {
        const DOING: &str = "purging expired records";
        let purging = async |connected: &mut Connected<D>| {
            let session = &mut connected.session();
            self.statements.purge(session, limit, keep).await
        };
        let gone = self.connections.run_again(DOING, purging).await?;
        for id in &gone {
            self.waiters.wake(id);
        }
        Ok(gone.len() as u64)
    }

    pub(crate) async fn scan(
        &self,
        after: Option<RecordId>,
        limit: u32,
    ) -> Result<Vec<(RecordId, Arc<Record>)>, StoreError> {
        let listing = async |connected: &mut Connected<D>| {
            let session = &mut connected.session();
            self.statements.scan(session, after, limit).await
        };
        self.connections.run_again("listing records", listing).await
    }

    pub(crate) async fn list(&self, text: String, limit: u32) -> Result<ListedPage, StoreError> {
        let listing = async |connected: &mut Connected<D>| {
            let connection = &mut connected.connection;
            list::list::<D::Database>(connection, text.clone(), limit).await
        };
        self.connections.run_again(list::DOING, listing).await
    }
}
