//! A step in a transaction of its own: its row, its body, the fence, and its outcome.

use std::{convert::Infallible, marker::PhantomData, sync::Arc, time::Duration};

use sqlx::Transaction;

use crate::{
    attempt::{Asking, Attempt, INSIDE},
    engine::{Engine, steps::StepContext},
    error::Error,
    observe::StepOutcome,
    outcome::{FromRefusal, Keep, OnError, Whole},
    record::{Step, StepState, Version},
    run::typed::{Typed, record::keep},
    step::permit::Permit,
    store::{Savepoint, StepWrite, StoreError, StoreErrorKind, sealed::Sealed as _},
    transaction::{
        Inside, Left, LeftBy, OwnTransaction, Retry, ShowsCauses, SqlDatabase, Stands, Turn,
        Witness, is_broken,
    },
};

/// How a step in a transaction of its own ended.
pub(super) enum Ended<T, E> {
    Own(Result<T, E>),
    /// Its rows are gone. Its `Err` may be recorded, unless it comes from a refusal.
    Failed(Result<T, E>, bool),
    /// Another outcome stands under its name.
    Stands(Arc<Step>),
}

/// A step in a transaction of its own. The step's row is the first statement, and the fence the
/// last.
pub(super) struct InStep<'a, DB: SqlDatabase, P, F, T, E> {
    pub(super) own: OwnTransaction<'a, DB>,
    /// None where the call runs without a record.
    pub(super) permit: Option<&'a mut Permit>,
    pub(super) context: StepContext,
    pub(super) typed: &'a Typed<P, Whole>,
    pub(super) asking: &'a Asking,
    pub(super) body: F,
    pub(super) answers: PhantomData<fn() -> Result<T, E>>,
}

/// All that stands once the transaction has committed.
pub(super) struct Done<T, E> {
    row: Option<Row>,
    own: Result<T, E>,
}

/// The row of a step, as it is to be found again.
struct Row {
    engine: Arc<Engine>,
    attempt: Attempt,
    step: Step,
    /// Until when the lease stands.
    until: Duration,
}

impl<DB, P, F, T, E> Inside<DB> for InStep<'_, DB, P, F, T, E>
where
    DB: SqlDatabase,
    E: FromRefusal + ShowsCauses,
    P: OnError<E>,
    Whole: Keep<T>,
    F: AsyncFnOnce(&mut DB::Connection, StepContext) -> Result<T, E> + Clone,
{
    type Answer = Result<Ended<T, E>, Error>;
    type Done = Done<T, E>;
    type Wait = Infallible;

    async fn run(&mut self, tx: &mut Transaction<'_, DB>) -> Result<LeftBy<Self, DB>, Error> {
        let begun = match self.begin(tx).await? {
            Ok(begun) => begun,
            Err(stands) => return Ok(stands_already(stands)),
        };
        let savepoint = self.own.in_time(Savepoint::set(&mut **tx)).await?;
        let (context, within) = (self.context.clone(), self.context.within());
        let body = self.body.clone();
        let own = within.enter(body(&mut **tx, context));
        let attempt = self.context.attempt.clone();
        let own = INSIDE.scope(attempt, own).await;
        let is_refused = own.is_err() && within.is_refused();
        self.asking.note(is_refused);
        let Err(error) = &own else {
            return self.record(tx, savepoint, own, begun).await;
        };
        Ok(match Retry::of::<DB>(error, false, false) {
            Some(retry) => retry.leaves(Ok(Ended::Own(own)), Err),
            None => Left::Failed(Ok(Ended::Failed(own, is_refused))),
        })
    }

    fn refused(&mut self, error: Error) -> Self::Answer {
        Err(error)
    }

    fn committed(&mut self, done: Self::Done) -> Self::Answer {
        if let Some(permit) = &mut self.permit {
            permit.has_committed();
            permit.tell(StepOutcome::Executed);
        }
        Ok(Ended::Own(done.own))
    }

    fn commit_refused(&self, source: StoreError) -> Error {
        source.into()
    }

    /// An error that shows no cause is no reason to run the body again.
    fn unknown(&mut self, _: Self::Done, _: bool) -> Self::Answer {
        let error = StoreError::new(StoreErrorKind::Unavailable, "committing a step");
        if let Some(permit) = &self.permit {
            permit.poison(&error);
        }
        Err(error.into())
    }

    async fn wait(&mut self, why: Infallible) -> Result<(), Self::Answer> {
        match why {}
    }

    fn given_up(&self, own: Self::Answer) -> Self::Answer {
        own.map(|ended| match ended {
            Ended::Failed(own, _) => Ended::Own(own),
            ended => ended,
        })
    }

    fn goes_on(&self) -> bool {
        let permit = self.permit.as_ref();
        permit.is_none_or(|permit| permit.check_open().is_ok())
    }
}

