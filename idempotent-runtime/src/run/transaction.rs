//! A call as a part of a transaction of the application's: its record commits and rolls back with
//! the rows of the body.
//!
//! Nobody else sees what is written before the commit. So nothing beats, nothing is given up and
//! nothing is tried again here: whoever comes meanwhile waits in the database, and where the
//! transaction ends without a commit, there was no call.

use std::{
    any::Any,
    fmt,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use crate::{
    attempt::{Attempt, Stage, is_held},
    error::Error,
    lease::{Ending, Holding, Meaning, first},
    observe::{CallReport, RecordChange},
    outcome::{FromRefusal, Keep, OnError, Outcome},
    policy::OnCrash,
    record::{AttemptId, State, Version},
    request::{Protection, Request},
    run::{
        active_call::{ActiveCall, Instead, executed, within},
        admit::{Admission, Admitting, Next},
        answered,
        ending::step,
        open_transaction::{self, RecordedIn},
        typed::Typed,
    },
    store::{
        Savepoint, SqlConnection, StoreError, StoreErrorKind, Swap, check_open, is_aborted,
        says_aborted,
    },
};

/// A claim that stands in a transaction.
pub(crate) struct Claimed {
    pub(crate) attempt: Attempt,
    holding: Holding,
    version: Version,
    /// What observers are told of it.
    pub(crate) change: RecordChange,
}

/// How often a claim is decided upon at most: a transaction may never see the record that stands.
const ROUNDS: u32 = 16;

/// A call that has joined a transaction: it runs the body, and then writes how that ended.
pub struct Joined<P, K> {
    call: Box<ActiveCall>,
    typed: Typed<P, K>,
    attempt: Attempt,
    /// None where the call runs unprotected, and has no rows to undo either.
    claimed: Option<(Claimed, Savepoint)>,
}

/// Claims inside the transaction; what answers the call instead, where its body is not to run.
pub(crate) async fn join<C, R, P, K>(
    mut request: Request,
    typed: Typed<P, K>,
    connection: &mut C,
) -> Result<Joined<P, K>, (R, CallReport)>
where
    C: SqlConnection,
    R: Outcome,
    R::Error: FromRefusal,
    P: OnError<R::Error>,
    K: Keep<R::Value> + Clone,
{
    let is_recorded = request.in_transaction();
    let mut call = ActiveCall::new(request);
    let open = match is_recorded {
        true => check_open(connection).await,
        false => Ok(()),
    };
    let admitted = match open {
        Ok(()) => call.admit_in(connection.connection()).await,
        Err(error) => Err(Instead::Refused(error)),
    };
    let instead = match admitted {
        Err(instead) => instead,
        Ok((attempt, claimed)) => {
            if let Some(claimed) = &claimed {
                call.tell_in(&claimed.attempt, claimed.change);
            }
            let claimed = match claimed {
                None => Ok(None),
                Some(claimed) => Savepoint::set(connection)
                    .await
                    .map(|savepoint| Some((claimed, savepoint))),
            };
            match claimed {
                Err(error) => Instead::Refused(error.into()),
                Ok(claimed) => {
                    return Ok(Joined {
                        call,
                        typed,
                        attempt,
                        claimed,
                    });
                }
            }
        }
    };
    Err(typed.instead(&mut call, instead).await)
}

impl<P, K> fmt::Debug for Joined<P, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Joined").finish_non_exhaustive()
    }
}

impl<P, K> Joined<P, K> {
    /// Runs the body.
    pub async fn run<B: Future>(&mut self, body: Pin<&mut Option<B>>) -> B::Output {
        self.call.run(&self.attempt, body).await
    }

    /// Writes how the body of an annotated function ended; what its caller gets.
    pub async fn finish<C, R>(self, connection: &mut C, own: R) -> R
    where
        C: SqlConnection,
        R: Outcome,
        R::Error: FromRefusal,
        P: OnError<R::Error>,
        K: Keep<R::Value> + Clone,
    {
        self.end(connection, own).await.0
    }
}

/// Runs a call as a part of a transaction.
pub(crate) async fn run_in<C, R, P, K, F>(
    request: Request,
    typed: Typed<P, K>,
    connection: &mut C,
    body: F,
) -> (R, CallReport)
where
    C: SqlConnection,
    R: Outcome,
    R::Error: FromRefusal,
    P: OnError<R::Error>,
    K: Keep<R::Value> + Clone,
    F: AsyncFnOnce(&mut C) -> R,
{
    let mut joined = match join(request, typed, connection).await {
        Ok(joined) => joined,
        Err(answer) => return answer,
    };
    let own = {
        let Joined { call, attempt, .. } = &mut joined;
        let body = pin!(Some(call.make(attempt, |_| body(&mut *connection))));
        joined.run(body).await
    };
    joined.end(connection, own).await
}

