//! The tries of a step: a connection, the step's row, the body, the fence, and the commit.

use std::{error::Error as StdError, sync::Arc, time::Duration};

use sqlx::{Pool, Transaction};

use super::lost::commit;
use crate::{
    attempt::Asking,
    attempt::INSIDE,
    clock::{SystemTimer, Timer},
    engine::steps::StepContext,
    error::Error,
    outcome::{FromRefusal, Keep, OnError, Whole},
    policy::Verdict,
    race::race,
    record::{RawOutcome, Step, StepState, Version},
    run::typed::{
        Typed,
        record::{OutcomePlace, keep},
    },
    step::permit::Permit,
    store::{Savepoint, StoreError, StoreErrorKind, sealed::Sealed as _},
    transaction::{
        Backoff, CommitFailure, Isolation, LONGEST_SILENCE, OwnedConnection, ShowsCauses,
        SqlDatabase, USED_THE_POOL, is_broken, is_conflict, is_stale, silence, silent,
        waited_for_itself,
    },
};

/// How a step in a transaction of its own ended.
pub(super) enum Ended<T, E> {
    Own(Result<T, E>),
    /// Another outcome stands under its name.
    Stands(Arc<Step>),
    /// Another transaction was in the way, and nothing stands. Inside is the answer if the body may
    /// not run again.
    Conflict(Result<T, E>),
}

/// The settings that all tries of a step share.
pub(super) struct Turns<'a, DB: SqlDatabase> {
    pub(super) pool: &'a Pool<DB>,
    pub(super) retry_for: Duration,
    pub(super) asking: &'a Asking,
}

