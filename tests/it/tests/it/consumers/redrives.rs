//! Messages that an operator puts back from the dead letters.

use std::io;

use idempotent_runtime::consumer::{Consumer, DeadLetterReason, Disposition};

use super::{Refused, assert_ack, assert_dead, assert_retry, begin, consumer};
use crate::harness::World;

on_every_store![
    i17_a_dead_letter_that_is_put_back_runs_and_keeps_its_history,
    i17_a_message_that_had_its_effect_is_not_put_back,
    i17_a_message_that_runs_is_not_put_back,
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
