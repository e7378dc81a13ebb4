//! Streams of numbers: drawn from a seed, on the store with faults.

mod judge;
mod worker;

use idempotent_runtime::OnCrash;
use rand::RngExt;
use tokio::task::JoinSet;

use self::{
    judge::Evidence,
    worker::{Note, Rules, Worker},
};
use super::{
    for_each_seed,
    stage::{Notes, Stage},
};

/// How many streams a simulation has, and how many workers each of them.
const STREAMS: u32 = 2;
const WORKERS: usize = 3;

/// How many simulations run, unless another number is asked for.
const USUALLY: u64 = 40;

/// The events that so many simulations show.
const SEEN: &[&str] = &[
    "a body",
    "a number applied",
    "a number replayed",
    "a number used up by an operator",
    "a gap",
    "a number released",
    "a number that is past",
    "a number that passed another one",
    "a takeover",
    "an error recorded",
    "told that nobody knows",
];

#[test]
fn i16_numbers_are_applied_once_and_in_order_in_the_simulation() {
    for_each_seed("numbers", USUALLY, SEEN, async |seed, tally| {
        let evidence = run(Stage::new(seed)).await;
        evidence.judge(&format!("seed {seed}"));
        evidence.count(tally);
    });
}

async fn run(mut stage: Stage) -> Evidence {
    let draw = |stage: &mut Stage| Rules {
        accepts_gaps: stage.rng.random_range(0..3) == 0,
        on_crash: [OnCrash::Rerun, OnCrash::Rerun, OnCrash::Uncertain]
            [stage.rng.random_range(0..3)],
    };
    let rules: Vec<_> = (0..STREAMS).map(|_| draw(&mut stage)).collect();
    let (notes, mut workers) = (Notes::default(), JoinSet::new());
    for stream in 0..STREAMS {
        for _ in 0..WORKERS {
            let process = stage.rng.random_range(0..stage.processes.len());
            let worker = worker(&mut stage, process, &notes, stream, &rules);
            stage.spawn(&mut workers, process, worker.deliver());
        }
    }
    let mut operator = |stage: &mut Stage| {
        let stream = stage.rng.random_range(0..STREAMS);
        let (ends, how) = (stage.rng.random(), stage.rng.random_range(0..2));
        let worker = worker(stage, 0, &notes, stream, &rules);
        let settle = async move { worker.settle(ends, how).await };
        stage.asides.spawn(settle);
    };
    stage.play(workers, &mut operator).await;
    let last = stage.calm().await;
    let mut workers = JoinSet::new();
    for stream in 0..STREAMS {
        let mut worker = worker(&mut stage, last, &notes, stream, &rules);
        worker.is_calm = true;
        stage.spawn(&mut workers, last, worker.finish());
    }
    let seed = stage.seed;
    let finished = stage.play(workers, &mut |_| {}).await.len();
    assert_eq!(finished, STREAMS as usize, "seed {seed}: a stream stands");
    stage.drain().await;
    Evidence {
        ledger: stage.conditions.ledger(),
        notes: notes.all(),
        rules,
        unrecorded: stage.unrecorded.all(),
    }
}

fn worker(
    stage: &mut Stage,
    process: usize,
    notes: &Notes<Note>,
    stream: u32,
    rules: &[Rules],
) -> Worker {
    let process = &stage.processes[process];
    Worker {
        idem: process.idem.clone(),
        timer: process.timer.clone(),
        conditions: stage.conditions.clone(),
        notes: notes.clone(),
        stream,
        rules: rules[stream as usize],
        seed: stage.rng.random(),
        is_calm: false,
    }
}
