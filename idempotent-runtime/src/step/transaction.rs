//! A step in a transaction: its rows and its record stand together.

use std::{sync::Arc, time::Duration};

use sqlx::{Pool, Transaction};

use super::{
    StepContext, StepLabel,
    described::Described,
    name::named,
    permit::{self, Begun, INSIDE, Permit},
};
use crate::{
    attempt::Asking,
    error::Error,
    fingerprint::Arguments,
    outcome::{Classified, FromRefusal, Keep, OnError, Released, Whole},
    policy::{OnCrash, Verdict},
    record::{Step, StepState, Version},
    request::Fingerprintable,
    run::{
        race,
        typed::{
            Typed,
            read::replay,
            record::{Place, keep},
        },
    },
    store::{Savepoint, SqlConnection, StepWrite, StoreError, StoreErrorKind, sealed::Sealed as _},
    transaction::{CommitFailure, Isolation, OwnedConnection, ShowsCauses, SqlDatabase},
};

/// How long one look at a commit may take, and how long it is until the next.
const ONE_LOOK: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(50);

/// Makes a step of a body whose rows and whose record stand together: it begins a transaction on
/// the pool, runs the body in it, and commits both.
///
/// The pool leads to the database in which the store keeps its records. The transaction is READ
/// COMMITTED. An `Err` rolls it back. A step of the same name in another attempt waits for how it
/// ends. [`in_transaction`] takes arguments to compare, and says what becomes of an `Err`.
///
/// On SQLite the transaction keeps every other write from the file, heartbeats among them. Keep it
/// shorter than a third of the lease.
///
/// It costs its transaction with two statements and a savepoint, which tells whether the
/// transaction ended behind the body's back, and one look more in an attempt that takes over.
///
/// # Errors
///
/// As [`StepCall::run`](super::StepCall::run), and [`Error::Store`] where the database fails. If
/// another transaction was in the way, nothing stands, and the step may run again.
///
/// # Cancel safety
///
/// Dropped at any time, rows and record stand together, or neither does.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// # mod listing {
/// use idempotent_runtime::{Error, step_in};
/// use sqlx::SqlitePool;
///
/// #[derive(Debug, thiserror::Error)]
/// enum TripError {
///     #[error(transparent)]
///     Idempotency(#[from] Error),
///     #[error(transparent)]
///     Database(#[from] sqlx::Error),
/// }
///
/// async fn post(pool: &SqlitePool, flight: &str) -> Result<(), TripError> {
///     step_in("ledger", pool, async |tx, _| {
///         sqlx::query("INSERT INTO ledger (flight) VALUES (?)").bind(flight).execute(tx).await?;
///         Ok(())
///     })
///     .await
/// }
/// # }
/// ```
pub async fn step_in<DB, N, T, E, F>(name: N, pool: &Pool<DB>, body: F) -> Result<T, E>
where
    DB: SqlDatabase,
    N: StepLabel,
    E: FromRefusal + ShowsCauses,
    Whole: Keep<T>,
    F: AsyncFnOnce(&mut DB::Connection, StepContext) -> Result<T, E>,
{
    in_transaction(name, pool).run(body).await
}

/// Describes a step in a transaction; [`step_in`] is the same without a description.
pub fn in_transaction<N: StepLabel, DB: SqlDatabase>(name: N, pool: &Pool<DB>) -> StepIn<'_, DB> {
    StepIn {
        described: Described {
            label: name.label(),
            name: named(&name),
            arguments: Arguments::new(),
            version: 0,
            on_crash: OnCrash::Rerun,
            undo: None,
            is_version: false,
        },
        pool,
        on_error: Released,
    }
}

/// A step in a transaction that is being described; [`in_transaction`] makes one.
#[derive(Debug)]
#[must_use = "a step does nothing until it is run"]
pub struct StepIn<'a, DB: SqlDatabase, P = Released> {
    described: Described,
    pool: &'a Pool<DB>,
    on_error: P,
}

impl<'a, DB: SqlDatabase, P> StepIn<'a, DB, P> {
    /// Sets the arguments that must be equal in a rerun: [`Error::StepChanged`] where they are not.
    pub fn arguments<A: Fingerprintable + ?Sized>(mut self, arguments: &A) -> Self {
        self.described.arguments.whole_as("arguments", arguments);
        self
    }

