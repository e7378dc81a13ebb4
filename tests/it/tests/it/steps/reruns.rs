//! The state that a takeover finds.

use std::collections::HashSet;

use idempotent_runtime::{
    CallOutcome, Error, OnCrash, RecordChange, current, record::State, step,
    testing::StoreOperation,
};

use super::{PARTS, Trip, successor};
use crate::{
    answers::{is_parked, is_reused},
    harness::World,
};

on_every_store![
    j01_a_takeover_goes_on_where_the_attempt_before_stopped,
    j01_an_error_of_ours_gives_the_call_back,
    j01_a_call_that_is_given_back_binds_its_arguments,
    j01_a_call_at_most_once_is_given_back_too,
    j08_what_a_step_gave_is_there_after_a_takeover,
    j16_a_step_that_ends_its_process_each_time_parks_the_call,
    j17_a_takeover_that_is_given_back_counts_nothing,
    a_step_costs_one_write_and_one_look_in_a_takeover,
];

async fn j01_a_takeover_goes_on_where_the_attempt_before_stopped(world: World) {
    for vanishes_after in 1..=PARTS {
        let world = world.clone();
        let trip = Trip::of(&world, &world.owner().await);
        let before = trip.runs();
        trip.vanishes_after(vanishes_after).await;
        let owner = successor(&world).await;
        let trip = Trip::of(&world, &owner);
        let keys = trip.call().await.expect("it goes on");
        let each: Vec<_> = before.iter().map(|runs| runs + 1).collect();
        assert_eq!(trip.runs(), each, "behind part {vanishes_after}");
        let different: HashSet<_> = keys.iter().collect();
        assert_eq!(
            different.len(),
            keys.len(),
            "each step has a key of its own"
        );
        owner.assert_answers(&[CallOutcome::ExecutedAfterTakeover]);
        // The next round begins a life of its own.
        world
            .advance(std::time::Duration::from_secs(48 * 3600))
            .await;
    }
}

async fn j01_an_error_of_ours_gives_the_call_back(world: World) {
    let owner = world.owner().await;
    for part in 1..PARTS {
        let answer = Trip::of(&world, &owner).failing_after(part).call().await;
        assert!(matches!(answer, Err(Error::InvalidPolicy(_))), "{answer:?}");
        let record = world.record().await;
        assert_eq!(record.state, State::Running);
        assert_eq!(record.attempt, 0, "it counts nothing");
    }
    let trip = Trip::of(&world, &owner);
    let first = trip.call().await.expect("it goes on");
    assert_eq!(trip.runs(), [1; PARTS as usize]);
    assert_eq!(trip.call().await, Ok(first));
    use RecordChange::{Claimed, Recorded, Stopped, TakenOver};
    owner.assert_steps(&[
        Claimed, Stopped, TakenOver, Stopped, TakenOver, Stopped, TakenOver, Recorded,
    ]);
}

async fn j01_a_call_that_is_given_back_binds_its_arguments(world: World) {
    let owner = world.owner().await;
    let first = Trip::of(&world, &owner).failing_after(1).call().await;
    assert!(first.is_err());
    let other = owner.call("trip").key("k").arguments(&"others");
    let answer = other.run(async |_| Ok::<_, Error>(())).await;
    assert!(is_reused(&answer), "{answer:?}");
}

/// No holder vanished, so nothing is uncertain.
async fn j01_a_call_at_most_once_is_given_back_too(world: World) {
    let owner = world.owner().await;
    let call = |ends: bool| {
        let world = world.clone();
        let call = owner.call("once").key("k").on_crash(OnCrash::Uncertain);
        call.release_errors().run(async move |_| {
            let body = async |_| {
                world.happened("part");
                Ok::<_, Error>(7)
            };
            let value = step("part", body).await?;
            match ends {
                true => Ok(value),
                false => Err(Error::InvalidPolicy("a planned error")),
            }
        })
    };
    assert!(call(false).await.is_err());
    assert!(call(false).await.is_err());
    assert_eq!(call(true).await, Ok(7));
    assert_eq!(world.runs("part"), 1);
}

async fn j08_what_a_step_gave_is_there_after_a_takeover(world: World) {
    let trip = Trip::of(&world, &world.owner().await);
    trip.vanishes_after(2).await;
    let owner = successor(&world).await;
    let call = owner.call("trip").key("k").arguments(&PARTS);
    let trip = Trip::of(&world, &owner);
    let (one, two, is_takeover) = call
        .run(async |attempt| {
            let (one, two) = (trip.part(1).await?, trip.part(2).await?);
            Ok::<_, Error>((one, two, attempt.is_takeover()))
        })
        .await
        .expect("it goes on");
    assert_eq!(trip.runs(), [1, 1, 0, 0]);
    assert!(is_takeover && one != two);
}

async fn j16_a_step_that_ends_its_process_each_time_parks_the_call(world: World) {
    let mut attempts = 0;
    loop {
        let owner = world.owner_with(|builder| builder.max_takeovers(2)).await;
        let gate = idempotent_runtime::testing::Gate::new();
        let held = gate.clone();
        let dies = async move |_| {
            held.pass().await;
            Ok::<_, Error>(())
        };
        let call = owner.call("trip").key("k");
        let call = tokio::spawn(call.run(async |_| step("dies", dies).await));
        tokio::select! {
            () = gate.arrived(1) => attempts += 1,
            () = tokio::task::yield_now(), if call.is_finished() => {
                let answer = call.await.expect("no panic");
                assert!(is_parked(&answer), "{answer:?}");
                break;
            }
        }
        owner.die_in(call).await;
        world.advance(crate::charge::LEASE).await;
        if attempts == 3 {
            let owner = world.owner_with(|builder| builder.max_takeovers(2)).await;
            let call = owner.call("trip").key("k");
            let answer = call.run(async |_| Ok::<_, Error>(())).await;
            assert!(is_parked(&answer), "{answer:?}");
            break;
        }
    }
    assert_eq!(attempts, 3);
}

async fn j17_a_takeover_that_is_given_back_counts_nothing(world: World) {
    let first = Trip::of(&world, &world.owner().await);
    first.vanishes_after(1).await;
    world.advance(crate::charge::LEASE).await;
    let owner = world.owner_with(|builder| builder.max_takeovers(1)).await;
    for _ in 0..5 {
        let answer = Trip::of(&world, &owner).failing_after(1).call().await;
        assert!(matches!(answer, Err(Error::InvalidPolicy(_))), "{answer:?}");
    }
    let trip = Trip::of(&world, &owner);
    trip.call().await.expect("it is not parked");
    assert_eq!(trip.runs(), [1; PARTS as usize]);
}

async fn a_step_costs_one_write_and_one_look_in_a_takeover(world: World) {
    let owner = world.owner().await;
    let calls = |of| owner.store.calls(of);
    let answer = Trip::of(&world, &owner).failing_after(2).call().await;
    assert!(answer.is_err());
    assert_eq!(
        (
            calls(StoreOperation::LoadSteps),
            calls(StoreOperation::WriteStep)
        ),
        (0, 2)
    );
    Trip::of(&world, &owner).call().await.expect("it goes on");
    assert_eq!(
        (
            calls(StoreOperation::LoadSteps),
            calls(StoreOperation::WriteStep)
        ),
        (4, 4)
    );

    let other = owner.call("none").key("k");
    let number = other
        .run(async |_| Ok::<_, Error>(current().number()))
        .await;
    assert_eq!(number, Ok(1));
    assert_eq!(
        calls(StoreOperation::LoadSteps),
        4,
        "a body without steps asks for none"
    );
}
