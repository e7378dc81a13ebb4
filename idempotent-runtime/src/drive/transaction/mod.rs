//! Transactions that the library owns. It begins one, runs the body, commits, and tries again.

mod around;
mod backoff;
mod connection;
mod database;
mod own;
mod run;
mod turn;
mod witness;

use std::{error::Error as StdError, time::Duration};

use sqlx::Pool;

use self::backoff::Backoff;
pub use self::{around::transaction, database::SqlDatabase};
pub(crate) use self::{
    connection::{OwnedConnection, is_broken, silent},
    own::{Inside, Left, LeftBy, OwnTransaction, Retry, Turn},
    run::transact,
    witness::{Stands, Witness},
};

/// How long a database may be silent, unless it is set how long a duplicate waits.
pub(crate) const LONGEST_SILENCE: Duration = Duration::from_secs(10);

/// For how long a transaction is tried again, unless that is set.
pub(crate) const RETRY_FOR: Duration = Duration::from_secs(10);

/// How long it is from one look to the next.
const PAUSE: Duration = Duration::from_millis(5);

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
/// use std::time::Duration;
///
/// use idempotent_runtime::transaction::{Isolation, Transact};
///
/// let settings = Transact::new(pool)
///     .retry_for(Duration::from_secs(3))
///     .isolation(Isolation::Serializable);
/// # let _ = settings;
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Transact<DB: SqlDatabase, Q = DatabaseErrorsOnly> {
    pool: Pool<DB>,
    retry_for: Duration,
    isolation: Option<Isolation>,
    retry_if: Q,
}

impl<DB: SqlDatabase> Transact<DB> {
    /// Takes this pool: a conflict is tried again for 10 seconds, in the session's own isolation.
    #[must_use]
    pub fn new(pool: &Pool<DB>) -> Self {
        Self {
            pool: pool.clone(),
            retry_for: RETRY_FOR,
            isolation: None,
            retry_if: DatabaseErrorsOnly,
        }
    }
}

impl<DB: SqlDatabase, Q> Transact<DB, Q> {
    /// Sets for how long the body runs again when other transactions are in its way, counted from
    /// the end of the first try. Zero is one run. A try that has begun is not cut short.
    ///
    /// A pause comes before each try: a random time of at most 5 ms, and of at most twice as long
    /// each time, up to half a second.
    #[must_use]
    pub fn retry_for(self, retry_for: Duration) -> Self {
        Self { retry_for, ..self }
    }

    /// Sets the isolation. SQLite has one, and begins with `BEGIN IMMEDIATE` whatever is said here.
    #[must_use]
    pub fn isolation(self, isolation: Isolation) -> Self {
        let isolation = Some(isolation);
        Self { isolation, ..self }
    }

    /// Runs the body again after an `Err` for which this function gives `true`. It is for error
    /// types that do not show the error of the database as their
    /// [`source`](std::error::Error::source).
    #[must_use]
    pub fn retry_if<E, F: Fn(&E) -> bool>(self, retry_if: F) -> Transact<DB, RetryFunction<F>> {
        self.map_retry_if(|_| RetryFunction(retry_if))
    }
}

impl<DB: SqlDatabase, Q> Transact<DB, Q> {
    pub(crate) fn map_retry_if<R>(self, map: impl FnOnce(Q) -> R) -> Transact<DB, R> {
        Transact {
            pool: self.pool,
            retry_for: self.retry_for,
            isolation: self.isolation,
            retry_if: map(self.retry_if),
        }
    }
}

/// No error of the application's is a reason to run the body again.
#[derive(Clone, Copy, Debug)]
pub struct DatabaseErrorsOnly;

/// An error is a reason to run the body again if the function says so.
#[derive(Clone, Copy, Debug)]
pub struct RetryFunction<F>(F);

/// Tells which errors of a body are a reason to run it again.
pub trait RetryIf<E> {
    #[doc(hidden)]
    fn is_reason(&self, error: &E) -> bool;
}

impl<E> RetryIf<E> for DatabaseErrorsOnly {
    fn is_reason(&self, _: &E) -> bool {
        false
    }
}

impl<E, F: Fn(&E) -> bool> RetryIf<E> for RetryFunction<F> {
    fn is_reason(&self, error: &E) -> bool {
        (self.0)(error)
    }
}

/// An error type that shows its causes, by which a conflict with another transaction is known.
///
/// `anyhow::Error` and `Box<dyn Error>` are none, because they do not implement
/// [`Error`](std::error::Error).
///
/// ```compile_fail,E0277
/// use idempotent_runtime::{BoxError, transaction::ShowsCauses};
///
/// fn shows_causes<E: ShowsCauses>() {}
/// shows_causes::<BoxError>();
/// ```
#[diagnostic::on_unimplemented(
    message = "the error type `{Self}` does not show its causes to the transaction",
    label = "is no `std::error::Error`",
    note = "a conflict with another transaction is known by `Error::source`, so let the body return a type that has it, in place of `anyhow::Error` or `Box<dyn Error>`; with thiserror, an enum with `#[error(transparent)] Database(#[from] sqlx::Error)` and `#[error(transparent)] Idempotency(#[from] idempotent_runtime::Error)`"
)]
pub trait ShowsCauses: StdError + 'static {}

#[diagnostic::do_not_recommend]
impl<E: StdError + 'static> ShowsCauses for E {}

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
    type RetryIf = DatabaseErrorsOnly;
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

#[cfg(test)]
mod tests {
    mod golden;
}
