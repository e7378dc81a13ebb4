//! The method form, which applications and the layers for HTTP and queues write.

use std::{future::Future, sync::Arc};

use super::refused;
use crate::{
    attempt::Attempt,
    duration::IntoDuration,
    error::Error,
    handle::Idempotency,
    key::KeyPart,
    observe::CallReport,
    outcome::{
        Classified, FromRefusal, Keep, LeftUncertain, OnError, Outcome, Recorded, Reference,
        Released, Upgraded, Whole,
    },
    policy::{InFlight, OnCrash, OnExpired, OnMissingKey, OnOutage, Reconciled},
    record::RawOutcome,
    request::{Call, Fingerprintable},
    run::{ActiveCall, Typed, run_detached, run_raw, run_raw_detached, run_typed},
};
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
use crate::{run::run_in, store::SqlConnection};

/// A call in the method form: says what the attribute says, one method for each argument.
///
/// The body returns a `Result` whose error has `From<`[`Error`]`>`, because a duplicate may get no answer. Value and error have serde's
/// traits, but for an error that is not recorded ([`release_errors`](Self::release_errors),
/// [`uncertain_errors`](Self::uncertain_errors), or [`Unrecorded`](crate::Unrecorded) from a classifier) and a value of which only a
/// [`reference`](Self::reference) is.
///
/// Its parameters are what becomes of an `Err`, and how much of a value is kept. Left out, they are those of
/// [`Idempotency::call`](crate::Idempotency::call), so that a function can give a call back; the others stand in
/// [`call`](crate::call):
///
/// ```
/// use idempotent_runtime::{CallBuilder, Idempotency, call::Released};
///
/// fn charge_of(idem: &Idempotency, order: u64) -> CallBuilder {
///     idem.call("payments.charge").key(&order).ttl("7d")
/// }
///
/// fn reservation_of(idem: &Idempotency, order: u64) -> CallBuilder<Released> {
///     idem.call("stock.reserve").key(&order).release_errors()
/// }
/// ```
#[derive(Debug)]
#[must_use = "a call does nothing until it is run"]
pub struct CallBuilder<P = Recorded, K = Whole> {
    call: Call,
    on_error: P,
    keep: K,
}

impl CallBuilder<Recorded, Whole> {
    pub(crate) fn new(handle: &Idempotency, name: Arc<str>) -> Self {
        let mut call = Call::named(name);
        call.handle(handle);
        Self {
            call,
            on_error: Recorded,
            keep: Whole,
        }
    }
}

impl<P, K> CallBuilder<P, K> {
    /// Sets the key. Without one, the fingerprint of the arguments is the key; without arguments either, the call is refused with
    /// [`Error::InvalidPolicy`].
    pub fn key<T: KeyPart + ?Sized>(mut self, key: &T) -> Self {
        self.call.key(key);
        self
    }

    /// Sets the scope: tenant, user, consumer. It is a part of the identity.
    pub fn scope<T: KeyPart + ?Sized>(mut self, scope: &T) -> Self {
        self.call.scope(scope);
        self
    }

    /// Sets what must be equal in a retry.
    pub fn arguments<T: Fingerprintable + ?Sized>(mut self, arguments: &T) -> Self {
        self.call.fingerprint(arguments);
        self
    }

    /// Adds an argument that must be equal in a retry, by name, so that [`Error::KeyReused`] can name it.
    pub fn argument<T: Fingerprintable + ?Sized>(mut self, name: &'static str, value: &T) -> Self {
        self.call.argument(name, value);
        self
    }

    /// Sets how long the outcome answers duplicates: `"24h"`, or a `Duration`.
    pub fn ttl(mut self, ttl: impl IntoDuration) -> Self {
        match ttl.into_duration() {
            Ok(ttl) => self.call.ttl(ttl),
            Err(error) => self.call.refuse(error),
        }
        self
    }

    /// Sets how long the holder may be silent: `"30s"`, or a `Duration`. The shortest is 100
    /// milliseconds, except by a manual clock.
    pub fn lease(mut self, lease: impl IntoDuration) -> Self {
        match lease.into_duration() {
            Ok(lease) => self.call.lease(lease),
            Err(error) => self.call.refuse(error),
        }
        self
    }

