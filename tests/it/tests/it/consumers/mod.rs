//! Consumers: what becomes of a message that is delivered once, twice, too often, or wrong.

mod bad_input;
mod batches;
mod holds;
mod holds_in_transactions;
mod kafka;
mod kept;
mod kept_in_transactions;
mod leases;
mod nested;
mod redrives;
mod told;
mod transactions;
mod unread;

use std::{io, time::Duration};

use idempotent_runtime::{
    BoxError, StoreErrorKind,
    consumer::{Consumer, ConsumerBuilder, DeadLetterReason, Disposition, OnFailure},
    testing::{Gate, On, StoreOperation},
};
use serde::{Deserialize, Serialize};

use crate::harness::{Owner, World, while_time_goes_on};

on_every_store![
    i01_a_duplicate_is_acknowledged_and_has_no_effect,
    i03_a_message_is_known_after_a_crash_before_its_acknowledgement,
    i04_a_message_whose_consumer_vanished_runs_again,
    i05_a_copy_of_a_message_that_runs_comes_again,
    i08_each_consumer_of_a_message_runs,
    i09_a_message_is_known_for_the_ttl_and_the_downtime,
    i14_a_message_that_kills_its_consumers_is_a_dead_letter,
    a_message_whose_handler_fails_comes_again_until_it_was_delivered_too_often,
    a_recorded_error_is_a_dead_letter_at_once,
    another_payload_under_the_same_id_is_a_dead_letter,
    an_outage_is_no_reason_to_lose_a_message,
    a_message_whose_outcome_is_not_written_comes_again,
];

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug, thiserror::Error, Serialize, Deserialize, PartialEq)]
#[error("the card is refused")]
struct Refused;

fn consumer(owner: &Owner) -> Consumer {
    consumer_with(owner, |builder| builder)
}

fn consumer_with(
    owner: &Owner,
    set_up: impl FnOnce(ConsumerBuilder) -> ConsumerBuilder,
) -> Consumer {
    let builder = owner
        .idem
        .consumer("billing")
        .ttl("7d")
        .broker_retention("3d");
    set_up(builder).build().expect("a consumer")
}

/// Delivers a message whose handler succeeds.
async fn deliver(world: &World, consumer: &Consumer, id: &str, delivery: u32) -> Disposition {
    let message = consumer.message(id).payload("an order").delivery(delivery);
    message
        .run(async |_| {
            world.happened(id);
            Ok::<_, io::Error>(())
        })
        .await
}

/// Delivers one whose handler fails.
async fn fail(world: &World, consumer: &Consumer, id: &str, delivery: u32) -> Disposition {
    let message = consumer.message(id).payload("an order").delivery(delivery);
    message
        .run(async |_| {
            world.happened(id);
            Err::<(), _>(Refused)
        })
        .await
}

fn is_ack(disposition: &Disposition, expected: bool) -> bool {
    matches!(disposition, Disposition::Ack { replayed } if *replayed == expected)
}

#[track_caller]
fn assert_ack(disposition: Disposition, replayed: bool) {
    assert!(is_ack(&disposition, replayed), "{disposition:?}");
}

