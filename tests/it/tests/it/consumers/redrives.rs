//! Messages that an operator puts back from the dead letters.

use std::{io, time::Duration};

use idempotent_runtime::{
    OnCrash,
    consumer::{Consumer, DeadLetterReason, Disposition},
};

use super::{Refused, assert_ack, assert_dead, assert_retry, begin, consumer, consumer_with};
use crate::harness::World;

on_every_store![
    i17_a_dead_letter_that_is_put_back_runs_and_keeps_its_history,
    i17_a_message_that_had_its_effect_is_not_put_back,
    i17_a_message_that_runs_is_not_put_back,
    mend_03_a_message_whose_consumer_vanished_counts_as_on_crash_makes_of_it,
    mend_03_the_stricter_policy_counts,
];

async fn redrive(world: &World, consumer: &Consumer, n: u32) -> Disposition {
    let message = consumer.message("m").redrive(n).payload("an order");
    message
        .run(async |_| {
            world.happened("m");
            Ok::<_, io::Error>(())
        })
        .await
}

async fn i17_a_dead_letter_that_is_put_back_runs_and_keeps_its_history(world: World) {
    let consumer = consumer(&world.owner().await);
    for n in 0..2 {
        let message = consumer.message("m").redrive(n).payload("an order");
        let failed = message.record_errors().run(async |_| Err::<(), _>(Refused));
        assert_dead(failed.await, DeadLetterReason::Failed);
    }
    assert_ack(redrive(&world, &consumer, 2).await, false);
    for n in [2, 3, 4] {
        assert_ack(redrive(&world, &consumer, n).await, true);
    }
    assert_eq!(world.runs("m"), 1);
    assert_eq!(world.records().await.len(), 3, "each has a record");
}

async fn i17_a_message_that_had_its_effect_is_not_put_back(world: World) {
    let consumer = consumer(&world.owner().await);
    assert_ack(redrive(&world, &consumer, 0).await, false);
    assert_ack(redrive(&world, &consumer, 1).await, true);
    assert_eq!(world.runs("m"), 1);
}

async fn i17_a_message_that_runs_is_not_put_back(world: World) {
    let owner = world.owner().await;
    let consumer = consumer(&owner);
    let (gate, task) = begin(&owner, &consumer).await;
    assert_retry(redrive(&world, &consumer, 1).await);
    gate.open();
    assert_ack(task.await.expect("no panic"), false);
    assert_eq!(world.runs("m"), 0);
}

/// Begins a message in a process that dies, under this policy.
async fn vanished(world: &World, on_crash: OnCrash) {
    let dead = world.owner().await;
    let its = consumer_with(&dead, |builder| builder.on_crash(on_crash));
    let (_gate, task) = begin(&dead, &its).await;
    dead.die_in(task).await;
    world.advance(Duration::from_secs(31)).await;
}

async fn mend_03_a_message_whose_consumer_vanished_counts_as_on_crash_makes_of_it(world: World) {
    vanished(&world, OnCrash::Uncertain).await;
    let next = world.owner().await;
    for on_crash in [OnCrash::Rerun, OnCrash::Uncertain] {
        let consumer = consumer_with(&next, |builder| builder.on_crash(on_crash));
        for n in 1..=2 {
            let dead = redrive(&world, &consumer, n).await;
            assert_dead(dead, DeadLetterReason::Uncertain);
        }
    }
    assert_eq!(world.runs("m"), 0, "the first one may have had its effect");
}

/// The redrive has a stricter policy than the message had, and then the same.
async fn mend_03_the_stricter_policy_counts(world: World) {
    vanished(&world, OnCrash::Rerun).await;
    let next = world.owner().await;
    let strict = consumer_with(&next, |builder| builder.on_crash(OnCrash::Uncertain));
    let dead = redrive(&world, &strict, 1).await;
    assert_dead(dead, DeadLetterReason::Uncertain);
    assert_eq!(world.runs("m"), 0);

    let consumer = consumer(&next);
    assert_ack(redrive(&world, &consumer, 1).await, false);
    assert_eq!(world.runs("m"), 1, "its policy is to run again");
}
