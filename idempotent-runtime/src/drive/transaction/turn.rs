//! One call in a transaction of its own: the claim, the body and the record inside.

use std::{error::Error as StdError, marker::PhantomData, pin::pin, time::Duration};

use sqlx::Transaction;

use super::{
    RetryIf, SqlDatabase,
    connection::is_broken,
    own::{Inside, Left, LeftBy, OwnTransaction, Retry, Turn},
    run::Tries,
    witness::{Stands, Witness, look_for},
};
use crate::{
    attempt::Attempt,
    error::Error,
    observe::RecordChange,
    outcome::{OutOfOrder, Outcome},
    policy::OnCrash,
    protocol::Ending,
    race::race,
    run::{ActiveCall, Claimed, Instead, RecordedIn, ResultCodec},
    store::{Savepoint, StoreError, says_aborted, sealed::Sealed as _},
};

/// A call in a transaction of its own.
pub(super) struct Transacted<'a, 'h, DB: SqlDatabase, Q, C, F, R> {
    pub(super) own: OwnTransaction<'a, DB>,
    pub(super) call: &'a mut ActiveCall,
    pub(super) codec: &'a C,
    pub(super) retry_if: &'a Q,
    pub(super) tries: &'a mut Tries<'h>,
    pub(super) body: F,
    pub(super) answers: PhantomData<fn() -> R>,
}

/// The answer to the call.
pub(super) enum Answered<O> {
    /// Its own body gives it.
    Own(O),
    Instead(Instead),
}

/// What a call waits for without a transaction.
pub(super) enum Held {
    /// A call outside a transaction holds the key. Inside is the error that refuses this call if
    /// the wait for the key is too long.
    Key(Error),
    /// A number before its own is missing.
    Gap(OutOfOrder),
    /// Another transaction has the whole database, and perhaps the key.
    Writer,
}

/// All that stands once the transaction has committed.
pub(super) struct Done<O> {
    /// None where the call runs unprotected.
    recorded: Option<Recorded>,
    own: O,
}

struct Recorded {
    claimed: Claimed,
    ended: RecordChange,
    outcome: RecordedIn,
}

impl<DB, Q, C, F, R> Inside<DB> for Transacted<'_, '_, DB, Q, C, F, R>
where
    DB: SqlDatabase,
    R: Outcome<Error: StdError + 'static>,
    C: ResultCodec<R>,
    Q: RetryIf<R::Error>,
    F: AsyncFnOnce(&mut DB::Connection) -> R + Clone,
{
    type Answer = AnsweredOf<R>;
    type Done = DoneOf<R>;
    type Wait = Held;

    /// BEGIN waits for the key where a transaction has the whole database.
    fn waits_at_begin(&self) -> Option<(Duration, Held)> {
        let waits = DB::ONE_WRITER && self.call.is_recorded();
        waits.then(|| (self.tries.in_database(), Held::Writer))
    }

    async fn run(&mut self, tx: &mut Transaction<'_, DB>) -> Result<LeftBy<Self, DB>, Error> {
        let (attempt, claimed) = match self.claim(tx).await {
            Ok(claimed) => claimed,
            Err(left) => return left,
        };
        // Without a record, the place tells whether the transaction has ended meanwhile.
        let savepoint = match C::RELEASES && claimed.is_some() {
            true => None,
            false => Some(self.own.in_time(Savepoint::set(&mut **tx)).await?),
        };
        let body = self.body.clone();
        self.call.ran_in_own_transaction = claimed.is_some();
        let own = {
            let body = pin!(Some(self.call.make(&attempt, |_| body(&mut **tx))));
            self.call.run_in(&attempt, body).await
        };
        let own = C::take(own);
        if own.is_err() {
            return self.failed(tx, own, claimed, savepoint).await;
        }
        match claimed {
            Some(claimed) => self.record(tx, own, claimed, savepoint).await,
            None => self.check_end(tx, own, savepoint).await,
        }
    }

    fn refused(&mut self, error: Error) -> Self::Answer {
        Answered::Instead(error.into())
    }

    fn committed(&mut self, done: Self::Done) -> Self::Answer {
        if let Some(Recorded { claimed, ended, .. }) = &done.recorded {
            self.call.ran_in_own_transaction = false;
            // In order.
            self.call.tell_in(&claimed.attempt, claimed.change);
            self.call.tell_in(&claimed.attempt, *ended);
            self.call.executed_in(claimed, *ended);
        }
        Answered::Own(done.own)
    }

    fn commit_refused(&self, source: StoreError) -> Error {
        let operation = self.call.request.operation.clone();
        Error::Commit { operation, source }
    }

    fn unknown(&mut self, _: Self::Done, has_record: bool) -> Self::Answer {
        self.call.ran_in_own_transaction = false;
        let operation = self.call.request.operation.clone();
        self.refused(Error::CommitUnknown {
            operation,
            has_record,
        })
    }

    fn tried_to_commit(&mut self, has_committed: bool) {
        self.call.tell_of_a_record_that_was_left(has_committed);
    }

    async fn wait(&mut self, why: Held) -> Result<(), Self::Answer> {
        let waited = match why {
            Held::Key(error) => self.tries.wait_outside(self.call, error).await,
            Held::Gap(gap) => self.tries.wait_for_number(self.call, gap).await,
            Held::Writer => self.tries.wait_for_writer(self.call).await,
        };
        waited.map_err(Answered::Instead)
    }

    fn tries_again(&self) {
        self.call.tries_again();
    }
}

