//! Simulations, drawn from a seed: many calls by several programs with journals, to several
//! processes of one service behind the layer, over a faulty network. The charges are compared with
//! what all callers were told.
//!
//! Client and layer are each tested by item elsewhere. Here they meet in combinations that no one
//! thought of. Requests and answers are lost, cut, or come late. Programs and processes die in the
//! middle and begin again. Users ask twice or change the amount. The scripts follow from the seed.
//! The order in which threads meet does not, so a seed that fails may have to be run more than
//! once.

mod disk;
mod judge;
mod programs;
mod seen;
mod service;
#[path = "../../../it/tests/it/tally.rs"]
mod tally;

use std::{cmp::Reverse, net::SocketAddr, panic::resume_unwind, sync::Arc, time::Duration};

use idempotent_client::{ClientJournal, MemoryJournal, SqliteJournal};
use idempotent_runtime::{
    OnCrash, Store,
    clock::Timer,
    store::MemoryStore,
    testing::{Disconnect, ManualClock, Proxy},
};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use tempfile::TempDir;
use tokio::task::JoinSet;

use self::{
    disk::{Disk, OnDisk},
    judge::Evidence,
    programs::{Call, Habits, Program, Told},
    service::{Gateway, Process},
    tally::{Tally, are_enough, seeds},
};

/// How long a call is held.
const LEASE: Duration = Duration::from_secs(1);

/// How long the service keeps keys, as its clients know.
const RETENTION: Duration = Duration::from_secs(30 * 60);

/// How many intents several calls share.
const SHARED: u32 = 4;

/// How many programs call.
const PROGRAMS: usize = 2;

/// How many calls come in a simulation.
const CALLS: usize = 30;

/// How many simulations run, unless another number is asked for.
const USUALLY: u64 = 5;

/// The kinds of events that are seen in so many simulations, whatever handlers may do after a
/// crash.
const SEEN: &[&str] = &[
    "a charge",
    "a cut",
    "a process that died",
    "a program that died",
    "a store out of reach",
    "an answer of the journal",
    "told of other arguments by the journal",
    "told that nobody knows",
];

#[test]
fn one_charge_for_each_intent_on_a_bad_network_where_handlers_may_run_again() {
    each(&[OnCrash::Rerun]);
}

#[test]
fn one_charge_for_each_intent_on_a_bad_network_where_handlers_run_at_most_once() {
    each(&[OnCrash::Uncertain]);
}

#[test]
fn one_charge_for_each_intent_on_a_bad_network_where_processes_chose_differently() {
    each(&[OnCrash::Rerun, OnCrash::Uncertain]);
}

/// Runs a simulation for each seed, in which each process chooses one of these.
/// `IDEMPOTENT_TEST_SIM=500` runs so many, in place of five, and `480..500` those.
fn each(on_crash: &'static [OnCrash]) {
    let seeds = seeds("IDEMPOTENT_TEST_SIM", USUALLY);
    let mut tally = Tally::default();
    for seed in seeds.clone() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let evidence = runtime.block_on(async { Run::new(seed, on_crash).await.go().await });
        evidence.judge(&format!("{on_crash:?}, seed {seed}"));
        evidence.count(&mut tally);
    }
    if are_enough(&seeds, USUALLY) {
        tally.assert_saw(SEEN, &format!("{on_crash:?}"));
    }
}

struct Run {
    on_crash: &'static [OnCrash],
    rng: StdRng,
    clock: ManualClock,
    store: Arc<MemoryStore>,
    gateway: Gateway,
    processes: Vec<Process>,
    network: Proxy,
    /// The journals of the programs, which outlive them: one for each, or one for all.
    journals: Vec<Arc<dyn ClientJournal>>,
    disk: Disk,
    programs: Vec<Program>,
    calls: JoinSet<Option<Told>>,
    told: Vec<Told>,
    /// The events that befell the network, processes and programs.
    happened: Vec<&'static str>,
    /// In a long simulation machines sleep now and then, until keys are forgotten. `since_sleep`
    /// tells how long ago the last time was.
    is_long: bool,
    since_sleep: u32,
    _folder: TempDir,
}

