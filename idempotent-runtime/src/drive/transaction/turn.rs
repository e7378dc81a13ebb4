//! One try: a connection, a claim, the body, the record, and the commit.

use std::{error::Error as StdError, pin::pin, time::Duration};

use sqlx::Transaction;

use super::{
    RetryIf, SqlDatabase, Transact,
    connection::{
        CommitFailure, OwnedConnection, USED_THE_POOL, is_broken, is_conflict, is_stale, silence,
        silent, waited_for_itself,
    },
    run::Waits,
};
use crate::{
    attempt::Attempt,
    error::Error,
    observe::RecordChange,
    outcome::{FromRefusal, Keep, OnError, Outcome},
    policy::OnCrash,
    protocol::Ending,
    race::race,
    run::{ActiveCall, Claimed, Instead, RecordedIn, Typed},
    store::{
        Savepoint, StoreError, says_aborted,
        sealed::{self, Sealed as _},
    },
};

/// How a try ended.
pub(super) enum TryEnd<T, E> {
    /// It has committed, or rolled back: this is what the caller gets.
    Own(Result<T, E>),
    /// Something else answers the call.
    Instead(Instead),
    /// Another transaction was in the way: the body may run again. Inside is the answer if it may
    /// not.
    Again(FinalAnswer<T, E>),
    /// It is unknown whether it has committed.
    Lost(Box<Lost<T, E>>),
    /// A call outside a transaction holds the key. Inside is the error that refuses this call if
    /// the wait for the key is too long.
    KeyHeld(Error),
    /// Another transaction has the whole database, and perhaps the key.
    Locked,
}

/// The answer after the last try.
pub(super) enum FinalAnswer<T, E> {
    Own(Result<T, E>),
    Error(Error),
}

/// A transaction whose commit was sent and has no answer.
pub(super) struct Lost<T, E> {
    pub(super) claimed: Claimed,
    pub(super) ended: RecordChange,
    pub(super) recorded: RecordedIn,
    pub(super) own: Result<T, E>,
}

/// All that one try needs.
pub(super) struct Try<'a, DB: SqlDatabase, Q, P, K> {
    pub(super) call: &'a mut ActiveCall,
    pub(super) typed: &'a Typed<P, K>,
    pub(super) settings: &'a Transact<DB, Q>,
    /// Until when the claim may wait in the database.
    pub(super) waits: Waits,
    /// Whether it got as far as its body.
    pub(super) has_claimed: bool,
    /// How long the database may take for an answer that waits for no other call.
    pub(super) answers_within: Duration,
}

