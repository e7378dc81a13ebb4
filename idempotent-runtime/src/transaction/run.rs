//! Tries until a transaction has committed, and finds out a commit without an answer.

use std::{error::Error as StdError, sync::Arc, time::Duration};

use super::{
    Backoff, LONGEST_SILENCE, PAUSE, RetryIf, SqlDatabase, Transact,
    connection::silence,
    lost::Fate,
    turn::{Last, Try, Turn},
};
#[cfg(feature = "sqlite")]
use crate::{attempt::is_shut_out, run::SHUT_OUT};
use crate::{
    error::Error,
    handle::Idempotency,
    observe::{CallReport, RecordChange},
    outcome::{FromRefusal, Keep, OnError, Outcome},
    policy::InFlight,
    record::{Record, State},
    request::Request,
    run::{
        ActiveCall, Instead, Typed,
        in_process::{First, Waited},
    },
};

/// How long a claim waits in the database at least, also where it is not to wait for others.
const SHORTEST: Duration = Duration::from_secs(1);

/// How long after it is looked again whether a sequence has begun.
const NOTHING_STANDS: Duration = Duration::from_millis(50);

/// Runs a call in a transaction of its own. A duplicate in this process waits before it takes a
/// connection.
pub(crate) async fn transact<DB, Q, R, P, K, F>(
    mut request: Request,
    typed: Typed<P, K>,
    settings: Transact<DB, Q>,
    body: F,
) -> (R, CallReport)
where
    DB: SqlDatabase,
    R: Outcome,
    R::Error: FromRefusal + StdError + 'static,
    P: OnError<R::Error>,
    K: Keep<R::Value> + Clone,
    Q: RetryIf<R::Error>,
    F: AsyncFnOnce(&mut DB::Connection) -> R + Clone,
{
    let is_recorded = request.in_transaction();
    let handle = request.handle.clone();
    let mut call = ActiveCall::new(request);
    let mut tries = Tries::new(&call, settings.retry_for);
    if let Some(ended) = call.find_ended().await {
        return typed.instead(&mut call, ended).await;
    }
    let its_turn = match is_recorded {
        true => tries.take_turn(&handle, &call).await,
        false => Ok(()),
    };
    match its_turn {
        Ok(()) => {
            let tries = &mut tries;
            let (answer, report) =
                repeat(&mut call, (&handle, tries), &typed, &settings, body).await;
            let stands = match report {
                CallReport::Executed { recorded, .. } => recorded,
                CallReport::Replayed { .. } => true,
                _ => false,
            };
            if stands {
                handle.has_committed();
            }
            if let Some(first) = tries.turn.take().filter(|_| stands) {
                first.recorded();
            }
            (answer, report)
        }
        Err(error) => typed.instead(&mut call, Instead::Refused(error)).await,
    }
}

/// Tries until something answers the call.
async fn repeat<'h, DB, Q, R, P, K, F>(
    call: &mut ActiveCall,
    (handle, tries): (&'h Idempotency, &mut Tries<'h>),
    typed: &Typed<P, K>,
    settings: &Transact<DB, Q>,
    body: F,
) -> (R, CallReport)
where
    DB: SqlDatabase,
    R: Outcome,
    R::Error: FromRefusal + StdError + 'static,
    P: OnError<R::Error>,
    K: Keep<R::Value> + Clone,
    Q: RetryIf<R::Error>,
    F: AsyncFnOnce(&mut DB::Connection) -> R + Clone,
{
    loop {
        let next = Try {
            call,
            typed,
            settings,
            patience: tries.patience(),
            answers_within: tries.answers_within,
        };
        let instead = match Box::pin(next.run::<R, F>(body.clone())).await {
            Turn::Own(own) => return typed.own(call, own, None).await,
            Turn::Lost(lost) => {
                let recorded = std::slice::from_ref(&lost.recorded);
                match settings.find_out(recorded, tries.answers_within).await {
                    Fate::Committed => {
                        lost.tell(call);
                        return typed.own(call, lost.own, None).await;
                    }
                    Fate::RolledBack if tries.again(call).await => continue,
                    Fate::RolledBack => Instead::Refused(silence::<DB>().into()),
                    Fate::Unknown { has_record } => unknown(call, has_record),
                }
            }
            Turn::KeyHeld(error) => match tries.wait_outside(handle, call, error).await {
                Ok(()) => continue,
                Err(error) => Instead::Refused(error),
            },
            Turn::Again(_) if tries.again(call).await => continue,
            Turn::Again(Last::Own(own)) => return typed.own(call, own, None).await,
            Turn::Again(Last::Error(error)) => Instead::Refused(error),
            Turn::Instead(instead) => instead,
        };
        return typed.instead(call, instead).await;
    }
}

fn unknown(call: &ActiveCall, has_record: bool) -> Instead {
    Instead::Refused(Error::CommitUnknown {
        operation: call.request.operation.clone(),
        has_record,
    })
}