impl<DB: SqlDatabase> Turns<'_, DB> {
    /// Runs the body in a transaction, again where another one was in the way.
    pub(super) async fn run<T, E, P, F>(
        &self,
        permit: &mut Permit,
        typed: &Typed<P, Whole>,
        body: F,
    ) -> Result<Ended<T, E>, Error>
    where
        E: FromRefusal + ShowsCauses,
        P: OnError<E>,
        Whole: Keep<T>,
        F: AsyncFnOnce(&mut DB::Connection, StepContext) -> Result<T, E> + Clone,
    {
        let mut backoff = Backoff::new(self.retry_for);
        loop {
            let ended = Box::pin(self.once(permit, typed, body.clone())).await;
            let timer = permit.engine.timer();
            let again = may_run_again::<DB, _, _>(&ended) && permit.check_open().is_ok();
            match again.then(|| backoff.pause(timer.now())).flatten() {
                Some(pause) => timer.sleep(pause).await,
                None => return ended,
            }
        }
    }

    /// The step's row is the first statement, and the fence the last.
    async fn once<T, E, P, F>(
        &self,
        permit: &mut Permit,
        typed: &Typed<P, Whole>,
        body: F,
    ) -> Result<Ended<T, E>, Error>
    where
        E: FromRefusal + ShowsCauses,
        P: OnError<E>,
        Whole: Keep<T>,
        F: AsyncFnOnce(&mut DB::Connection, StepContext) -> Result<T, E>,
    {
        let engine = Arc::clone(&permit.engine);
        let timer = engine.timer();
        let mut owned = OwnedConnection::acquire(self.pool).await?;
        let begin = owned.begin(Some(Isolation::ReadCommitted));
        let mut tx = in_time::<DB, _, _>(timer, begin).await?;
        let begun = permit.step(StepState::Begun, None);
        let writing = permit.write_in(tx.connection(), permit.seen, &begun);
        if let Some(stands) = in_time::<DB, _, _>(timer, writing).await? {
            return Ok(Ended::Stands(stands));
        }
        let (attempt, context) = (permit.attempt.clone(), permit.context());
        let savepoint = in_time::<DB, _, _>(timer, Savepoint::set(&mut *tx)).await?;
        let within = context.within();
        let own = within.enter(body(&mut *tx, context));
        let mut own = INSIDE.scope(attempt, own).await;
        let is_refused = own.is_err() && within.is_refused();
        self.asking.note(is_refused);
        if let Err(error) = &own {
            let reason = Reason::of::<DB>(error);
            let rolled_back = roll_back(timer, tx).await;
            if reason.may_run_again(timer, rolled_back, owned).await? {
                return Ok(Ended::Conflict(own));
            }
            return failed(permit, typed, own, is_refused).await;
        }
        let Some(outcome) = keep(&permit.place(), typed, &mut own).await else {
            return Ok(Ended::Own(own));
        };
        let stands = self.record(permit, (tx, savepoint), begun.version, outcome);
        if let Some(stands) = stands.await? {
            return Ok(Ended::Stands(stands));
        }
        give_back(timer, owned).await;
        permit.has_committed();
        Ok(Ended::Own(own))
    }

    /// Writes the outcome, and commits it. Returns another version that stands in its place.
    async fn record(
        &self,
        permit: &Permit,
        (mut tx, savepoint): (Transaction<'_, DB>, Savepoint),
        begun: Version,
        outcome: RawOutcome,
    ) -> Result<Option<Arc<Step>>, Error> {
        let timer = permit.engine.timer();
        check_end(timer, savepoint, &mut tx, permit.attempt.operation_name()).await?;
        let done = permit.step(StepState::Done, Some(outcome));
        let writing = permit.write_in(tx.connection(), Some(begun), &done);
        let stands = in_time::<DB, _, _>(timer, writing).await?;
        if stands.is_none() {
            permit.commits();
            commit(permit, tx, self.pool, &done).await?;
        }
        Ok(stands)
    }

    /// Runs the body in a transaction, and keeps no record.
    pub(super) async fn unprotected<T, E, F>(
        &self,
        context: StepContext,
        body: F,
    ) -> Result<Ended<T, E>, Error>
    where
        E: ShowsCauses,
        F: AsyncFnOnce(&mut DB::Connection, StepContext) -> Result<T, E> + Clone,
    {
        let mut backoff = Backoff::new(self.retry_for);
        loop {
            let ended = Box::pin(self.unprotected_once(context.clone(), body.clone())).await;
            let again = may_run_again::<DB, _, _>(&ended);
            match again.then(|| backoff.pause(SystemTimer.now())).flatten() {
                Some(pause) => SystemTimer.sleep(pause).await,
                None => return ended,
            }
        }
    }

    async fn unprotected_once<T, E, F>(
        &self,
        context: StepContext,
        body: F,
    ) -> Result<Ended<T, E>, Error>
    where
        E: ShowsCauses,
        F: AsyncFnOnce(&mut DB::Connection, StepContext) -> Result<T, E>,
    {
        let timer = &SystemTimer;
        let mut owned = OwnedConnection::acquire(self.pool).await?;
        let begin = owned.begin(Some(Isolation::ReadCommitted));
        let mut tx = in_time::<DB, _, _>(timer, begin).await?;
        let operation = Arc::clone(context.attempt.operation_name());
        let savepoint = in_time::<DB, _, _>(timer, Savepoint::set(&mut *tx)).await?;
        let within = context.within();
        let own = within.enter(body(&mut *tx, context)).await;
        self.asking.note(own.is_err() && within.is_refused());
        if let Err(error) = &own {
            let reason = Reason::of::<DB>(error);
            let rolled_back = roll_back(timer, tx).await;
            return Ok(
                match reason.may_run_again(timer, rolled_back, owned).await? {
                    true => Ended::Conflict(own),
                    false => Ended::Own(own),
                },
            );
        }
        check_end(timer, savepoint, &mut tx, &operation).await?;
        let committed = race(tx.commit(), timer.sleep(LONGEST_SILENCE)).await;
        match committed.unwrap_or_else(|| Err(silent())) {
            Ok(()) => give_back(timer, owned).await,
            Err(error) => return Err(uncommitted::<DB>(error).into()),
        }
        Ok(Ended::Own(own))
    }
}