    /// Sets what a duplicate does while the first call runs.
    pub fn in_flight(mut self, in_flight: InFlight) -> Self {
        self.call.in_flight(in_flight);
        self
    }

    /// Sets what becomes of a record whose holder vanished: `Rerun` or `Uncertain`. For `Reconcile`, give
    /// [`reconcile`](Self::reconcile) the function to ask.
    pub fn on_crash(mut self, on_crash: OnCrash) -> Self {
        if on_crash == OnCrash::Reconcile {
            self.call.refuse(Error::InvalidPolicy(
                "`reconcile` needs a function to ask: use `reconcile(…)`",
            ));
        }
        self.call.policy().on_crash = Some(on_crash);
        self
    }

    /// Sets what becomes of a call whose key, or a part of it, is `None`.
    pub fn on_missing_key(mut self, on_missing_key: OnMissingKey) -> Self {
        self.call.policy().on_missing_key = Some(on_missing_key);
        self
    }

    /// Sets what becomes of the call when the store cannot be reached at the claim.
    pub fn on_outage(mut self, on_outage: OnOutage) -> Self {
        self.call.policy().on_outage = Some(on_outage);
        self
    }

    /// Sets what becomes of the call where its outcome has expired, while its record is
    /// [kept](crate::handle::Builder::audit_retention), without which nothing can be refused. Every handle that purges the store must keep it
    /// for as long.
    pub fn on_expired(mut self, on_expired: OnExpired) -> Self {
        self.call.policy().on_expired = on_expired;
        self
    }

    /// Sets the schema version of the outcome.
    pub fn version(mut self, version: u32) -> Self {
        self.call.policy().version = version;
        self
    }

    /// Sets the operation's name in an older build, under which it is also looked up.
    pub fn also_accept_name(mut self, name: &str) -> Self {
        self.call.also_accept_name(name);
        self
    }

    /// Sets the key in an older build, under which the call is also looked up.
    pub fn also_accept_key<T: KeyPart + ?Sized>(mut self, key: &T) -> Self {
        self.call.also_accept_key(key);
        self
    }

    /// Runs this one call without touching the store. A warning says so.
    pub fn unprotected(mut self) -> Self {
        self.call.opt_out();
        self
    }

    /// An `Err` says that nothing happened: the record is released, and a retry runs again.
    pub fn release_errors(self) -> CallBuilder<Released, K> {
        self.with_on_error(Released)
    }

    /// An `Err` says that nobody knows: the record becomes *uncertain*.
    pub fn uncertain_errors(self) -> CallBuilder<LeftUncertain, K> {
        self.with_on_error(LeftUncertain)
    }

    /// A function from `&E` to [`Verdict`](crate::Verdict) or [`Unrecorded`](crate::Unrecorded) decides, error by error.
    pub fn classify_errors<F>(self, classify: F) -> CallBuilder<Classified<F>, K> {
        self.with_on_error(Classified(classify))
    }

    /// Reads what older versions of the program stored.
    ///
    /// # Examples
    ///
    /// The closure's argument needs its type, [`Stored`](crate::Stored): the compiler looks inside the closure before it
    /// knows.
    ///
    /// ```
    /// use idempotent_runtime::{Error, Idempotency, Stored};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let idem = Idempotency::memory();
    /// // An older build stored a number of cents.
    /// idem.call("prices.quote").key("k").run(|_| async { Ok::<u64, Error>(1_250) }).await?;
    ///
    /// let price = idem
    ///     .call("prices.quote")
    ///     .key("k")
    ///     .version(1)
    ///     .upgrade(|stored: Stored| Ok(format!("{} cents", stored.decode::<u64>()?)))
    ///     .run(|_| async { Ok::<_, Error>("1250 cents".to_owned()) })
    ///     .await?;
    /// assert_eq!(price, "1250 cents");
    /// # Ok(()) }
    /// ```
    pub fn upgrade<F>(self, upgrade: F) -> CallBuilder<P, Upgraded<F>> {
        self.with_keep(Upgraded(upgrade))
    }

