//! Takeovers: how many there may be, and what decides where running again is not right.

mod asked;
mod released;
mod settled;
mod strictness;
mod unbegun;

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use idempotent_runtime::{
    Attempt, CallOutcome, Error, InFlight, NotSettled, OnCrash, Reconciled, RecordChange, Status,
    Verdict,
    record::State,
    testing::{Fault, On, StoreOperation},
};
use serde::{Deserialize, Serialize};
use tokio::task::yield_now;

use crate::{
    answers::{is_parked, is_reused, is_uncertain},
    charge::{
        Charge, Found, LEASE, MODES, Mode, abort, charges_behind, is_told, lapsed, lapsed_under,
        loses_behind, settle, vanished_under,
    },
    harness::{Owner, World, not_settled, while_time_goes_on},
};

on_every_store![
    d21_takeover_budget,
    d21_d23_what_is_left_to_be_settled_is_told_although_the_answer_was_lost,
    d21_what_is_parked_is_told_although_the_answer_comes_a_lease_later,
    d21_dropped_bodies_count_as_takeovers,
    d22_takeover_policy_reconcile_completed,
    d22_takeover_policy_reconcile_not_done,
    d22_takeover_policy_reconcile_unknown,
    d22_a_reconciliation_that_vanishes_is_asked_again,
    d23_takeover_policy_indeterminate,
    d23_a_paused_holder_may_still_complete_what_is_uncertain,
    d23_what_somebody_settles_is_told_and_answered,
    d25_started_is_durable_first,
    d27_fuzz_mutual_exclusion,
];

/// An operator is to be woken for it.
async fn d21_d23_what_is_left_to_be_settled_is_told_although_the_answer_was_lost(world: World) {
    for (key, mode, step, answer) in [
        (
            "parked",
            Mode::Rerun,
            RecordChange::Parked,
            CallOutcome::Parked,
        ),
        (
            "uncertain",
            Mode::Uncertain,
            RecordChange::LeftUncertain,
            CallOutcome::Uncertain,
        ),
    ] {
        lapsed_under(&world, key, mode).await;
        let owner = world.owner_with(|builder| builder.max_takeovers(0)).await;
        owner.fault(StoreOperation::Ending, On::Call(1), Fault::LoseAnswer);

        let call = Charge::of(&world, &owner).key(key).mode(mode);
        let refused = while_time_goes_on(&owner.timer, async move { call.call().await }).await;

        assert!(refused.is_err(), "{key}: {refused:?}");
        assert_eq!(owner.log.steps(), [step], "{key}");
        assert_eq!(owner.log.answers(), [answer], "{key}");
    }
}

async fn d21_what_is_parked_is_told_although_the_answer_comes_a_lease_later(world: World) {
    lapsed(&world, Mode::Rerun).await;
    let owner = world.owner_with(|builder| builder.max_takeovers(0)).await;
    let late = owner.delays_answer(StoreOperation::Ending, On::Call(1));
    let call = Charge::of(&world, &owner).spawn();
    late.arrived(1).await;
    owner.timer.advance(LEASE);

    late.open();

    let refused = call.await.expect("no panic");
    assert!(matches!(refused, Err(Error::Parked { .. })), "{refused:?}");
    assert_eq!(owner.log.steps(), [RecordChange::Parked]);
}

async fn d21_takeover_budget(world: World) {
    let budgeted = || world.owner_with(|builder| builder.max_takeovers(2));
    for _attempt in 1..=3 {
        let owner = budgeted().await;
        Charge::of(&world, &owner).vanishes().await;
        world.advance(LEASE).await;
    }
    let owner = budgeted().await;

    for _call in 0..2 {
        let answer = Charge::of(&world, &owner).call().await;
        assert!(
            matches!(answer, Err(Error::Parked { attempts: 3, .. })),
            "{answer:?}"
        );
    }
    assert_eq!(world.runs("k"), 3);
    let status = owner.idem.lookup("charge", None::<&str>, "k").await;
    assert!(
        matches!(status, Ok(Status::Parked { attempts: 3 })),
        "{status:?}"
    );

    assert_eq!(settle(&owner, "k").resume().await, Ok(()));
    Charge::of(&world, &owner).charges().await;
    assert_eq!(world.runs("k"), 4);
    world.advance(LEASE * 10).await;
    // A finished call is never parked.
    Charge::of(&world, &owner).charges().await;
}

async fn d21_dropped_bodies_count_as_takeovers(world: World) {
    let owner = world.owner_with(|builder| builder.max_takeovers(2)).await;
    for attempt in 1..=3 {
        let (call, _gate) = Charge::of(&world, &owner).begun().await;
        abort(call).await;
        owner.log.await_steps(RecordChange::Stopped, attempt).await;
    }

    is_told(&Charge::of(&world, &owner), is_parked).await;
    assert_eq!(world.runs("k"), 3);
}