    /// A function from `&E` to [`Verdict`] or [`Unrecorded`](crate::Unrecorded) decides what
    /// becomes of an `Err`. Its rows are rolled back in any case.
    pub fn on_error<C>(self, classify: C) -> StepIn<'a, DB, Classified<C>> {
        StepIn {
            described: self.described,
            pool: self.pool,
            on_error: Classified(classify),
        }
    }

    /// Runs the step, or answers with what is recorded of it.
    ///
    /// # Errors
    ///
    /// As [`step_in`].
    ///
    /// # Cancel safety
    ///
    /// As [`step_in`].
    pub async fn run<T, E, F>(self, body: F) -> Result<T, E>
    where
        E: FromRefusal + ShowsCauses,
        P: OnError<E>,
        Whole: Keep<T>,
        F: AsyncFnOnce(&mut DB::Connection, StepContext) -> Result<T, E>,
    {
        let typed = Typed {
            on_error: self.on_error,
            keep: Whole,
        };
        let asking = self.described.asking();
        let refused = |error: Error| {
            asking.answered(Some(&error));
            Err(E::from_refusal(error))
        };
        let (permit, stands) = match Box::pin(permit::begin(self.described)).await {
            Ok(Begun::Run(mut permit)) => {
                let ended = in_own(&mut permit, &typed, self.pool, body, &asking).await;
                match ended {
                    Ok(Ended::Own(own)) => return own,
                    Ok(Ended::Stands(step)) => (permit, step),
                    Err(error) => return refused(error),
                }
            }
            Ok(Begun::Unprotected(context)) => {
                let ended = unprotected(self.pool, context, body, &asking).await;
                return ended.unwrap_or_else(refused);
            }
            Ok(Begun::Recorded(permit, step)) => (permit, step),
            Err(error) => return refused(error),
        };
        asking.note(false);
        let (described, outcome) = (permit.described(), stands.outcome.as_ref());
        let read = replay(&permit.place(), &described, &typed, outcome).await;
        read.unwrap_or_else(refused)
    }
}

/// How a step in a transaction of its own ended.
enum Ended<T, E> {
    Own(Result<T, E>),
    /// Another outcome stands under its name.
    Stands(Arc<Step>),
}

/// Runs the body in a transaction: the step's row is the first statement, and the fence the last.
async fn in_own<DB, T, E, P, F>(
    permit: &mut Permit,
    typed: &Typed<P, Whole>,
    pool: &Pool<DB>,
    body: F,
    asking: &Asking,
) -> Result<Ended<T, E>, Error>
where
    DB: SqlDatabase,
    E: FromRefusal + ShowsCauses,
    P: OnError<E>,
    Whole: Keep<T>,
    F: AsyncFnOnce(&mut DB::Connection, StepContext) -> Result<T, E>,
{
    let mut owned = OwnedConnection::acquire(pool).await?;
    let mut tx = owned.begin(Some(Isolation::ReadCommitted)).await?;
    let begun = permit.step(StepState::Begun, None);
    if let Some(stands) = permit
        .write_in(tx.connection(), permit.seen, &begun)
        .await?
    {
        return Ok(Ended::Stands(stands));
    }
    let (attempt, context) = (permit.attempt.clone(), permit.context());
    let savepoint = Savepoint::set(&mut *tx).await?;
    let within = context.within();
    let own = within.enter(body(&mut *tx, context));
    let mut own = INSIDE.scope(attempt, own).await;
    let is_refused = own.is_err() && within.is_refused();
    asking.note(is_refused);
    if let Err(error) = &own {
        let verdict = typed.on_error.verdict(error, Verdict::Release);
        if tx.rollback().await.is_ok() {
            owned.give_back().await;
        }
        match verdict {
            Verdict::Replay if is_refused => return Ok(Ended::Own(own)),
            Verdict::Release => return Ok(Ended::Own(own)),
            Verdict::Uncertain => {
                permit.record_doubt().await?;
                return Ok(Ended::Own(own));
            }
            Verdict::Replay => {}
        }
        // Without its rows it is a step like any other. Nothing is left of an error that cannot be
        // kept.
        let place = Place {
            forgets_errors: true,
            ..permit.place()
        };
        let Some(outcome) = keep(&place, typed, &mut own).await else {
            return Ok(Ended::Own(own));
        };
        let stands = permit.record(outcome).await?;
        return Ok(stands.map_or(Ended::Own(own), Ended::Stands));
    }
    let Some(outcome) = keep(&permit.place(), typed, &mut own).await else {
        return Ok(Ended::Own(own));
    };
    check_end(savepoint, &mut *tx, permit.attempt.operation_name()).await?;
    let done = permit.step(StepState::Done, Some(outcome));
    let stands = permit
        .write_in(tx.connection(), Some(begun.version), &done)
        .await?;
    if let Some(stands) = stands {
        return Ok(Ended::Stands(stands));
    }
    permit.commits();
    commit(permit, tx, pool, &done).await?;
    owned.give_back().await;
    permit.has_committed();
    Ok(Ended::Own(own))
}