    /// Stores only what `save` makes of the value, and reads the value back with `load`.
    pub fn reference<S, L>(self, save: S, load: L) -> CallBuilder<P, Reference<S, L>> {
        self.with_keep(Reference(save, load))
    }

    /// Runs the call.
    ///
    /// # Errors
    ///
    /// The body's own, recorded or not, or one of ours when there is no answer.
    ///
    /// # Cancel safety
    ///
    /// Dropped while it waits, it changes nothing. Dropped after the body was polled, the body stops, and `on_crash`
    /// applies as soon as that is written: in the background, usually within milliseconds. Until then a duplicate waits, or,
    /// with [`InFlight::Reject`], still sees it running. See [`run_detached`](Self::run_detached).
    pub async fn run<R, F, B>(self, body: F) -> R
    where
        R: Outcome,
        R::Error: FromRefusal,
        P: OnError<R::Error>,
        K: Keep<R::Value> + Clone,
        F: FnOnce(Attempt) -> B,
        B: Future<Output = R>,
    {
        self.run_detailed(body).await.0
    }

    /// Runs the call and tells how the result came about.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    ///
    /// # Cancel safety
    ///
    /// As [`run`](Self::run).
    pub async fn run_detailed<R, F, B>(self, body: F) -> (R, CallReport)
    where
        R: Outcome,
        R::Error: FromRefusal,
        P: OnError<R::Error>,
        K: Keep<R::Value> + Clone,
        F: FnOnce(Attempt) -> B,
        B: Future<Output = R>,
    {
        let typed = Typed {
            on_error: self.on_error,
            keep: self.keep,
        };
        match self.call.prepare() {
            Ok(request) => run_typed(ActiveCall::new(request), typed, body).await,
            Err(error) => (refused(error), CallReport::Refused),
        }
    }

    /// Runs the body in a task of its own: once the key is claimed, this future may be dropped, and the call runs on and is
    /// recorded.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, once the key is claimed: nothing has run, and the key is free again.
    ///
    /// # Cancel safety
    ///
    /// Dropped before the key is claimed, it leaves nothing behind. Dropped later, it changes nothing: the call runs on and
    /// is recorded. Where the runtime itself shuts down, the body stops as under [`run`](Self::run); whoever waits on a thread of his own,
    /// as in `Handle::block_on`, is told [`Error::Stopped`].
    pub async fn run_detached<R, F, B>(self, body: F) -> R
    where
        R: Outcome + Send + 'static,
        R::Value: Send,
        R::Error: FromRefusal + Send,
        P: OnError<R::Error> + Send + Sync + 'static,
        K: Keep<R::Value, Reading: Send> + Clone + Send + Sync + 'static,
        F: FnOnce(Attempt) -> B + Send + 'static,
        B: Future<Output = R> + Send + 'static,
    {
        let typed = Typed {
            on_error: self.on_error,
            keep: self.keep,
        };
        match self.call.prepare() {
            Ok(request) => run_detached(ActiveCall::new(request), typed, body).await.0,
            Err(error) => refused(error),
        }
    }

