//! Simulations: many calls by several processes on a store with faults, drawn from a seed, and
//! every invariant asked of all that was ever written, done and told.
//!
//! The tests try the code that runs a call (claims and lost ones, heartbeats, endings in the
//! background, waits, panics and dropped futures), in combinations that no one thought of. Every
//! second simulation also has the copies that each process holds in front of the store. The store
//! and the callers' scripts follow from the seed. The order of threads does not quite, so a seed
//! that fails may have to be run more than once. A process that is paused stands still with its
//! timer, as under SIGSTOP, while the store's time goes on.

mod callers;
mod faults;
mod judge;
mod rest;
mod seen;

use std::{sync::Arc, time::Duration};

use idempotent_runtime::{
    Error, Idempotency, OnCrash, Store, store::OutcomeCache, testing::ManualClock,
};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio::task::{AbortHandle, JoinSet};

use self::{
    callers::{Call, Diary, Failure, Told},
    faults::{FaultProfile, Faults},
    judge::Evidence,
    rest::heartbeats_rest,
};
use crate::{
    charge::LEASE,
    harness::runtime_here,
    panics::came_of,
    tally::{Tally, are_enough, seeds},
};

/// How many keys the calls of a simulation share.
const KEYS: u32 = 3;

/// How many calls come in a simulation.
const CALLS: usize = 30;

/// How many simulations run, unless another number is asked for.
const USUALLY: u64 = 100;

/// The events that so many simulations show, whatever the calls say.
const SEEN: &[&str] = &[
    "a body",
    "a body's panic",
    "a body's word",
    "a caller that left, or died",
    "a driver's panic",
    "a failure",
    "a heartbeat, or a lease ended",
    "a lost answer",
    "a lost request",
    "a purge",
    "a release",
    "a straggler",
    "an answer",
    "an outcome",
    "left uncertain",
    "one's own write recognised",
    "told of other arguments",
    "told that it runs",
    "told that nobody knows",
    "told that the store is away",
];

/// The further events, if the calls say this.
fn seen_besides(on_crash: Option<OnCrash>) -> &'static [&'static str] {
    match on_crash {
        Some(OnCrash::Rerun) => &[
            "a takeover",
            "parked",
            "told that it is parked",
            "a replay",
            "a replay after waiting",
        ],
        Some(OnCrash::Reconcile) => &["a reconciliation"],
        Some(_) => &["a replay", "a replay after waiting"],
        None => &["a reconciliation", "a replay", "a replay after waiting"],
    }
}

#[test]
fn i01_to_i13_hold_in_the_simulation_where_bodies_may_run_again() {
    each(Some(OnCrash::Rerun));
}

#[test]
fn i01_to_i13_hold_in_the_simulation_where_bodies_run_at_most_once() {
    each(Some(OnCrash::Uncertain));
}

#[test]
fn i01_to_i13_hold_in_the_simulation_where_bodies_are_reconciled() {
    each(Some(OnCrash::Reconcile));
}

#[test]
fn i01_to_i13_hold_in_the_simulation_where_callers_disagree() {
    each(None);
}