impl Claimed {
    pub(crate) fn attempt_id(&self) -> AttemptId {
        self.holding.attempt_id()
    }
}

impl Request {
    /// Makes it one that a transaction can hold; whether it has a record.
    pub(crate) fn in_transaction(&mut self) -> bool {
        let Protection::Record(asked) = &mut self.protection else {
            return false;
        };
        // What another way of calling left behind is for its own policy.
        asked.on_crash = OnCrash::Rerun;
        // Where something of ours is no outcome to keep, and its rows are committed all the same,
        // nobody runs it again by himself.
        self.on_crash = OnCrash::Uncertain;
        true
    }
}

impl Admitting<'_> {
    async fn admit_in(&mut self, connection: &mut (dyn Any + Send)) -> Result<Claimed, Admission> {
        let (request, claim) = (self.request, self.claim);
        let (store, timer) = (request.handle.store(), request.handle.timer());
        let failed = |error: StoreError| Admission::Refused(error.into());
        let operation = || Arc::clone(&request.operation);
        if is_held(&self.id) {
            let operation = operation();
            return Err(Admission::Refused(Error::Recursive { operation }));
        }
        let mut draft = first(claim, Version::random());
        let (mut seen, mut meaning) = (None, Meaning::Fresh);
        for _ in 0..ROUNDS {
            if draft.state == State::Running {
                // Whoever commits a body that stopped half-way commits half of its rows: nobody may
                // run it again by himself.
                draft.on_crash = OnCrash::Uncertain;
            }
            let sent_at = timer.now();
            let swapped = store.swap_in(connection, &self.id, seen, &draft).await;
            let snapshot = match answered(seen, swapped).map_err(failed)? {
                Swap::Refused(snapshot) => snapshot,
                Swap::Applied(stamp) => {
                    let step = match meaning {
                        Meaning::Fresh => RecordChange::Claimed,
                        Meaning::Takeover | Meaning::Reconcile => RecordChange::TakenOver,
                        Meaning::Park | Meaning::LeaveUncertain => {
                            return Err(Admission::Refused(self.left(&draft, meaning)));
                        }
                    };
                    let (id, number, token) = (self.id, draft.attempt, Some(stamp.token));
                    let holding = Holding::new(claim, number, draft.on_crash, meaning);
                    return Ok(Claimed {
                        attempt: Attempt::new(id, operation(), number, token, Stage::Body),
                        holding,
                        version: stamp.version,
                        change: step,
                    });
                }
            };
            match self.decide(&snapshot, sent_at) {
                // A refusal is written, too: a look may be too old, and a write is not.
                Next::Write(next) => {
                    (seen, draft, meaning) = (next.seen, next.draft, next.meaning);
                }
                Next::Done(admission) => return Err(admission),
                // Not with a transaction open, whose locks may be what the other one waits for.
                Next::Wait(record, left) => {
                    let error = self.in_progress(&record, snapshot.now, left);
                    return Err(Admission::Refused(error));
                }
            }
        }
        let source = "what the transaction sees and what stands are not the same";
        let error = StoreError::new(StoreErrorKind::Busy, "writing a record");
        Err(failed(error.with_source(source)))
    }
}

impl ActiveCall {
    /// Claims inside a transaction: the attempt that runs the body, and its claim where it has one.
    pub(crate) async fn admit_in(
        &mut self,
        connection: &mut (dyn Any + Send),
    ) -> Result<(Attempt, Option<Claimed>), Instead> {
        let admitted = match &self.request.protection {
            Protection::Record(asked) => {
                let claim = self.request.claim(asked);
                let mut admitting = Admitting::new(&self.request, &claim);
                within(self.span(), pin!(admitting.admit_in(connection))).await
            }
            Protection::None(why) => Err(Admission::Unprotected(*why, self.request.id)),
        };
        match admitted {
            Ok(claimed) => Ok((self.begun(claimed.attempt.clone()), Some(claimed))),
            Err(admission) => self.admitted(admission).map(|attempt| (attempt, None)),
        }
    }

    /// Writes how the body ended, to stand from the commit on: what observers are to be told, and
    /// nothing where the claim was gone.
    pub(crate) async fn end_in(
        &self,
        connection: &mut impl SqlConnection,
        claimed: &Claimed,
        ending: &Ending,
    ) -> Result<Option<RecordChange>, StoreError> {
        let Claimed {
            attempt,
            holding,
            version,
            ..
        } = claimed;
        let draft = holding.end(ending, Version::random());
        let (handle, connection) = (&self.request.handle, connection.connection());
        let store = handle.store();
        let swapping = store.swap_in(connection, attempt.id(), Some(*version), &draft);
        let answer = within(self.span(), pin!(swapping)).await;
        if let Swap::Refused(_) = answered(Some(*version), answer)? {
            return Ok(None);
        }
        if draft.state == State::Done {
            open_transaction::note(connection, || RecordedIn {
                handle: handle.clone(),
                operation: Arc::clone(&self.request.operation),
                id: *attempt.id(),
                draft: draft.clone(),
            });
        }
        Ok(Some(step(ending, draft.state)))
    }

