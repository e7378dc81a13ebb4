//! A call in a transaction of its own, and its waits for others.

use std::{error::Error as StdError, marker::PhantomData, sync::Arc, time::Duration};

use super::{
    LONGEST_SILENCE, PAUSE, RetryIf, SqlDatabase, Transact,
    own::OwnTransaction,
    turn::{Answered, Transacted},
};
use crate::{
    attempt::is_shut_out,
    drive::DescribedCall,
    engine::in_process::{Entered, First, Waited},
    error::Error,
    handle::Idempotency,
    observe::CallReport,
    outcome::{OutOfOrder, Outcome},
    policy::InFlight,
    race::race,
    record::{Record, State},
    run::{ActiveCall, Instead, ResultCodec, SHUT_OUT},
};

/// How long a claim waits in the database at least, also where it is not to wait for others.
const SHORTEST: Duration = Duration::from_secs(1);

/// How long after it is looked again whether a sequence has begun.
const NOTHING_STANDS: Duration = Duration::from_millis(50);

/// Runs a call in a transaction of its own. A duplicate in this process waits before it takes a
/// connection.
pub(crate) async fn transact<DB, Q, R, C, F>(
    described: DescribedCall,
    codec: C,
    settings: Transact<DB, Q>,
    body: F,
) -> C::Answer
where
    DB: SqlDatabase,
    R: Outcome<Error: StdError + 'static>,
    C: ResultCodec<R, Answer = (R, CallReport)>,
    Q: RetryIf<R::Error>,
    F: AsyncFnOnce(&mut DB::Connection) -> R + Clone,
{
    let mut call = match described {
        Ok(call) => call,
        Err(error) => return C::refused(*error),
    };
    let is_recorded = call.request.in_transaction();
    let handle = call.request.handle.clone();
    let mut tries = Tries::new(&handle, &call);
    if let Some(ended) = call.find_ended().await {
        return codec.instead(&mut call, ended).await;
    }
    if is_recorded && let Err(error) = tries.take_turn(&call).await {
        call.has_waited(tries.waited_for);
        return codec.instead(&mut call, Instead::Refused(error)).await;
    }
    let own = OwnTransaction {
        pool: &settings.pool,
        isolation: settings.isolation,
        timer: handle.timer(),
        answers_within: tries.answers_within,
    };
    let mut inside = Transacted {
        own,
        call: &mut call,
        codec: &codec,
        retry_if: &settings.retry_if,
        tries: &mut tries,
        body,
        answers: PhantomData::<fn() -> R>,
    };
    let answered = own.run(settings.retry_for, &mut inside).await;
    call.has_waited(tries.waited_for);
    let (answer, report) = match answered {
        Answered::Own(own) => codec.own(&mut call, own, None).await,
        Answered::Instead(instead) => codec.instead(&mut call, instead).await,
    };
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

/// Until when a call waits for others. It is set once, when the call begins, and every wait goes by
/// it: in this process, in the database, and for a call outside.
pub(super) struct Tries<'h> {
    handle: &'h Idempotency,
    /// Its turn among the calls of this record in this process.
    turn: Option<First<'h>>,
    /// How long the database may be silent.
    answers_within: Duration,
    began: Duration,
    until: Duration,
    /// How long the call has waited for other calls, and for missing numbers.
    waited_for: Duration,
    /// Whether the call has waited since it last went on.
    has_waited: bool,
    /// Until when it waits for a number that is missing.
    gap_until: Duration,
}

impl<'h> Tries<'h> {
    fn new(handle: &'h Idempotency, call: &ActiveCall) -> Self {
        let (at_most, answers_within) = match call.request.in_flight {
            InFlight::Wait(at_most) => (at_most, at_most.max(SHORTEST)),
            InFlight::Reject => (Duration::ZERO, LONGEST_SILENCE),
        };
        let began = handle.timer().now();
        Self {
            handle,
            turn: None,
            answers_within,
            began,
            until: began.saturating_add(at_most),
            waited_for: Duration::ZERO,
            has_waited: false,
            gap_until: began.saturating_add(call.request.gap_patience()),
        }
    }

