//! Connections of a store's own, each in the hands of one caller at a time.
//!
//! Not a pool of sqlx, which pings a connection whenever it comes back, and by default whenever it goes out: for a replay, which
//! is one round trip, that is the larger part of the work. And not the pool of the application, where a connection may wait in a
//! transaction that a cancelled `begin()` left open (sqlx 0.9.0, issue 4385): a write there is answered, and rolled back
//! later.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use sqlx::{ConnectOptions, Connection, Database, Pool};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

use super::{StoreError, StoreErrorKind};

/// A server that connections are opened to.
pub(crate) trait Server: Clone + Send + Sync {
    type Connection: Send;

    /// Opens a connection, set up as the store needs it.
    fn open(
        &self,
        doing: &'static str,
    ) -> impl Future<Output = Result<Self::Connection, StoreError>> + Send;
}

/// Opens connections and lends them.
pub(crate) struct Lending<S: Server> {
    server: S,
    limits: Limits,
    room: Semaphore,
    idle: Mutex<Vec<S::Connection>>,
}

/// Where the server is: asked at every connection, because passwords may change.
#[derive(Clone)]
pub(crate) struct Place<O>(Arc<dyn Fn() -> O + Send + Sync>);

/// How many connections there may be, and how long what may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) connections: u32,
    /// For a connection to be free, and again for a new one to be open.
    pub(crate) connect: Duration,
    /// For a statement to be answered.
    pub(crate) answer: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10,
            connect: Duration::from_secs(10),
            answer: Duration::from_secs(30),
        }
    }
}

/// A connection that goes back once its answer is [settled](Lent::settle); dropped before, it is closed, because nobody knows
/// what is still on its way.
pub(crate) struct Lent<'a, S: Server> {
    connection: S::Connection,
    lending: &'a Lending<S>,
    _room: SemaphorePermit<'a>,
}

impl<O: ConnectOptions> Place<O> {
    pub(crate) fn of_options(options: O) -> Self {
        Self(Arc::new(move || options.clone()))
    }

    /// Where the application's pool connects to.
    pub(crate) fn of_pool<D>(pool: Pool<D>) -> Self
    where
        D: Database<Connection: Connection<Options = O>>,
    {
        Self(Arc::new(move || (*pool.connect_options()).clone()))
    }

    /// The options for a connection that is opened now. Its statements are not logged: behind a proxy that pools transactions,
    /// keys and outcomes stand in them.
    pub(crate) fn options(&self) -> O {
        (self.0)().disable_statement_logging()
    }
}

impl<S: Server> Lending<S> {
    pub(crate) fn new(server: S, limits: Limits) -> Self {
        let connections = usize::try_from(limits.connections).unwrap_or(usize::MAX);
        Self {
            server,
            limits,
            room: Semaphore::new(connections.clamp(1, Semaphore::MAX_PERMITS)),
            idle: Mutex::default(),
        }
    }

    /// The same server, with connections of its own.
    pub(crate) fn another(&self, connections: u32) -> Self {
        let limits = Limits {
            connections,
            ..self.limits
        };
        Self::new(self.server.clone(), limits)
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn server(&self) -> &S {
        &self.server
    }

    /// Does something over a connection that is free, or a new one, for as long as an answer may take.
    pub(crate) async fn run<T>(
        &self,
        doing: &'static str,
        work: impl AsyncFnOnce(&mut S::Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut lent = self.acquire(doing).await?;
        let answer = limited(self.limits.answer, doing, work(&mut lent)).await;
        lent.settle(answer)
    }

    /// Takes a connection that is free, or opens one.
    pub(crate) async fn acquire(&self, doing: &'static str) -> Result<Lent<'_, S>, StoreError> {
        let room = timeout(self.limits.connect, self.room.acquire())
            .await
            .map_err(|late| StoreError::new(StoreErrorKind::Busy, doing).with_source(late))?
            .map_err(|closed| {
                StoreError::new(StoreErrorKind::Unavailable, doing).with_source(closed)
            })?;
        let idle = self.idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => limited(self.limits.connect, doing, self.server.open(doing)).await?,
        };
        Ok(Lent {
            connection,
            lending: self,
            _room: room,
        })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<S::Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Server> Lent<'_, S> {
    /// Passes an answer on, and the connection back. Where the server did not answer, this connection is closed, and so
    /// are those that lie idle: they are as old as this one, and as broken.
    pub(crate) fn settle<T>(self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        let Self {
            connection,
            lending,
            ..
        } = self;
        let mut idle = lending.idle();
        match &answer {
            Err(error) if error.kind() == StoreErrorKind::Unavailable => {
                let broken = std::mem::take(&mut *idle);
                drop(idle);
                drop((connection, broken));
            }
            _ => idle.push(connection),
        }
        answer
    }
}

/// Awaits an answer for so long, and no longer.
async fn limited<T>(
    limit: Duration,
    doing: &'static str,
    answer: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    timeout(limit, answer).await.unwrap_or_else(|late| {
        Err(StoreError::new(StoreErrorKind::Unavailable, doing).with_source(late))
    })
}

impl<S: Server> Deref for Lent<'_, S> {
    type Target = S::Connection;

    fn deref(&self) -> &S::Connection {
        &self.connection
    }
}

impl<S: Server> DerefMut for Lent<'_, S> {
    fn deref_mut(&mut self) -> &mut S::Connection {
        &mut self.connection
    }
}

impl<S: Server> fmt::Debug for Lending<S> {
    /// Without the server, which knows the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lending")
            .field("limits", &self.limits)
            .field("free", &self.room.available_permits())
            .finish_non_exhaustive()
    }
}