#[track_caller]
fn assert_retry(disposition: Disposition) -> Option<BoxError> {
    match disposition {
        Disposition::Retry { after, error } => {
            assert!(after <= Duration::from_secs(30), "{after:?}");
            error
        }
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn assert_dead(disposition: Disposition, expected: DeadLetterReason) -> Option<BoxError> {
    match disposition {
        Disposition::DeadLetter { reason, error } if reason == expected => error,
        other => panic!("{other:?}"),
    }
}

async fn i01_a_duplicate_is_acknowledged_and_has_no_effect(world: World) {
    let consumer = consumer(&world.owner().await);
    assert_ack(deliver(&world, &consumer, "m", 1).await, false);
    for delivery in 2..4 {
        assert_ack(deliver(&world, &consumer, "m", delivery).await, true);
    }
    assert_eq!(world.runs("m"), 1);
}

/// The process dies between the record and the acknowledgement.
async fn i03_a_message_is_known_after_a_crash_before_its_acknowledgement(world: World) {
    let first = world.owner().await;
    assert_ack(deliver(&world, &consumer(&first), "m", 1).await, false);
    first.die();
    let next = consumer(&world.owner().await);
    assert_ack(deliver(&world, &next, "m", 2).await, true);
    assert_eq!(world.runs("m"), 1);
}

/// Begins to process a message, and stands inside its handler.
async fn begin(owner: &Owner, consumer: &Consumer) -> (Gate, tokio::task::JoinHandle<Disposition>) {
    let gate = Gate::new();
    let (its, consumer) = (gate.clone(), consumer.clone());
    let task = owner.spawn(async move {
        let message = consumer.message("m").payload("an order").delivery(1);
        message
            .run(async |_| {
                its.pass().await;
                Ok::<_, io::Error>(())
            })
            .await
    });
    gate.arrived(1).await;
    (gate, task)
}

async fn i04_a_message_whose_consumer_vanished_runs_again(world: World) {
    let dead = world.owner().await;
    let (_gate, task) = begin(&dead, &consumer(&dead)).await;
    dead.die_in(task).await;
    world.advance(Duration::from_secs(31)).await;

    let next = consumer(&world.owner().await);
    assert_ack(deliver(&world, &next, "m", 2).await, false);
    assert_eq!(world.runs("m"), 1);
}

async fn i05_a_copy_of_a_message_that_runs_comes_again(world: World) {
    let (one, other) = (world.owner().await, world.owner().await);
    let (gate, task) = begin(&one, &consumer(&one)).await;
    for delivery in [2, 100] {
        let copy = deliver(&world, &consumer(&other), "m", delivery).await;
        let error = assert_retry(copy).expect("it says why");
        assert!(error.to_string().contains("still running"), "{error}");
    }
    assert_eq!(world.runs("m"), 0);
    gate.open();
    assert_ack(task.await.expect("no panic"), false);
    assert_ack(deliver(&world, &consumer(&other), "m", 3).await, true);
}

async fn i08_each_consumer_of_a_message_runs(world: World) {
    let owner = world.owner().await;
    let other = owner.idem.consumer("mails").broker_retention("3d").build();
    let scoped = consumer_with(&owner, |builder| builder.scope("a tenant"));
    for consumer in [consumer(&owner), other.expect("a consumer"), scoped] {
        assert_ack(deliver(&world, &consumer, "m", 1).await, false);
        assert_ack(deliver(&world, &consumer, "m", 2).await, true);
    }
    assert_eq!(world.runs("m"), 3);
}

async fn i09_a_message_is_known_for_the_ttl_and_the_downtime(world: World) {
    let consumer = consumer(&world.owner().await);
    assert_ack(deliver(&world, &consumer, "m", 1).await, false);
    world.advance(7 * DAY + DAY / 2).await;
    assert_ack(deliver(&world, &consumer, "m", 2).await, true);
    world.advance(DAY).await;
    assert_ack(deliver(&world, &consumer, "m", 3).await, false);
    assert_eq!(world.runs("m"), 2);
}

async fn i14_a_message_that_kills_its_consumers_is_a_dead_letter(world: World) {
    for _ in 0..3 {
        let dead = world.owner().await;
        let of_few = consumer_with(&dead, |builder| builder.max_takeovers(2));
        let (_gate, task) = begin(&dead, &of_few).await;
        dead.die_in(task).await;
        world.advance(Duration::from_secs(31)).await;
    }
    let next = world.owner().await;
    let next = consumer_with(&next, |builder| builder.max_takeovers(2));
    let parked = deliver(&world, &next, "m", 4).await;
    assert_dead(parked, DeadLetterReason::Parked);
    assert_eq!(world.runs("m"), 0);
}

async fn a_message_whose_handler_fails_comes_again_until_it_was_delivered_too_often(world: World) {
    let owner = world.owner().await;
    let consumer = consumer_with(&owner, |builder| builder.max_deliveries(3));
    for delivery in 1..3 {
        let error = assert_retry(fail(&world, &consumer, "m", delivery).await);
        let error = error.expect("the handler's own");
        assert_eq!(error.downcast_ref(), Some(&Refused));
    }
    let exhausted = fail(&world, &consumer, "m", 3).await;
    let error = assert_dead(exhausted, DeadLetterReason::Exhausted);
    assert_eq!(error.expect("the last one").downcast_ref(), Some(&Refused));
    assert_eq!(world.runs("m"), 3);

    assert_retry(fail(&world, &consumer, "other", 1).await);
    assert_ack(deliver(&world, &consumer, "other", 2).await, false);
}

async fn a_recorded_error_is_a_dead_letter_at_once(world: World) {
    let owner = world.owner().await;
    for on_failure in [OnFailure::DeadLetter, OnFailure::Ack] {
        let consumer = consumer_with(&owner, |builder| {
            builder
                .scope(&format!("{on_failure:?}"))
                .on_failure(on_failure)
        });
        for delivery in 1..3 {
            let message = consumer.message("m").without_payload().delivery(delivery);
            let failed = message
                .record_errors()
                .run(async |_| {
                    world.happened("m");
                    Err::<(), _>(Refused)
                })
                .await;
            match on_failure {
                OnFailure::Ack => assert_ack(failed, delivery == 2),
                _ => {
                    let error = assert_dead(failed, DeadLetterReason::Failed);
                    assert_eq!(error.expect("it is told").downcast_ref(), Some(&Refused));
                }
            }
        }
    }
    assert_eq!(world.runs("m"), 2);
}

async fn another_payload_under_the_same_id_is_a_dead_letter(world: World) {
    let consumer = consumer(&world.owner().await);
    assert_ack(deliver(&world, &consumer, "m", 1).await, false);
    let bytes = consumer.message("m").payload_bytes(b"another order");
    let value = consumer.message("m").payload("another order");
    for other in [bytes, value] {
        let reused = other.run(async |_| Ok::<_, io::Error>(())).await;
        let error = assert_dead(reused, DeadLetterReason::KeyReused);
        assert!(error.is_some());
    }
}

async fn an_outage_is_no_reason_to_lose_a_message(world: World) {
    let owner = world
        .owner_with(|builder| builder.on_outage(idempotent_runtime::OnOutage::Open))
        .await;
    let consumer = consumer(&owner);
    owner.store.outage(StoreErrorKind::Unavailable);
    for delivery in [1, 100] {
        let (its, world) = (consumer.clone(), world.clone());
        let delivered = async move { deliver(&world, &its, "m", delivery).await };
        let disposition = while_time_goes_on(&owner.timer, delivered).await;
        assert!(assert_retry(disposition).is_some());
    }
    assert_eq!(world.runs("m"), 0, "it does not run unprotected");
    owner.store.heal();
    assert_ack(deliver(&world, &consumer, "m", 3).await, false);
}

async fn a_message_whose_outcome_is_not_written_comes_again(world: World) {
    let owner = world.owner().await;
    let consumer = consumer(&owner);
    owner.fails(
        StoreOperation::Ending,
        On::Every,
        StoreErrorKind::Unavailable,
    );
    let (its, world_) = (consumer.clone(), world.clone());
    let delivered = async move { deliver(&world_, &its, "m", 1).await };
    let unwritten = while_time_goes_on(&owner.timer, delivered).await;
    assert!(assert_retry(unwritten).is_none());
    owner.store.heal();
}
