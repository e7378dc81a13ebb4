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
mod kept;
mod messages;
mod numbers;
mod outbox;
mod remains;
mod rest;
mod sagas;
mod seen;
mod stage;

use idempotent_runtime::{Error, OnCrash};
use rand::RngExt;
use tokio::task::JoinSet;

use self::{
    callers::{Call, Diary, Failure, Told},
    judge::Evidence,
    stage::Stage,
};
use crate::{
    charge::LEASE,
    harness::runtime_here,
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
fn v01_to_v13_hold_in_the_simulation_where_bodies_may_run_again() {
    each(Some(OnCrash::Rerun));
}

#[test]
fn v01_to_v13_hold_in_the_simulation_where_bodies_run_at_most_once() {
    each(Some(OnCrash::Uncertain));
}

#[test]
fn v01_to_v13_hold_in_the_simulation_where_bodies_are_reconciled() {
    each(Some(OnCrash::Reconcile));
}

#[test]
fn v01_to_v13_hold_in_the_simulation_where_callers_disagree() {
    each(None);
}

/// Runs a simulation of calls for each seed.
fn each(on_crash: Option<OnCrash>) {
    let about = format!("{on_crash:?}");
    let seen: Vec<_> = SEEN.iter().chain(seen_besides(on_crash)).copied().collect();
    for_each_seed(&about, USUALLY, &seen, async move |seed, tally| {
        let evidence = run(Stage::new(seed), on_crash).await;
        evidence.judge(&format!("seed {seed}"));
        evidence.count(tally);
    });
}

/// Runs a simulation for each seed, and asserts that so many show these events.
/// `IDEMPOTENT_TEST_SIM=5000` runs so many seeds, in place of the usual number, and `480..500` runs
/// those.
fn for_each_seed(
    about: &str,
    usually: u64,
    seen: &[&'static str],
    simulate: impl AsyncFn(u64, &mut Tally) + Send,
) {
    let seeds = seeds("IDEMPOTENT_TEST_SIM", usually);
    let work = move || {
        let mut tally = Tally::default();
        for seed in seeds.clone() {
            runtime_here().block_on(simulate(seed, &mut tally));
        }
        if are_enough(&seeds, usually) {
            tally.assert_saw(seen, about);
        }
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name(format!("simulations {about}"));
        let ended = thread.spawn_scoped(scope, work).expect("a thread").join();
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// Lets every call be made, waits until it is over, and asks how every key ended.
async fn run(mut stage: Stage, on_crash: Option<OnCrash>) -> Evidence {
    let (diary, mut calls) = (Diary::default(), JoinSet::new());
    for number in 0..CALLS {
        let call = Call::draw(&mut stage.rng, number, on_crash);
        let process = stage.rng.random_range(0..stage.processes.len());
        let call = make(&stage, &diary, process, call);
        stage.spawn(&mut calls, process, call);
    }
    let mut operator = |stage: &mut Stage| {
        let (key, resumes) = (stage.rng.random_range(0..KEYS), stage.rng.random());
        let idem = stage.processes[0].idem.clone();
        stage.asides.spawn(callers::settle(idem, key, resumes));
    };
    let mut told = stage.play(calls, &mut operator).await;
    let last = stage.calm().await;
    for key in 0..KEYS {
        let on_crash = on_crash.unwrap_or(OnCrash::Rerun);
        let call = Call::last(key, CALLS + key as usize, on_crash);
        let answer = make(&stage, &diary, last, call).await;
        let answer = answer.expect("nobody leaves");
        assert_is_answered(&answer, &format!("seed {}: key {key}", stage.seed));
        told.push(answer);
    }
    stage.drain().await;
    Evidence {
        ledger: stage.conditions.ledger(),
        deeds: diary.all(),
        left: CALLS + KEYS as usize - told.len(),
        told,
        faults: stage.conditions.faults(),
        budget: stage.budget,
        profile: stage.met_profile(),
    }
}

fn make(
    stage: &Stage,
    diary: &Diary,
    process: usize,
    call: Call,
) -> impl Future<Output = Option<Told>> + Send + use<> {
    let process = &stage.processes[process];
    call.make(
        process.idem.clone(),
        process.timer.clone(),
        stage.conditions.clone(),
        diary.clone(),
    )
}

/// V10: one lease after the simulation there is an answer.
fn assert_is_answered(answer: &Told, about: &str) {
    let is_open = |error: &Error| {
        matches!(
            error,
            Error::InProgress { .. } | Error::Store(_) | Error::LeaseLost { .. }
        )
    };
    let refused = matches!(&answer.result, Err(Failure::Refused(error)) if is_open(error));
    assert!(!refused, "{about} is still not answered: {answer:?}");
}
