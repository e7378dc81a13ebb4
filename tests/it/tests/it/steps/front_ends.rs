//! Steps in annotated functions and in handlers of messages.

use idempotent_runtime::{Error, StepContext, idempotent, step, testing::Gate};

use super::successor;
use crate::harness::World;

on_every_store![
    j01_a_handler_of_messages_goes_on_where_it_stopped,
    j01_an_annotated_function_goes_on_where_it_stopped,
    j01_a_body_that_panics_goes_on_where_it_stopped,
];

#[derive(Debug, thiserror::Error)]
#[error("the gateway is busy")]
struct Busy;

#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Busy(#[from] Busy),
    #[error(transparent)]
    Ours(#[from] Error),
}

/// A step whose effect is counted.
async fn pays(world: &World, name: &'static str) -> Result<String, Failed> {
    let body = async |s: StepContext| {
        world.happened(name);
        Ok::<_, Failed>(s.key())
    };
    step(name, body).await
}

async fn j01_a_handler_of_messages_goes_on_where_it_stopped(world: World) {
    let owner = world.owner().await;
    let consumer = owner
        .idem
        .consumer("billing")
        .ttl("7d")
        .broker_retention("3d");
    let consumer = consumer.build().expect("the set-up is sound");
    for delivery in 1..=3 {
        let message = consumer.message("m").without_payload().delivery(delivery);
        let handled = message.run(async |_| {
            pays(&world, "charge").await?;
            match delivery {
                3 => pays(&world, "mail").await.map(drop),
                _ => Err(Failed::from(Busy)),
            }
        });
        match handled.await {
            idempotent_runtime::consumer::Disposition::Ack { replayed, .. } => {
                assert!(delivery == 3 && !replayed);
            }
            idempotent_runtime::consumer::Disposition::Retry { .. } => assert!(delivery < 3),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((world.runs("charge"), world.runs("mail")), (1, 1));
}

#[idempotent(name = "trips.book", key = trip, on_error = release, skip(world, gate))]
async fn book(world: World, gate: Option<Gate>, trip: String) -> Result<[String; 2], Failed> {
    let flight = pays(&world, "flight").await?;
    if let Some(gate) = gate {
        gate.pass().await;
    }
    Ok([flight, pays(&world, "hotel").await?])
}

async fn j01_an_annotated_function_goes_on_where_it_stopped(world: World) {
    let (owner, gate) = (world.owner().await, Gate::new());
    let booking = book(world.clone(), Some(gate.clone()), "t".into());
    let booking = owner.spawn(booking);
    gate.arrived(1).await;
    owner.die_in(booking).await;
    let owner = successor(&world).await;
    let booked = owner.enter(book(world.clone(), None, "t".into())).await;
    let again = owner.enter(book(world.clone(), None, "t".into())).await;
    assert_eq!(booked.expect("it goes on"), again.expect("it is replayed"));
    assert_eq!((world.runs("flight"), world.runs("hotel")), (1, 1));
}

async fn j01_a_body_that_panics_goes_on_where_it_stopped(world: World) {
    let owner = world.owner().await;
    let call = owner.call("trip").key("k").release_errors();
    let at = world.clone();
    let stopped = tokio::spawn(call.run(async move |_| {
        pays(&at, "flight").await?;
        let panics = async |_| -> Result<(), Failed> { panic!("a planned panic") };
        step("hotel", panics).await
    }));
    assert!(stopped.await.is_err(), "it panicked");
    owner.settled().await;
    let call = owner.call("trip").key("k").release_errors();
    let answer = call.run(async |_| {
        pays(&world, "flight").await?;
        pays(&world, "hotel").await.map(drop)
    });
    answer.await.expect("it goes on");
    assert_eq!((world.runs("flight"), world.runs("hotel")), (1, 1));
}
