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

use sqlx::Connection;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

use super::{StoreError, StoreErrorKind};

/// Opens connections and lends them.
pub(crate) struct Lending<C: Connection> {
    place: Place<C::Options>,
    limits: Limits,
    room: Semaphore,
    idle: Mutex<Vec<C>>,
}

/// Where the server is: asked at every connection, because passwords may change.
pub(crate) type Place<O> = Arc<dyn Fn() -> O + Send + Sync>;

/// How many connections there may be, and how long what may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) connections: u32,
    /// For a connection to be free, and again for a new one to be open.
    pub(crate) connect: Duration,
    /// For a statement to be answered.
    pub(crate) answer: Duration,
}

/// A connection that goes back once its answer is [settled](Lent::settle); dropped before, it is closed, because nobody knows
/// what is still on its way.
pub(crate) struct Lent<'a, C: Connection> {
    connection: C,
    lending: &'a Lending<C>,
    _room: SemaphorePermit<'a>,
}

impl<C: Connection> Lending<C> {
    pub(crate) fn new(place: Place<C::Options>, limits: Limits) -> Self {
        let connections = usize::try_from(limits.connections).unwrap_or(usize::MAX);
        Self {
            place,
            limits,
            room: Semaphore::new(connections.clamp(1, Semaphore::MAX_PERMITS)),
            idle: Mutex::default(),
        }
    }

    /// The same place, with connections of its own.
    pub(crate) fn another(&self, connections: u32) -> Self {
        let limits = Limits {
            connections,
            ..self.limits
        };
        Self::new(Arc::clone(&self.place), limits)
    }

    pub(crate) fn place(&self) -> C::Options {
        (self.place)()
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// Takes a connection that is free, or opens one with `open`.
    pub(crate) async fn acquire<F>(
        &self,
        doing: &'static str,
        open: impl FnOnce(C::Options) -> F,
    ) -> Result<Lent<'_, C>, StoreError>
    where
        F: Future<Output = Result<C, StoreError>>,
    {
        let room = timeout(self.limits.connect, self.room.acquire())
            .await
            .map_err(|late| StoreError::new(StoreErrorKind::Busy, doing).with_source(late))?
            .map_err(|closed| {
                StoreError::new(StoreErrorKind::Unavailable, doing).with_source(closed)
            })?;
        let idle = self.idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => limited(self.limits.connect, doing, open(self.place())).await?,
        };
        Ok(Lent {
            connection,
            lending: self,
            _room: room,
        })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<C>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C: Connection> Lent<'_, C> {
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
pub(crate) async fn limited<T>(
    limit: Duration,
    doing: &'static str,
    answer: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    timeout(limit, answer).await.unwrap_or_else(|late| {
        Err(StoreError::new(StoreErrorKind::Unavailable, doing).with_source(late))
    })
}

impl<C: Connection> Deref for Lent<'_, C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.connection
    }
}

impl<C: Connection> DerefMut for Lent<'_, C> {
    fn deref_mut(&mut self) -> &mut C {
        &mut self.connection
    }
}

impl<C: Connection> fmt::Debug for Lending<C> {
    /// Without the options, which know the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lending")
            .field("limits", &self.limits)
            .field("free", &self.room.available_permits())
            .finish_non_exhaustive()
    }
}
