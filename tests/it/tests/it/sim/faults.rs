//! A store with faults, and a ledger of every version that ever stood in it.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use idempotent_runtime::{
    Store, StoreError, StoreErrorKind,
    clock::{Clock, Timer},
    identity::RecordId,
    record::{AttemptId, Draft, Record, Step, StepNames, Time, Version},
    store::{Snapshot, StepStore, StepWrite, Swap},
    testing::ManualClock,
};
use rand::{RngExt, SeedableRng, rngs::StdRng};

use super::{
    LEASE,
    kept::{Cells, Entry, Mark, StepEntry},
};

/// Keeps records as [`Draft::apply`] says, and answers late, twice as late, not at all, or with a
/// panic. Clones are the same client of one store.
#[derive(Clone, Debug)]
pub(super) struct Faults {
    conditions: Arc<Conditions>,
    is_cut_off: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Conditions {
    clock: ManualClock,
    rng: Mutex<StdRng>,
    /// How often the last writes of each attempt came to nothing, in a row.
    unlucky: Mutex<HashMap<AttemptId, u32>>,
    profile: FaultProfile,
    is_healed: AtomicBool,
    straggling: AtomicUsize,
    cells: Mutex<Cells>,
}

/// How many faults there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultProfile {
    /// A call that is tried for the length of a lease comes through.
    Mild,
    /// Now and then a call takes longer than a lease.
    Rough,
    /// Hardly anything comes through.
    Winter,
}

/// The fate of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is answered.
    None,
    /// It never arrives.
    LosesTheRequest,
    /// It is applied, and its answer never arrives.
    LosesTheAnswer,
    /// It is applied long after its caller was told that there is no answer.
    Straggles,
    /// It is refused, for no reason that passes.
    Fails,
    /// The driver panics.
    Panics,
}

impl Faults {
    pub(super) fn new(clock: ManualClock, seed: u64, profile: FaultProfile) -> Self {
        let conditions = Conditions {
            clock,
            rng: Mutex::new(StdRng::seed_from_u64(seed)),
            unlucky: Mutex::default(),
            profile,
            is_healed: AtomicBool::new(false),
            straggling: AtomicUsize::new(0),
            cells: Mutex::default(),
        };
        Self {
            conditions: Arc::new(conditions),
            is_cut_off: Arc::default(),
        }
    }

    /// Another client of the store.
    pub(super) fn client(&self) -> Self {
        Self {
            conditions: Arc::clone(&self.conditions),
            is_cut_off: Arc::default(),
        }
    }

    /// Nothing that this client sends reaches the store any more.
    pub(super) fn cut_off(&self) {
        self.is_cut_off.store(true, Ordering::SeqCst);
    }

    /// From now on every call is answered at once.
    pub(super) fn heal(&self) {
        self.conditions.is_healed.store(true, Ordering::SeqCst);
    }

    /// Whether something is still to be applied that no caller waits for.
    pub(super) fn straggles(&self) -> bool {
        self.conditions.straggling.load(Ordering::SeqCst) > 0
    }

    /// Every write so far, oldest first.
    pub(super) fn ledger(&self) -> Vec<Entry> {
        self.conditions.cells().ledger.clone()
    }

    /// Every write of a step so far, oldest first.
    pub(super) fn steps(&self) -> Vec<StepEntry> {
        self.conditions.cells().step_ledger.clone()
    }

    /// How much was written so far.
    pub(super) fn mark(&self) -> Mark {
        self.conditions.cells().mark()
    }

    /// The fate of every call so far.
    pub(super) fn faults(&self) -> Vec<Fault> {
        self.conditions.cells().faults.clone()
    }

    pub(super) fn now(&self) -> Time {
        Clock::now(&self.conditions.clock)
    }

    /// How many writes there were so far.
    pub(super) fn writes(&self) -> usize {
        self.conditions.cells().ledger.len()
    }

    async fn through<T: Send + 'static>(
        &self,
        doing: &'static str,
        writer: Option<AttemptId>,
        act: impl FnOnce(&mut Cells, Time) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let silence = || StoreError::new(StoreErrorKind::Unavailable, doing);
        if self.is_cut_off.load(Ordering::SeqCst) {
            return Err(silence());
        }
        let (fault, before, after) = self.conditions.draw_for(writer);
        self.conditions.cells().faults.push(fault);
        if fault == Fault::Straggles {
            let straggler = Straggler::new(&self.conditions);
            tokio::spawn(async move {
                let conditions = &straggler.0;
                // This is sooner than a lease: for so long, a given-up claim is kept from standing.
                conditions.pause((before + after) / 2).await;
                conditions.act(fault, act);
            });
            self.conditions.pause(before).await;
            return Err(silence());
        }
        self.conditions.pause(before).await;
        if self.is_cut_off.load(Ordering::SeqCst) {
            return Err(silence());
        }
        match fault {
            Fault::LosesTheRequest => return Err(silence()),
            Fault::Fails => return Err(StoreError::new(StoreErrorKind::Other, doing)),
            Fault::Panics => panic!("a driver that panics"),
            Fault::None | Fault::LosesTheAnswer | Fault::Straggles => {}
        }
        let answer = self.conditions.act(fault, act);
        self.conditions.pause(after).await;
        if fault == Fault::LosesTheAnswer {
            return Err(silence());
        }
        Ok(answer)
    }
}

