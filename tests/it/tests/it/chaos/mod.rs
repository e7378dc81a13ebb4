//! Chaos runs: faults of all kinds over the stores that people use, by their own clocks.
//!
//! Several processes with short leases call with few keys, over connections that are cut, slowed
//! and stalled. Requests and answers are lost before they get there. Bodies charge at a gateway,
//! refuse, fail, panic, block their thread, are left by their callers and outlive their leases.
//! Runtimes end in the middle, with their processes or without them. Everything that is asked of
//! the store is written down on the way, as is everything that was done and told. The [judge]
//! compares that afterwards. Nothing in it depends on how long anything took: time only decides
//! what happens, and never whether it was right.
//!
//! The draws follow from the seed, and how they meet does not: a seed that fails may have to be run
//! more than once.

mod callers;
mod case;
mod judge;
mod places;
mod process;
mod seen;
mod versions;
mod witness;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use idempotent_runtime::{
    Error, OnCrash,
    testing::{Disconnect, Proxy},
};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio::task::{JoinHandle, JoinSet};

use self::{
    callers::{Call, Told},
    judge::Evidence,
    places::{Place, Product},
    process::Process,
    witness::Ledger,
};
use crate::{
    harness::runtime,
    panics::came_of,
    tally::{Tally, are_enough, seeds},
};

/// How many calls come in a chaos run, and how many keys they share.
const CALLS: usize = 28;
const KEYS: u64 = 3;

/// How many chaos runs run, unless another number is asked for.
const USUALLY: u64 = 12;

/// The events that are seen in so many chaos runs, wherever they run.
const SEEN: &[&str] = &[
    "a body",
    "a body that is gone",
    "a body's word",
    "a request without a fault",
    "a heartbeat, or a lease ended",
    "a replay",
    "an answer",
    "an outcome",
    "lost on the way",
    "told of other arguments",
    "told that nobody knows",
];

/// The events that are seen besides, if connections can be cut.
const SEEN_OF_CUTS: &[&str] = &["a write that the connection lost"];

/// How many chaos runs run at once, since they mostly wait.
const AT_ONCE: usize = 6;

/// How long to wait for what must come about, and is no matter of time.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn v01_to_v13_hold_in_chaos_on_sqlite() {
    each(Product::Sqlite);
}

#[test]
#[ignore = "needs a server: cargo xtask test"]
fn v01_to_v13_hold_in_chaos_on_postgres() {
    each(Product::Postgres);
}

#[test]
#[ignore = "needs a server: cargo xtask test"]
fn v01_to_v13_hold_in_chaos_on_mariadb() {
    each(Product::MariaDb);
}

#[test]
#[ignore = "needs a server: cargo xtask test"]
fn v01_to_v13_hold_in_chaos_on_mariadb_as_mysql() {
    each(Product::AsMySql);
}

#[test]
#[ignore = "needs a server: cargo xtask test"]
fn v01_to_v13_hold_in_chaos_on_redis() {
    each(Product::Redis);
}

#[test]
#[ignore = "needs a server: cargo xtask test"]
fn v01_to_v13_hold_in_chaos_on_redis_cluster() {
    each(Product::Cluster);
}

/// Runs a chaos run for each seed. `IDEMPOTENT_TEST_CHAOS=500` runs so many, in place of twelve,
/// and `480..500` those.
fn each(product: Product) {
    let seeds = seeds("IDEMPOTENT_TEST_CHAOS", USUALLY);
    let runtime = runtime(2);
    runtime.block_on(async {
        let place = Arc::new(Place::new(product));
        let opened = place.open(place.address(), PATIENCE).await;
        drop(opened.expect("the store answers"));
        let mut running = JoinSet::new();
        let mut tally = Tally::default();
        let mut judge = |ended: Result<(u64, Evidence), _>| {
            let (seed, evidence) = ended.expect("no panic");
            evidence.judge(&format!("{product:?}, seed {seed}"), &mut tally);
        };
        for seed in seeds.clone() {
            if running.len() == AT_ONCE
                && let Some(ended) = running.join_next().await
            {
                judge(ended);
            }
            let run = Chaos::new(seed, &place);
            running.spawn(async move { (seed, run.run().await) });
        }
        while let Some(ended) = running.join_next().await {
            judge(ended);
        }
        if are_enough(&seeds, USUALLY) {
            tally.assert_saw(SEEN, &format!("{product:?}"));
            let cuts = place.address().map(|_| SEEN_OF_CUTS);
            tally.assert_saw(cuts.unwrap_or_default(), &format!("{product:?}"));
        }
    });
}

