//! `transaction`: one that the library owns, around annotated functions.

use std::{convert::Infallible, marker::PhantomData, sync::Arc};

use sqlx::{Database, Transaction};

use super::{
    IntoTransact, LONGEST_SILENCE, RetryIf, ShowsCauses, SqlDatabase,
    connection::is_broken,
    own::{Inside, Left, LeftBy, OwnTransaction, Retry},
    witness::{Stands, Witness, look_for},
};
use crate::{
    attempt::Asking,
    clock::TokioTimer,
    error::Error,
    outcome::FromRefusal,
    run::{OpenTransaction, RecordedIn, SentInside},
    store::{Savepoint, StoreError, sealed::Sealed as _},
};

/// Runs `body` in a transaction of its own: it begins one on the pool, and commits it if the body
/// gives `Ok`. The calls inside that have `tx`, or [`run_in`](crate::CallBuilder::run_in), record
/// their outcomes in it.
///
/// `pool` is `&pool`, or a [`Transact`](super::Transact) with for how long and in which isolation.
///
/// * **The body may run more than once.** It does when another transaction was in the way (a
///   deadlock, a serialization failure, a lock that was waited for too long). It does when the
///   connection broke before the commit, too, or may only read, as one to the primary of before a
///   failover: that one is closed. All rows of the run before were rolled back. So the closure is
///   `Clone`. The tries come after pauses that are random and grow. After 10 seconds of tries the
///   caller gets the last error.
/// * **An `Err` rolls everything back**, also the records that were written inside. So an error
///   that a call inside has recorded is forgotten, and the call runs again next time. Return
///   `Ok(Err(error))` to commit it.
/// * **A commit whose answer is lost**, or does not come within 10 seconds, is found out by the
///   outcomes that were recorded inside. The caller gets what its body returned, or the body runs
///   again. The answer is [`Error::CommitUnknown`] in three cases: the database does not tell for
///   10 seconds more, the outcome has expired meanwhile, or no outcome proves the commit. That is
///   so if no call inside recorded one, and if the body went back to a savepoint of its own behind
///   the first one and behind the last one.
///
/// **Rows that the body writes outside of those calls are not protected.** When the caller calls
/// again, the calls are replayed, and these rows are written a second time. One call around all of
/// it, with [`transact`](crate::CallBuilder::transact), protects all of it.
///
/// **No wait of the library's own is without a limit.** A connection is waited for as long as the
/// pool's `acquire_timeout` says, and the answer to each statement of the library for 10 seconds:
/// to BEGIN, the savepoint, COMMIT and ROLLBACK. Then the connection is closed, and nothing stands,
/// or the commit is found out. Statements of the body, and of calls inside, wait as long as the
/// session and the driver let them.
///
/// A duplicate waits in the database until the first transaction has ended; the session's own
/// time-outs decide how long. While a call outside a transaction holds a key, the call inside is
/// [`Error::InProgress`] at once. [Observers](crate::Observer) are told by each call inside, before
/// the commit.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// # mod listing {
/// use idempotent_runtime::{Error, idempotent, transaction::transaction};
/// use sqlx::{SqliteConnection, SqlitePool};
///
/// #[derive(Debug, thiserror::Error)]
/// enum PostError {
///     #[error(transparent)]
///     Idempotency(#[from] Error),
///     #[error(transparent)]
///     Database(#[from] sqlx::Error),
/// }
///
/// #[idempotent(key = id, on_error = release, tx = tx)]
/// async fn post(tx: &mut SqliteConnection, id: &str, cents: i64) -> Result<i64, PostError> {
///     let posted = sqlx::query("INSERT INTO posts (cents) VALUES (?)").bind(cents);
///     Ok(posted.execute(tx).await?.last_insert_rowid())
/// }
///
/// async fn both(pool: &SqlitePool) -> Result<i64, PostError> {
///     transaction(pool, async |tx| {
///         post(tx, "debit", -500).await?;
///         post(tx, "credit", 500).await
///     })
///     .await
/// }
/// # }
/// ```
///
/// # Errors
///
/// The body's own, or one of ours, after which nothing stands: [`Error::Store`] before the body
/// ran, [`Error::TransactionEnded`] where the body has swallowed the end of its transaction, or
/// dropped a call inside before it had ended, and [`Error::Commit`]. After [`Error::CommitUnknown`]
/// the next call of the same functions with the same keys tells.
///
/// # Cancel safety
///
/// If it is dropped at any time, all of it stands, or nothing does. The connection is closed then,
/// and does not go back to the pool.
#[cfg_attr(
    docsrs,
    doc(cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite")))
)]
pub async fn transaction<T, V, E, F>(pool: T, body: F) -> Result<V, E>
where
    T: IntoTransact,
    T::RetryIf: RetryIf<E>,
    E: FromRefusal + ShowsCauses,
    F: AsyncFnOnce(&mut <T::Database as Database>::Connection) -> Result<V, E> + Clone,
{
    let settings = pool.into_transact();
    let timer = TokioTimer::new();
    let own = OwnTransaction {
        pool: &settings.pool,
        isolation: settings.isolation,
        timer: &timer,
        answers_within: LONGEST_SILENCE,
    };
    let mut around = Around {
        own,
        retry_if: &settings.retry_if,
        body,
        asking: Asking::once(),
        answers: PhantomData,
    };
    own.run(settings.retry_for, &mut around).await
}

