//! A transaction that the library owns: it begins it, runs the body in it, commits, and tries
//! again.

mod database;
mod run;
mod turn;

use sqlx::Pool;

pub use self::database::SqlDatabase;
pub(crate) use self::run::transact;

/// How much a transaction sees of others that run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Isolation {
    /// Each statement sees what was committed before it began.
    ReadCommitted,
    /// Every statement sees what was committed before the transaction began.
    RepeatableRead,
    /// As if transactions ran one after another.
    Serializable,
}

/// A pool of sqlx, and how [`transact`](crate::CallBuilder::transact) runs transactions on it.
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// # fn listing(pool: &sqlx::SqlitePool) {
/// use idempotent_runtime::transaction::{Isolation, Transact};
///
/// let how = Transact::new(pool).tries(3).isolation(Isolation::Serializable);
/// # let _ = how;
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Transact<DB: SqlDatabase, Q = Never> {
    pool: Pool<DB>,
    tries: u32,
    isolation: Option<Isolation>,
    retry_if: Q,
}

impl<DB: SqlDatabase> Transact<DB> {
    /// Takes this pool: 5 tries, and the session's own isolation.
    #[must_use]
    pub fn new(pool: &Pool<DB>) -> Self {
        Self {
            pool: pool.clone(),
            tries: 5,
            isolation: None,
            retry_if: Never,
        }
    }
}

impl<DB: SqlDatabase, Q> Transact<DB, Q> {
    /// Sets how often the body may run where another transaction is in its way, the first time
    /// counted; at least once.
    #[must_use]
    pub fn tries(self, tries: u32) -> Self {
        let tries = tries.max(1);
        Self { tries, ..self }
    }

    /// Sets the isolation. SQLite has one, and begins with `BEGIN IMMEDIATE` whatever is said here.
    #[must_use]
    pub fn isolation(self, isolation: Isolation) -> Self {
        let isolation = Some(isolation);
        Self { isolation, ..self }
    }

    /// Runs the body again also after an `Err` for which this says yes: where the type hides from
    /// [`source`](std::error::Error::source) that the database gave way to another transaction.
    #[must_use]
    pub fn retry_if<E, F: Fn(&E) -> bool>(self, retry_if: F) -> Transact<DB, When<F>> {
        Transact {
            pool: self.pool,
            tries: self.tries,
            isolation: self.isolation,
            retry_if: When(retry_if),
        }
    }
}

/// No error but those of the database is a reason to run the body again.
#[derive(Clone, Copy, Debug)]
pub struct Never;

/// An error is a reason to run the body again where the function says so.
#[derive(Clone, Copy, Debug)]
pub struct When<F>(F);

/// Tells which errors of a body are a reason to run it again.
pub trait RetryIf<E> {
    #[doc(hidden)]
    fn is_reason(&self, error: &E) -> bool;
}

impl<E> RetryIf<E> for Never {
    fn is_reason(&self, _: &E) -> bool {
        false
    }
}

impl<E, F: Fn(&E) -> bool> RetryIf<E> for When<F> {
    fn is_reason(&self, error: &E) -> bool {
        (self.0)(error)
    }
}

/// A `&Pool` of sqlx, or a [`Transact`] with one.
pub trait IntoTransact {
    /// The database of the pool.
    type Database: SqlDatabase;
    /// The function of [`Transact::retry_if`].
    type RetryIf;
    /// Says how transactions are run.
    fn into_transact(self) -> Transact<Self::Database, Self::RetryIf>;
}

impl<DB: SqlDatabase> IntoTransact for &Pool<DB> {
    type Database = DB;
    type RetryIf = Never;
    fn into_transact(self) -> Transact<DB> {
        Transact::new(self)
    }
}

impl<DB: SqlDatabase, Q> IntoTransact for Transact<DB, Q> {
    type Database = DB;
    type RetryIf = Q;
    fn into_transact(self) -> Self {
        self
    }
}