type LeftOf<T, E> = Left<Result<Ended<T, E>, Error>, Done<T, E>, Infallible>;

fn stands_already<T, E>(step: Arc<Step>) -> LeftOf<T, E> {
    Left::RollBack(Turn::Answer(Ok(Ended::Stands(step))))
}

impl<DB, P, F, T, E> InStep<'_, DB, P, F, T, E>
where
    DB: SqlDatabase,
    E: FromRefusal + ShowsCauses,
    P: OnError<E>,
    Whole: Keep<T>,
{
    /// Writes that the step has begun, and returns the version, or another one that stands.
    async fn begin(
        &self,
        tx: &mut Transaction<'_, DB>,
    ) -> Result<Result<Option<Version>, Arc<Step>>, Error> {
        let Some(permit) = &self.permit else {
            return Ok(Ok(None));
        };
        let begun = permit.step(StepState::Begun, None);
        let writing = permit.write_in(tx.connection(), permit.seen, &begun);
        let stands = self.own.in_time(writing).await?;
        Ok(stands.map_or(Ok(Some(begun.version)), Err))
    }

    /// Writes the outcome of a body that has ended well.
    async fn record(
        &mut self,
        tx: &mut Transaction<'_, DB>,
        savepoint: Savepoint,
        mut own: Result<T, E>,
        begun: Option<Version>,
    ) -> Result<LeftOf<T, E>, Error> {
        let Some(permit) = &self.permit else {
            self.check_end(tx, savepoint).await?;
            let row = None;
            return Ok(Left::Commit(Done { row, own }));
        };
        let Some(outcome) = keep(&permit.place(), self.typed, &mut own).await else {
            return Ok(Left::RollBack(Turn::Answer(Ok(Ended::Own(own)))));
        };
        self.check_end(tx, savepoint).await?;
        let step = permit.step(StepState::Done, Some(outcome));
        let writing = permit.write_in(tx.connection(), begun, &step);
        if let Some(stands) = self.own.in_time(writing).await? {
            return Ok(stands_already(stands));
        }
        permit.commits();
        let row = Some(Row {
            engine: Arc::clone(&permit.engine),
            attempt: permit.attempt.clone(),
            step,
            until: permit.lease.ends(),
        });
        Ok(Left::Commit(Done { row, own }))
    }

    /// Refuses a transaction that has ended although its body says that all is well: the rows are
    /// gone, and what is written now would stand without them.
    async fn check_end(
        &self,
        tx: &mut Transaction<'_, DB>,
        savepoint: Savepoint,
    ) -> Result<(), Error> {
        let released = self.own.in_time(savepoint.release(&mut **tx)).await;
        released.map_err(|error: StoreError| {
            if is_broken::<DB>(&error) {
                return error.into();
            }
            let operation = Arc::clone(self.context.attempt.operation_name());
            tracing::warn!(%operation, %error, "the transaction of a step has ended before its body did");
            Error::TransactionEnded { operation }
        })
    }
}

impl<DB: SqlDatabase, T, E> Witness<DB> for Done<T, E> {
    async fn look(&self, tx: &mut Transaction<'_, DB>) -> Result<Stands, StoreError> {
        let Some(Row {
            engine,
            attempt,
            step,
            ..
        }) = &self.row
        else {
            return Ok(Stands::Nothing);
        };
        let probe = Step {
            version: Version::random(),
            ..step.clone()
        };
        let store = engine.store().transaction_store()?;
        let connection = &mut tx.connection();
        let found = store.write_step_in(connection, attempt.id(), None, &probe);
        Ok(match found.await? {
            StepWrite::Stands(found) if found.version == step.version => Stands::Itself,
            _ => Stands::Nothing,
        })
    }

    fn has_written(&self) -> bool {
        self.row.is_some()
    }

    fn until(&self) -> Option<Duration> {
        self.row.as_ref().map(|row| row.until)
    }
}