type OwnOf<R> = Result<<R as Outcome>::Value, <R as Outcome>::Error>;
type AnsweredOf<R> = Answered<OwnOf<R>>;
type DoneOf<R> = Done<OwnOf<R>>;
type LeftOf<R> = Left<AnsweredOf<R>, DoneOf<R>, Held>;

type Claims<R> = Result<(Attempt, Option<Claimed>), Result<LeftOf<R>, Error>>;

impl<DB, Q, C, F, R> Transacted<'_, '_, DB, Q, C, F, R>
where
    DB: SqlDatabase,
    R: Outcome<Error: StdError + 'static>,
    C: ResultCodec<R>,
{
    /// Claims; how the transaction is left instead, if the body is not to run.
    async fn claim(&mut self, tx: &mut Transaction<'_, DB>) -> Claims<R> {
        // A try before this one may have set it, for its own `Err`.
        self.call.request.on_crash = OnCrash::Uncertain;
        let limit = self.own.timer.sleep_until(self.tries.in_database());
        let admitting = self.call.admit_in(tx.connection());
        let Some(admitted) = race(admitting, limit).await else {
            // It may still wait in the database.
            let held = Answered::Instead(self.tries.held(self.call).into());
            return Err(Ok(Left::Close(Turn::Answer(held))));
        };
        let instead = match admitted {
            Ok(admitted) => {
                self.tries.has_gone_on();
                return Ok(admitted);
            }
            Err(instead) => instead,
        };
        let turn = match instead {
            Instead::Refused(error @ Error::InProgress { .. }) => Turn::Wait(Held::Key(error)),
            Instead::OutOfOrder(gap @ OutOfOrder::Gap { .. }) => Turn::Wait(Held::Gap(gap)),
            // Such a refusal may have been written.
            Instead::Refused(Error::Uncertain { .. } | Error::Parked { .. }) => {
                return Err(Ok(Left::TryToCommit(Answered::Instead(instead))));
            }
            Instead::Refused(error @ Error::Store(_)) => return Err(Err(error)),
            instead => Turn::Answer(Answered::Instead(instead)),
        };
        Err(Ok(Left::RollBack(turn)))
    }

    /// Goes on behind an `Err` of the body. A conflict that it tells of counts before any verdict.
    async fn failed(
        &mut self,
        tx: &mut Transaction<'_, DB>,
        own: C::Own,
        claimed: Option<Claimed>,
        savepoint: Option<Savepoint>,
    ) -> Result<LeftOf<R>, Error>
    where
        Q: RetryIf<R::Error>,
    {
        if let Some(claimed) = &claimed {
            // Unless what follows commits.
            self.call.executed_in(claimed, RecordChange::RolledBack);
        }
        let retry = own.as_ref().err().and_then(|error| {
            // Calls over this file are refused before they wait, so a call that failed inside may
            // have found another file locked.
            let was_refused = claimed.as_ref().is_some_and(|it| it.attempt.is_refused());
            Retry::of::<DB>(error, self.retry_if.is_reason(error), was_refused)
        });
        if let Some(retry) = retry {
            let refuse = |error: Error| Answered::Instead(error.into());
            return Ok(retry.leaves(Answered::Own(own), refuse));
        }
        let probe = self.own.in_time(tx.execute("SELECT 1".to_owned())).await;
        if let Err(error) = &probe
            && is_broken::<DB>(error)
        {
            return Ok(Left::Close(Turn::Again(Answered::Own(own))));
        }
        match claimed {
            Some(claimed) if probe.is_ok() => self.record(tx, own, claimed, savepoint).await,
            _ => Ok(Left::RollBack(Turn::Answer(Answered::Own(own)))),
        }
    }

    /// Leaves a call without a record to be committed, unless its transaction has ended: a COMMIT
    /// would be answered as if all was well.
    async fn check_end(
        &mut self,
        tx: &mut Transaction<'_, DB>,
        own: C::Own,
        savepoint: Option<Savepoint>,
    ) -> Result<LeftOf<R>, Error> {
        if let Some(savepoint) = savepoint {
            let released = self.own.in_time(savepoint.release(&mut **tx)).await;
            released.map_err(|error: StoreError| match is_broken::<DB>(&error) {
                true => error.into(),
                false => self.call.transaction_ended(),
            })?;
        }
        let recorded = None;
        Ok(Left::Commit(Done { recorded, own }))
    }

    /// Writes the record, to be committed with the rows, or without those of an `Err`.
    async fn record(
        &mut self,
        tx: &mut Transaction<'_, DB>,
        mut own: C::Own,
        claimed: Claimed,
        savepoint: Option<Savepoint>,
    ) -> Result<LeftOf<R>, Error> {
        let call = &mut *self.call;
        if own.is_err() {
            // Its rows are undone, so nothing stands that a second run could double.
            call.request.on_crash = OnCrash::Rerun;
        }
        let ending = self.codec.leave(call, &claimed.attempt, &mut own).await;
        if own.is_err() {
            let undone = match &savepoint {
                Some(savepoint) if ending != Ending::Release => {
                    let undoing = self.own.in_time(savepoint.roll_back(&mut **tx));
                    undoing.await.map_err(|_: StoreError| ())
                }
                _ => Err(()),
            };
            if undone.is_err() {
                return Ok(Left::RollBack(Turn::Answer(Answered::Own(own))));
            }
        }
        let ending = call.end_in(&mut **tx, &claimed, &ending);
        match self.own.in_time(ending).await {
            Ok(Some((ended, outcome))) => {
                let recorded = Some(Recorded {
                    claimed,
                    ended,
                    outcome,
                });
                Ok(Left::Commit(Done { recorded, own }))
            }
            Err(error) if !says_aborted(&error) => Err(error.into()),
            _ended => Err(self.call.transaction_ended()),
        }
    }
}

impl<DB: SqlDatabase, O> Witness<DB> for Done<O> {
    async fn look(&self, tx: &mut Transaction<'_, DB>) -> Result<Stands, StoreError> {
        let outcome = self.recorded.as_ref().map(|it| &it.outcome);
        look_for(outcome.map_or(&[], std::slice::from_ref), tx).await
    }

    fn has_written(&self) -> bool {
        self.recorded.is_some()
    }

    fn may_be_gone(&self) -> bool {
        let recorded = self.recorded.as_ref();
        recorded.is_some_and(|it| it.outcome.may_be_gone())
    }
}
