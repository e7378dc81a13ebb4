//! A step in a transaction: its rows and its record stand together.

mod turn;

use std::{marker::PhantomData, sync::Arc, time::Duration};

use sqlx::Pool;

use self::turn::{Ended, InStep};
use super::{
    StepContext, StepLabel,
    described::Described,
    permit::{self, Begun, Permit},
};
use crate::{
    clock::SystemTimer,
    error::Error,
    observe::StepOutcome,
    outcome::{Classified, FromRefusal, Keep, OnError, Released, Whole},
    policy::Verdict,
    record::Step,
    request::Fingerprintable,
    run::typed::{
        Typed,
        read::replay,
        record::{OutcomePlace, keep},
    },
    transaction::{
        Isolation, LONGEST_SILENCE, OwnTransaction, RETRY_FOR, ShowsCauses, SqlDatabase,
    },
};

/// Makes a step of a body whose rows and whose record stand together: it begins a transaction on
/// the pool, runs the body in it, and commits both.
///
/// The pool leads to the database in which the store keeps its records. The transaction is READ
/// COMMITTED. An `Err` rolls it back. A step of the same name in another attempt waits for how it
/// ends. [`in_transaction`] takes arguments to compare, and says what becomes of an `Err`.
///
/// **The body may run more than once**, after the rows of the try before were rolled back. It does
/// if another transaction was in the way, or if the connection broke before the commit. So the
/// closure is `Clone`. The tries come after pauses that are random and grow. After 10 seconds of
/// tries, or where the lease is lost, the caller gets the last error, and the step may run again.
///
/// **The body must not end the transaction itself**, by a `COMMIT` or, on MariaDB and MySQL, by a
/// DDL statement. Its rows stand then, the caller gets [`Error::TransactionEnded`], and each later
/// try writes them again.
///
/// **No wait of the library's own is without a limit.** A connection is waited for as long as the
/// pool's `acquire_timeout` says, and the answer to each statement of the library for 10 seconds.
/// A commit without an answer is looked for as long as the lease stood when it was sent.
///
/// On SQLite the transaction keeps every other write from the file, heartbeats among them. Keep it
/// shorter than a third of the lease.
///
/// It costs its transaction with two statements and a savepoint, which tells whether the
/// transaction ended behind the body's back, and one look more in an attempt that takes over.
///
/// # Errors
///
/// As [`StepCall::run`](super::StepCall::run), and [`Error::Store`] where the database fails.
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
    F: AsyncFnOnce(&mut DB::Connection, StepContext) -> Result<T, E> + Clone,
{
    in_transaction(name, pool).run(body).await
}

/// Describes a step in a transaction; [`step_in`] is the same without a description.
pub fn in_transaction<N: StepLabel, DB: SqlDatabase>(name: N, pool: &Pool<DB>) -> StepIn<'_, DB> {
    StepIn {
        described: Described::new(name.label(), &name),
        pool,
        retry_for: RETRY_FOR,
        on_error: Released,
    }
}

/// A step in a transaction that is being described; [`in_transaction`] makes one.
#[derive(Debug)]
#[must_use = "a step does nothing until it is run"]
pub struct StepIn<'a, DB: SqlDatabase, P = Released> {
    described: Described,
    pool: &'a Pool<DB>,
    retry_for: Duration,
    on_error: P,
}

impl<'a, DB: SqlDatabase, P> StepIn<'a, DB, P> {
    /// Sets the arguments that must be equal in a rerun: [`Error::StepChanged`] where they are not.
    pub fn arguments<A: Fingerprintable + ?Sized>(mut self, arguments: &A) -> Self {
        self.described.arguments.whole_as("arguments", arguments);
        self
    }

    /// Sets for how long the body runs again when other transactions are in its way, as
    /// [`Transact::retry_for`](crate::transaction::Transact::retry_for) does.
    pub fn retry_for(self, retry_for: Duration) -> Self {
        Self { retry_for, ..self }
    }

