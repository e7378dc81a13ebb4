//! Several processes on one store with faults, and the time that goes on there.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use idempotent_runtime::{
    Idempotency, Observer, RecordChange, RecordEvent, Store, identity::RecordId,
    store::OutcomeCache, testing::ManualClock,
};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio::task::{AbortHandle, JoinSet};

use super::{
    LEASE,
    faults::{FaultProfile, Faults},
    rest::heartbeats_rest,
};
use crate::panics::came_of;

/// All that happened outside the store, in its order. Clones are the same notes.
#[derive(Clone, Debug)]
pub(super) struct Notes<T>(Arc<Mutex<Vec<T>>>);

impl<T> Default for Notes<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Clone> Notes<T> {
    pub(super) fn note(&self, note: T) {
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        notes.push(note);
    }

    pub(super) fn all(&self) -> Vec<T> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// An attempt whose outcome was not recorded when its caller was told.
#[derive(Clone, Debug)]
pub(super) struct Unrecorded {
    pub(super) id: RecordId,
    pub(super) attempt: u32,
    /// How many writes there were then.
    pub(super) at: usize,
}

/// Notes them.
struct Untold {
    conditions: Faults,
    notes: Notes<Unrecorded>,
}

impl Observer for Untold {
    fn transition(&self, event: &RecordEvent<'_>) {
        if event.change == RecordChange::NotYetRecorded {
            self.notes.note(Unrecorded {
                id: event.id,
                attempt: event.attempt,
                at: self.conditions.writes(),
            });
        }
    }
}

/// A process: a handle with a timer of its own.
pub(super) struct Process {
    pub(super) idem: Idempotency,
    store: Faults,
    calls: Vec<AbortHandle>,
    pub(super) timer: ManualClock,
    /// How much time it has missed while it is paused.
    missed: Option<Duration>,
}

impl Process {
    /// Work that it has begun may go on for a while, and reaches no other process.
    fn die(&self) {
        self.store.cut_off();
        self.calls.iter().for_each(AbortHandle::abort);
    }
}

pub(super) struct Stage {
    pub(super) seed: u64,
    pub(super) rng: StdRng,
    pub(super) clock: ManualClock,
    pub(super) profile: FaultProfile,
    pub(super) conditions: Faults,
    pub(super) processes: Vec<Process>,
    dead: Vec<Process>,
    pub(super) unrecorded: Notes<Unrecorded>,
    /// Purges and operators.
    pub(super) asides: JoinSet<()>,
    pub(super) budget: u32,
    pub(super) ttl: Duration,
    /// Whether each process holds copies of finished outcomes.
    is_tiered: bool,
    is_calm: bool,
    /// Whether time went on while a heartbeat had something left to do: the machine is busy, and
    /// kept its thread waiting.
    has_lagged: AtomicBool,
}

impl Stage {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let clock = ManualClock::new();
        let seasons = [
            FaultProfile::Mild,
            FaultProfile::Rough,
            FaultProfile::Winter,
        ];
        let profile = seasons[rng.random_range(0..3)];
        let conditions = Faults::new(clock.clone(), seed, profile);
        let mut stage = Self {
            seed,
            clock,
            profile,
            conditions,
            processes: Vec::new(),
            dead: Vec::new(),
            unrecorded: Notes::default(),
            asides: JoinSet::new(),
            budget: [0, 0, 1, 2, 4][rng.random_range(0..5)],
            ttl: LEASE * [1_000, 2][rng.random_range(0..2)],
            is_tiered: rng.random(),
            is_calm: false,
            has_lagged: AtomicBool::new(false),
            rng,
        };
        for _ in 0..3 {
            let process = stage.process();
            stage.processes.push(process);
        }
        stage
    }

    fn process(&self) -> Process {
        let timer = ManualClock::new();
        let store = self.conditions.client();
        let seen: Arc<dyn Store> = if self.is_tiered {
            let copies = OutcomeCache::new(10).timer(timer.clone());
            Arc::new(copies.clock(timer.clone()).in_front_of(store.clone()))
        } else {
            Arc::new(store.clone())
        };
        let idem = Idempotency::builder(seen)
            .timer(timer.clone())
            .observer(Untold {
                conditions: self.conditions.clone(),
                notes: self.unrecorded.clone(),
            })
            .lease(LEASE)
            .ttl(self.ttl)
            .max_takeovers(self.budget)
            .undo_timeout(LEASE * 20)
            .build()
            .expect("the set-up is sound");
        Process {
            idem,
            store,
            calls: Vec::new(),
            timer,
            missed: None,
        }
    }

