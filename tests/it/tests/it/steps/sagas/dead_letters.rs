//! Messages that are given up while their steps have undos.

use idempotent_runtime::{
    Error, Settle, StoreErrorKind, Verdict,
    consumer::{Consumer, DeadLetterReason, Disposition},
    record::State,
    step,
    testing::{Gate, On, StoreOperation},
};

use super::{BookError, Saga};
use crate::{
    charge::LEASE,
    harness::{Owner, World, while_time_goes_on},
};

on_every_store![
    mend_12_a_dead_letter_that_is_half_done_is_parked_and_undone_on_a_word,
    mend_12_a_dead_letter_that_is_half_done_is_parked_and_resumed,
    mend_12_a_dead_letter_behind_a_consumer_that_vanished_is_parked,
    mend_12_a_dead_letter_for_a_nested_call_is_parked,
    mend_12_a_dead_letter_without_undos_goes_on_when_it_is_put_back,
    mend_12_a_message_comes_again_while_it_cannot_be_parked,
    mend_12_a_message_whose_steps_are_not_undone_is_a_dead_letter,
];

fn consumer(owner: &Owner) -> Consumer {
    let consumer = owner.idem.consumer("billing").ttl("7d");
    let consumer = consumer.broker_retention("3d").max_deliveries(2);
    consumer.build().expect("a consumer")
}

/// Delivers the message: a flight and a hotel are booked, and the rest fails for now.
async fn deliver(saga: &Saga, delivery: u32) -> Disposition {
    let consumer = consumer(&saga.owner);
    let message = consumer.message("m").without_payload().delivery(delivery);
    let message = message.classify_errors(|_: &BookError| Verdict::Release);
    let handled = message.run(async |_| {
        saga.book("flight").await?;
        saga.book("hotel").await?;
        Err::<(), _>(BookError::Refused)
    });
    handled.await
}

#[track_caller]
fn assert_dead(disposition: &Disposition, expected: DeadLetterReason) {
    let is_it =
        matches!(disposition, Disposition::DeadLetter { reason, .. } if *reason == expected);
    assert!(is_it, "{disposition:?}");
}

/// Spends the deliveries of the message.
async fn exhausts(world: &World, saga: &Saga) {
    let first = deliver(saga, 1).await;
    assert!(matches!(first, Disposition::Retry { .. }), "{first:?}");
    assert_eq!(world.record().await.state, State::Running);
    assert_dead(&deliver(saga, 2).await, DeadLetterReason::Exhausted);
    let record = world.record().await;
    assert_eq!(record.state, State::Parked);
    assert!(record.has_open_undos(), "it does not expire");
    assert_dead(&deliver(saga, 3).await, DeadLetterReason::Parked);
    let again = consumer(&saga.owner).message("m").redrive(1);
    let again = again.without_payload().delivery(1);
    let again = again.run(async |_| Ok::<_, BookError>(())).await;
    assert_dead(&again, DeadLetterReason::Parked);
}

async fn settle(owner: &Owner) -> Settle<'_> {
    let records = owner.idem.store().scan(None, 10).await;
    let records = records.expect("the store is listed");
    let (id, _) = records.first().expect("the message has a record");
    owner.idem.settle_id(*id).await.expect("it stands")
}

async fn mend_12_a_dead_letter_that_is_half_done_is_parked_and_undone_on_a_word(world: World) {
    let saga = Saga::of(&world, &world.owner().await);
    exhausts(&world, &saga).await;
    let given_up = settle(&saga.owner).await.undo(&BookError::Refused).await;
    given_up.expect("it is parked");
    assert_dead(&deliver(&saga, 4).await, DeadLetterReason::Failed);
    assert_eq!(saga.runs(), ([1, 1, 0], [1, 1, 0]));
    assert_eq!(world.record().await.state, State::Done);
}

async fn mend_12_a_dead_letter_that_is_half_done_is_parked_and_resumed(world: World) {
    let saga = Saga::of(&world, &world.owner().await);
    exhausts(&world, &saga).await;
    let resumed = settle(&saga.owner).await.resume().await;
    resumed.expect("it is parked");
    let consumer = consumer(&saga.owner);
    let message = consumer.message("m").without_payload().delivery(4);
    let message = message.classify_errors(|_: &BookError| Verdict::Release);
    let handled = message.run(async |_| {
        saga.book("flight").await?;
        saga.book("hotel").await
    });
    let handled = handled.await;
    let is_ack = matches!(handled, Disposition::Ack { replayed: false });
    assert!(is_ack, "{handled:?}");
    assert_eq!(saga.runs(), ([1, 1, 0], [0; 3]));
}

