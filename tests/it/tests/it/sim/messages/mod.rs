//! Messages that come in copies, again, and back from the dead letters: drawn from a seed, on the
//! store with faults.

mod delivery;
mod judge;

use idempotent_runtime::OnCrash;
use rand::RngExt;
use tokio::task::JoinSet;

use self::{
    delivery::{Delivery, id_of},
    judge::Evidence,
};
use super::{
    for_each_seed,
    stage::{Notes, Stage},
};

/// How many messages there are, how often each may be put back, and how many deliveries come.
const MESSAGES: u32 = 3;
const REDRIVES: u32 = 2;
const DELIVERIES: usize = 30;

/// From which delivery on a released error makes a dead letter.
const MAX_DELIVERIES: u32 = 4;

/// How many simulations run, unless another number is asked for.
const USUALLY: u64 = 60;

/// The events that so many simulations show.
const SEEN: &[&str] = &[
    "a consumer that left, or died",
    "a handler",
    "a panic",
    "a redrive that ran",
    "acknowledged",
    "acknowledged as a replay",
    "dead: exhausted",
    "dead: failed",
    "dead: key_reused",
    "dead: parked",
    "dead: uncertain",
    "retried for an error of ours",
    "retried for its own error",
    "retried without an error",
];

#[test]
fn i17_dispositions_follow_the_record_in_the_simulation() {
    for_each_seed("messages", USUALLY, SEEN, async |seed, tally| {
        let evidence = run(Stage::new(seed)).await;
        evidence.judge(&format!("seed {seed}"));
        evidence.count(tally);
    });
}

async fn run(mut stage: Stage) -> Evidence {
    let on_crash = [OnCrash::Rerun, OnCrash::Uncertain][stage.rng.random_range(0..2)];
    let (deeds, mut calls) = (Notes::default(), JoinSet::new());
    for number in 0..DELIVERIES {
        let delivery = Delivery::draw(&mut stage.rng, number, on_crash);
        let at = stage.rng.random_range(0..stage.processes.len());
        let process = &stage.processes[at];
        let (idem, timer) = (process.idem.clone(), process.timer.clone());
        let call = delivery.make(idem, timer, stage.conditions.clone(), deeds.clone());
        stage.spawn(&mut calls, at, call);
    }
    let mut operator = |stage: &mut Stage| {
        let (message, redrive) = (
            stage.rng.random_range(0..MESSAGES),
            stage.rng.random_range(0..=REDRIVES),
        );
        let (idem, resumes) = (stage.processes[0].idem.clone(), stage.rng.random());
        let settle = async move {
            let Ok(settle) = idem.settle_id(id_of(message, redrive)).await else {
                return;
            };
            if resumes {
                drop(settle.resume().await);
            } else {
                drop(settle.with_value(&()).await);
            }
        };
        stage.asides.spawn(settle);
    };
    let mut told = stage.play(calls, &mut operator).await;
    let last = stage.calm().await;
    let mut calls = JoinSet::new();
    for message in 0..MESSAGES {
        let number = DELIVERIES + message as usize;
        let delivery = Delivery::last(message, number, on_crash);
        let process = &stage.processes[last];
        let (idem, timer) = (process.idem.clone(), process.timer.clone());
        let call = delivery.make(idem, timer, stage.conditions.clone(), deeds.clone());
        stage.spawn(&mut calls, last, call);
    }
    told.extend(stage.play(calls, &mut |_| {}).await);
    stage.drain().await;
    Evidence {
        ledger: stage.conditions.ledger(),
        deeds: deeds.all(),
        unrecorded: stage.unrecorded.all(),
        left: DELIVERIES + MESSAGES as usize - told.len(),
        told,
        on_crash,
    }
}