/// Whether nothing stands because of another transaction, or of a connection that broke.
fn may_run_again<DB: SqlDatabase, T, E>(ended: &Result<Ended<T, E>, Error>) -> bool {
    match ended {
        Ok(Ended::Conflict(_)) => true,
        Err(Error::Store(error)) => {
            is_conflict::<DB>(error) || is_broken::<DB>(error) || is_stale::<DB>(error)
        }
        _ => false,
    }
}

/// Why a body has returned an `Err`.
#[derive(PartialEq)]
enum Reason {
    ItsOwn,
    /// Another transaction was in its way, or its connection broke.
    InTheWay,
    /// Its connection may only read.
    Stale,
    /// It waited for the lock of its own transaction.
    Itself,
}

impl Reason {
    fn of<DB: SqlDatabase>(error: &(dyn StdError + 'static)) -> Self {
        match () {
            () if waited_for_itself::<DB>(error) => Self::Itself,
            () if is_stale::<DB>(error) => Self::Stale,
            () if is_conflict::<DB>(error) => Self::InTheWay,
            () => Self::ItsOwn,
        }
    }

    /// Gives the connection back where it was rolled back. Returns whether the body may run again.
    async fn may_run_again<DB: SqlDatabase>(
        self,
        timer: &dyn Timer,
        rolled_back: sqlx::Result<()>,
        owned: OwnedConnection<DB>,
    ) -> Result<bool, Error> {
        let is_gone = rolled_back.as_ref().is_err_and(DB::is_broken);
        if rolled_back.is_ok() && self != Self::Stale {
            give_back(timer, owned).await;
        }
        match self {
            Self::Itself => Err(USED_THE_POOL),
            Self::ItsOwn => Ok(is_gone),
            Self::InTheWay | Self::Stale => Ok(true),
        }
    }
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
    E: FromRefusal + ShowsCauses,
{
    let Err(error) = &own else {
        return Ok(Ended::Own(own));
    };
    match typed.on_error.verdict(error, Verdict::Release) {
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

/// Awaits a statement of ours for no longer than a database may be silent.
pub(super) async fn in_time<DB: SqlDatabase, T, E: From<StoreError>>(
    timer: &dyn Timer,
    statement: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let answer = race(statement, timer.sleep(LONGEST_SILENCE)).await;
    answer.unwrap_or_else(|| Err(silence::<DB>().into()))
}

async fn roll_back<DB: SqlDatabase>(
    timer: &dyn Timer,
    tx: Transaction<'_, DB>,
) -> sqlx::Result<()> {
    let rolled_back = race(tx.rollback(), timer.sleep(LONGEST_SILENCE)).await;
    rolled_back.unwrap_or_else(|| Err(silent()))
}

/// Gives the connection back. Where that takes too long, it is closed.
async fn give_back<DB: SqlDatabase>(timer: &dyn Timer, owned: OwnedConnection<DB>) {
    race(owned.give_back(), timer.sleep(LONGEST_SILENCE)).await;
}

/// Refuses a transaction that has ended although its body says that all is well: the rows are gone,
/// and what is written now would stand without them.
async fn check_end<DB: SqlDatabase>(
    timer: &dyn Timer,
    savepoint: Savepoint,
    tx: &mut Transaction<'_, DB>,
    operation: &Arc<str>,
) -> Result<(), Error> {
    let released = in_time::<DB, _, _>(timer, savepoint.release(&mut **tx)).await;
    released.map_err(|error| {
        if is_broken::<DB>(&error) {
            return error.into();
        }
        tracing::warn!(%operation, %error, "the transaction of a step has ended before its body did");
        let operation = Arc::clone(operation);
        Error::TransactionEnded { operation }
    })
}

/// The answer to a COMMIT of a step without a record was an error. An error that shows no cause is
/// no reason to run the body again.
fn uncommitted<DB: SqlDatabase>(error: sqlx::Error) -> StoreError {
    match CommitFailure::of::<DB>(error) {
        CommitFailure::Conflict(error) | CommitFailure::Refused(error) => error,
        CommitFailure::Unknown => StoreError::new(StoreErrorKind::Unavailable, "committing a step"),
    }
}