fn tell_again(call: &ActiveCall) {
    let request = &call.request;
    let observers = request.handle.observers();
    observers.transition(&request.operation, &request.id, 1, RecordChange::TriedAgain);
}

/// For how long it is tried again, and until when it waits.
struct Tries<'h> {
    /// Its turn among the calls of this record in this process.
    turn: Option<First<'h>>,
    backoff: Backoff,
    /// How long a duplicate waits, and how long it has waited in this process.
    patience: Duration,
    waited: Duration,
    /// How long the database may be silent.
    answers_within: Duration,
    /// Until when it waits now.
    until: Option<Duration>,
    /// Until when it waits for a number that is missing.
    gap_until: Option<Duration>,
}

impl<'h> Tries<'h> {
    fn new(call: &ActiveCall, retry_for: Duration) -> Self {
        let (patience, answers_within) = match call.request.in_flight {
            InFlight::Wait(at_most) => (at_most, at_most.max(SHORTEST)),
            InFlight::Reject => (Duration::ZERO, LONGEST_SILENCE),
        };
        Self {
            turn: None,
            backoff: Backoff::new(retry_for),
            patience,
            waited: Duration::ZERO,
            answers_within,
            until: None,
            gap_until: None,
        }
    }

    /// How long the next try may wait in the database.
    fn patience(&self) -> Duration {
        self.patience.saturating_sub(self.waited).max(SHORTEST)
    }

    /// Waits for a call of the same record that runs in this process.
    async fn take_turn(&mut self, handle: &'h Idempotency, call: &ActiveCall) -> Result<(), Error> {
        let (id, timer) = (call.request.id, handle.timer());
        if call.request.is_held() {
            let operation = call.request.operation.clone();
            return Err(Error::Recursive { operation });
        }
        #[cfg(feature = "sqlite")]
        if is_shut_out(handle.id()) {
            return Err(SHUT_OUT);
        }
        let began = timer.now();
        let first = handle.in_process().enter(id, timer, self.patience).await;
        self.waited = timer.now().saturating_sub(began);
        self.turn = first.map_err(|Waited| call.held_in_a_transaction(self.waited))?;
        Ok(())
    }

    /// Whether the call is tried again, after a pause.
    async fn again(&mut self, call: &ActiveCall) -> bool {
        let timer = call.request.handle.timer();
        let Some(pause) = self.backoff.pause(timer.now()) else {
            return false;
        };
        tell_again(call);
        timer.sleep(pause).await;
        true
    }

    /// How much longer it waits for the reason that this error tells.
    fn left(&mut self, call: &ActiveCall, error: &Error) -> Duration {
        let now = call.request.handle.timer().now();
        let (until, patience) = match error {
            Error::Gap { .. } => (&mut self.gap_until, call.request.gap_patience()),
            _ => (&mut self.until, self.patience),
        };
        let until = until.get_or_insert(now.saturating_add(patience));
        until.saturating_sub(now)
    }

    /// Waits until the reason of this error may be gone; the error, where it has waited for long
    /// enough.
    async fn wait_outside(
        &mut self,
        handle: &'h Idempotency,
        call: &ActiveCall,
        error: Error,
    ) -> Result<(), Error> {
        let left = self.left(call, &error);
        if left.is_zero() {
            return Err(error);
        }
        match error {
            Error::Gap { .. } => {
                // The missing number may come in this process.
                self.turn = None;
                wait_for_gap(call, left).await;
                self.take_turn(handle, call).await
            }
            _ => {
                wait_for_holder(call, left).await;
                Ok(())
            }
        }
    }
}

/// Waits until the record of a call outside may have changed.
async fn wait_for_holder(call: &ActiveCall, left: Duration) {
    let request = &call.request;
    let (store, timer) = (request.handle.store(), request.handle.timer());
    let running = match store.load(&request.id).await {
        Ok(snapshot) => {
            let running = |record: &Arc<Record>| record.state == State::Running;
            let record = snapshot.record.filter(running);
            record.map(|record| (record.version, record.lease_end.since(snapshot.now)))
        }
        Err(_) => None,
    };
    match running {
        Some((version, lease)) => {
            let waited = store.wait(&request.id, version, left.min(lease.max(PAUSE)));
            let _the_next_try_looks_itself = waited.await;
        }
        None => timer.sleep(PAUSE).await,
    }
}

/// Waits until a sequence in which a number is missing may have moved.
async fn wait_for_gap(call: &ActiveCall, left: Duration) {
    let request = &call.request;
    let (store, timer) = (request.handle.store(), request.handle.timer());
    let Ok(snapshot) = store.load(&request.id).await else {
        return timer.sleep(NOTHING_STANDS.min(left)).await;
    };
    // The try before this look may have seen an older version.
    match snapshot.record.as_deref() {
        _ if !call.is_behind_a_gap(&snapshot) => {}
        Some(record) => {
            let waited = store.wait(&request.id, record.version, left).await;
            let _the_next_try_looks_itself = waited;
        }
        None => timer.sleep(NOTHING_STANDS.min(left)).await,
    }
}
