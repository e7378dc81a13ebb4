//! Connections of a store's own, each in the hands of one caller at a time.
//!
//! This is not a pool of sqlx: that pings a connection whenever it comes back, and by default
//! whenever it goes out. For a replay, which is one round trip, that is the larger part of the
//! work. It is not the pool of the application, either: there a connection may wait in a
//! transaction that a cancelled `begin()` left open (sqlx 0.9.0, issue 4385). A write in that is
//! answered, and rolled back later.

use std::{
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex},
    time::Duration,
};

use sqlx::{ConnectOptions, Connection, Database, Pool};
use tokio::{
    runtime,
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

use super::{ConnectionUse, StoreError, StoreErrorKind, idle::LONGEST_IDLE, moment::Moment};
use crate::value::{lock, opaque};

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
pub(crate) struct ConnectionPool<S: Server> {
    server: S,
    limits: Limits,
    permits: Semaphore,
    inline_permits: Semaphore,
    /// The later a connection came back, the further behind it is.
    idle: Mutex<Vec<Open<S::Connection>>>,
}

/// A connection that is open.
struct Open<C> {
    connection: C,
    /// Whose reactor wakes it. While that runtime rests, nobody hears an answer on it. So it is
    /// lent to no other runtime.
    runtime: Option<runtime::Id>,
    opened: Moment,
    /// When it came back, or was opened.
    used: Moment,
}

/// For how long a connection is new: it leads to the server that is there now, whatever that says.
const NEW: Duration = Duration::from_secs(10);

/// The place of the server: asked at every connection, because passwords may change.
#[derive(Clone)]
pub(crate) struct ServerPlace<O>(Arc<dyn Fn() -> O + Send + Sync>);

/// How many connections there may be, and how long each wait may take.
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

/// A connection that goes back once its answer is [passed on](PooledConnection::release); dropped
/// before, it is closed, because it is unknown what is still on its way.
pub(crate) struct PooledConnection<'a, S: Server> {
    open: Open<S::Connection>,
    pool: &'a ConnectionPool<S>,
    _permit: SemaphorePermit<'a>,
}

impl<O: ConnectOptions> ServerPlace<O> {
    pub(crate) fn of_options(options: O) -> Self {
        Self(Arc::new(move || options.clone()))
    }

    /// The place that the application's pool connects to.
    pub(crate) fn of_pool<D>(pool: Pool<D>) -> Self
    where
        D: Database<Connection: Connection<Options = O>>,
    {
        Self(Arc::new(move || (*pool.connect_options()).clone()))
    }

    /// The options for a connection that is opened now. Its statements are not logged: behind a
    /// proxy that pools transactions, keys and outcomes stand in them.
    pub(crate) fn options(&self) -> O {
        (self.0)().disable_statement_logging()
    }
}

