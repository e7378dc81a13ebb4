//! A connection on which the library has a transaction open, and what errors say about it.

use std::error::Error as StdError;

use sqlx::{AssertSqlSafe, Connection, Pool, Transaction, pool::PoolConnection};
use tokio::runtime::{Handle, RuntimeFlavor};

use super::{Isolation, SqlDatabase};
use crate::{
    error::Error,
    store::{StoreError, sealed::Sealed as _},
};

/// A connection out of the pool, which it does not get back but by [`give_back`](Self::give_back):
/// it is closed elsewhere, so that no transaction is left open on it.
pub(crate) struct OwnedConnection<DB: SqlDatabase>(Option<PoolConnection<DB>>);

const DOING: &str = "running a transaction";

impl<DB: SqlDatabase> OwnedConnection<DB> {
    pub(crate) async fn acquire(pool: &Pool<DB>) -> Result<Self, StoreError> {
        let acquired = pool.acquire().await;
        acquired.map(Self::of).map_err(failure::<DB>)
    }

    pub(crate) fn of(pooled: PoolConnection<DB>) -> Self {
        Self(Some(pooled))
    }

    pub(crate) async fn begin(
        &mut self,
        isolation: Option<Isolation>,
    ) -> Result<Transaction<'_, DB>, StoreError> {
        self.begin_with(DB::prepare(isolation), DB::begin(isolation))
            .await
    }

    /// Begins a transaction that only reads, and locks nothing from its beginning.
    pub(crate) async fn begin_reading(&mut self) -> Result<Transaction<'_, DB>, StoreError> {
        self.begin_with(DB::prepare(None), DB::BEGIN_READING.to_owned())
            .await
    }

    async fn begin_with(
        &mut self,
        prepare: Vec<String>,
        begin: String,
    ) -> Result<Transaction<'_, DB>, StoreError> {
        let Some(connection) = self.0.as_deref_mut() else {
            return Err(failure::<DB>(sqlx::Error::PoolClosed));
        };
        for statement in prepare {
            connection.execute(statement).await?;
        }
        let begun = connection.begin_with(AssertSqlSafe(begin)).await;
        begun.map_err(failure::<DB>)
    }

    /// Gives a connection back on which no transaction is open.
    pub(crate) async fn give_back(mut self) {
        if let (Some(statement), Some(connection)) = (DB::RESTORE, self.0.as_deref_mut())
            && connection.execute(statement.to_owned()).await.is_err()
        {
            return;
        }
        self.0 = None;
    }
}

impl<DB: SqlDatabase> Drop for OwnedConnection<DB> {
    /// The pool would close it in a task, for which a runtime of one thread may have no time.
    /// There, its socket is closed at once, without a farewell.
    fn drop(&mut self) {
        let Some(mut connection) = self.0.take() else {
            return;
        };
        let runtime = Handle::try_current().map(|runtime| runtime.runtime_flavor());
        match runtime {
            Ok(RuntimeFlavor::CurrentThread) => drop(connection.detach()),
            _ => connection.close_on_drop(),
        }
    }
}

fn failure<DB: SqlDatabase>(error: sqlx::Error) -> StoreError {
    DB::store_error(error, DOING)
}

/// The database has not answered in time.
pub(crate) fn silent() -> sqlx::Error {
    std::io::Error::from(std::io::ErrorKind::TimedOut).into()
}

pub(crate) fn silence<DB: SqlDatabase>() -> StoreError {
    failure::<DB>(silent())
}

/// Whether another transaction was in the way.
pub(crate) fn is_conflict<DB: SqlDatabase>(error: &(dyn StdError + 'static)) -> bool {
    causes(error).any(DB::is_conflict)
}

/// Whether the body waited for the lock of its own transaction. A database with one writer has it
/// locked from the beginning, so that no other transaction is in the way of the body.
pub(crate) fn waited_for_itself<DB: SqlDatabase>(error: &(dyn StdError + 'static)) -> bool {
    DB::ONE_WRITER && is_conflict::<DB>(error)
}

/// The refusal of a body that [`waited_for_itself`].
pub(crate) const USED_THE_POOL: Error = Error::InvalidPolicy(
    "a statement of the body found the database locked, which its own transaction locks: run each statement on the connection that the body is given, and none on the pool or another connection; a body that uses another SQLite file, too, is refused so where that one stayed locked",
);

/// Whether the connection is gone.
pub(crate) fn is_broken<DB: SqlDatabase>(error: &(dyn StdError + 'static)) -> bool {
    let mut causes = causes(error).filter_map(|cause| cause.downcast_ref());
    causes.any(DB::is_broken)
}

/// Whether the server may only be read, as one that was the primary before a failover. Another
/// connection may lead to the primary of now, and this one is closed.
pub(crate) fn is_stale<DB: SqlDatabase>(error: &(dyn StdError + 'static)) -> bool {
    causes(error).any(DB::only_reads)
}

/// An error and what lies behind it.
fn causes<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |cause: &&'a (dyn StdError + 'static)| {
        (*cause).source()
    })
}

/// How a COMMIT ended that was answered with an error.
pub(crate) enum CommitFailure {
    /// Another transaction was in the way, and nothing stands.
    Conflict(StoreError),
    /// The database refused it, and nothing stands.
    Refused(StoreError),
    /// Nobody knows.
    Unknown,
}

impl CommitFailure {
    pub(crate) fn of<DB: SqlDatabase>(error: sqlx::Error) -> Self {
        let is_refused = error.as_database_error().is_some() && !DB::is_broken(&error);
        match is_refused {
            false => Self::Unknown,
            true if DB::is_conflict(&error) => Self::Conflict(failure::<DB>(error)),
            true => Self::Refused(DB::store_error(error, "committing a transaction")),
        }
    }
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use sqlx::{Sqlite, sqlite::SqlitePoolOptions};

    use super::*;

    /// Whether the connection of the pool is the one that has the table.
    async fn has_table(pool: &Pool<Sqlite>) -> bool {
        let read = sqlx::query("SELECT n FROM kept").execute(pool);
        read.await.is_ok()
    }

    #[tokio::test]
    async fn mend_41_only_a_connection_that_is_given_back_is_used_again() {
        let pool = SqlitePoolOptions::new().max_connections(1);
        let pool = pool.connect("sqlite::memory:").await.expect("a database");
        // The table is the connection's own, and ends with it.
        let made = sqlx::query("CREATE TEMP TABLE kept (n INTEGER)").execute(&pool);
        made.await.expect("a table");
        let acquired = || OwnedConnection::acquire(&pool);

        acquired().await.expect("it is free").give_back().await;
        assert!(has_table(&pool).await);

        drop(acquired().await.expect("it is free"));
        assert!(!has_table(&pool).await);
    }
}
