//! `transaction`: one that the library owns, around annotated functions.

use std::sync::Arc;

use sqlx::{Database, Transaction};

use super::{
    Backoff, IntoTransact, LONGEST_SILENCE, RetryIf, ShowsCauses, SqlDatabase, Transact,
    connection::{
        CommitFailure, OwnedConnection, USED_THE_POOL, is_broken, is_conflict, is_stale, silence,
        silent, waited_for_itself,
    },
    lost::CommitStatus,
};
use crate::{
    attempt::Asking,
    clock::{Timer as _, TokioTimer},
    error::Error,
    outcome::FromRefusal,
    run::{OpenTransaction, RecordedIn, SentInside},
    store::{Savepoint, StoreError, sealed::Sealed as _},
};

/// Runs `body` in a transaction of its own: it begins one on the pool, and commits it if the body
/// gives `Ok`. The calls inside that have `tx`, or [`run_in`](crate::CallBuilder::run_in), record
/// their outcomes in it.
///
/// `pool` is `&pool`, or a [`Transact`] with for how long and in which isolation.
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
    let (timer, mut backoff) = (TokioTimer::new(), Backoff::new(settings.retry_for));
    let asking = Asking::once();
    loop {
        let last = match Box::pin(settings.once(body.clone(), &asking)).await {
            RunEnd::Answer(answer) => {
                if answer.is_ok() {
                    asking.note(false);
                }
                return answer;
            }
            RunEnd::Again(last) => last,
            RunEnd::Lost(recorded, sent, value) => {
                match settings.find_out(&recorded, LONGEST_SILENCE).await {
                    CommitStatus::Committed => {
                        sent.stand();
                        asking.note(false);
                        return Ok(value);
                    }
                    CommitStatus::RolledBack => asking.refuse(silence::<T::Database>().into()),
                    CommitStatus::Unknown { has_record } => {
                        sent.stand();
                        return Err(asking.refuse(unknown(&recorded, has_record)));
                    }
                }
            }
        };
        let Some(pause) = backoff.pause(timer.now()) else {
            return Err(last);
        };
        tracing::debug!(?pause, "a transaction is tried again");
        timer.sleep(pause).await;
    }
}

/// How one run of a body ended.
enum RunEnd<V, E> {
    Answer(Result<V, E>),
    /// Nothing stands, and the body may run again. Inside is the answer if it may not.
    Again(E),
    /// It is unknown whether these outcomes are committed, and the messages and the value with
    /// them.
    Lost(Vec<RecordedIn>, SentInside, V),
}

impl<V, E: ShowsCauses> RunEnd<V, E> {
    /// Whether its connection may only read, so that the application's pool does not get it back.
    fn is_stale<DB: SqlDatabase>(&self) -> bool {
        match self {
            Self::Answer(Err(error)) | Self::Again(error) => is_stale::<DB>(error),
            _ => false,
        }
    }
}

fn unknown(recorded: &[RecordedIn], has_record: bool) -> Error {
    let first = recorded.first();
    Error::CommitUnknown {
        operation: first.map_or_else(unnamed, |first| Arc::clone(&first.operation)),
        has_record,
    }
}

fn unnamed() -> Arc<str> {
    "transaction".into()
}

impl<DB: SqlDatabase, Q> Transact<DB, Q> {
    async fn once<V, E, F>(&self, body: F, asking: &Asking) -> RunEnd<V, E>
    where
        Q: RetryIf<E>,
        E: FromRefusal + ShowsCauses,
        F: AsyncFnOnce(&mut DB::Connection) -> Result<V, E>,
    {
        let mut owned = match OwnedConnection::acquire(&self.pool).await {
            Ok(owned) => owned,
            Err(error) => return refused::<DB, _, _>(asking, error),
        };
        let begun = in_time(owned.begin(self.isolation)).await;
        let (turn, is_clean) = match begun.unwrap_or_else(|| Err(silence::<DB>())) {
            Ok(mut tx) => match set_savepoint::<DB>(&mut tx).await {
                Ok(savepoint) => {
                    let open = OpenTransaction::on(&tx.connection());
                    let own = open.enter(body(&mut *tx)).await;
                    self.after(tx, &open, (savepoint, asking), own).await
                }
                Err(error) => (refused::<DB, _, _>(asking, error), false),
            },
            Err(error) => (refused::<DB, _, _>(asking, error), false),
        };
        if is_clean && !turn.is_stale::<DB>() {
            // Dropped, it is closed.
            in_time(owned.give_back()).await;
        }
        turn
    }

