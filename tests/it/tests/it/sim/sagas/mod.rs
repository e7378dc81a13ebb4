//! Calls in steps, of which some are undone: drawn from a seed, on the store with faults.

mod answers;
mod judge;
mod plan;
mod seen;
mod trip;

use std::{sync::Arc, time::Duration};

use idempotent_runtime::InFlight;
use rand::RngExt;
use tokio::task::JoinSet;

use self::{
    judge::Evidence,
    plan::Plan,
    trip::{Deed, Failure, Hand, Told, Trip, is_open},
};
use super::{
    LEASE, for_each_seed,
    stage::{Notes, Stage},
};
use crate::scripts::Form;

/// How many keys the calls of a simulation share, and how many calls there are.
const KEYS: u32 = 3;
const CALLS: usize = 30;

/// How many simulations run, unless another number is asked for.
const USUALLY: u64 = 60;

/// The events that so many simulations show.
const SEEN: &[&str] = &[
    "a call that failed, undone",
    "a caller that left, or died",
    "a decision",
    "a decision taken over",
    "a panic",
    "a record parked with open undos",
    "a released step",
    "a replayed step",
    "a step",
    "a step of at most once",
    "a takeover",
    "a value",
    "an undo",
    "an undo that failed",
    "an undo without a value",
    "told that arguments of a step changed",
    "told that nobody knows",
    "told that something is not undone",
];

#[test]
fn j21_steps_and_undos_hold_in_the_simulation() {
    for_each_seed("steps", USUALLY, SEEN, async |seed, tally| {
        let evidence = run(Stage::new(seed)).await;
        evidence.judge(&format!("seed {seed}"));
        evidence.count(tally);
    });
}

async fn run(mut stage: Stage) -> Evidence {
    let plans: Vec<_> = (0..KEYS).map(|_| Plan::draw(&mut stage.rng)).collect();
    let plans: Vec<_> = plans.into_iter().map(Arc::new).collect();
    let (notes, mut calls) = (Notes::default(), JoinSet::new());
    for _ in 0..CALLS {
        let key = stage.rng.random_range(0..KEYS);
        let trip = draw(&mut stage, key, &plans);
        let process = stage.rng.random_range(0..stage.processes.len());
        let call = make(&stage, &notes, process, trip);
        stage.spawn(&mut calls, process, call);
    }
    let mut operator = |stage: &mut Stage| {
        let key = stage.rng.random_range(0..KEYS);
        let hand = [Hand::Resumes, Hand::Undoes, Hand::Settles][stage.rng.random_range(0..3)];
        let idem = stage.processes[0].idem.clone();
        stage.asides.spawn(trip::settle(idem, key, hand));
    };
    let mut told = stage.play(calls, &mut operator).await;
    let last = stage.calm().await;
    let mut calls = JoinSet::new();
    for key in 0..KEYS {
        let trip = Trip {
            form: Form::Attached,
            comes: Duration::ZERO,
            leaves: None,
            is_calm: true,
            ..draw(&mut stage, key, &plans)
        };
        let call = make(&stage, &notes, last, trip);
        stage.spawn(&mut calls, last, call);
    }
    let answers = stage.play(calls, &mut |_| {}).await;
    assert_eq!(answers.len(), KEYS as usize, "seed {}", stage.seed);
    for answer in answers {
        let refused = matches!(&answer.result, Err(Failure::Refused(error)) if is_open(error));
        let seed = stage.seed;
        assert!(
            !refused,
            "seed {seed}: it is still not answered: {answer:?}"
        );
        told.push(answer);
    }
    stage.drain().await;
    Evidence {
        ledger: stage.conditions.ledger(),
        steps: stage.conditions.steps(),
        deeds: notes.all(),
        left: CALLS + KEYS as usize - told.len(),
        told,
        faults: stage.conditions.faults(),
        budget: stage.budget,
        profile: stage.profile,
        plans,
    }
}

fn draw(stage: &mut Stage, key: u32, plans: &[Arc<Plan>]) -> Trip {
    let rng = &mut stage.rng;
    let (comes, leaves) = (rng.random_range(0.0..10.0), rng.random_range(0.0..3.0));
    Trip {
        key,
        plan: Arc::clone(&plans[key as usize]),
        seed: stage.seed,
        form: match rng.random_range(0..4) {
            0 => Form::Detached,
            _ => Form::Attached,
        },
        in_flight: match rng.random_range(0..4) {
            0 => InFlight::Reject,
            _ => InFlight::Wait(LEASE),
        },
        comes: LEASE.mul_f64(comes),
        leaves: (rng.random_range(0..3) == 0).then(|| LEASE.mul_f64(leaves)),
        is_calm: false,
    }
}

fn make(
    stage: &Stage,
    notes: &Notes<Deed>,
    process: usize,
    trip: Trip,
) -> impl Future<Output = Option<Told>> + Send + use<> {
    let process = &stage.processes[process];
    trip.make(
        process.idem.clone(),
        process.timer.clone(),
        stage.conditions.clone(),
        notes.clone(),
    )
}