async fn d22_takeover_policy_reconcile_completed(world: World) {
    lapsed(&world, Mode::Reconcile(Found::Happened)).await;
    let owner = world.owner().await;

    for _call in 0..2 {
        finds(&world, &owner).await;
    }

    assert_eq!(world.runs("k"), 1);
    owner.assert_steps(&[RecordChange::Reconciling, RecordChange::Recorded]);
    owner.assert_answers(&[CallOutcome::Reconciled, CallOutcome::Replayed]);
}

async fn d22_takeover_policy_reconcile_not_done(world: World) {
    let mode = Mode::Reconcile(Found::Nothing);
    lapsed(&world, mode).await;
    let owner = world.owner().await;

    for _call in 0..2 {
        Charge::of(&world, &owner).mode(mode).charges().await;
    }

    assert_eq!(world.runs("k"), 2);
    owner.assert_steps(&[RecordChange::Reconciling, RecordChange::Recorded]);
}

async fn d22_takeover_policy_reconcile_unknown(world: World) {
    lapsed(&world, Mode::Reconcile(Found::Unknown)).await;
    let owner = world.owner().await;

    ask_in_vain(&world, &owner).await;
    assert_eq!(world.runs("k"), 1);

    finds(&world, &owner).await;
}

/// Asks, and is told that it happened.
async fn finds(world: &World, owner: &Owner) {
    let asks = Charge::of(world, owner).mode(Mode::Reconcile(Found::Happened));
    assert_eq!(asks.call().await, Ok("found".into()));
}

/// Asks again and again, and the outcome stays unknown: the record stays as it is, and no body
/// runs.
async fn ask_in_vain(world: &World, owner: &Owner) {
    for _call in 0..20 {
        let mode = Mode::Reconcile(Found::Unknown);
        is_told(&Charge::of(world, owner).mode(mode), is_uncertain).await;
        let record = world.record().await;
        assert_eq!((record.state, record.attempt), (State::Uncertain, 1));
    }
}

async fn d22_a_reconciliation_that_vanishes_is_asked_again(world: World) {
    lapsed(&world, Mode::Reconcile(Found::Nothing)).await;
    // Its reconciliation says to run again, and it vanishes inside the body.
    lapsed(&world, Mode::Reconcile(Found::Nothing)).await;
    let owner = world.owner().await;

    finds(&world, &owner).await;

    assert_eq!(world.runs("k"), 2);
}

async fn d23_takeover_policy_indeterminate(world: World) {
    lapsed(&world, Mode::Uncertain).await;
    let owner = world.owner().await;

    for mode in [Mode::Uncertain, Mode::Rerun, Mode::Uncertain] {
        is_told(&Charge::of(&world, &owner).mode(mode), is_uncertain).await;
    }
    world.advance(LEASE * 10_000).await;
    assert_eq!(owner.idem.purge().await, Ok(0));
    let once = Charge::of(&world, &owner).mode(Mode::Uncertain);
    is_told(&once, is_uncertain).await;
    // No operator may have it run again.
    let resumed = settle(&owner, "k").resume().await;
    assert_eq!(not_settled(resumed), Some(NotSettled::NotParked));

    let settled = settle(&owner, "k").with_value(&"the bank knows").await;

    assert!(settled.is_ok());
    assert_eq!(once.call().await, Ok("the bank knows".into()));
    assert_eq!(world.runs("k"), 1);
}

async fn d23_a_paused_holder_may_still_complete_what_is_uncertain(world: World) {
    let (first, second) = (world.owner().await, world.owner().await);
    let charge = Charge::of(&world, &first).mode(Mode::Uncertain);
    let (paused, gate) = charge.begun().await;
    world.advance_store(LEASE).await;
    is_told(&Charge::of(&world, &second), is_uncertain).await;

    charges_behind(&gate, paused).await;
    Charge::of(&world, &second).charges().await;
    assert_eq!(world.runs("k"), 1);
}

async fn d25_started_is_durable_first(world: World) {
    for (number, mode) in MODES.into_iter().enumerate() {
        let (first, after_a_death) = (format!("first {number}"), format!("again {number}"));
        lapsed_under(&world, &after_a_death, mode).await;

        let answer = sees_its_claim(&world, &first, mode).await;
        assert_eq!(answer, Ok(true), "{mode:?}");

        let answer = sees_its_claim(&world, &after_a_death, mode).await;
        match mode {
            Mode::Uncertain | Mode::Reconcile(Found::Unknown) => {
                assert!(is_uncertain(&answer), "{mode:?}: {answer:?}");
            }
            // The answer of the reconciling function, and no body ran.
            Mode::Reconcile(Found::Happened) => assert_eq!(answer, Ok(false)),
            _ => assert_eq!(answer, Ok(true), "{mode:?}, after a death"),
        }
    }
}