    /// Has a process do something, which ends with the process.
    pub(super) fn spawn<T: Send + 'static>(
        &mut self,
        calls: &mut JoinSet<T>,
        process: usize,
        call: impl Future<Output = T> + Send + 'static,
    ) {
        let call = calls.spawn(call);
        self.processes[process].calls.push(call);
    }

    /// Goes on until every call is over, and gives what came of those that were not stopped. Now
    /// and then an operator comes.
    pub(super) async fn play<T: 'static>(
        &mut self,
        mut calls: JoinSet<Option<T>>,
        operator: &mut impl FnMut(&mut Self),
    ) -> Vec<T> {
        let mut told = Vec::new();
        for _ in 0..100_000 {
            self.go_on(operator).await;
            while let Some(ended) = calls.try_join_next() {
                // A body or a driver that panicked has given no answer.
                told.extend(came_of(ended).flatten());
            }
            if calls.is_empty() {
                return told;
            }
        }
        panic!("seed {}: a call does not end", self.seed);
    }

    /// From now on nothing fails; a process that was not there before. Every lease is over.
    pub(super) async fn calm(&mut self) -> usize {
        self.conditions.heal();
        self.drain().await;
        self.advance(LEASE);
        self.is_calm = true;
        let last = self.process();
        self.processes.push(last);
        self.processes.len() - 1
    }

    /// Waits until no call holds anything, and everything that is under way has arrived.
    pub(super) async fn drain(&mut self) {
        let mut drained = JoinSet::new();
        for process in &mut self.processes {
            let missed = process.missed.take().unwrap_or_default();
            process.timer.advance(missed);
            let idem = process.idem.clone();
            drained.spawn(async move { idem.shutdown(Duration::MAX).await });
        }
        for _ in 0..10_000 {
            while let Some(ended) = drained.try_join_next() {
                ended.expect("nobody panics here");
            }
            while let Some(ended) = self.asides.try_join_next() {
                came_of(ended);
            }
            if drained.is_empty() && self.asides.is_empty() && !self.conditions.straggles() {
                return;
            }
            self.settle().await;
            self.advance(LEASE / 100);
        }
        panic!("seed {}: something is still held, or under way", self.seed);
    }

    /// Lets every process do what there is to do now, and moves the time of each one that is not
    /// paused.
    async fn go_on(&mut self, operator: &mut impl FnMut(&mut Self)) {
        self.settle().await;
        let by = LEASE.mul_f64(self.rng.random_range(0.0..0.06));
        let is_mild = self.profile == FaultProfile::Mild;
        for process in &mut self.processes {
            match (self.rng.random_range(0..60), &process.missed) {
                (0, None) if !is_mild && !self.is_calm => process.missed = Some(Duration::ZERO),
                (0..3, Some(missed)) => {
                    process.timer.advance(*missed);
                    process.missed = None;
                }
                _ => {}
            }
        }
        if !self.is_calm {
            self.happen(operator);
        }
        self.advance(by);
    }

    /// Lets every process take up what there is to do. Under the mild profile it takes up all of
    /// it, so that only drawn delays make a call late.
    async fn settle(&self) {
        // So many rounds are needed only if heartbeats of other tests are seen.
        for round in 0..1_000 {
            for _ in 0..10 {
                tokio::task::yield_now().await;
                std::thread::yield_now();
            }
            let processes = self.processes.iter().chain(&self.dead);
            let timers = processes.map(|process| &process.timer);
            let is_due = |clock: &ManualClock| clock.until_next() == Some(Duration::ZERO);
            let is_mild = self.profile == FaultProfile::Mild;
            if !timers.chain([&self.clock]).any(is_due) && (!is_mild || heartbeats_rest()) {
                return;
            }
            if round > 100 {
                // A busy machine gives the thread of a heartbeat no time while this one spins.
                std::thread::sleep(Duration::from_micros(100));
            }
        }
        self.has_lagged.store(true, Ordering::SeqCst);
    }

    /// The profile as the calls met it: under the mild one, no machine makes a call late.
    pub(super) fn met_profile(&self) -> FaultProfile {
        match self.profile {
            FaultProfile::Mild if self.has_lagged.load(Ordering::SeqCst) => FaultProfile::Rough,
            profile => profile,
        }
    }

    /// Now and then a purge runs, an operator comes, or a process dies. None dies under the mild
    /// profile. The first process never dies.
    fn happen(&mut self, operator: &mut impl FnMut(&mut Self)) {
        let idem = self.processes[0].idem.clone();
        match self.rng.random_range(0..800) {
            0..40 => {
                let purge = async move { drop(idem.store().purge(10, Duration::ZERO).await) };
                self.asides.spawn(purge);
            }
            40..60 => operator(self),
            60 if self.processes.len() > 1 && self.profile != FaultProfile::Mild => {
                let dead = self.processes.pop().into_iter();
                self.dead.extend(dead.inspect(Process::die));
            }
            _ => {}
        }
    }

    fn advance(&mut self, by: Duration) {
        self.clock.advance(by);
        for process in self.processes.iter_mut().chain(&mut self.dead) {
            match &mut process.missed {
                Some(missed) => *missed += by,
                None => process.timer.advance(by),
            }
        }
    }
}
