//! A call in a transaction of its own.

use super::CallBuilder;
use crate::{
    outcome::{FromRefusal, Keep, OnError, Outcome},
    transaction::{IntoTransact, RetryIf, ShowsCauses, transact},
};

impl<P, K> CallBuilder<P, K> {
    /// Runs the call in a transaction of its own: it begins one on the pool, runs the body in it,
    /// and commits the record together with the rows. It takes one of the SQL stores, and a pool on
    /// the database in which the store keeps its records.
    ///
    /// `pool` is `&pool`, or a [`Transact`](crate::transaction::Transact) that also says for how
    /// long to try again and in which isolation.
    ///
    /// * **The body may run more than once**, after the rows of the try before were rolled back. It
    ///   does so if another transaction was in the way: a deadlock, a serialization failure, or a
    ///   lock that was waited for too long. It also does so if the connection broke before the
    ///   commit, or may only read, as one to the primary of before a failover: that one is closed.
    ///   So the closure is `Clone`: the values that it moves are cloned for each try. The tries
    ///   come after pauses that are random and grow. After 10 seconds of tries the caller gets the
    ///   last error, and the key is free.
    /// * **A commit whose answer is lost** is found out by the record: the caller gets what its
    ///   body returned, or the body runs again. An answer counts as lost after the time that a
    ///   duplicate waits (10 seconds under `InFlight::Reject`). It is [`Error::CommitUnknown`] if
    ///   the database does not tell for as long again, or the ttl is over by then.
    /// * **An `Err`** undoes the rows of the body. Under [`release_errors`](Self::release_errors)
    ///   nothing is recorded; else the error is recorded, as was said of errors. Let the error of
    ///   the database stand in its [`source`](std::error::Error::source) chain, or say
    ///   [`retry_if`](crate::transaction::Transact::retry_if): so an `Err` for which another
    ///   transaction is the cause is known, and never recorded.
    /// * **Each statement runs on the connection that the body gets.** On SQLite, one on the pool
    ///   finds the file locked by the call's own transaction: [`Error::InvalidPolicy`] after the
    ///   first try.
    /// * **A duplicate** waits for the first one's transaction, 10 seconds from its own beginning
    ///   on unless [`in_flight`](Self::in_flight) says else; then it is [`Error::InProgress`]. One
    ///   over the same handle waits before it takes a connection. In the database it waits for a
    ///   second in all at least, also under `InFlight::Reject`. A time-out of the session's own for
    ///   locks may end the wait earlier: [`Error::Store`], transient. On SQLite, a transaction has
    ///   the whole file. So a call waits for every other one as for its own duplicate, and no
    ///   `busy_timeout` ends that.
    ///
    /// **No wait of the library's own is without a limit.** A connection is waited for as long as
    /// the pool's `acquire_timeout` says. The answer to each statement of the library is waited for
    /// as long as a duplicate waits, and for a second at least (10 seconds under
    /// `InFlight::Reject`): to BEGIN, claim, savepoint, record, COMMIT and ROLLBACK. Then the
    /// connection is closed, and nothing stands, or the commit is found out. Statements of the body
    /// wait as long as the session and the driver let them.
    ///
    /// `lease`, `on_crash`, `on_outage` and `also_accept_…` are refused, because the transaction
    /// holds the key. Effects of the body outside the database happen at least once.
    /// [Observers](crate::Observer) are told after the commit. Unprotected, the body runs in a
    /// transaction all the same.
    ///
    /// On MariaDB and MySQL the transaction runs with `autocommit = 0`, and the connection goes
    /// back with the server's default. A `COMMIT` of the body's own, and DDL on MariaDB and MySQL,
    /// cannot be seen.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "sqlite")]
    /// # mod listing {
    /// use idempotent_runtime::{Error, Idempotency};
    /// use sqlx::SqlitePool;
    ///
    /// #[derive(Debug, thiserror::Error)]
    /// enum PlaceError {
    ///     #[error(transparent)]
    ///     Idempotency(#[from] Error),
    ///     #[error(transparent)]
    ///     Database(#[from] sqlx::Error),
    /// }
    ///
    /// async fn place(idem: &Idempotency, pool: &SqlitePool, order: &str, item: &str) -> Result<i64, PlaceError> {
    ///     idem.call("orders.place")
    ///         .key(order)
    ///         .arguments(item)
    ///         .release_errors()
    ///         .transact(pool, async |tx| {
    ///             let placed = sqlx::query("INSERT INTO orders (item) VALUES (?)").bind(item);
    ///             Ok(placed.execute(tx).await?.last_insert_rowid())
    ///         })
    ///         .await
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The body's own, or one of ours, after which nothing of the call stands. Ours are those of
    /// [`run`](Self::run), [`Error::TransactionEnded`] if the body has swallowed the end of its
    /// transaction, and [`Error::Commit`]. Rows that a body wrote after that end may stand by
    /// themselves. After [`Error::CommitUnknown`] the next call with the same key tells what
    /// happened.
    ///
    /// # Cancel safety
    ///
    /// Dropped at any time, record and rows stand together, or neither does. The connection is
    /// closed then, and does not go back to the pool.
    ///
    /// [`Error::Commit`]: crate::Error::Commit
    /// [`Error::CommitUnknown`]: crate::Error::CommitUnknown
    /// [`Error::InProgress`]: crate::Error::InProgress
    /// [`Error::InvalidPolicy`]: crate::Error::InvalidPolicy
    /// [`Error::Store`]: crate::Error::Store
    /// [`Error::TransactionEnded`]: crate::Error::TransactionEnded
    #[cfg_attr(
        docsrs,
        doc(cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite")))
    )]
    pub async fn transact<T, R, F>(mut self, pool: T, body: F) -> R
    where
        T: IntoTransact,
        T::RetryIf: RetryIf<R::Error>,
        R: Outcome,
        R::Error: FromRefusal + ShowsCauses,
        P: OnError<R::Error>,
        K: Keep<R::Value> + Clone,
        F: AsyncFnOnce(&mut <T::Database as sqlx::Database>::Connection) -> R + Clone,
    {
        self.call.in_transaction(true);
        let settings = pool.into_transact();
        transact(self.call.describe(), self.typed, settings, body)
            .await
            .0
    }
}