impl Conditions {
    /// The same, but under the mild profile no third write of an attempt fails in a row: else a
    /// lease would now and then be lost by chance.
    fn draw_for(&self, writer: Option<AttemptId>) -> (Fault, Duration, Duration) {
        let (fault, before, after) = self.draw();
        let Some(writer) = writer.filter(|_| self.profile == FaultProfile::Mild) else {
            return (fault, before, after);
        };
        let mut unlucky = self.unlucky.lock().unwrap_or_else(PoisonError::into_inner);
        let in_a_row = unlucky.entry(writer).or_default();
        let fault = match *in_a_row {
            2.. => Fault::None,
            _ => fault,
        };
        *in_a_row = match fault {
            Fault::None => 0,
            _ => *in_a_row + 1,
        };
        (fault, before, after)
    }

    /// The fate of the next call, and how long it takes to arrive and to be answered.
    fn draw(&self) -> (Fault, Duration, Duration) {
        if self.is_healed.load(Ordering::SeqCst) {
            return (Fault::None, Duration::ZERO, Duration::ZERO);
        }
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
        let (faults, long) = match self.profile {
            FaultProfile::Mild => (15, false),
            FaultProfile::Rough => (15, true),
            FaultProfile::Winter => (40, true),
        };
        let mut pause = || match rng.random_range(0..10) {
            0 if long => LEASE.mul_f64(rng.random_range(0.0..0.7)),
            0..4 => LEASE.mul_f64(rng.random_range(0.0..0.05)),
            _ => Duration::ZERO,
        };
        let (before, after) = (pause(), pause());
        if rng.random_range(0..100) >= faults {
            return (Fault::None, before, after);
        }
        let fault = match rng.random_range(0..20) {
            0..6 => Fault::LosesTheRequest,
            6..13 => Fault::LosesTheAnswer,
            13..17 => Fault::Straggles,
            17..19 => Fault::Fails,
            _ => Fault::Panics,
        };
        (fault, before, after)
    }

    async fn pause(&self, pause: Duration) {
        if !pause.is_zero() {
            self.clock.sleep(pause).await;
        }
    }

    fn act<T>(&self, fault: Fault, act: impl FnOnce(&mut Cells, Time) -> T) -> T {
        let mut cells = self.cells();
        let from = cells.ledger.len();
        let answer = act(&mut cells, Clock::now(&self.clock));
        for entry in &mut cells.ledger[from..] {
            entry.is_lost = fault != Fault::None;
            entry.since = Timer::now(&self.clock);
        }
        answer
    }

    fn cells(&self) -> MutexGuard<'_, Cells> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that is under way although its caller no longer waits. It may be dropped with the runtime
/// that it is under way in.
struct Straggler(Arc<Conditions>);

impl Straggler {
    fn new(conditions: &Arc<Conditions>) -> Self {
        conditions.straggling.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(conditions))
    }
}

impl Drop for Straggler {
    fn drop(&mut self) {
        self.0.straggling.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Store for Faults {
    async fn load(&self, id: &RecordId) -> Result<Snapshot, StoreError> {
        let id = *id;
        self.through("loading", None, move |cells, now| cells.look(&id, now))
            .await
    }

    async fn swap(
        &self,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        let (id, next) = (*id, next.clone());
        let writer = Some(next.attempt_id);
        self.through("writing", writer, move |cells, now| {
            cells.swap(id, seen, &next, now)
        })
        .await
    }

    /// Resolves after a pause of its own, and not because the record has moved.
    async fn wait(
        &self,
        _id: &RecordId,
        _seen: Version,
        at_most: Duration,
    ) -> Result<(), StoreError> {
        self.conditions.pause(at_most.min(LEASE / 10)).await;
        self.through("waiting", None, |_, _| ()).await
    }

    async fn purge(&self, limit: u32, keep: Duration) -> Result<u64, StoreError> {
        self.through("purging", None, move |cells, now| {
            cells.purge(limit, keep, now)
        })
        .await
    }

    async fn scan(
        &self,
        after: Option<RecordId>,
        limit: u32,
    ) -> Result<Vec<(RecordId, Arc<Record>)>, StoreError> {
        self.through("listing", None, move |cells, _| {
            let behind = |id: &RecordId| after.is_none_or(|after| *id > after);
            let listed = cells.standing.iter().filter(|(id, _)| behind(id));
            let listed = listed.take(limit as usize);
            listed
                .map(|(id, record)| (*id, Arc::clone(record)))
                .collect()
        })
        .await
    }

    fn steps(&self) -> Option<&dyn StepStore> {
        Some(self)
    }
}

#[async_trait]
impl StepStore for Faults {
    async fn load_steps(
        &self,
        call: &RecordId,
        names: &StepNames,
    ) -> Result<Vec<Arc<Step>>, StoreError> {
        let (call, names) = (*call, names.clone());
        let look = move |cells: &mut Cells, _| cells.find_steps(&call, &names);
        self.through("looking at steps", None, look).await
    }

    async fn write_step(
        &self,
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> Result<StepWrite, StoreError> {
        let (call, next) = (*call, Arc::new(next.clone()));
        let write = move |cells: &mut Cells, now| cells.put_step(call, seen, next, now);
        self.through("writing a step", None, write).await
    }
}