    /// Runs the call, and asks `ask` what became of an attempt that vanished before the body may run again.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run), and what `ask` answers as [`Reconciled::Failed`]. [`Error::Uncertain`] where it answers
    /// [`Reconciled::Unknown`].
    ///
    /// # Cancel safety
    ///
    /// Dropped while it waits, it changes nothing. Dropped while `ask` or the body runs, either stops, and the record becomes
    /// *uncertain* as soon as that is written; the next call asks again.
    pub async fn reconcile<R, A, Q, F, B>(mut self, ask: A, body: F) -> R
    where
        R: Outcome,
        R::Error: FromRefusal,
        P: OnError<R::Error>,
        K: Keep<R::Value> + Clone,
        A: FnOnce(Attempt) -> Q,
        Q: Future<Output = Reconciled<R::Value, R::Error>>,
        F: FnOnce(Attempt) -> B,
        B: Future<Output = R>,
    {
        self.call.policy().on_crash = Some(OnCrash::Reconcile);
        self.run(|attempt| async move {
            let asked = attempt.clone();
            match crate::run::reconcile::<R, _, _>(|| ask(asked)).await {
                Some(answer) => answer,
                None => body(attempt).await,
            }
        })
        .await
    }

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
    /// [`OnOutage::Open`] says so; many that wait, or were dropped while they waited, keep heartbeats of other calls waiting, too.
    ///
    /// The transaction holds the key, so neither a lease nor a heartbeat does: `lease`, `in_flight`, `on_crash` and `on_outage` are
    /// refused, and so is `also_accept_…`. What a call outside left behind is taken over as that call had chosen; while it still runs,
    /// it is [`Error::InProgress`] at once. [`current`](crate::current) is the attempt. Its fencing token says little: of attempts that
    /// were rolled back nothing is left that the next token could be above. The ttl counts from the end of the body. What
    /// [`reference`](Self::reference) stores is not loaded for the first caller. [Observers](crate::Observer) are told of what is
    /// written when it is, before the commit.
    ///
    /// What the body does outside the database happens at least once, as everywhere: hand [`child_key`](Attempt::child_key) on, and do
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
    ///         .run_in_transaction(&mut *transaction, async |connection| {
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
    #[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
    #[cfg_attr(
        docsrs,
        doc(cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite")))
    )]
    pub async fn run_in_transaction<C, R, F>(mut self, connection: &mut C, body: F) -> R
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

    /// Runs the call on bytes: what the layers for HTTP and queues use. The outcome that comes back is the body's own or the recorded one.
    ///
    /// The body says of its outcome what the call says elsewhere, so nothing that was said of errors, of [`version`](Self::version), of
    /// [`upgrade`](Self::upgrade) or of a [`reference`](Self::reference) counts here. A replay comes in whatever schema version
    /// stands there.
    ///
    /// # Errors
    ///
    /// One of ours when there is no answer.
    ///
    /// # Cancel safety
    ///
    /// As [`run`](Self::run).
    pub async fn run_raw<F, B>(self, body: F) -> Result<(RawOutcome, CallReport), Error>
    where
        F: FnOnce(Attempt) -> B,
        B: Future<Output = RawEnding>,
    {
        run_raw(self.call.prepare()?, body).await
    }

    /// Runs the call on bytes, and the body in a task of its own: once the key is claimed, this future may be dropped, and the call
    /// runs on and is recorded.
    ///
    /// # Errors
    ///
    /// As [`run_raw`](Self::run_raw).
    ///
    /// # Panics
    ///
    /// As [`run_detached`](Self::run_detached).
    ///
    /// # Cancel safety
    ///
    /// As [`run_detached`](Self::run_detached).
    pub fn run_raw_detached<F, B>(
        self,
        body: F,
    ) -> impl Future<Output = Result<(RawOutcome, CallReport), Error>> + Send + use<F, B, P, K>
    where
        F: FnOnce(Attempt) -> B + Send + 'static,
        B: Future<Output = RawEnding> + Send + 'static,
    {
        run_raw_detached(self.call.prepare().map_err(Box::new), body)
    }

    fn with_on_error<Q>(self, on_error: Q) -> CallBuilder<Q, K> {
        CallBuilder {
            call: self.call,
            on_error,
            keep: self.keep,
        }
    }

    fn with_keep<Q>(self, keep: Q) -> CallBuilder<P, Q> {
        CallBuilder {
            call: self.call,
            on_error: self.on_error,
            keep,
        }
    }
}

/// How a body on bytes ends; its own caller gets the outcome in each case.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RawEnding {
    /// This is the outcome: it is recorded, and answers duplicates.
    Record(RawOutcome),
    /// It happened, and its outcome is not to be kept: duplicates get [`Error::NotReplayable`].
    RecordWithoutOutcome(RawOutcome),
    /// Nothing happened: a retry runs again.
    Release(RawOutcome),
    /// The body was not let begin. It says nothing of what an earlier attempt did: a retry runs as if this one had not been.
    NotBegun(RawOutcome),
    /// Nobody knows what happened.
    Uncertain(RawOutcome),
}