/// A charge in this mode, whose body tells whether another client of the store sees the very claim
/// that it runs under.
async fn sees_its_claim(world: &World, key: &str, mode: Mode) -> Result<bool, Error> {
    let (owner, observer) = (world.owner().await, world.store().await);
    let call = owner.call("charge").key(key).arguments(&1);
    let key = key.to_owned();
    let body = move |attempt: Attempt| async move {
        let records = observer.scan(None, 100).await.expect("the store lists");
        let mut of_key = records
            .iter()
            .filter(|(_, record)| record.subject.key == key.as_bytes());
        let stands = of_key.next().map(|(_, record)| {
            let claim = (record.attempt, Some(record.token));
            record.state == State::Running && claim == (attempt.number(), attempt.fencing_token())
        });
        Ok::<_, Error>(stands == Some(true))
    };
    match mode {
        Mode::Rerun => call.run(body).await,
        Mode::Uncertain => call.on_crash(OnCrash::Uncertain).run(body).await,
        Mode::Detach => call.run_detached(body).await,
        Mode::Reconcile(found) => {
            let ask = |_| async move {
                match found {
                    Found::Happened => Reconciled::Happened(false),
                    Found::Unknown => Reconciled::Unknown,
                    Found::Nothing => Reconciled::RunAgain,
                }
            };
            call.reconcile(ask, body).await
        }
    }
}

async fn d27_fuzz_mutual_exclusion(world: World) {
    const WORKERS: usize = 4;
    const ROUNDS: usize = 8;
    let counter = Arc::new(AtomicU64::new(0));
    let inside = Arc::new(AtomicUsize::new(0));
    let mut workers = Vec::new();
    for _worker in 0..WORKERS {
        let owner = world.owner().await;
        let (counter, inside) = (Arc::clone(&counter), Arc::clone(&inside));
        workers.push(tokio::spawn(async move {
            for _round in 0..ROUNDS {
                let (counter, inside) = (Arc::clone(&counter), Arc::clone(&inside));
                let call = owner.call("count").key("k");
                let call = call.in_flight(InFlight::Wait(LEASE)).release_errors();
                let answer = call
                    .run(move |_| async move {
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "one at a time");
                        let read = counter.load(Ordering::SeqCst);
                        for _await in 0..3 {
                            yield_now().await;
                        }
                        counter.store(read + 1, Ordering::SeqCst);
                        inside.fetch_sub(1, Ordering::SeqCst);
                        // Nothing that could be replayed: the next one adds as well.
                        Err::<(), _>(Error::InvalidPolicy("released"))
                    })
                    .await;
                assert_eq!(answer, Err(Error::InvalidPolicy("released")));
            }
        }));
    }
    for worker in workers {
        worker.await.expect("no panic");
    }
    assert_eq!(counter.load(Ordering::SeqCst), (WORKERS * ROUNDS) as u64);
}

/// The word that an operator had from the bank.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Heard {
    Refused,
    NoAnswer(String),
}

impl From<Error> for Heard {
    fn from(error: Error) -> Self {
        Self::NoAnswer(error.to_string())
    }
}

async fn d23_what_somebody_settles_is_told_and_answered(world: World) {
    for (key, mode) in [("once", Mode::Uncertain), ("rerun", Mode::Rerun)] {
        vanished_under(&world, key, mode).await;
    }
    world.advance(LEASE).await;
    let owner = world.owner_with(|builder| builder.max_takeovers(0)).await;
    for _call in 0..2 {
        let once = Charge::of(&world, &owner).key("once").mode(Mode::Uncertain);
        assert!(is_uncertain(&once.call().await));
        is_told(&Charge::of(&world, &owner).key("rerun"), is_parked).await;
    }
    owner.assert_steps(&[RecordChange::LeftUncertain, RecordChange::Parked]);
    let answers = [CallOutcome::Uncertain, CallOutcome::Parked];
    assert_eq!(owner.log.answers(), [answers, answers].concat());

    for key in ["once", "rerun"] {
        let settled = settle(&owner, key).with_error(&Heard::Refused).await;
        assert!(settled.is_ok(), "{key}");
        let again = settle(&owner, key).as_done().await;
        assert_eq!(not_settled(again), Some(NotSettled::AlreadySettled));

        let status = owner.idem.lookup("charge", None::<&str>, key).await;
        assert!(matches!(status, Ok(Status::Failed(_))), "{status:?}");
        let call = owner.call("charge").key(key).arguments(&1);
        let answer = call.run(|_| async { Ok::<(), Heard>(()) }).await;
        assert_eq!(answer, Err(Heard::Refused));
        assert_eq!(world.runs(key), 1);
    }
    assert_eq!(owner.log.count(RecordChange::Settled), 2);
}