    /// A function from `&E` to [`Verdict`](crate::Verdict) or [`Unrecorded`](crate::Unrecorded)
    /// decides what becomes of an `Err`. Its rows are rolled back in any case.
    pub fn on_error<C>(self, classify: C) -> StepIn<'a, DB, Classified<C>> {
        StepIn {
            described: self.described,
            pool: self.pool,
            retry_for: self.retry_for,
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
        F: AsyncFnOnce(&mut DB::Connection, StepContext) -> Result<T, E> + Clone,
    {
        let typed = Typed::whole(self.on_error);
        let asking = self.described.asking();
        let refused = |error: Error| {
            asking.answered(Some(&error));
            Err(E::from_refusal(error))
        };
        let (mut permit, context) = match Box::pin(permit::begin(self.described)).await {
            Ok(Begun::Run(permit)) => {
                let context = permit.context();
                // Boxed, so that this future holds no room for it in each of its states.
                (Some(Box::new(permit)), context)
            }
            Ok(Begun::Unprotected(context)) => (None, context),
            Ok(Begun::Recorded(permit, step)) => {
                asking.note(false);
                permit.tell(StepOutcome::Replayed);
                let read = Box::pin(stands(&permit, &typed, &step)).await;
                return read.unwrap_or_else(refused);
            }
            Err(error) => return refused(error),
        };
        let engine = permit.as_ref().map(|permit| Arc::clone(&permit.engine));
        let own = OwnTransaction {
            pool: self.pool,
            isolation: Some(Isolation::ReadCommitted),
            timer: engine.as_ref().map_or(&SystemTimer, |it| it.timer()),
            answers_within: LONGEST_SILENCE,
        };
        let mut inside = Box::new(InStep {
            own,
            permit: permit.as_deref_mut(),
            context,
            typed: &typed,
            asking: &asking,
            body,
            answers: PhantomData,
        });
        let ended = own.run(self.retry_for, &mut *inside).await;
        let ended = match (ended, &mut permit) {
            (Ok(Ended::Failed(own, is_refused)), Some(permit)) => {
                Box::pin(failed(permit, &typed, own, is_refused)).await
            }
            (ended, _) => ended,
        };
        match ended {
            Ok(Ended::Own(own) | Ended::Failed(own, _)) => own,
            Ok(Ended::Stands(step)) => {
                let Some(permit) = &permit else {
                    unreachable!("it has no record")
                };
                asking.note(false);
                permit.tell(StepOutcome::Replayed);
                let read = Box::pin(stands(permit, &typed, &step)).await;
                read.unwrap_or_else(refused)
            }
            Err(error) => refused(error),
        }
    }
}

/// Reads the outcome back that stands under the name of the step.
async fn stands<T, E, P>(
    permit: &Permit,
    typed: &Typed<P, Whole>,
    step: &Step,
) -> Result<Result<T, E>, Error>
where
    P: OnError<E>,
    Whole: Keep<T>,
{
    let outcome = step.outcome.as_ref();
    replay(&permit.place(), &permit.described(), typed, outcome).await
}

/// Goes on behind an `Err` of the body, whose rows are gone.
async fn failed<T, E, P>(
    permit: &mut Permit,
    typed: &Typed<P, Whole>,
    mut own: Result<T, E>,
    is_refused: bool,
) -> Result<Ended<T, E>, Error>
where
    P: OnError<E>,
    Whole: Keep<T>,
{
    let Err(error) = &own else {
        return Ok(Ended::Own(own));
    };
    match typed.on_error.verdict(error, Verdict::Release) {
        Verdict::Replay if is_refused => return Ok(Ended::Own(own)),
        Verdict::Release => {
            permit.tell(StepOutcome::Released);
            return Ok(Ended::Own(own));
        }
        Verdict::Uncertain => {
            permit.record_doubt().await?;
            return Ok(Ended::Own(own));
        }
        Verdict::Replay => {}
    }
    // Without its rows it is a step like any other. Nothing is left of an error that cannot be
    // kept.
    let place = OutcomePlace {
        forgets_errors: true,
        ..permit.place()
    };
    let Some(outcome) = keep(&place, typed, &mut own).await else {
        return Ok(Ended::Own(own));
    };
    let stands = permit.record(outcome).await?;
    Ok(stands.map_or(Ended::Own(own), Ended::Stands))
}