async fn mend_12_a_dead_letter_behind_a_consumer_that_vanished_is_parked(world: World) {
    let (owner, gate) = (world.owner().await, Gate::new());
    let saga = Saga::of(&world, &owner).held_at("flight", &gate);
    let vanishes = tokio::spawn(async move {
        let consumer = consumer(&saga.owner);
        let message = consumer.message("m").without_payload().delivery(1);
        let message = message.classify_errors(|_: &BookError| Verdict::Release);
        let handled = message.run(async |_| {
            saga.book("flight").await?;
            saga.at("flight").await;
            Ok::<_, BookError>(())
        });
        handled.await
    });
    gate.arrived(1).await;
    owner.die_in(vanishes).await;
    world.advance(LEASE).await;
    let saga = Saga::of(&world, &world.owner().await);
    assert_dead(&deliver(&saga, 2).await, DeadLetterReason::Exhausted);
    let record = world.record().await;
    assert_eq!(record.state, State::Parked);
    assert!(record.has_open_undos(), "it does not expire");
    assert_dead(&deliver(&saga, 3).await, DeadLetterReason::Parked);
    let given_up = settle(&saga.owner).await.undo(&BookError::Refused).await;
    given_up.expect("it is parked");
    assert_dead(&deliver(&saga, 4).await, DeadLetterReason::Failed);
    assert_eq!(saga.runs(), ([1, 1, 0], [1, 1, 0]));
}

async fn mend_12_a_dead_letter_for_a_nested_call_is_parked(world: World) {
    let owner = world.owner().await;
    let saga = Saga::of(&world, &owner);
    let consumer = consumer(&owner);
    let message = consumer.message("m").without_payload().delivery(1);
    let message = message.classify_errors(|_: &Error| Verdict::Release);
    let handled = message.run(async |_| {
        let booked = saga.book("flight").await;
        booked.expect("it is booked");
        let nested = || {
            let call = owner.call("nested").key("k").uncertain_errors();
            call.run(async |_| Err::<(), _>(Error::InvalidPolicy("no answer")))
        };
        assert!(nested().await.is_err());
        nested().await
    });
    assert_dead(&handled.await, DeadLetterReason::Uncertain);
    let records = owner.idem.store().scan(None, 10).await;
    let records = records.expect("the store is listed");
    let states = records.iter().map(|(_, record)| record.state);
    assert_eq!(states.filter(|state| *state == State::Parked).count(), 1);
}

async fn mend_12_a_dead_letter_without_undos_goes_on_when_it_is_put_back(world: World) {
    let consumer = consumer(&world.owner().await);
    let message = || consumer.message("m").without_payload().delivery(2);
    let flight = async || {
        let body = async |_| {
            world.happened("flight");
            Ok::<_, BookError>(())
        };
        step("flight", body).await
    };
    let handled = message().run(async |_| {
        flight().await?;
        Err::<(), _>(BookError::Refused)
    });
    assert_dead(&handled.await, DeadLetterReason::Exhausted);
    let handled = message().run(async |_| flight().await).await;
    let is_ack = matches!(handled, Disposition::Ack { replayed: false });
    assert!(is_ack, "{handled:?}");
    assert_eq!(world.runs("flight"), 1);
}

async fn mend_12_a_message_comes_again_while_it_cannot_be_parked(world: World) {
    let owner = world.owner().await;
    owner.fails(StoreOperation::Load, On::Every, StoreErrorKind::Unavailable);
    let saga = Saga::of(&world, &owner);
    let again = deliver(&saga, 2).await;
    assert!(matches!(again, Disposition::Retry { .. }), "{again:?}");
    assert_eq!(world.record().await.state, State::Running);
    let saga = Saga::of(&world, &world.owner().await);
    assert_dead(&deliver(&saga, 3).await, DeadLetterReason::Exhausted);
    assert_eq!(world.record().await.state, State::Parked);
    assert_eq!(saga.runs(), ([1, 1, 0], [0; 3]));
}

async fn mend_12_a_message_whose_steps_are_not_undone_is_a_dead_letter(world: World) {
    let saga = Saga::of(&world, &world.owner().await).failing_to_undo("hotel", 3);
    for _ in 0..2 {
        let saga = saga.clone();
        let timer = saga.owner.timer.clone();
        let handled = while_time_goes_on(&timer, async move {
            let consumer = consumer(&saga.owner);
            let message = consumer.message("m").without_payload().delivery(1);
            let message = message.record_errors();
            message.run(async |_| saga.body().await).await
        });
        assert_dead(&handled.await, DeadLetterReason::Parked);
    }
    assert_eq!(saga.runs(), ([1; 3], [1, 3, 1]));
}