impl Run {
    async fn new(seed: u64, on_crash: &'static [OnCrash]) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let clock = ManualClock::new();
        let folder = tempfile::tempdir().expect("a folder");
        let disk = Disk::default();
        let file = SqliteJournal::open(folder.path().join("calls.db")).await;
        let mut journals: Vec<Arc<dyn ClientJournal>> = vec![
            Arc::new(OnDisk {
                file: file.expect("a journal"),
                disk: disk.clone(),
            }),
            Arc::new(MemoryJournal::new()),
        ];
        if rng.random() {
            journals.swap_remove(rng.random_range(0..journals.len()));
        }
        let mut simulation = Self {
            on_crash,
            store: Arc::new(MemoryStore::with_clock(clock.clone())),
            gateway: Gateway::default(),
            processes: Vec::new(),
            network: Proxy::to(NOWHERE).await.expect("a proxy"),
            programs: Vec::new(),
            calls: JoinSet::new(),
            told: Vec::new(),
            happened: Vec::new(),
            _folder: folder,
            clock,
            journals,
            disk,
            is_long: rng.random(),
            since_sleep: 0,
            rng,
        };
        for _ in 0..2 {
            simulation.start_process();
        }
        for program in 0..PROGRAMS {
            let program = simulation.program(program % simulation.journals.len());
            simulation.programs.push(program);
        }
        simulation
    }

    fn start_process(&mut self) {
        let on_crash = self.on_crash[self.rng.random_range(0..self.on_crash.len())];
        let process = Process::start(
            Arc::clone(&self.store),
            self.clock.clone(),
            self.gateway.clone(),
            on_crash,
            LEASE.mul_f64([0.5, 1.0, 1.0, 2.0][self.rng.random_range(0..4)]),
            self.rng.random(),
        );
        self.processes.push(process);
    }

    fn program(&mut self, journal: usize) -> Program {
        let habits = Habits {
            attempts: self.rng.random_range(1..6),
            keeps_connections: self.rng.random(),
        };
        Program::start(
            journal,
            Arc::clone(&self.journals[journal]),
            self.clock.clone(),
            self.network.address(),
            habits,
        )
    }

    /// Lets every call be made, waits until it is over, and asks what became of every intent.
    async fn go(mut self) -> Evidence {
        let within = if self.is_long { RETENTION } else { LEASE * 12 };
        let draw = |number| Call::draw(&mut self.rng, number, within);
        let drawn: Vec<_> = (0..CALLS).map(draw).collect();
        let mut coming = drawn.clone();
        coming.sort_by_key(|call| Reverse(call.comes));
        while !(coming.is_empty() && self.calls.is_empty()) {
            while let Some(call) = coming.pop_if(|call| call.comes <= self.clock.now()) {
                let program = self.rng.random_range(0..self.programs.len());
                self.begin(program, call);
            }
            self.happen().await;
            let by = self.rng.random_range(0..60);
            self.go_on(by).await;
        }

        let shut: Vec<_> = self
            .processes
            .extract_if(.., |process| process.is_shut)
            .collect();
        for _ in &shut {
            self.start_process();
        }
        for process in self.processes.iter().chain(&shut) {
            process.heal();
        }
        self.network.move_to(self.processes[0].address);
        // Requests that are on their way arrive, and calls that run come to their end, so that
        // nothing is done after the verdict.
        for _ in 0..40 {
            self.go_on(500).await;
        }
        let in_the_run = self.gateway.visits();
        self.ask_again(&drawn).await;
        let open = self.open().await;
        Evidence {
            on_crash: self.on_crash,
            drawn,
            visits: self.gateway.visits(),
            in_the_run,
            lies: self.gateway.lies(),
            happened: self.happened,
            told: self.told,
            open,
        }
    }

    fn begin(&mut self, program: usize, call: Call) {
        let call = call.make(&self.programs[program]);
        let call = self.calls.spawn(call);
        self.programs[program].calls.push(call);
    }