/// Runs a simulation for each seed. `IDEMPOTENT_TEST_SIM=5000` runs so many, in place of a hundred,
/// and `480..500` runs those.
fn each(on_crash: Option<OnCrash>) {
    let seeds = seeds("IDEMPOTENT_TEST_SIM", USUALLY);
    let work = move || {
        let mut tally = Tally::default();
        for seed in seeds.clone() {
            let runtime = runtime_here();
            let evidence = runtime.block_on(Simulation::new(seed).run(on_crash));
            evidence.judge(&format!("seed {seed}"));
            evidence.count(&mut tally);
        }
        if are_enough(&seeds, USUALLY) {
            tally.assert_saw(SEEN, &format!("{on_crash:?}"));
            tally.assert_saw(seen_besides(on_crash), &format!("{on_crash:?}"));
        }
    };
    let name = format!("simulations {on_crash:?}");
    let thread = std::thread::Builder::new().name(name).spawn(work);
    let ended = thread.expect("a thread").join();
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

/// A process: a handle with a timer of its own.
struct Process {
    idem: Idempotency,
    store: Faults,
    calls: Vec<AbortHandle>,
    timer: ManualClock,
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

struct Simulation {
    seed: u64,
    rng: StdRng,
    clock: ManualClock,
    profile: FaultProfile,
    conditions: Faults,
    processes: Vec<Process>,
    dead: Vec<Process>,
    /// Purges and operators.
    asides: JoinSet<()>,
    diary: Diary,
    budget: u32,
    ttl: Duration,
    /// Whether each process holds copies of finished outcomes.
    is_tiered: bool,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let clock = ManualClock::new();
        let seasons = [
            FaultProfile::Mild,
            FaultProfile::Rough,
            FaultProfile::Winter,
        ];
        let profile = seasons[rng.random_range(0..3)];
        let conditions = Faults::new(clock.clone(), seed, profile);
        let mut simulation = Self {
            seed,
            clock,
            profile,
            conditions,
            processes: Vec::new(),
            dead: Vec::new(),
            asides: JoinSet::new(),
            diary: Diary::default(),
            budget: [0, 0, 1, 2, 4][rng.random_range(0..5)],
            ttl: LEASE * [1_000, 2][rng.random_range(0..2)],
            is_tiered: rng.random(),
            rng,
        };
        for _ in 0..3 {
            let process = simulation.process();
            simulation.processes.push(process);
        }
        simulation
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
            .lease(LEASE)
            .ttl(self.ttl)
            .max_takeovers(self.budget)
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

    /// Lets every call be made, waits until it is over, and asks how every key ended.
    async fn run(mut self, on_crash: Option<OnCrash>) -> Evidence {
        let mut told = Vec::new();
        let mut calls = JoinSet::new();
        for number in 0..CALLS {
            let call = Call::draw(&mut self.rng, number, on_crash);
            let process = self.rng.random_range(0..self.processes.len());
            let call = calls.spawn(self.call(process, call));
            self.processes[process].calls.push(call);
        }
        while !calls.is_empty() {
            self.go_on().await;
            while let Some(ended) = calls.try_join_next() {
                // A body or a driver that panicked has given no answer.
                told.extend(came_of(ended).flatten());
            }
        }

        self.conditions.heal();
        self.drain().await;
        self.advance(LEASE);
        let number = self.processes.len();
        let last = self.process();
        self.processes.push(last);
        for key in 0..KEYS {
            let on_crash = on_crash.unwrap_or(OnCrash::Rerun);
            let call = Call::last(key, CALLS + key as usize, on_crash);
            let answer = self.call(number, call).await.expect("nobody leaves");
            let refused = match &answer.result {
                Err(Failure::Refused(error)) => Some(error),
                _ => None,
            };
            // I10: one lease after the simulation there is an answer.
            assert!(
                !matches!(
                    refused,
                    Some(Error::InProgress { .. } | Error::Store(_) | Error::LeaseLost { .. })
                ),
                "seed {}: key {key} is still not answered: {answer:?}",
                self.seed
            );
            told.push(answer);
        }
        self.drain().await;
        Evidence {
            ledger: self.conditions.ledger(),
            deeds: self.diary.deeds(),
            left: CALLS + KEYS as usize - told.len(),
            told,
            faults: self.conditions.faults(),
            budget: self.budget,
            profile: self.profile,
        }
    }

    fn call(
        &self,
        process: usize,
        call: Call,
    ) -> impl Future<Output = Option<Told>> + Send + use<> {
        let Process { idem, timer, .. } = &self.processes[process];
        call.make(
            idem.clone(),
            timer.clone(),
            self.conditions.clone(),
            self.diary.clone(),
        )
    }

    /// Waits until no call holds anything, and everything that is under way has arrived.
    async fn drain(&mut self) {
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
    async fn go_on(&mut self) {
        self.settle().await;
        let by = LEASE.mul_f64(self.rng.random_range(0.0..0.06));
        let is_mild = self.profile == FaultProfile::Mild;
        for process in &mut self.processes {
            match (self.rng.random_range(0..60), &process.missed) {
                (0, None) if !is_mild => process.missed = Some(Duration::ZERO),
                (0..3, Some(missed)) => {
                    process.timer.advance(*missed);
                    process.missed = None;
                }
                _ => {}
            }
        }
        self.happen();
        self.advance(by);
    }

    /// Lets every process take up what there is to do. Under the mild profile it takes up all of
    /// it, so that only drawn delays make a call late.
    async fn settle(&self) {
        // So many rounds are needed only if heartbeats of other tests are seen.
        for _ in 0..1_000 {
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
        }
    }

    /// Now and then a purge runs, an operator settles, or a process dies. None dies under the mild
    /// profile. The first process never dies.
    fn happen(&mut self) {
        let idem = self.processes[0].idem.clone();
        match self.rng.random_range(0..800) {
            0..40 => {
                let purge = async move { drop(idem.store().purge(10, Duration::ZERO).await) };
                self.asides.spawn(purge);
            }
            40..60 => {
                let (key, resumes) = (self.rng.random_range(0..KEYS), self.rng.random());
                self.asides.spawn(callers::settle(idem, key, resumes));
            }
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
