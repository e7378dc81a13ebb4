//! Tries until a transaction has committed, and finds out a commit without an answer.

use std::{error::Error as StdError, time::Duration};

use super::{
    LONGEST_SILENCE, RetryIf, SqlDatabase, Transact,
    turn::{Last, Lost, Try, Turn},
};
use crate::{
    attempt::is_held,
    error::Error,
    handle::Idempotency,
    observe::{CallReport, RecordChange},
    outcome::{FromRefusal, Keep, OnError, Outcome},
    policy::InFlight,
    request::Request,
    run::{
        ActiveCall, Instead, Typed,
        in_process::{First, Waited},
    },
};
#[cfg(feature = "sqlite")]
use crate::{attempt::is_shut_out, run::SHUT_OUT};

/// How long a claim waits in the database at least.
const SHORTEST: Duration = Duration::from_millis(250);

/// How long the call waits before it tries again.
const PAUSE: Duration = Duration::from_millis(5);

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
    let mut tries = Tries::new(&call, settings.tries);
    let first = match is_recorded {
        true => tries.in_turn(&handle, &call).await,
        false => Ok(None),
    };
    match first {
        Ok(first) => {
            let (answer, report) = repeat(&mut call, tries, &typed, &settings, body).await;
            let stands = match report {
                CallReport::Executed { recorded, .. } => recorded,
                CallReport::Replayed { .. } => true,
                _ => false,
            };
            if let Some(first) = first.filter(|_| stands) {
                first.recorded();
            }
            (answer, report)
        }
        Err(error) => typed.instead(&mut call, Instead::Refused(error)).await,
    }
}

/// Tries until something answers the call.
async fn repeat<DB, Q, R, P, K, F>(
    call: &mut ActiveCall,
    mut tries: Tries,
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
    let mut lost: Option<Lost<R::Value, R::Error>> = None;
    loop {
        let mut lost_attempt = lost.as_ref().map(|lost| lost.claimed.attempt_id());
        let next = Try {
            call,
            typed,
            settings,
            patience: tries.patience(lost.is_some()),
            answers_within: tries.answers_within,
            lost: &mut lost_attempt,
        };
        let turn = Box::pin(next.run::<R, F>(body.clone())).await;
        // A new claim stood, so the earlier transaction was rolled back.
        lost = lost.filter(|_| lost_attempt.is_some());
        let instead = match turn {
            Turn::Own(own) => return typed.own(call, own, None).await,
            Turn::Stands => {
                let Some(lost) = lost else { continue };
                lost.tell(call);
                return typed.own(call, lost.own, None).await;
            }
            Turn::Lost(now) => {
                tries.finds_out(call);
                lost = Some(now);
                continue;
            }
            Turn::KeyHeld(error) => match tries.wait_outside(call).await {
                true => continue,
                false => Instead::Refused(error),
            },
            Turn::Again(_) if tries.again(call, lost.is_some()).await => continue,
            Turn::Again(Last::Own(own)) if lost.is_none() => {
                return typed.own(call, own, None).await;
            }
            Turn::Again(Last::Error(error)) if lost.is_none() => Instead::Refused(error),
            Turn::Again(_) => unknown(call),
            Turn::Instead(instead) => instead,
        };
        // An error of the store does not tell what became of a commit without an answer.
        let instead = match (&instead, &lost) {
            (Instead::Refused(Error::InProgress { .. } | Error::Store(_)), Some(_)) => {
                unknown(call)
            }
            _ => instead,
        };
        return typed.instead(call, instead).await;
    }
}

fn unknown(call: &ActiveCall) -> Instead {
    Instead::Refused(Error::CommitUnknown {
        operation: call.request.operation.clone(),
        has_record: true,
    })
}

fn tell_again(call: &ActiveCall) {
    let request = &call.request;
    let observers = request.handle.observers();
    observers.transition(&request.operation, &request.id, 1, RecordChange::TriedAgain);
}

/// How many tries are left, and until when it waits.
struct Tries {
    left: u32,
    /// How long a duplicate waits, and how long it has waited in this process.
    patience: Duration,
    waited: Duration,
    /// How long the database may be silent.
    answers_within: Duration,
    /// Until when it waits now.
    until: Option<Duration>,
}

impl Tries {
    fn new(call: &ActiveCall, tries: u32) -> Self {
        let (patience, answers_within) = match call.request.in_flight {
            InFlight::Wait(at_most) => (at_most, at_most.max(SHORTEST)),
            InFlight::Reject => (Duration::ZERO, LONGEST_SILENCE),
        };
        Self {
            left: tries,
            patience,
            waited: Duration::ZERO,
            answers_within,
            until: None,
        }
    }

    /// How long the next try may wait in the database.
    fn patience(&self, finds_out: bool) -> Duration {
        match finds_out {
            true => self.answers_within,
            false => self.patience.saturating_sub(self.waited).max(SHORTEST),
        }
    }

    /// Waits for a call of the same record that runs in this process.
    async fn in_turn<'h>(
        &mut self,
        handle: &'h Idempotency,
        call: &ActiveCall,
    ) -> Result<Option<First<'h>>, Error> {
        let (id, timer) = (call.request.id, handle.timer());
        if is_held(&id) {
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
        first.map_err(|Waited| call.held_in_a_transaction(self.waited))
    }

    /// Whether the call is tried again, after a pause. Finding out a commit is no try: it has its
    /// time.
    async fn again(&mut self, call: &ActiveCall, finds_out: bool) -> bool {
        let timer = call.request.handle.timer();
        let again = if finds_out {
            self.waits_from(call) > timer.now()
        } else {
            self.left = self.left.saturating_sub(1);
            self.left > 0
        };
        if again && !finds_out {
            tell_again(call);
        }
        if again {
            timer.sleep(PAUSE).await;
        }
        again
    }

    /// It finds out a commit from now on.
    fn finds_out(&mut self, call: &ActiveCall) {
        let now = call.request.handle.timer().now();
        self.until = Some(now.saturating_add(self.answers_within));
    }

    /// It waits from now on.
    fn waits_from(&mut self, call: &ActiveCall) -> Duration {
        let now = call.request.handle.timer().now();
        *self.until.get_or_insert(now.saturating_add(self.patience))
    }

    /// Waits until the record of a call outside may have changed; false where it has waited for
    /// long enough.
    async fn wait_outside(&mut self, call: &ActiveCall) -> bool {
        let request = &call.request;
        let (store, timer) = (request.handle.store(), request.handle.timer());
        let until = self.waits_from(call);
        let left = until.saturating_sub(timer.now());
        if left.is_zero() {
            return false;
        }
        match store.load(&request.id).await {
            Ok(snapshot) => {
                let Some(record) = snapshot.record else {
                    return true;
                };
                let lease = record.lease_end.since(snapshot.now);
                let waited = store.wait(&request.id, record.version, left.min(lease.max(PAUSE)));
                let _the_next_try_looks_itself = waited.await;
            }
            Err(_) => timer.sleep(PAUSE).await,
        }
        true
    }
}