/// A body with calls inside.
struct Around<'a, DB: SqlDatabase, Q, F, V, E> {
    own: OwnTransaction<'a, DB>,
    retry_if: &'a Q,
    body: F,
    asking: Asking,
    answers: PhantomData<fn() -> Result<V, E>>,
}

/// All that stands once the transaction has committed.
struct Done<V> {
    recorded: Vec<RecordedIn>,
    sent: SentInside,
    value: V,
}

impl<DB, Q, F, V, E> Inside<DB> for Around<'_, DB, Q, F, V, E>
where
    DB: SqlDatabase,
    Q: RetryIf<E>,
    E: FromRefusal + ShowsCauses,
    F: AsyncFnOnce(&mut DB::Connection) -> Result<V, E> + Clone,
{
    type Answer = Result<V, E>;
    type Done = Done<V>;
    type Wait = Infallible;

    async fn run(&mut self, tx: &mut Transaction<'_, DB>) -> Result<LeftBy<Self, DB>, Error> {
        let savepoint = self.own.in_time(Savepoint::set(&mut **tx)).await?;
        let open = OpenTransaction::on(&tx.connection());
        let body = self.body.clone();
        match open.enter(body(&mut **tx)).await {
            Ok(value) => {
                let recorded = self.check_end(tx, savepoint, &open).await?;
                let sent = open.take_sent();
                Ok(Left::Commit(Done {
                    recorded,
                    sent,
                    value,
                }))
            }
            Err(error) => {
                // The body has answered, so an earlier try counts no more.
                self.asking.note(false);
                let retry = Retry::of::<DB>(&error, self.retry_if.is_reason(&error), false);
                Ok(match retry {
                    Some(retry) => retry.leaves(Err(error), |error| self.refused(error)),
                    None => Left::Failed(Err(error)),
                })
            }
        }
    }

    fn refused(&mut self, error: Error) -> Self::Answer {
        Err(self.asking.refuse(error))
    }

    fn committed(&mut self, done: Self::Done) -> Self::Answer {
        done.sent.stand();
        self.asking.note(false);
        Ok(done.value)
    }

    fn commit_refused(&self, source: StoreError) -> Error {
        let operation = unnamed();
        Error::Commit { operation, source }
    }

    fn unknown(&mut self, done: Self::Done, has_record: bool) -> Self::Answer {
        done.sent.stand();
        let first = done.recorded.first();
        self.refused(Error::CommitUnknown {
            operation: first.map_or_else(unnamed, |first| Arc::clone(&first.operation)),
            has_record,
        })
    }

    async fn wait(&mut self, why: Infallible) -> Result<(), Self::Answer> {
        match why {}
    }
}

impl<DB: SqlDatabase, Q, F, V, E> Around<'_, DB, Q, F, V, E> {
    /// Forgets the place before the body, and returns the outcomes that prove a commit: those that
    /// no savepoint of the application's took back.
    ///
    /// If the place is gone, the commit would not be of the body's transaction. Half of a call must
    /// not be committed, either.
    async fn check_end(
        &self,
        tx: &mut Transaction<'_, DB>,
        savepoint: Savepoint,
        open: &OpenTransaction,
    ) -> Result<Vec<RecordedIn>, Error> {
        let mut recorded = open.take_recorded();
        let queries = recorded.iter().filter_map(RecordedIn::version_query);
        let queries: Vec<_> = queries.collect();
        let releasing = savepoint.release_and_query(&mut **tx, &queries);
        match self.own.in_time::<_, StoreError>(releasing).await {
            Ok(stand) if !open.has_unfinished() => {
                recorded.retain(|it| stand.contains(&it.draft.version.to_bytes().to_vec()));
                Ok(recorded)
            }
            Err(error) if is_broken::<DB>(&error) => Err(error.into()),
            _ended => {
                let operation = unnamed();
                Err(Error::TransactionEnded { operation })
            }
        }
    }
}

impl<DB: SqlDatabase, V> Witness<DB> for Done<V> {
    async fn look(&self, tx: &mut Transaction<'_, DB>) -> Result<Stands, StoreError> {
        look_for(&self.recorded, tx).await
    }

    fn has_written(&self) -> bool {
        !self.recorded.is_empty()
    }

    fn may_be_gone(&self) -> bool {
        self.recorded.iter().any(RecordedIn::may_be_gone)
    }
}

fn unnamed() -> Arc<str> {
    "transaction".into()
}
