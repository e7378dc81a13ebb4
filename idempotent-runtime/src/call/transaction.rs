//! A call as a part of a transaction of the application's.

use super::{CallBuilder, refused};
use crate::{
    error::Error,
    outcome::{FromRefusal, Keep, OnError, Outcome},
    request::Call,
    run::{Joined, Typed, join, run_in},
    store::SqlConnection,
};

impl Call {
    /// Claims for an annotated function with `tx`, inside its transaction.
    pub fn join<C, R, T, E, P, K>(
        self,
        connection: &mut C,
        on_error: P,
        keep: K,
    ) -> impl Future<Output = Result<Joined<P, K>, R>>
    where
        C: SqlConnection,
        R: Outcome<Value = T, Error = E>,
        E: FromRefusal,
        P: OnError<E>,
        K: Keep<T> + Clone,
    {
        self.reads::<R>(|it| K::reads(it).ok(), |it| P::reads(it).ok());
        let request = self.prepare().map_err(Box::new);
        async move {
            match request {
                Ok(request) => {
                    let joined = join(request, Typed { on_error, keep }, connection).await;
                    joined.map_err(|(answer, _)| answer)
                }
                Err(error) => Err(refused(*error)),
            }
        }
    }
}

impl<P, K> CallBuilder<P, K> {
    /// Runs the call as a part of a transaction of the application's, in the database that the handle's store keeps its records in:
    /// the record commits with the rows that the body writes there, or rolls back with them.
    ///
    /// `connection` is `&mut *transaction`, and the body gets it. When it has returned, the caller commits; where the call gave an
    /// `Err`, the caller rolls back, as dropping a `sqlx::Transaction` does, and there was no call: a retry runs the body again. A
    /// duplicate waits in the database until the first call's transaction has ended, and then gets its outcome, or runs. Where the answer
    /// to the commit was lost, the call tells what became of it: made again in a new transaction, it gets the outcome, or runs.
    ///
    /// **Make all calls of an operation in transactions, or none.** One outside waits for the transaction with a connection of the
    /// store's, whatever its `in_flight` says, and gets [`Error::Store`] where the store gives up first, or runs unprotected where
    /// [`OnOutage::Open`](crate::OnOutage::Open) says so; many that wait, or were dropped while they waited, keep heartbeats of other calls waiting, too.
    ///
    /// The transaction holds the key, so neither a lease nor a heartbeat does: `lease`, `in_flight`, `on_crash` and `on_outage` are
    /// refused, and so is `also_accept_…`. What a call outside left behind is taken over as that call had chosen; while it still runs,
    /// it is [`Error::InProgress`] at once. [`current`](crate::current) is the attempt. Its fencing token says little: of attempts that
    /// were rolled back nothing is left that the next token could be above. The ttl counts from the end of the body. What
    /// [`reference`](Self::reference) stores is not loaded for the first caller. [Observers](crate::Observer) are told of what is
    /// written when it is, before the commit.
    ///
    /// What the body does outside the database happens at least once, as everywhere: hand [`child_key`](crate::Attempt::child_key) on, and do
    /// it after the commit where you can. A call of another key inside the body is a part of the transaction where it is made on the
    /// same connection; any other writes for itself, which SQLite lets nobody do meanwhile.
    ///
    /// # What the database does
    ///
    /// Any isolation level will do. On MariaDB and MySQL a replay asks over a connection of the store's, too, whether the outcome is
    /// committed, because under READ UNCOMMITTED it is shown what may be rolled back, and else waits for that. On SQLite, leave `read_uncommitted` off for connections
    /// that share a cache, which shows them to everybody. Where a duplicate meets what was committed after its transaction began, Postgres refuses it
    /// under REPEATABLE READ and SERIALIZABLE, MariaDB where `innodb_snapshot_isolation` is on, and SQLite where it began without
    /// `BEGIN IMMEDIATE`; and calls of several keys may meet in a deadlock. Where the claim or the record meets that, it is
    /// [`Error::Store`], and transient; elsewhere it is an error of the body's statements, or of the commit. Run the whole
    /// transaction again.
    ///
    /// On MariaDB and MySQL the settings of your session hold for the record, too: after `SET timestamp = …` it is made, and expires,
    /// by that clock, and where `sql_mode` has MariaDB's `EMPTY_STRING_IS_NULL`, a call without a scope is refused with an
    /// [`Error::Store`] of the kind [`Schema`](crate::store::StoreErrorKind::Schema), and nothing is written.
    ///
    /// That a transaction is open is known from sqlx. MariaDB, MySQL and SQLite are asked, too, in a message of its own, because they end
    /// one by themselves: the first two commit before a DDL statement and undo everything after a deadlock, the third undoes everything
    /// where the disk is full, and a call after that is refused. What commits the transaction while a body runs, and on Postgres a
    /// `COMMIT` of your own, nobody sees: what is written then stands by itself. Hand errors of the database on, and on SQLite close the
    /// connection then: sqlx 0.9.0 goes on counting the transaction. On MariaDB and MySQL `LAST_INSERT_ID()`, and on SQLite
    /// `last_insert_rowid()`, tell of the record afterwards.
    ///
    /// # Committing an `Err`
    ///
    /// A caller who commits an `Err` of the body's commits its rows, and what `on_error` makes of it: the record of that error, unless
    /// the database took no more, or has undone the claim meanwhile. On Postgres it takes none after a statement that failed, and
    /// the commit rolls back without a word.
    /// Where it says that nothing happened, and a call outside of a transaction has vanished before, the key stays bound, as it does
    /// [there](crate::Verdict::Release).
    /// Where an error of ours is in what the body returned, the record becomes *uncertain*, as it does once its lease is over where
    /// a body that stopped half-way is committed: rows stand, and nobody runs it again by himself.
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
    ///         .await?;
    ///     transaction.commit().await?;
    ///     Ok(number)
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The body's own, or one of ours, which says that nothing may be committed: those of [`run`](Self::run),
    /// [`Error::InvalidPolicy`] where no transaction is open, and [`Error::Store`], where the body may have run and its outcome cannot be
    /// recorded, or, of the kind [`Configuration`](crate::StoreErrorKind::Configuration), where the store keeps its records elsewhere. It
    /// cannot tell whether the transaction is one of the same *database*: where the store's table is missing there, that is an error;
    /// where there is one, records stand in two places.
    ///
    /// # Cancel safety
    ///
    /// Dropped at any time, it has written nothing that stands, so long as the transaction is not committed. On MariaDB and MySQL, sqlx
    /// 0.9.0 falls out of step with the server where it is dropped while it prepares a statement, as every call of it may be, and
    /// the rollback then never comes back: close the connection instead, or give the rollback a time-out.
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
        let typed = Typed {
            on_error: self.on_error,
            keep: self.keep,
        };
        let policy = self.call.policy();
        if policy.lease.is_some()
            || policy.in_flight.is_some()
            || policy.on_crash.is_some()
            || policy.on_outage.is_some()
        {
            self.call.refuse(Error::InvalidPolicy(
                "`lease`, `in_flight`, `on_crash` and `on_outage` have no meaning in a transaction, which holds the key itself: leave them out",
            ));
        }
        if self.call.has_old_identity() {
            self.call.refuse(Error::InvalidPolicy(
                "`also_accept_name` and `also_accept_key` are not looked up in a transaction, where a look does not wait for another one that is open: leave them out",
            ));
        }
        match self.call.prepare() {
            Ok(request) => run_in(request, typed, connection, body).await.0,
            Err(error) => refused(error),
        }
    }
}