struct Chaos {
    seed: u64,
    rng: StdRng,
    place: Arc<Place>,
    ledger: Arc<Ledger>,
    processes: Vec<Process>,
    purges: Vec<JoinHandle<()>>,
    /// The connections of processes whose runtime has ended.
    left: Vec<Proxy>,
    /// The value that every call says, or nothing if each says what it likes.
    on_crash: Option<OnCrash>,
    keys: Vec<u64>,
    lease: Duration,
    /// Whether outcomes outlive the chaos run.
    lasts: bool,
    budget: u32,
    faults: u32,
    answer: Duration,
    is_tiered: bool,
}

impl Chaos {
    fn new(seed: u64, place: &Arc<Place>) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let modes = [
            Some(OnCrash::Rerun),
            Some(OnCrash::Uncertain),
            Some(OnCrash::Reconcile),
            None,
        ];
        Self {
            seed,
            place: Arc::clone(place),
            ledger: Arc::default(),
            processes: Vec::new(),
            purges: Vec::new(),
            left: Vec::new(),
            on_crash: modes[(seed % 4) as usize],
            keys: (0..KEYS).map(|key| seed * 10 + key).collect(),
            lease: Duration::from_millis(rng.random_range(200..500)),
            lasts: rng.random_range(0..4) != 0,
            budget: rng.random_range(1..6),
            faults: [0, 5, 15, 30][rng.random_range(0..4)],
            answer: Duration::from_millis([150, 500, 1_500][rng.random_range(0..3)]),
            is_tiered: rng.random_range(0..3) == 0,
            rng,
        }
    }

    /// Lets every call be made, waits until it is over, and asks what became of every key.
    async fn run(mut self) -> Evidence {
        for _ in 0..3 {
            self.begin(true).await;
        }
        let draw =
            |number| Call::draw(&mut self.rng, number, &self.keys, self.lease, self.on_crash);
        let mut coming: Vec<_> = (0..CALLS).map(draw).collect();
        coming.sort_by_key(|call| std::cmp::Reverse(call.comes));
        let (mut calls, mut told) = (JoinSet::new(), Vec::new());
        let began = Instant::now();
        while !calls.is_empty() || !coming.is_empty() {
            while coming
                .last()
                .is_some_and(|call| call.comes <= began.elapsed())
            {
                let process = self.rng.random_range(0..self.processes.len());
                let call = coming.pop().expect("there is one");
                calls.spawn(self.call(process, call));
            }
            let pause = self.lease.mul_f64(self.rng.random_range(0.0..0.1));
            tokio::time::sleep(pause).await;
            while let Some(ended) = calls.try_join_next() {
                // A call that panicked, or whose runtime has ended, has told nothing.
                let ended = ended.expect("nobody stops this task");
                told.extend(came_of(ended).flatten());
            }
            self.happen().await;
        }
        let left = CALLS - told.len();
        self.calm_down().await;
        self.begin(false).await;
        for key in self.keys.clone() {
            self.ask(key, &mut told).await;
        }
        let last = self.processes.last().expect("it was begun");
        let drained = last.idem.shutdown(PATIENCE).await;
        assert!(drained, "seed {}: something is still held", self.seed);
        let remains = self.remains().await;
        Evidence {
            ledger: self.ledger,
            left,
            told,
            remains,
            on_crash: self.on_crash,
            keys: self.keys,
            lasts: self.lasts,
            budget: self.budget,
        }
    }

    /// Ends every fault, and waits until nothing is held any more.
    async fn calm_down(&mut self) {
        for process in &self.processes {
            process.link.heal();
        }
        let proxies = self
            .processes
            .iter()
            .filter_map(|process| process.proxy.as_ref());
        for proxy in proxies.chain(&self.left) {
            proxy.slow_down(None);
        }
        for process in &self.processes {
            let drained = process.idem.shutdown(PATIENCE).await;
            assert!(drained, "seed {}: something is still held", self.seed);
        }
        for purge in std::mem::take(&mut self.purges) {
            came_of(purge.await);
        }
    }

    /// V10: after the faults there is an answer, for some arguments.
    async fn ask(&self, key: u64, told: &mut Vec<Told>) {
        let on_crash = self.on_crash.unwrap_or(OnCrash::Rerun);
        let number = self.processes.len() - 1;
        for amount in 0..2 {
            let call = Call::last(key, amount, told.len() + 1_000, on_crash);
            let answer = self.call(number, call).await;
            let answer = answer.expect("no panic").expect("nobody leaves");
            let refusal = answer.refusal();
            let is_answer = matches!(
                refusal,
                None | Some(
                    Error::Uncertain { .. } | Error::Parked { .. } | Error::NotReplayable { .. }
                )
            );
            let is_reused = matches!(refusal, Some(Error::KeyReused { .. }));
            assert!(
                is_answer || is_reused && amount == 0,
                "seed {}: key {key} is not answered: {answer:?}",
                self.seed
            );
            told.push(answer);
            if is_answer {
                return;
            }
        }
    }

    async fn remains(&self) -> Vec<Arc<idempotent_runtime::record::Record>> {
        let store = self.place.open(self.place.address(), PATIENCE).await;
        let store = store.expect("the store answers");
        let ids: std::collections::BTreeSet<_> = {
            let pages = self.ledger.pages();
            pages.writes.iter().map(|write| write.id).collect()
        };
        let mut remains = Vec::new();
        for id in ids {
            let snapshot = store.load(&id).await.expect("the store answers");
            remains.extend(snapshot.record);
        }
        remains
    }

    /// Now and then a connection is cut or slow, a process stalls, ends or dies, or the store is
    /// purged.
    async fn happen(&mut self) {
        let number = self.rng.random_range(0..self.processes.len());
        let cuts = [
            Disconnect::BeforeRequest,
            Disconnect::InRequest,
            Disconnect::BeforeAnswer,
            Disconnect::InAnswer,
            Disconnect::Silence,
        ];
        let (cut, after) = (
            cuts[self.rng.random_range(0..5)],
            self.rng.random_range(0..4),
        );
        let process = &self.processes[number];
        match (self.rng.random_range(0..120), &process.proxy) {
            (0..15, Some(proxy)) => proxy.cut_after(after, cut),
            (15..17, Some(proxy)) => proxy.cut_all(),
            (17, Some(proxy)) => proxy.slow_down(Some(Duration::from_micros(200))),
            (18..22, Some(proxy)) => proxy.slow_down(None),
            (22..24, _) => process.link.stall(true),
            (24..34, _) => self
                .processes
                .iter()
                .for_each(|process| process.link.stall(false)),
            (34..40, _) => {
                let idem = process.idem.clone();
                let purging = async move { drop(idem.store().purge(10, Duration::ZERO).await) };
                let runtime = process.runtime.as_ref().expect("it lives");
                self.purges.push(runtime.spawn(purging));
            }
            (which @ 40..42, _) => {
                let mut ended = self.processes.swap_remove(number);
                match which {
                    40 => ended.link.die(),
                    _ => self.left.extend(ended.proxy.take()),
                }
                drop(ended);
                self.begin(true).await;
            }
            _ => {}
        }
    }
}