    /// Commits what the body has done, or rolls it back. Tells whether the connection is as before.
    async fn after<V, E>(
        &self,
        mut tx: Transaction<'_, DB>,
        open: &OpenTransaction,
        (savepoint, asking): (Savepoint, &Asking),
        own: Result<V, E>,
    ) -> (RunEnd<V, E>, bool)
    where
        Q: RetryIf<E>,
        E: FromRefusal + ShowsCauses,
    {
        let value = match own {
            Ok(value) => value,
            Err(error) => {
                // The body has answered, so an earlier try counts no more.
                asking.note(false);
                let rolled_back = answer(tx.rollback()).await;
                let is_gone = rolled_back.as_ref().is_err_and(DB::is_broken);
                let is_reason = is_gone || self.retry_if.is_reason(&error);
                let is_refused = is_conflict::<DB>(&error) || is_stale::<DB>(&error);
                let turn = match is_reason || is_refused {
                    _ if !is_reason && waited_for_itself::<DB>(&error) => {
                        RunEnd::Answer(Err(asking.refuse(USED_THE_POOL)))
                    }
                    true => RunEnd::Again(error),
                    false => RunEnd::Answer(Err(error)),
                };
                return (turn, rolled_back.is_ok());
            }
        };
        // If the place before the body is gone, the commit would not be of the body's transaction.
        // Half of a call must not be committed, either.
        let released = in_time(release(savepoint, &mut tx, open)).await;
        let witnesses = match released.unwrap_or_else(|| Err(silence::<DB>())) {
            Ok(witnesses) if !open.has_unfinished() => witnesses,
            Err(error) if is_broken::<DB>(&error) => {
                let turn = refused::<DB, _, _>(asking, error);
                return (turn, answer(tx.rollback()).await.is_ok());
            }
            _ended => {
                let operation = unnamed();
                let ended = asking.refuse(Error::TransactionEnded { operation });
                return (
                    RunEnd::Answer(Err(ended)),
                    answer(tx.rollback()).await.is_ok(),
                );
            }
        };
        let sent = open.take_sent();
        match answer(tx.commit()).await {
            Ok(()) => {
                sent.stand();
                (RunEnd::Answer(Ok(value)), true)
            }
            Err(error) => match CommitFailure::of::<DB>(error) {
                CommitFailure::Unknown => (RunEnd::Lost(witnesses, sent, value), false),
                CommitFailure::Conflict(error) => (refused::<DB, _, _>(asking, error), false),
                CommitFailure::Refused(source) => {
                    let operation = unnamed();
                    let refused = asking.refuse(Error::Commit { operation, source });
                    (RunEnd::Answer(Err(refused)), false)
                }
            },
        }
    }
}

async fn set_savepoint<DB: SqlDatabase>(
    tx: &mut Transaction<'_, DB>,
) -> Result<Savepoint, StoreError> {
    let set = in_time(Savepoint::set(&mut **tx)).await;
    set.unwrap_or_else(|| Err(silence::<DB>()))
}

/// Forgets the place before the body, and returns the outcomes that prove a commit: those that no
/// savepoint of the application's took back.
async fn release<DB: SqlDatabase>(
    savepoint: Savepoint,
    tx: &mut Transaction<'_, DB>,
    open: &OpenTransaction,
) -> Result<Vec<RecordedIn>, StoreError> {
    let mut recorded = open.take_recorded();
    let queries = recorded.iter().filter_map(RecordedIn::version_query);
    let queries: Vec<_> = queries.collect();
    let stand = savepoint.release_and_query(&mut **tx, &queries).await?;
    recorded.retain(|it| stand.contains(&it.draft.version.to_bytes().to_vec()));
    Ok(recorded)
}

/// Waits no longer than a database may be silent.
async fn in_time<F: Future>(work: F) -> Option<F::Output> {
    tokio::time::timeout(LONGEST_SILENCE, work).await.ok()
}

async fn answer(work: impl Future<Output = sqlx::Result<()>>) -> sqlx::Result<()> {
    in_time(work).await.unwrap_or_else(|| Err(silent()))
}

/// An error of the database before the body ran, or after it.
fn refused<DB: SqlDatabase, V, E: FromRefusal>(asking: &Asking, error: StoreError) -> RunEnd<V, E> {
    let again = is_conflict::<DB>(&error) || is_broken::<DB>(&error) || is_stale::<DB>(&error);
    let error = asking.refuse(error.into());
    match again {
        true => RunEnd::Again(error),
        false => RunEnd::Answer(Err(error)),
    }
}
