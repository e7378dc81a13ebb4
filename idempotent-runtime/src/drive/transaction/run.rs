//! Tries until a transaction has committed, and finds out a commit without an answer.

use std::{error::Error as StdError, sync::Arc, time::Duration};

use super::{
    Backoff, LONGEST_SILENCE, PAUSE, RetryIf, SqlDatabase, Transact,
    connection::silence,
    lost::CommitStatus,
    turn::{FinalAnswer, Try, TryEnd},
};
#[cfg(feature = "sqlite")]
use crate::{attempt::is_shut_out, run::SHUT_OUT};
use crate::{
    engine::in_process::{Entered, First, Waited},
    error::Error,
    handle::Idempotency,
    observe::{CallReport, RecordChange},
    outcome::{FromRefusal, Keep, OnError, Outcome},
    policy::InFlight,
    race::race,
    record::{Record, State},
    request::Request,
    run::{ActiveCall, Instead, Typed},
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
                handle.engine().has_committed();
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
        let mut next = Try {
            call,
            typed,
            settings,
            waits: tries.waits,
            has_claimed: false,
            answers_within: tries.answers_within,
        };
        let turn = Box::pin(next.run::<R, F>(body.clone())).await;
        if next.has_claimed {
            tries.waits.anew();
        }
        let instead = match turn {
            TryEnd::Own(own) => return typed.own(call, own, None).await,
            TryEnd::Lost(lost) => {
                let recorded = std::slice::from_ref(&lost.recorded);
                match settings.find_out(recorded, tries.answers_within).await {
                    CommitStatus::Committed => {
                        lost.tell(call);
                        return typed.own(call, lost.own, None).await;
                    }
                    CommitStatus::RolledBack if tries.again(call).await => continue,
                    CommitStatus::RolledBack => Instead::Refused(silence::<DB>().into()),
                    CommitStatus::Unknown { has_record } => unknown(call, has_record),
                }
            }
            TryEnd::KeyHeld(error) => match tries.wait_outside(handle, call, error).await {
                Ok(()) => continue,
                Err(error) => Instead::Refused(error),
            },
            TryEnd::Locked => match tries.wait_for_writer(call).await {
                Ok(()) => continue,
                Err(error) => Instead::Refused(error),
            },
            TryEnd::Again(_) if tries.again(call).await => continue,
            TryEnd::Again(FinalAnswer::Own(own)) => return typed.own(call, own, None).await,
            TryEnd::Again(FinalAnswer::Error(error)) => Instead::Refused(error),
            TryEnd::Instead(instead) => instead,
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

/// Until when a call waits for others. It is set once, when the call begins, and every wait goes by
/// it: in this process, in the database, and for a call outside.
#[derive(Clone, Copy)]
pub(super) struct Waits {
    began: Duration,
    until: Duration,
    has_waited: bool,
}

impl Waits {
    fn begin(now: Duration, at_most: Duration) -> Self {
        Self {
            began: now,
            until: now.saturating_add(at_most),
            has_waited: false,
        }
    }

    /// Until when the next try may wait in the database. One that comes late without having waited
    /// has the time to be answered.
    pub(super) fn in_database(&self, now: Duration) -> Duration {
        let from = match self.has_waited {
            true => self.began,
            false => now,
        };
        self.until.max(from.saturating_add(SHORTEST))
    }

    pub(super) fn so_far(&self, now: Duration) -> Duration {
        now.saturating_sub(self.began)
    }

    /// Takes note that the call has gone on since it waited.
    fn anew(&mut self) {
        self.has_waited = false;
    }
}

/// For how long it is tried again, and until when it waits.
struct Tries<'h> {
    /// Its turn among the calls of this record in this process.
    turn: Option<First<'h>>,
    backoff: Backoff,
    /// How long the database may be silent.
    answers_within: Duration,
    waits: Waits,
    /// Until when it waits for a number that is missing.
    gap_until: Duration,
}

impl<'h> Tries<'h> {
    fn new(call: &ActiveCall, retry_for: Duration) -> Self {
        let (at_most, answers_within) = match call.request.in_flight {
            InFlight::Wait(at_most) => (at_most, at_most.max(SHORTEST)),
            InFlight::Reject => (Duration::ZERO, LONGEST_SILENCE),
        };
        let now = call.request.handle.timer().now();
        Self {
            turn: None,
            backoff: Backoff::new(retry_for),
            answers_within,
            waits: Waits::begin(now, at_most),
            gap_until: now.saturating_add(call.request.gap_patience()),
        }
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
        let entering = handle
            .engine()
            .in_process()
            .enter(id, timer, self.waits.until);
        let Entered { first, waited } = entering.await.map_err(|Waited| self.held(call))?;
        self.turn = first;
        self.waits.has_waited |= waited;
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

    /// Waits until the reason of this error may be gone; the error, where it has waited for long
    /// enough.
    async fn wait_outside(
        &mut self,
        handle: &'h Idempotency,
        call: &ActiveCall,
        error: Error,
    ) -> Result<(), Error> {
        let timer = handle.timer();
        let is_gap = matches!(error, Error::Gap { .. });
        let until = match is_gap {
            true => self.gap_until,
            false => self.waits.until,
        };
        let left = until.saturating_sub(timer.now());
        if left.is_zero() {
            return Err(error);
        }
        let limit = timer.sleep_until(until);
        if is_gap {
            // The missing number may come in this process.
            self.turn = None;
            race(wait_for_gap(call, left), limit).await;
            if call.request.in_flight != InFlight::Reject {
                // It may still run.
                self.waits.until = self.waits.until.max(self.gap_until);
            }
            self.take_turn(handle, call).await?;
            self.waits.anew();
        } else {
            race(wait_for_holder(call, left), limit).await;
            self.waits.has_waited = true;
        }
        Ok(())
    }

    /// Waits until the database may be free of another transaction, which has the whole of it and
    /// perhaps the key; an error, where it has waited for long enough.
    async fn wait_for_writer(&mut self, call: &ActiveCall) -> Result<(), Error> {
        let timer = call.request.handle.timer();
        self.waits.has_waited = true;
        let now = timer.now();
        let left = self.waits.in_database(now).saturating_sub(now);
        if left.is_zero() {
            return Err(self.held(call));
        }
        timer.sleep(PAUSE.min(left)).await;
        Ok(())
    }

    fn held(&self, call: &ActiveCall) -> Error {
        let now = call.request.handle.timer().now();
        call.held_in_a_transaction(self.waits.so_far(now))
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