impl<S: Server> ConnectionPool<S> {
    pub(crate) fn new(server: S, limits: Limits) -> Self {
        let connections = usize::try_from(limits.connections).unwrap_or(usize::MAX);
        Self {
            server,
            limits,
            permits: Semaphore::new(connections.clamp(1, Semaphore::MAX_PERMITS)),
            inline_permits: Semaphore::new((connections / 2).min(Semaphore::MAX_PERMITS)),
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

    /// Takes over the connections that lie idle in another one.
    #[cfg(all(test, feature = "testing", feature = "postgres"))]
    pub(crate) fn inherit(&self, other: &Self) {
        lock(&self.idle).append(&mut lock(&other.idle));
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn server(&self) -> &S {
        &self.server
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// How many connections are in use at this moment.
    pub(crate) fn in_use(&self) -> ConnectionUse {
        let limit = self.limits.connections.max(1);
        let free = u32::try_from(self.permits.available_permits()).unwrap_or(limit);
        ConnectionUse {
            in_use: limit.saturating_sub(free),
            limit,
        }
    }

    /// A permit to use a connection in the caller's own task, or to wait for one there; `None`
    /// where half of all connections may be in use so. Then the work is
    /// [spawned](super::spawned::spawned). It can happen that a call is not polled for a while, as
    /// in a stream that buffers, or behind a `select!`: it keeps what it has in hand until then. So
    /// the other half is for tasks, which nothing keeps from going on.
    pub(crate) fn inline_permit(&self) -> Option<SemaphorePermit<'_>> {
        self.inline_permits.try_acquire().ok()
    }

    /// Does something over a connection that is free, or a new one, for as long as an answer may
    /// take.
    pub(crate) async fn run<T>(
        &self,
        doing: &'static str,
        work: impl AsyncFnOnce(&mut S::Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut lent = self.acquire(doing).await?;
        let answer = limited(self.limits.answer, doing, work(&mut lent)).await;
        lent.release(answer)
    }

    /// The same for work that may be done twice: if the connection broke, it is done again over a
    /// new one. A server closes connections without asking, as when it is started anew, and the
    /// next use of one finds that out. Work that took too long is not done again.
    pub(crate) async fn run_again<T>(
        &self,
        doing: &'static str,
        work: impl AsyncFnOnce(&mut S::Connection) -> Result<T, StoreError> + Copy,
    ) -> Result<T, StoreError> {
        let mut lent = self.acquire(doing).await?;
        match timeout(self.limits.answer, work(&mut lent)).await {
            Ok(Err(error)) if error.kind() == StoreErrorKind::Unavailable => {
                // Closes those that lie idle, too.
                let _ = lent.release(Err::<T, _>(error));
                self.run(doing, work).await
            }
            Ok(answer) => lent.release(answer),
            Err(late) => lent.release(Err(
                StoreError::new(StoreErrorKind::Unavailable, doing).with_source(late)
            )),
        }
    }

    /// Takes a connection that is free, or opens one.
    pub(crate) async fn acquire(
        &self,
        doing: &'static str,
    ) -> Result<PooledConnection<'_, S>, StoreError> {
        let permit = timeout(self.limits.connect, self.permits.acquire())
            .await
            .map_err(|late| StoreError::new(StoreErrorKind::Busy, doing).with_source(late))?
            .map_err(|closed| {
                StoreError::new(StoreErrorKind::Unavailable, doing).with_source(closed)
            })?;
        let open = match self.take(Moment::now()) {
            Some(open) => open,
            None => {
                self.make_room();
                let connection = self.server.open(doing);
                let connection = limited(self.limits.connect, doing, connection).await?;
                let now = Moment::now();
                Open {
                    connection,
                    runtime: here(),
                    opened: now,
                    used: now,
                }
            }
        };
        Ok(PooledConnection {
            open,
            pool: self,
            _permit: permit,
        })
    }

    /// The connection of this runtime that came back last. Those that came back too long ago are
    /// closed.
    fn take(&self, now: Moment) -> Option<Open<S::Connection>> {
        let (here, mut idle) = (here(), lock(&self.idle));
        let is_old = |open: &mut Open<_>| now.since(open.used) >= LONGEST_IDLE;
        let old: Vec<_> = idle.extract_if(.., is_old).collect();
        let last = idle.iter().rposition(|open| open.runtime == here);
        let taken = last.map(|place| idle.remove(place));
        drop(idle);
        drop(old);
        taken
    }

    /// Closes the connection that lies idle for longest if there would be too many with a new one.
    fn make_room(&self) {
        let most = usize::try_from(self.limits.connections.max(1)).unwrap_or(usize::MAX);
        let lent = most.saturating_sub(self.permits.available_permits());
        let mut idle = lock(&self.idle);
        let oldest = (idle.len() + lent > most && !idle.is_empty()).then(|| idle.remove(0));
        drop(idle);
        drop(oldest);
    }
}

impl<S: Server> PooledConnection<'_, S> {
    /// Passes an answer on, and the connection back. If the server did not answer, this connection
    /// is closed, and so are those that lie idle: they are as old as this one, and as broken. If
    /// the server may not be written, all of these that are not new are closed: it may have been
    /// the primary once, and a new connection finds the primary of now. If the fault may be the
    /// session's alone, such as a statement that a proxy has lost, this one is closed unless it is
    /// new.
    pub(crate) fn release<T>(self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        self.release_at(answer, Moment::now())
    }

    fn release_at<T>(self, answer: Result<T, StoreError>, now: Moment) -> Result<T, StoreError> {
        let Self { open, pool, .. } = self;
        let mut idle = lock(&pool.idle);
        idle.push(Open { used: now, ..open });
        if let Err(error) = &answer {
            let is_not_new = |open: &mut Open<_>| now.since(open.opened) >= NEW;
            let over: Vec<_> = match error.kind() {
                StoreErrorKind::Unavailable => std::mem::take(&mut *idle),
                StoreErrorKind::Denied => idle.extract_if(.., is_not_new).collect(),
                // The last one is this one.
                StoreErrorKind::Configuration | StoreErrorKind::Schema | StoreErrorKind::Other => {
                    idle.pop_if(is_not_new).into_iter().collect()
                }
                _ => Vec::new(),
            };
            drop(idle);
            drop(over);
        }
        answer
    }
}

/// The runtime that the caller runs on.
pub(crate) fn here() -> Option<runtime::Id> {
    let handle = runtime::Handle::try_current().ok();
    handle.map(|handle| handle.id())
}

/// Awaits an answer for so long, and no longer.
pub(crate) async fn limited<T>(
    limit: Duration,
    doing: &'static str,
    answer: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    timeout(limit, answer).await.unwrap_or_else(|late| {
        Err(StoreError::new(StoreErrorKind::Unavailable, doing).with_source(late))
    })
}

impl<S: Server> Deref for PooledConnection<'_, S> {
    type Target = S::Connection;

    fn deref(&self) -> &S::Connection {
        &self.open.connection
    }
}

impl<S: Server> DerefMut for PooledConnection<'_, S> {
    fn deref_mut(&mut self) -> &mut S::Connection {
        &mut self.open.connection
    }
}

// Without the server, which knows the password.
opaque!(ConnectionPool<S: Server>, |it| limits = it.limits, free = it.permits.available_permits());

#[cfg(test)]
mod tests;
