//! A transaction that the library owns. Each form of it brings what happens inside: its claim, its
//! body and its record.
//!
//! A try takes a connection, begins, and hands both to the form. The form leaves the transaction to
//! be committed, rolled back, or closed with its connection. A commit without an answer is found
//! out by its [`Witness`]. The next try comes after a pause, as long as [`Backoff`] has time left.
//!
//! No wait here is without a limit. Dropped at any await, the connection is closed, and nothing
//! stands, or all of it does. A body runs again only if it is known that nothing stands.

use std::{error::Error as StdError, time::Duration};

use sqlx::{Pool, Transaction};

use super::{
    Backoff, Isolation, SqlDatabase,
    connection::{
        CommitFailure, OwnedConnection, USED_THE_POOL, is_broken, is_conflict, is_stale, silence,
        silent, waited_for_itself,
    },
    witness::{CommitStatus, Witness},
};
use crate::{clock::Timer, error::Error, race::race, store::StoreError};

/// How transactions are begun, and how long each answer is awaited.
pub(crate) struct OwnTransaction<'a, DB: SqlDatabase> {
    pub(crate) pool: &'a Pool<DB>,
    pub(crate) isolation: Option<Isolation>,
    pub(crate) timer: &'a dyn Timer,
    /// How long the database may take for an answer that waits for no other call.
    pub(crate) answers_within: Duration,
}

impl<DB: SqlDatabase> Clone for OwnTransaction<'_, DB> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<DB: SqlDatabase> Copy for OwnTransaction<'_, DB> {}

/// What happens inside the transactions of one call.
pub(crate) trait Inside<DB: SqlDatabase> {
    /// The answer of the call.
    type Answer;
    /// All that stands once a try has committed, with the proof of that.
    type Done: Witness<DB>;
    /// A reason to wait without a transaction.
    type Wait;

    /// Until when BEGIN may wait for another transaction, and what the call waits for after that.
    fn waits_at_begin(&self) -> Option<(Duration, Self::Wait)> {
        None
    }

    /// Claims, runs the body and writes the record. An error of the database is a reason to try
    /// again if another transaction was in the way, or if the connection broke.
    async fn run(&mut self, tx: &mut Transaction<'_, DB>) -> Result<LeftBy<Self, DB>, Error>;

    /// Makes the answer of an error of ours, after which nothing stands.
    fn refused(&mut self, error: Error) -> Self::Answer;

    /// Makes the answer of a try that has committed.
    fn committed(&mut self, done: Self::Done) -> Self::Answer;

    /// Takes note of whether a refusal that was written has committed.
    fn tried_to_commit(&mut self, has_committed: bool) {
        let _ = has_committed;
    }

    /// Makes the error of a commit that the database refused.
    fn commit_refused(&self, source: StoreError) -> Error;

    /// Makes the answer of a try of which it is unknown whether it has committed.
    fn unknown(&mut self, done: Self::Done, has_record: bool) -> Self::Answer;

    /// Waits until the reason may be gone; the answer if it has waited for long enough.
    async fn wait(&mut self, why: Self::Wait) -> Result<(), Self::Answer>;

    /// Makes the answer of a body whose `Err` may come from a connection that is gone.
    fn given_up(&self, own: Self::Answer) -> Self::Answer {
        own
    }

    /// Tells whether the body may run again.
    fn goes_on(&self) -> bool {
        true
    }

    /// Takes note that the body is about to run again.
    fn tries_again(&self) {}
}

/// How a form leaves its transaction.
pub(crate) enum Left<A, D, W> {
    /// To be committed.
    Commit(D),
    /// To be committed if that is possible: the answer is the same if it is not.
    TryToCommit(A),
    /// To be rolled back.
    RollBack(Turn<A, D, W>),
    /// To be rolled back, for an `Err` of the body. It may run again if the connection is gone.
    Failed(A),
    /// To be closed with its connection, which may still wait or may only read.
    Close(Turn<A, D, W>),
}

pub(crate) type LeftBy<I, DB> =
    Left<<I as Inside<DB>>::Answer, <I as Inside<DB>>::Done, <I as Inside<DB>>::Wait>;

/// How one try ended.
pub(crate) enum Turn<A, D, W> {
    /// It answers the call.
    Answer(A),
    /// Nothing stands, and the body may run again. Inside is the answer if it may not.
    Again(A),
    /// It is unknown whether this is committed.
    Lost(Box<D>),
    /// The call waits before its next try.
    Wait(W),
}

type TurnOf<I, DB> =
    Turn<<I as Inside<DB>>::Answer, <I as Inside<DB>>::Done, <I as Inside<DB>>::Wait>;

impl<DB: SqlDatabase> OwnTransaction<'_, DB> {
    /// Tries until something answers the call.
    pub(crate) async fn run<I: Inside<DB>>(
        &self,
        retry_for: Duration,
        inside: &mut I,
    ) -> I::Answer {
        let mut backoff = Backoff::new(retry_for);
        loop {
            let again = match Box::pin(self.once(inside)).await {
                Turn::Answer(answer) => return answer,
                Turn::Again(answer) => answer,
                Turn::Lost(done) => match Box::pin(self.find_out(&*done)).await {
                    CommitStatus::Committed => return inside.committed(*done),
                    CommitStatus::RolledBack => inside.refused(silence::<DB>().into()),
                    CommitStatus::Unknown { has_record } => {
                        return inside.unknown(*done, has_record);
                    }
                },
                Turn::Wait(why) => match Box::pin(inside.wait(why)).await {
                    Ok(()) => continue,
                    Err(answer) => return answer,
                },
            };
            let pause = inside.goes_on().then(|| backoff.pause(self.timer.now()));
            let Some(pause) = pause.flatten() else {
                return again;
            };
            tracing::debug!(?pause, "a transaction is tried again");
            inside.tries_again();
            self.timer.sleep(pause).await;
        }
    }

