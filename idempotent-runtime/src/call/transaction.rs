//! A call as a part of a transaction of the application's.

use super::CallBuilder;
use crate::{
    drive::run_in,
    outcome::{FromRefusal, Keep, OnError, Outcome},
    policy::Verdict,
    request::Call,
    run::{Joined, Typed, join},
    store::SqlConnection,
};

impl Call {
    /// Claims for an annotated function with `tx`, inside its transaction.
    pub fn join<C, R, T, E, P, K>(
        self,
        connection: &mut C,
        on_error: P,
        keep: K,
    ) -> impl Future<Output = Result<Joined<Typed<P, K>>, R>>
    where
        C: SqlConnection,
        R: Outcome<Value = T, Error = E>,
        E: FromRefusal,
        P: OnError<E>,
        K: Keep<T> + Clone,
    {
        self.reads::<R>(|it| K::reads(it).ok(), |it| P::reads(it).ok());
        let described = self.describe();
        async move {
            let joined = join(described, Typed { on_error, keep }, connection).await;
            joined.map_err(|(answer, _)| answer)
        }
    }
}

impl<P, K> CallBuilder<P, K> {
    /// Runs the call as a part of a transaction of the application's, in the database in which the
    /// handle's store keeps its records. The record commits with the rows that the body writes
    /// there, or rolls back with them. The attribute says the same with `tx`.
    ///
    /// `connection` is `&mut transaction` or `&mut *transaction`, and the body gets it. The caller
    /// commits, after an `Err` of the body, too: the rows of the body are undone then. Roll back
    /// where rows that you wrote before the call must not stand without it. If the commit failed,
    /// call again with the same key. After a commit whose answer was lost, that call gets the
    /// outcome, or runs.
    ///
    /// A duplicate waits in the database until the first call's transaction has ended. Then it gets
    /// the outcome, or runs. The session's own time-outs decide how long it waits.
    ///
    /// **Make all calls of an operation in transactions, or none.** A call outside waits for the
    /// transaction with a connection of the store's, whatever its `in_flight` says. It gets
    /// [`Error::Store`] where the store gives up first, or runs unprotected under
    /// [`OnOutage::Open`](crate::OnOutage::Open). Many that wait keep heartbeats of other calls
    /// waiting, too.
    ///
    /// The transaction holds the key, so neither a lease nor a heartbeat does: `lease`,
    /// `in_flight`, `on_crash`, `on_outage` and `also_accept_…` are refused. A record that a call
    /// outside left behind is taken over as that call had chosen; while it still runs, this one is
    /// [`Error::InProgress`] at once. The fencing token says little: of attempts that were rolled
    /// back nothing is left that the next token could be above. The ttl counts from the end of the
    /// body. A [`reference`](Self::reference) is not loaded for the first caller.
    /// [Observers](crate::Observer) are told before the commit that the outcome is
    /// [`Staged`](crate::RecordChange::Staged): only the caller knows whether it stands.
    ///
    /// Effects outside the database happen at least once, as everywhere: hand
    /// [`child_key`](crate::Attempt::child_key) on, and act after the commit where you can. A call
    /// of another key inside the body is a part of the transaction where it is made on the same
    /// connection.
    ///
    /// # An `Err` of the body
    ///
    /// The body runs behind a savepoint. An `Err` undoes its rows, and those that the caller wrote
    /// before stay. The key is *released*: the next call runs, whether the caller commits or rolls
    /// back.
    ///
    /// [`record_errors`](Self::record_errors), [`uncertain_errors`](Self::uncertain_errors) and
    /// [`classify_errors`](Self::classify_errors) write another verdict. **It stands only if the
    /// caller commits after the `Err`.** If the caller rolls back, the error is forgotten, and the
    /// same key runs again. So commit either way, as in the example.
    ///
    /// * An error of ours inside the `Err` is no outcome: the record is released.
    /// * On Postgres a statement that failed leaves the transaction aborted. A conflict with
    ///   another transaction may be the cause, so an `Err` behind it is released. Go back to a
    ///   savepoint of your own before you return an `Err` that is to be recorded.
    /// * Nothing is recorded if the database has undone the whole transaction, as MariaDB does
    ///   after a deadlock. After a lock that was waited for too long (error 1205) it has not: have
    ///   such an `Err` released.
    /// * A body that swallows such an error, or rolls back by itself, and returns `Ok`, gets
    ///   [`Error::TransactionEnded`]. Its rows are undone where they still can be.
    /// * A body that stops half-way, and whose caller commits all the same, leaves *uncertain*
    ///   behind.
    ///
    /// A `COMMIT` of the body's own, and DDL on MariaDB and MySQL, cannot be seen everywhere: the
    /// rows before it stand by themselves.
    ///
    /// # Each database
    ///
    /// Any isolation level will do. Under REPEATABLE READ and SERIALIZABLE on Postgres, with
    /// `innodb_snapshot_isolation` on MariaDB, and without `BEGIN IMMEDIATE` on SQLite, the
    /// database refuses a duplicate that meets what was committed after its transaction began.
    /// Calls of several keys may meet in a deadlock. If the claim or the record meets one of these,
    /// it is [`Error::Store`], and transient; elsewhere it is an error of the body's statements, or
    /// of the commit. Run the whole transaction again.
    ///
    /// * MariaDB and MySQL: a replay asks over a connection of the store's whether the outcome is
    ///   committed, because READ UNCOMMITTED shows what may be rolled back. The settings of your
    ///   session hold for the record: after `SET timestamp = …` it is made, and expires, by that
    ///   clock; under MariaDB's `EMPTY_STRING_IS_NULL` a call without a scope is refused with an
    ///   [`Error::Store`] of the kind [`Schema`](crate::store::StoreErrorKind::Schema).
    ///   `LAST_INSERT_ID()` tells of the record afterwards.
    /// * SQLite: a call inside the body over another connection is [`Error::InvalidPolicy`] at
    ///   once, because it would wait for the lock of its own transaction. Leave `read_uncommitted`
    ///   off for connections that share a cache. `last_insert_rowid()` tells of the record
    ///   afterwards. After an error of the database, close the connection: sqlx 0.9.0 goes on
    ///   counting the transaction.
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
    ///     let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await?;
    ///     let number = idem
    ///         .call("orders.place")
    ///         .key(order)
    ///         .arguments(item)
    ///         .release_errors()
    ///         .run_in(&mut *transaction, async |connection| {
    ///             let placed = sqlx::query("INSERT INTO orders (item) VALUES (?)").bind(item);
    ///             Ok::<_, PlaceError>(placed.execute(&mut *connection).await?.last_insert_rowid())
    ///         })
    ///         .await;
    ///     transaction.commit().await?;
    ///     number
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The body's own, or one of ours, after which the rows of the body are undone: those of
    /// [`run`](Self::run), [`Error::InvalidPolicy`] where no transaction is open,
    /// [`Error::TransactionEnded`], and [`Error::Store`], of the kind
    /// [`Configuration`](crate::StoreErrorKind::Configuration) where the store keeps its records in
    /// another database. A store over a pool of yours knows its database once `migrate` or
    /// `check_schema` has run. A copy of a database is taken for the original.
    ///
    /// # Cancel safety
    ///
    /// Dropped at any time, it has written nothing that stands, so long as the transaction is not
    /// committed. On MariaDB and MySQL, sqlx 0.9.0 falls out of step with the server if it is
    /// dropped while it prepares a statement. The rollback then never comes back. Close the
    /// connection instead, or give the rollback a time-out.
    ///
    /// [`Error::InProgress`]: crate::Error::InProgress
    /// [`Error::InvalidPolicy`]: crate::Error::InvalidPolicy
    /// [`Error::Store`]: crate::Error::Store
    /// [`Error::TransactionEnded`]: crate::Error::TransactionEnded
    #[cfg_attr(
        docsrs,
        doc(cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite")))
    )]
    pub async fn run_in<C, R, F>(mut self, connection: &mut C, body: F) -> R
    where
        C: SqlConnection,
        R: Outcome,
        R::Error: FromRefusal,
        P: OnError<R::Error>,
        K: Keep<R::Value> + Clone,
        F: AsyncFnOnce(&mut C) -> R,
    {
        self.call.in_transaction(false);
        let mut described = self.call.describe();
        if let Ok(call) = &mut described {
            // A caller who rolls back on an `Err` would forget a recorded one.
            call.request.on_error = Verdict::Release;
        }
        let finished = run_in(described, self.typed, connection, body);
        finished.await.answer.0
    }
}