impl<DB: SqlDatabase, Q, P, K> Try<'_, DB, Q, P, K> {
    pub(super) async fn run<R, F>(&mut self, body: F) -> TryEnd<R::Value, R::Error>
    where
        R: Outcome,
        R::Error: FromRefusal + StdError + 'static,
        P: OnError<R::Error>,
        K: Keep<R::Value> + Clone,
        Q: RetryIf<R::Error>,
        F: AsyncFnOnce(&mut DB::Connection) -> R,
    {
        let mut owned = match OwnedConnection::acquire(&self.settings.pool).await {
            Ok(owned) => owned,
            Err(error) => return Self::refused(error),
        };
        let timer = self.call.request.handle.timer();
        let (limit, waits) = match self.waits_at_begin() {
            Some(until) => (timer.sleep_until(until), true),
            None => (timer.sleep(self.answers_within), false),
        };
        let (turn, is_clean) = match race(owned.begin(self.settings.isolation), limit).await {
            Some(Ok(tx)) => self.in_transaction::<R, F>(tx, body).await,
            Some(Err(error)) if waits && is_conflict::<DB>(&error) => (TryEnd::Locked, false),
            None if waits => (TryEnd::Locked, false),
            Some(Err(error)) => (Self::refused(error), false),
            None => (Self::refused(silence::<DB>()), false),
        };
        if is_clean && !turn.is_stale::<DB>() {
            // Dropped, it is closed.
            self.in_time(owned.give_back()).await;
        }
        turn
    }

    /// Until when BEGIN waits for the key, where a transaction has the whole database.
    fn waits_at_begin(&self) -> Option<Duration> {
        let now = self.call.request.handle.timer().now();
        let waits = DB::ONE_WRITER && self.call.is_recorded();
        waits.then(|| self.waits.in_database(now))
    }

    /// The server may be silent and still have committed.
    async fn commit(&self, tx: Transaction<'_, DB>) -> Result<(), sqlx::Error> {
        let committed = self.in_time(tx.commit()).await;
        committed.unwrap_or_else(|| Err(silent()))
    }

    /// Whether it is known to be rolled back.
    async fn roll_back(&self, tx: Transaction<'_, DB>) -> bool {
        matches!(self.in_time(tx.rollback()).await, Some(Ok(())))
    }

    async fn in_time<F: Future>(&self, work: F) -> Option<F::Output> {
        race(work, self.limit()).await
    }

    fn limit(&self) -> impl Future<Output = ()> + use<DB, Q, P, K> {
        let timer = self.call.request.handle.timer();
        timer.sleep(self.answers_within)
    }

    /// Tells how it went, and whether the transaction has ended, so that the connection can be used
    /// again.
    async fn in_transaction<R, F>(
        &mut self,
        mut tx: Transaction<'_, DB>,
        body: F,
    ) -> (TryEnd<R::Value, R::Error>, bool)
    where
        R: Outcome,
        R::Error: FromRefusal + StdError + 'static,
        P: OnError<R::Error>,
        K: Keep<R::Value> + Clone,
        Q: RetryIf<R::Error>,
        F: AsyncFnOnce(&mut DB::Connection) -> R,
    {
        let (attempt, claimed, savepoint) = match self.claim(&mut tx, P::RELEASES).await {
            Ok(claimed) => claimed,
            Err(Refused::Undone(turn)) => return (turn, self.roll_back(tx).await),
            Err(Refused::Written(turn)) => return (turn, self.commit(tx).await.is_ok()),
            Err(Refused::Broken(turn)) => return (turn, false),
        };
        let own = {
            let body = pin!(Some(self.call.make(&attempt, |_| body(&mut *tx))));
            self.call.run_in(&attempt, body).await
        };
        self.after(tx, own.into_result(), claimed, savepoint).await
    }

    /// Goes on behind the body. A conflict that its error tells of counts before any verdict.
    async fn after<T, E>(
        &mut self,
        mut tx: Transaction<'_, DB>,
        own: Result<T, E>,
        claimed: Option<Claimed>,
        savepoint: Option<Savepoint>,
    ) -> (TryEnd<T, E>, bool)
    where
        E: StdError + 'static,
        P: OnError<E>,
        K: Keep<T> + Clone,
        Q: RetryIf<E>,
    {
        let mut is_aborted = false;
        if let Err(error) = &own {
            let is_reason = self.settings.retry_if.is_reason(error);
            // Calls over this file are refused before they wait, so a call that failed inside may
            // have found another file locked.
            let was_refused = claimed.as_ref().is_some_and(|it| it.attempt.is_refused());
            if !is_reason && !was_refused && waited_for_itself::<DB>(error) {
                let refused = TryEnd::Instead(Instead::Refused(USED_THE_POOL));
                return (refused, self.roll_back(tx).await);
            }
            if is_reason || is_conflict::<DB>(error) || is_stale::<DB>(error) {
                return (
                    TryEnd::Again(FinalAnswer::Own(own)),
                    self.roll_back(tx).await,
                );
            }
            let probe = self.in_time(tx.execute("SELECT 1".to_owned())).await;
            let probe = probe.unwrap_or_else(|| Err(silence::<DB>()));
            if probe.as_ref().is_err_and(|error| is_broken::<DB>(error)) {
                return (TryEnd::Again(FinalAnswer::Own(own)), false);
            }
            is_aborted = probe.is_err();
        }
        match claimed {
            Some(claimed) => {
                if is_aborted {
                    self.call.executed_in(&claimed, false);
                    return (TryEnd::Own(own), self.roll_back(tx).await);
                }
                self.record(tx, own, claimed, savepoint).await
            }
            None if own.is_err() => (TryEnd::Own(own), self.roll_back(tx).await),
            None => self.commit_unprotected(tx, own, savepoint).await,
        }
    }

    /// Commits a call without a record, unless its transaction has ended: a COMMIT would be
    /// answered as if all was well.
    async fn commit_unprotected<T, E>(
        &mut self,
        mut tx: Transaction<'_, DB>,
        own: Result<T, E>,
        savepoint: Option<Savepoint>,
    ) -> (TryEnd<T, E>, bool) {
        if let Some(savepoint) = savepoint {
            let released = self.in_time(savepoint.release(&mut *tx)).await;
            let turn = match released.unwrap_or_else(|| Err(silence::<DB>())) {
                Ok(()) => None,
                Err(error) if is_broken::<DB>(&error) => Some(Self::refused(error)),
                Err(_) => Some(TryEnd::Instead(Instead::Refused(
                    self.call.transaction_ended(),
                ))),
            };
            if let Some(turn) = turn {
                return (turn, self.roll_back(tx).await);
            }
        }
        match self.commit(tx).await {
            Ok(()) => (TryEnd::Own(own), true),
            Err(error) => (self.uncommitted(error, None), false),
        }
    }

    /// Writes the record, and commits it with the rows, or without those of an `Err`.
    async fn record<T, E>(
        &mut self,
        mut tx: Transaction<'_, DB>,
        mut own: Result<T, E>,
        claimed: Claimed,
        savepoint: Option<Savepoint>,
    ) -> (TryEnd<T, E>, bool)
    where
        P: OnError<E>,
        K: Keep<T> + Clone,
    {
        let (undoing, recording) = (self.limit(), self.limit());
        let (call, typed) = (&mut *self.call, self.typed);
        if own.is_err() {
            // Its rows are undone, so nothing stands that a second run could double.
            call.request.on_crash = OnCrash::Rerun;
        }
        let ending = typed.leave(call, &claimed.attempt, &mut own).await;
        if own.is_err() {
            let undone = match &savepoint {
                Some(savepoint) if ending != Ending::Release => {
                    let undone = race(savepoint.roll_back(&mut *tx), undoing).await;
                    matches!(undone, Some(Ok(())))
                }
                _ => false,
            };
            if !undone {
                call.executed_in(&claimed, false);
                return (TryEnd::Own(own), self.roll_back(tx).await);
            }
        }
        let ended = race(call.end_in(&mut *tx, &claimed, &ending), recording).await;
        let turn = match ended.unwrap_or_else(|| Err(silence::<DB>())) {
            Ok(Some((ended, recorded))) => {
                let lost = Lost {
                    claimed,
                    ended,
                    recorded,
                    own,
                };
                return match self.commit(tx).await {
                    Ok(()) => (self.committed(lost), true),
                    Err(error) => (self.uncommitted(error, Some(lost)), false),
                };
            }
            Err(error) if !says_aborted(&error) => Self::refused(error),
            _ended => TryEnd::Instead(Instead::Refused(call.transaction_ended())),
        };
        (turn, self.roll_back(tx).await)
    }

    /// Claims, and marks the place before the body, unless no `Err` will ever be recorded.
    async fn claim<T, E>(
        &mut self,
        tx: &mut Transaction<'_, DB>,
        releases: bool,
    ) -> Result<(Attempt, Option<Claimed>, Option<Savepoint>), Refused<T, E>> {
        // A try before this one may have set it, for its own `Err`.
        self.call.request.on_crash = OnCrash::Uncertain;
        let handle = self.call.request.handle.clone();
        let timer = handle.timer();
        let limit = timer.sleep_until(self.waits.in_database(timer.now()));
        let connection = sealed::Sealed::connection(&mut **tx);
        let admitted = race(self.call.admit_in(connection), limit).await;
        let (attempt, claimed) = match admitted {
            Some(Ok(admitted)) => {
                self.has_claimed = true;
                admitted
            }
            Some(Err(instead)) => return Err(Self::answered(instead)),
            None => {
                let waited = self.waits.so_far(timer.now());
                let error = self.call.held_in_a_transaction(waited);
                return Err(Refused::Broken(TryEnd::Instead(Instead::Refused(error))));
            }
        };
        // Without a record, the place tells whether the transaction has ended meanwhile.
        let savepoint = match releases && claimed.is_some() {
            true => None,
            false => match self.in_time(Savepoint::set(&mut **tx)).await {
                Some(Ok(savepoint)) => Some(savepoint),
                Some(Err(error)) => return Err(Refused::Undone(Self::refused(error))),
                None => return Err(Refused::Broken(Self::refused(silence::<DB>()))),
            },
        };
        Ok((attempt, claimed, savepoint))
    }

    /// Tells how a transaction ends in which something else answers the call.
    fn answered<T, E>(instead: Instead) -> Refused<T, E> {
        match instead {
            Instead::Refused(error @ (Error::InProgress { .. } | Error::Gap { .. })) => {
                Refused::Undone(TryEnd::KeyHeld(error))
            }
            // Such a refusal may have been written.
            instead @ Instead::Refused(Error::Uncertain { .. } | Error::Parked { .. }) => {
                Refused::Written(TryEnd::Instead(instead))
            }
            Instead::Refused(Error::Store(error)) => Refused::Undone(Self::refused(error)),
            instead => Refused::Undone(TryEnd::Instead(instead)),
        }
    }

    /// Tells what has been committed.
    fn committed<T, E>(&mut self, lost: Lost<T, E>) -> TryEnd<T, E> {
        lost.tell(self.call);
        TryEnd::Own(lost.own)
    }

    /// The answer to a COMMIT was an error: nothing stands if the database says so.
    fn uncommitted<T, E>(&self, error: sqlx::Error, lost: Option<Lost<T, E>>) -> TryEnd<T, E> {
        let operation = self.call.request.operation.clone();
        let instead = match (CommitFailure::of::<DB>(error), lost) {
            (CommitFailure::Conflict(error), _) => return Self::refused(error),
            (CommitFailure::Refused(source), _) => Error::Commit { operation, source },
            (CommitFailure::Unknown, Some(lost)) => return TryEnd::Lost(Box::new(lost)),
            (CommitFailure::Unknown, None) => Error::CommitUnknown {
                operation,
                has_record: false,
            },
        };
        TryEnd::Instead(Instead::Refused(instead))
    }

    /// An error of the database outside the body.
    fn refused<T, E>(error: StoreError) -> TryEnd<T, E> {
        match is_conflict::<DB>(&error) || is_broken::<DB>(&error) || is_stale::<DB>(&error) {
            true => TryEnd::Again(FinalAnswer::Error(error.into())),
            false => TryEnd::Instead(Instead::Refused(error.into())),
        }
    }
}

impl<T, E: StdError + 'static> TryEnd<T, E> {
    /// Whether its connection may only read, so that the application's pool does not get it back.
    fn is_stale<DB: SqlDatabase>(&self) -> bool {
        match self {
            Self::Own(Err(error)) | Self::Again(FinalAnswer::Own(Err(error))) => {
                is_stale::<DB>(error)
            }
            Self::Again(FinalAnswer::Error(error)) => is_stale::<DB>(error),
            _ => false,
        }
    }
}

impl<T, E> Lost<T, E> {
    /// Tells observers what has happened, in order.
    pub(super) fn tell(&self, call: &mut ActiveCall) {
        let attempt = &self.claimed.attempt;
        call.tell_in(attempt, self.claimed.change);
        call.tell_in(attempt, self.ended);
        call.executed_in(&self.claimed, true);
    }
}

/// How a transaction ends whose body does not run.
enum Refused<T, E> {
    /// It has written nothing that is to stand.
    Undone(TryEnd<T, E>),
    /// It may have written what refuses the call.
    Written(TryEnd<T, E>),
    /// It may still wait in the database.
    Broken(TryEnd<T, E>),
}