    /// Until when the next try may wait in the database. One that comes late without having waited
    /// has the time to be answered.
    pub(super) fn in_database(&self) -> Duration {
        let from = match self.has_waited {
            true => self.began,
            false => self.handle.timer().now(),
        };
        self.until.max(from.saturating_add(SHORTEST))
    }

    fn has_waited_since(&mut self, began: Duration) {
        let waited = self.handle.timer().now().saturating_sub(began);
        self.waited_for = self.waited_for.saturating_add(waited);
    }

    /// Takes note that the call has gone on since it waited.
    pub(super) fn has_gone_on(&mut self) {
        self.has_waited = false;
    }

    /// Waits for a call of the same record that runs in this process.
    async fn take_turn(&mut self, call: &ActiveCall) -> Result<(), Error> {
        let (id, handle) = (call.request.id, self.handle);
        if call.request.is_held() {
            let operation = call.request.operation.clone();
            return Err(Error::Recursive { operation });
        }
        if is_shut_out(handle.id()) {
            return Err(SHUT_OUT);
        }
        let in_process = handle.engine().in_process();
        let began = handle.timer().now();
        let entered = in_process.enter(id, handle.timer(), self.until).await;
        if entered.as_ref().map_or(true, |entered| entered.waited) {
            self.has_waited_since(began);
        }
        let Entered { first, waited } = entered.map_err(|Waited| self.held(call))?;
        self.turn = first;
        self.has_waited |= waited;
        Ok(())
    }

    /// Waits until a call outside may have left the key; this error, where it has waited for long
    /// enough.
    pub(super) async fn wait_outside(
        &mut self,
        call: &ActiveCall,
        error: Error,
    ) -> Result<(), Instead> {
        let timer = self.handle.timer();
        let left = self.until.saturating_sub(timer.now());
        if left.is_zero() {
            return Err(Instead::Refused(error));
        }
        let (began, limit) = (timer.now(), timer.sleep_until(self.until));
        race(wait_for_holder(call, left), limit).await;
        self.has_waited_since(began);
        self.has_waited = true;
        Ok(())
    }

    /// Waits until the numbers that are missing may be there, which may come in this process; the
    /// gap, where it has waited for long enough.
    pub(super) async fn wait_for_number(
        &mut self,
        call: &ActiveCall,
        gap: OutOfOrder,
    ) -> Result<(), Instead> {
        let timer = self.handle.timer();
        let left = self.gap_until.saturating_sub(timer.now());
        if left.is_zero() {
            return Err(Instead::OutOfOrder(gap));
        }
        self.turn = None;
        let (began, limit) = (timer.now(), timer.sleep_until(self.gap_until));
        race(wait_for_gap(call, left), limit).await;
        self.has_waited_since(began);
        if call.request.in_flight != InFlight::Reject {
            // The missing number may still run.
            self.until = self.until.max(self.gap_until);
        }
        self.take_turn(call).await.map_err(Instead::Refused)?;
        self.has_gone_on();
        Ok(())
    }

    /// Waits until the database may be free of another transaction, which has the whole of it and
    /// perhaps the key; an error, where it has waited for long enough.
    pub(super) async fn wait_for_writer(&mut self, call: &ActiveCall) -> Result<(), Instead> {
        let timer = self.handle.timer();
        self.has_waited = true;
        let now = timer.now();
        let left = self.in_database().saturating_sub(now);
        if left.is_zero() {
            return Err(Instead::Refused(self.held(call)));
        }
        timer.sleep(PAUSE.min(left)).await;
        Ok(())
    }

    /// The refusal of a call that has waited for long enough.
    pub(super) fn held(&self, call: &ActiveCall) -> Error {
        let now = self.handle.timer().now();
        call.held_in_a_transaction(now.saturating_sub(self.began))
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