    /// Lets all tasks do what there is to do, and moves the time on by so many milliseconds.
    async fn go_on(&mut self, milliseconds: u64) {
        // The network takes time of its own, and attempts are not to be over before it has had any.
        tokio::time::sleep(Duration::from_millis(1)).await;
        self.pass(Duration::from_millis(milliseconds)).await;
        while let Some(ended) = self.calls.try_join_next() {
            match ended {
                Ok(told) => self.told.extend(told),
                // It is unknown what a program that died was told.
                Err(ended) if ended.is_cancelled() => {}
                Err(ended) => resume_unwind(ended.into_panic()),
            }
        }
    }

    /// Moves the time on, as soon as the disk is at nothing.
    async fn pass(&self, time: Duration) {
        while self.disk.is_busy() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.clock.advance(time);
    }

    /// Now and then something is cut, sent to another process, or dies and begins again, and
    /// machines sleep.
    async fn happen(&mut self) {
        let process = self.rng.random_range(0..self.processes.len());
        let cuts = [
            Disconnect::BeforeRequest,
            Disconnect::InRequest,
            Disconnect::BeforeAnswer,
            Disconnect::InAnswer,
            Disconnect::Silence,
        ];
        match self.rng.random_range(0..300) {
            0..60 => {
                let cut = cuts[self.rng.random_range(0..cuts.len())];
                self.network.cut_next(cut);
                self.happened.push("a cut");
            }
            60..64 => self.network.cut_all(),
            64..67 => {
                self.happened.push("a process that died");
                self.processes.swap_remove(process).die();
                self.start_process();
            }
            116..118 => self.processes[process].shut(),
            67..70 => {
                self.happened.push("a program that died");
                let program = self.rng.random_range(0..self.programs.len());
                self.restart(program);
                self.resume(program);
            }
            70..74 => {
                self.happened.push("a store out of reach");
                self.processes[process].lose_store();
            }
            74..90 => self.processes[process].find_store(),
            90..92 => {
                let store = Arc::clone(&self.store);
                tokio::spawn(async move { store.purge(100, Duration::ZERO).await });
            }
            92..98 => {
                let program = self.rng.random_range(0..self.programs.len());
                self.resume(program);
            }
            // By less than clocks may differ, so that no request is under way for as long as that.
            98..116 if self.is_long && self.since_sleep > 50 => {
                let sleep = Duration::from_secs(self.rng.random_range(0..150));
                self.pass(sleep).await;
                self.since_sleep = 0;
            }
            _ => {}
        }
        self.since_sleep += 1;
        let process = self.rng.random_range(0..self.processes.len());
        self.network.move_to(self.processes[process].address);
    }

    /// Without faults, new programs ask for all that can be asked for again, until there is an
    /// answer.
    async fn ask_again(&mut self, drawn: &[Call]) {
        for program in 0..PROGRAMS {
            self.restart(program);
            for call in drawn.iter().filter(|call| call.is_named()) {
                // A call that still runs comes to its end, or its lease does. A machine under load
                // takes a while.
                for _ in 0..20 {
                    self.begin(program, call.again());
                    while !self.calls.is_empty() {
                        self.go_on(5).await;
                    }
                    if self.told.last().is_some_and(Told::is_settled) {
                        break;
                    }
                    self.go_on(500).await;
                }
            }
        }
    }

    /// Lets a program send what its journal holds open, and other programs may be sending, too.
    fn resume(&mut self, program: usize) {
        let resumed = self.programs[program].resume();
        let resumed = self.calls.spawn(resumed);
        self.programs[program].calls.push(resumed);
    }

    fn restart(&mut self, program: usize) {
        self.programs[program].die();
        self.programs[program] = self.program(self.programs[program].journal);
    }

    /// The keys of the calls that each journal holds open.
    async fn open(&self) -> Vec<Vec<String>> {
        let mut journals = Vec::new();
        for journal in &self.journals {
            let open = journal.unfinished(1_000).await.expect("a list");
            let open = open.into_iter().map(|call| call.expect("it can be read"));
            journals.push(open.map(|call| call.id.key.as_str().to_owned()).collect());
        }
        journals
    }
}

/// The address until there is a process: nothing listens there.
const NOWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9);