    /// Tells observers of a change of the record.
    pub(crate) fn tell_in(&self, attempt: &Attempt, change: RecordChange) {
        let (operation, number) = (attempt.operation(), attempt.number());
        let observers = self.request.handle.observers();
        observers.transition(operation, attempt.id(), number, change);
    }

    /// Undoes the rows of the body, and frees the key, where the transaction still takes that.
    async fn undo_in(
        &self,
        connection: &mut impl SqlConnection,
        claimed: &Claimed,
        savepoint: &Savepoint,
    ) {
        if savepoint.roll_back(connection).await.is_ok() {
            // Where that fails, too, whoever commits all the same leaves it uncertain.
            let released = self.end_in(connection, claimed, &Ending::Release).await;
            if let Ok(Some(change)) = released {
                self.tell_in(&claimed.attempt, change);
            }
        }
    }

    pub(crate) fn executed_in(&mut self, claimed: &Claimed, recorded: bool) {
        let Claimed {
            attempt, holding, ..
        } = claimed;
        let outcome = executed(holding.meaning(), attempt.stage());
        self.executed(attempt, outcome, recorded);
    }

    /// Another transaction, of which nothing is seen, has held the key for as long as this call has
    /// waited.
    pub(crate) fn held_in_a_transaction(&self, waited: Duration) -> Error {
        Error::InProgress {
            operation: Arc::clone(&self.request.operation),
            since: waited,
            retry_after: Duration::ZERO,
            silent: false,
            attempt: 1,
            holder: "".into(),
            trace_parent: None,
        }
    }

    pub(crate) fn transaction_ended(&self) -> Error {
        let operation = Arc::clone(&self.request.operation);
        Error::TransactionEnded { operation }
    }
}

impl<P, K> Joined<P, K> {
    /// Writes how the body ended; what the caller gets.
    ///
    /// The rows of an `Err` are undone first. Where they cannot be, the transaction is gone, and so
    /// is the claim. An `Err` that has left the transaction aborted may come from a conflict with
    /// another one, so it is no outcome.
    pub(crate) async fn end<C, R>(mut self, connection: &mut C, own: R) -> (R, CallReport)
    where
        C: SqlConnection,
        R: Outcome,
        R::Error: FromRefusal,
        P: OnError<R::Error>,
        K: Keep<R::Value> + Clone,
    {
        let mut own = own.into_result();
        let Some((claimed, savepoint)) = self.claimed else {
            return self.typed.own(&mut self.call, own, None).await;
        };
        let (call, typed) = (&mut self.call, &self.typed);
        let is_aborted = own.is_err() && is_aborted(connection).await;
        if own.is_err() {
            if savepoint.roll_back(connection).await.is_err() {
                call.executed_in(&claimed, false);
                return typed.own(call, own, None).await;
            }
            // Nothing of the body stands that a second run could double.
            call.request.on_crash = OnCrash::Rerun;
        }
        let ending = match is_aborted {
            true => Ending::Release,
            false => typed.leave(call, &claimed.attempt, &mut own).await,
        };
        let ended = call.end_in(connection, &claimed, &ending).await;
        if let Ok(Some(change)) = ended {
            call.tell_in(&claimed.attempt, change);
        }
        let refusal = match ended {
            // What failed in the body is mostly why nothing more can be written, or nothing is
            // left.
            recorded if own.is_err() => {
                call.executed_in(&claimed, matches!(recorded, Ok(Some(_))));
                None
            }
            Ok(Some(_)) => {
                call.executed_in(&claimed, true);
                None
            }
            Ok(None) => Some(call.transaction_ended()),
            Err(error) if says_aborted(&error) => Some(call.transaction_ended()),
            Err(error) => Some(error.into()),
        };
        if refusal.is_some() {
            call.undo_in(connection, &claimed, &savepoint).await;
        }
        if let Err(error) = savepoint.release(connection).await {
            // So does the commit.
            tracing::debug!(%error, "a savepoint is not released");
        }
        match refusal {
            // What a reference leads to is not read back: it may be what is only being written.
            None => typed.own(call, own, None).await,
            Some(error) => typed.instead(call, Instead::Refused(error)).await,
        }
    }
}