/// Refuses a transaction that has ended although its body says that all is well: the rows are gone,
/// and what is written now would stand without them.
async fn check_end(
    savepoint: Savepoint,
    connection: &mut impl SqlConnection,
    operation: &Arc<str>,
) -> Result<(), Error> {
    let ended = |error| {
        tracing::warn!(%operation, %error, "the transaction of a step has ended before its body did");
        let operation = Arc::clone(operation);
        Error::TransactionEnded { operation }
    };
    savepoint.release(connection).await.map_err(ended)
}

/// Commits, and finds out a commit whose answer is lost by the step's row.
async fn commit<DB: SqlDatabase>(
    permit: &Permit,
    tx: Transaction<'_, DB>,
    pool: &Pool<DB>,
    done: &Step,
) -> Result<(), Error> {
    let Err(error) = tx.commit().await else {
        return Ok(());
    };
    let error = match CommitFailure::of::<DB>(error) {
        CommitFailure::Conflict(error) | CommitFailure::Refused(error) => return Err(error.into()),
        CommitFailure::Unknown => StoreError::new(StoreErrorKind::Unavailable, "committing a step"),
    };
    match find_out(permit, pool, done).await {
        Some(true) => Ok(()),
        Some(false) => Err(error.into()),
        None => {
            permit.poison(&error);
            Err(error.into())
        }
    }
}

/// Looks until the database tells whether the step stands, for as long as the lease does.
async fn find_out<DB: SqlDatabase>(permit: &Permit, pool: &Pool<DB>, done: &Step) -> Option<bool> {
    let timer = permit.handle.timer();
    while !permit.lease.is_over(timer.now()) {
        match race(stands(permit, pool, done), timer.sleep(ONE_LOOK)).await {
            Some(Ok(stands)) => return Some(stands),
            Some(Err(error)) => tracing::debug!(%error, "a commit is not found out yet"),
            None => tracing::debug!("the database is silent about a commit"),
        }
        timer.sleep(PAUSE).await;
    }
    None
}

/// Tells whether the step stands. It looks by a write, which waits while the earlier transaction is
/// still open, and is rolled back.
async fn stands<DB: SqlDatabase>(
    permit: &Permit,
    pool: &Pool<DB>,
    done: &Step,
) -> Result<bool, StoreError> {
    let mut owned = OwnedConnection::acquire(pool).await?;
    let mut tx = owned.begin(Some(Isolation::ReadCommitted)).await?;
    let probe = Step {
        version: Version::random(),
        ..done.clone()
    };
    let found = permit.try_write_in(tx.connection(), None, &probe).await?;
    if tx.rollback().await.is_ok() {
        owned.give_back().await;
    }
    Ok(match found {
        StepWrite::Stands(step) => step.version == done.version,
        StepWrite::Written | StepWrite::Lost(_) => false,
    })
}

/// Runs the body in a transaction, and keeps no record.
async fn unprotected<DB, T, E, F>(
    pool: &Pool<DB>,
    context: StepContext,
    body: F,
    asking: &Asking,
) -> Result<Result<T, E>, Error>
where
    DB: SqlDatabase,
    F: AsyncFnOnce(&mut DB::Connection, StepContext) -> Result<T, E>,
{
    let mut owned = OwnedConnection::acquire(pool).await?;
    let isolation = Some(Isolation::ReadCommitted);
    let mut tx = owned.begin(isolation).await?;
    let operation = Arc::clone(context.attempt.operation_name());
    let savepoint = Savepoint::set(&mut *tx).await?;
    let within = context.within();
    let own = within.enter(body(&mut *tx, context)).await;
    asking.note(own.is_err() && within.is_refused());
    if own.is_ok() {
        check_end(savepoint, &mut *tx, &operation).await?;
    }
    let ended = match &own {
        Ok(_) => tx.commit().await,
        Err(_) => tx.rollback().await,
    };
    match (ended, own) {
        (Ok(()), own) => {
            owned.give_back().await;
            Ok(own)
        }
        (Err(_), Err(own)) => Ok(Err(own)),
        (Err(error), Ok(_)) => Err(DB::store_error(error, "committing a step").into()),
    }
}
