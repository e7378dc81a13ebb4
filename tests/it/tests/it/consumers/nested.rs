//! Handlers that make calls of their own.

use std::io;

use idempotent_runtime::{
    BoxError, Error, InFlight, OnCrash,
    consumer::{Consumer, DeadLetterReason, Disposition},
    testing::Gate,
};

use super::{assert_ack, assert_dead, assert_retry, consumer};
use crate::harness::{Owner, World};

on_every_store![
    a_nested_call_in_progress_is_no_reason_to_lose_a_message,
    a_nested_call_that_is_uncertain_makes_a_dead_letter,
    the_names_of_consumers_are_their_own,
];

#[derive(Debug, thiserror::Error)]
#[error("the order is not charged")]
struct NotCharged(#[source] Error);

/// A message whose handler charges; the error of the charge stands inside its own.
async fn charges(owner: &Owner, consumer: &Consumer, delivery: u32) -> Disposition {
    let message = consumer.message("m").without_payload().delivery(delivery);
    message
        .run(async |_| {
            let charge = owner
                .call("charge")
                .key("order-42")
                .in_flight(InFlight::Reject);
            let charged = charge.run(async |_| Ok::<_, Error>(())).await;
            charged.map_err(NotCharged)
        })
        .await
}

async fn a_nested_call_in_progress_is_no_reason_to_lose_a_message(world: World) {
    let owner = world.owner().await;
    let (gate, other) = (Gate::new(), world.owner().await);
    let its = gate.clone();
    let running = tokio::spawn(async move {
        let charge = other.call("charge").key("order-42");
        charge
            .run(async |_| {
                its.pass().await;
                Ok::<_, Error>(())
            })
            .await
    });
    gate.arrived(1).await;
    let consumer = consumer(&owner);
    for delivery in [1, 100] {
        let error = assert_retry(charges(&owner, &consumer, delivery).await);
        assert!(error.is_some_and(|error| error.is::<NotCharged>()));
    }
    gate.open();
    assert_eq!(running.await.expect("no panic"), Ok(()));
    assert_ack(charges(&owner, &consumer, 2).await, false);
}

async fn a_nested_call_that_is_uncertain_makes_a_dead_letter(world: World) {
    let owner = world.owner().await;
    let lost = owner.clone();
    let lost = tokio::spawn(async move {
        let charge = lost.call("charge").key("order-42");
        let charge = charge.on_crash(OnCrash::Uncertain);
        charge
            .run(async |_| -> Result<(), Error> { panic!("a planned panic") })
            .await
    });
    assert!(lost.await.is_err());
    owner.settled().await;
    let dead = charges(&owner, &consumer(&owner), 1).await;
    assert_dead(dead, DeadLetterReason::Uncertain);
}

async fn the_names_of_consumers_are_their_own(world: World) {
    let owner = world.owner().await;
    let taken = owner.call("inbox:billing").key("m");
    let taken = taken.run(async |_| Ok::<_, Error>(())).await;
    assert!(matches!(taken, Err(Error::InvalidPolicy(_))), "{taken:?}");

    let boxed = consumer(&owner).message("m").without_payload();
    let boxed = boxed
        .run(async |_| Err::<(), BoxError>("in a box".into()))
        .await;
    assert_eq!(
        assert_retry(boxed).expect("it is told").to_string(),
        "in a box"
    );
    let message = consumer(&owner)
        .message(&("topic", 3, 7_u64))
        .without_payload();
    assert_ack(message.run(async |_| Ok::<_, io::Error>(())).await, false);
}
