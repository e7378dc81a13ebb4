//! The dialect of a server: its statements, each over a session.

use std::{fmt::Debug, sync::Arc, time::Duration};

use crate::{
    identity::RecordId,
    record::{Draft, Record, Step, StepNames, Version},
    store::{
        ListenerHealth, Snapshot, StepWrite, Store, StoreError, Swap,
        lane::{Answer, Job, Kind},
        pool::Server,
        sql::{Reads, migrate::Schema},
        version_cache::CachedVersion,
    },
};

/// The statements of a server's dialect.
pub(crate) trait ServerDialect: Clone + Debug + Send + Sync + 'static {
    type Database: Schema;

    /// How connections are opened.
    type Server: Server<Connection = Connected<Self>>;

    /// The facts that are found out where a connection is opened. Nothing is known of one of the
    /// application's.
    type About: Default + Send + Sync;

    /// The connection on which the server notifies, if it does.
    type Listener: Clone + Debug + Default + Send + Sync;

    /// How that connection is.
    fn listening(_: &Self::Listener) -> Option<ListenerHealth> {
        None
    }

    /// The kind of database in whose transactions it takes part.
    const KIND: &'static str;

    /// The same for a transaction of the application's: it claims only where `here` gives a row.
    fn inside(&self, here: Option<&str>) -> Self;

    /// Whether it has statements for the operations of many callers.
    fn has_lanes(&self) -> bool;

    /// Whether a server like this, and its user, can do so with this kind.
    fn does_many(about: &Self::About, kind: Kind) -> bool;

    /// Does these by one statement, or by one message. The answers are in the same order; `None`
    /// for one that has to be done alone.
    fn do_many(
        &self,
        session: &mut Session<'_, Self>,
        kind: Kind,
        jobs: &[&Job],
    ) -> impl Future<Output = Result<Vec<Option<Answer>>, StoreError>> + Send;

    /// Whether the server undid all of what failed so.
    fn is_undone(error: &StoreError) -> bool;

    fn load(
        &self,
        session: &mut Session<'_, Self>,
        id: &RecordId,
    ) -> impl Future<Output = Result<Snapshot, StoreError>> + Send;

    /// The known record of a call that is done, with its outcome; `None` where it no longer stands
    /// so.
    fn again(
        &self,
        session: &mut Session<'_, Self>,
        id: &RecordId,
        known: &CachedVersion,
    ) -> impl Future<Output = Result<Option<Snapshot>, StoreError>> + Send;

    /// Puts `next` where nothing stands.
    fn create(
        &self,
        session: &mut Session<'_, Self>,
        id: &RecordId,
        next: &Draft,
    ) -> impl Future<Output = Result<Swap, StoreError>> + Send;

    /// Puts `next` where version `seen` stands, of which `known` is what this process knows.
    fn replace(
        &self,
        session: &mut Session<'_, Self>,
        id: &RecordId,
        seen: Version,
        next: &Draft,
        known: Option<&CachedVersion>,
    ) -> impl Future<Output = Result<Swap, StoreError>> + Send;

    fn load_steps(
        &self,
        session: &mut Session<'_, Self>,
        call: &RecordId,
        names: &StepNames,
        reads: Reads,
    ) -> impl Future<Output = Result<Vec<Arc<Step>>, StoreError>> + Send;

    /// Writes a step. Inside a transaction of the application's, what it writes first locks no
    /// record.
    fn write_step(
        &self,
        session: &mut Session<'_, Self>,
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> impl Future<Output = Result<StepWrite, StoreError>> + Send;

    fn purge(
        &self,
        session: &mut Session<'_, Self>,
        limit: u32,
        keep: Duration,
    ) -> impl Future<Output = Result<Vec<RecordId>, StoreError>> + Send;

    fn scan(
        &self,
        session: &mut Session<'_, Self>,
        after: Option<RecordId>,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<(RecordId, Arc<Record>)>, StoreError>> + Send;
}

pub(super) type ConnectionOf<D> = <<D as ServerDialect>::Database as sqlx::Database>::Connection;

/// A connection of the store's own, and what is known of its user and its server.
pub(crate) struct Connected<D: ServerDialect> {
    pub(crate) connection: ConnectionOf<D>,
    pub(crate) about: D::About,
}

/// A connection that statements are sent over, the store's own or the application's.
pub(crate) struct Session<'a, D: ServerDialect> {
    pub(crate) connection: &'a mut ConnectionOf<D>,
    pub(crate) about: &'a D::About,
    /// The store, where this is inside a transaction of the application's: it shows what is
    /// committed. `None` where every statement is a transaction of its own.
    pub(crate) outside: Option<&'a dyn Store>,
}

impl<D: ServerDialect> Connected<D> {
    pub(crate) fn session(&mut self) -> Session<'_, D> {
        Session {
            connection: &mut self.connection,
            about: &self.about,
            outside: None,
        }
    }
}

impl<D: ServerDialect> Session<'_, D> {
    /// Whether every statement is a transaction of its own.
    pub(crate) fn is_alone(&self) -> bool {
        self.outside.is_none()
    }
}