    async fn once<I: Inside<DB>>(&self, inside: &mut I) -> TurnOf<I, DB> {
        let mut owned = match OwnedConnection::acquire(self.pool).await {
            Ok(owned) => owned,
            Err(error) => return Self::failure(inside, error.into()),
        };
        let (limit, waits) = match inside.waits_at_begin() {
            Some((until, why)) => (self.timer.sleep_until(until), Some(why)),
            None => (self.timer.sleep(self.answers_within), None),
        };
        let mut tx = match (race(owned.begin(self.isolation), limit).await, waits) {
            (Some(Ok(tx)), _) => tx,
            (Some(Err(error)), Some(why)) if is_conflict::<DB>(&error) => return Turn::Wait(why),
            (Some(Err(error)), _) => return Self::failure(inside, error.into()),
            (None, Some(why)) => return Turn::Wait(why),
            (None, None) => return Self::failure(inside, silence::<DB>().into()),
        };
        let left = match inside.run(&mut tx).await {
            Ok(left) => left,
            Err(Error::Store(error)) if is_broken::<DB>(&error) || is_stale::<DB>(&error) => {
                Left::Close(Self::failure(inside, error.into()))
            }
            Err(error) => Left::RollBack(Self::failure(inside, error)),
        };
        let (turn, is_clean) = self.end(inside, tx, left).await;
        if is_clean {
            // Dropped, it is closed.
            race(owned.give_back(), self.timer.sleep(self.answers_within)).await;
        }
        turn
    }

    /// Ends a transaction. Tells whether its connection can be used again.
    async fn end<I: Inside<DB>>(
        &self,
        inside: &mut I,
        tx: Transaction<'_, DB>,
        left: LeftBy<I, DB>,
    ) -> (TurnOf<I, DB>, bool) {
        match left {
            Left::Commit(done) => match self.answer(tx.commit()).await {
                Ok(()) => (Turn::Answer(inside.committed(done)), true),
                Err(error) => {
                    let turn = match CommitFailure::of::<DB>(error) {
                        CommitFailure::Unknown => Turn::Lost(Box::new(done)),
                        CommitFailure::Conflict(error) => Self::failure(inside, error.into()),
                        CommitFailure::Refused(source) => {
                            Self::failure(inside, inside.commit_refused(source))
                        }
                    };
                    (turn, false)
                }
            },
            Left::TryToCommit(answer) => {
                let is_clean = self.answer(tx.commit()).await.is_ok();
                inside.tried_to_commit(is_clean);
                (Turn::Answer(answer), is_clean)
            }
            Left::RollBack(turn) => (turn, self.answer(tx.rollback()).await.is_ok()),
            Left::Failed(answer) => match self.answer(tx.rollback()).await {
                Ok(()) => (Turn::Answer(answer), true),
                Err(error) if DB::is_broken(&error) => {
                    (Turn::Again(inside.given_up(answer)), false)
                }
                Err(_) => (Turn::Answer(answer), false),
            },
            Left::Close(turn) => (turn, false),
        }
    }

    /// How a try ends after an error outside the body.
    fn failure<I: Inside<DB>>(inside: &mut I, error: Error) -> TurnOf<I, DB> {
        let again = match &error {
            Error::Store(error) => {
                is_conflict::<DB>(error) || is_broken::<DB>(error) || is_stale::<DB>(error)
            }
            _ => false,
        };
        let answer = inside.refused(error);
        match again {
            true => Turn::Again(answer),
            false => Turn::Answer(answer),
        }
    }

    /// Awaits a statement of ours for no longer than the database may be silent.
    pub(crate) async fn in_time<T, E: From<StoreError>>(
        &self,
        statement: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let answer = race(statement, self.timer.sleep(self.answers_within)).await;
        answer.unwrap_or_else(|| Err(silence::<DB>().into()))
    }

    async fn answer(&self, work: impl Future<Output = sqlx::Result<()>>) -> sqlx::Result<()> {
        let answer = race(work, self.timer.sleep(self.answers_within)).await;
        answer.unwrap_or_else(|| Err(silent()))
    }
}

/// A reason of an `Err` that is not the body's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// Another transaction was in the way, or the application says so: the body may run again.
    Again,
    /// Its connection may only read: the body may run again on another one.
    Elsewhere,
    /// It waited for the lock of its own transaction, and would do so again.
    Never,
}

impl Retry {
    /// `is_reason` is the application's word. A call inside that `was_refused` may have found
    /// another file locked.
    pub(crate) fn of<DB: SqlDatabase>(
        error: &(dyn StdError + 'static),
        is_reason: bool,
        was_refused: bool,
    ) -> Option<Self> {
        match () {
            () if !is_reason && !was_refused && waited_for_itself::<DB>(error) => Some(Self::Never),
            () if is_stale::<DB>(error) => Some(Self::Elsewhere),
            () if is_reason || is_conflict::<DB>(error) => Some(Self::Again),
            () => None,
        }
    }

    /// Leaves the transaction. `own` is the answer if the body may not run again.
    pub(crate) fn leaves<A, D, W>(self, own: A, refuse: impl FnOnce(Error) -> A) -> Left<A, D, W> {
        match self {
            Self::Again => Left::RollBack(Turn::Again(own)),
            Self::Elsewhere => Left::Close(Turn::Again(own)),
            Self::Never => Left::RollBack(Turn::Answer(refuse(USED_THE_POOL))),
        }
    }
}
