//! Dead letters that are kept: each has a record, which is found by the id of the message.

use std::time::Duration;

use idempotent_runtime::{
    Error,
    consumer::{Consumer, ConsumerBuilder, DeadLetterReason},
    operate::RecordRow,
    record::State,
    step,
    testing::{On, StoreOperation},
};

use super::{DAY, Refused, assert_ack, assert_dead, assert_retry, consumer_with, deliver, fail};
use crate::harness::{Owner, World};
use idempotent_runtime::StoreErrorKind;

on_every_store![
    a_dead_letter_that_is_kept_is_found_by_its_id,
    a_recorded_error_is_kept_for_as_long_as_dead_letters_are,
    a_message_whose_dead_letter_cannot_be_kept_comes_again,
    a_dead_letter_over_an_expired_record_has_nothing_of_it,
    a_dead_letter_with_another_payload_leaves_the_outcome_that_stands,
    a_copy_that_comes_too_often_leaves_the_outcome_that_stands,
    an_uncertain_dead_letter_keeps_its_state_and_its_note,
    a_dead_letter_is_not_kept_unless_that_is_said,
    a_dead_letter_behind_steps_is_kept,
    a_dead_letter_of_a_call_that_is_switched_off_is_not_kept,
];

fn keeping(owner: &Owner) -> Consumer {
    consumer_with(owner, kept)
}

fn kept(builder: ConsumerBuilder) -> ConsumerBuilder {
    builder.max_deliveries(1).keep_dead_letters("30d")
}

async fn found(consumer: &Consumer, id: &str) -> RecordRow {
    let row = consumer.lookup(id).await.expect("the store answers");
    row.expect("it is kept")
}

fn assert_noted(row: &RecordRow, reason: &str) {
    let note = row.note.as_ref().expect("a note");
    assert_eq!((note.by.as_deref(), &*note.text), (None, reason));
}

async fn a_dead_letter_that_is_kept_is_found_by_its_id(world: World) {
    let owner = world.owner().await;
    let consumer = keeping(&owner);
    assert_dead(
        fail(&world, &consumer, "m", 1).await,
        DeadLetterReason::Exhausted,
    );
    let row = found(&consumer, "m").await;
    assert_eq!(row.state, State::Released);
    assert_noted(&row, "dead letter: exhausted");
    assert_eq!(consumer.lookup("other").await, Ok(None));

    let records = owner.idem.records().operation("inbox:billing");
    let page = records.page(10).await.expect("a page");
    assert_eq!(page.rows, [row]);

    world.advance(29 * DAY).await;
    owner.idem.purge().await.expect("a purge");
    found(&consumer, "m").await;
    // A redrive has its effect, and takes the note away.
    assert_ack(deliver(&world, &consumer, "m", 1).await, false);
    assert_eq!(found(&consumer, "m").await.note, None);
}

async fn a_recorded_error_is_kept_for_as_long_as_dead_letters_are(world: World) {
    let owner = world.owner().await;
    let consumer = keeping(&owner);
    for _copy in 0..2 {
        let message = consumer.message("m").without_payload().record_errors();
        let failed = message.run(async |_| Err::<(), _>(Refused)).await;
        let error = assert_dead(failed, DeadLetterReason::Failed);
        assert_eq!(error.expect("it is told").downcast_ref(), Some(&Refused));
        let row = found(&consumer, "m").await;
        assert_eq!(row.state, State::Done);
        assert_noted(&row, "dead letter: failed");
    }
    // Without that it would be known for the ttl and the downtime: eight days.
    world.advance(29 * DAY).await;
    owner.idem.purge().await.expect("a purge");
    assert_eq!(found(&consumer, "m").await.state, State::Done);
    world.advance(2 * DAY).await;
    owner.idem.purge().await.expect("a purge");
    assert_eq!(consumer.lookup("m").await, Ok(None));
}

async fn a_message_whose_dead_letter_cannot_be_kept_comes_again(world: World) {
    // The look fails, or the write that comes behind those of the call.
    for (operation, on) in [
        (StoreOperation::Load, On::Every),
        (StoreOperation::Ending, On::Call(2)),
    ] {
        let owner = world.owner().await;
        let consumer = keeping(&owner);
        owner.fails(operation, on, StoreErrorKind::Denied);
        let id = format!("{operation:?}");
        let error = assert_retry(fail(&world, &consumer, &id, 1).await);
        let error = error.expect("the store's");
        assert!(
            matches!(error.downcast_ref(), Some(Error::Store(_))),
            "{error:?}"
        );
        assert_eq!(world.runs(&id), 1);
    }
}

/// What a message did before its record expired answers no redrive.
async fn a_dead_letter_over_an_expired_record_has_nothing_of_it(world: World) {
    let owner = world.owner().await;
    let consumer = keeping(&owner);
    assert_ack(deliver(&world, &consumer, "m", 1).await, false);
    world.advance(9 * DAY).await;
    assert_dead(
        fail(&world, &consumer, "m", 1).await,
        DeadLetterReason::Exhausted,
    );
    assert_eq!(found(&consumer, "m").await.state, State::Released);
    assert_ack(deliver(&world, &consumer, "m", 1).await, false);
    assert_eq!(world.runs("m"), 3);
}

async fn a_dead_letter_with_another_payload_leaves_the_outcome_that_stands(world: World) {
    let consumer = keeping(&world.owner().await);
    assert_ack(deliver(&world, &consumer, "m", 1).await, false);
    let other = consumer.message("m").payload("another order").delivery(1);
    let reused = other.run(async |_| Ok::<_, std::io::Error>(())).await;
    assert_dead(reused, DeadLetterReason::KeyReused);
    let row = found(&consumer, "m").await;
    assert_eq!((row.state, row.note), (State::Done, None));
    assert_ack(deliver(&world, &consumer, "m", 2).await, true);
    assert_eq!(world.runs("m"), 1);
}

/// Another copy has the effect between the last failure and the note of it.
async fn a_copy_that_comes_too_often_leaves_the_outcome_that_stands(world: World) {
    let (owner, other) = (world.owner().await, world.owner().await);
    let (consumer, elsewhere) = (keeping(&owner), keeping(&other));
    let gate = owner.delays(StoreOperation::Load, On::Next);
    let meanwhile = async {
        gate.arrived(1).await;
        assert_ack(deliver(&world, &elsewhere, "m", 1).await, false);
        let stands = found(&elsewhere, "m").await;
        gate.open();
        stands
    };
    let (dead, stands) = tokio::join!(fail(&world, &consumer, "m", 1), meanwhile);
    assert_dead(dead, DeadLetterReason::Exhausted);
    assert_eq!((stands.state, &stands.note), (State::Done, &None));
    assert_eq!(found(&consumer, "m").await, stands);
}

async fn an_uncertain_dead_letter_keeps_its_state_and_its_note(world: World) {
    let owner = world.owner().await;
    let consumer = keeping(&owner);
    let message = || consumer.message("m").without_payload().uncertain_errors();
    let uncertain = || async { message().run(async |_| Err::<(), _>(Refused)).await };
    assert_dead(uncertain().await, DeadLetterReason::Uncertain);
    let row = found(&consumer, "m").await;
    assert_eq!(row.state, State::Uncertain);
    assert_noted(&row, "dead letter: uncertain");
    world.advance(60 * DAY).await;
    owner.idem.purge().await.expect("a purge");
    assert_dead(uncertain().await, DeadLetterReason::Uncertain);

    let settle = owner.idem.settle_id(row.id).await.expect("it stands");
    let settle = settle.by("anna").because("the bank refused it");
    settle.with_error(&Refused).await.expect("it is uncertain");
    assert_dead(uncertain().await, DeadLetterReason::Failed);
    let note = found(&consumer, "m").await.note.expect("it stays");
    assert_eq!(note.by.as_deref(), Some("anna"));
}

async fn a_dead_letter_is_not_kept_unless_that_is_said(world: World) {
    let consumer = consumer_with(&world.owner().await, |it| it.max_deliveries(1));
    assert_dead(
        fail(&world, &consumer, "m", 1).await,
        DeadLetterReason::Exhausted,
    );
    let row = consumer.lookup("m").await.expect("the store answers");
    assert_eq!(row.and_then(|row| row.note), None);
}

#[tokio::test]
async fn how_long_dead_letters_are_kept_is_checked() {
    let idem = idempotent_runtime::Idempotency::memory();
    for wrong in [Duration::ZERO, Duration::MAX] {
        let consumer = idem.consumer("billing").broker_retention("3d");
        let built = consumer.keep_dead_letters(wrong).build();
        assert!(matches!(built, Err(Error::InvalidPolicy(_))), "{built:?}");
    }
}

/// Its record stays *running* for the next attempt, which goes on behind the steps.
async fn a_dead_letter_behind_steps_is_kept(world: World) {
    let owner = world.owner().await;
    let consumer = keeping(&owner);
    let deliver = async || {
        let message = consumer.message("m").without_payload().delivery(1);
        let handler = async |_| {
            step("reserve", async |_| {
                world.happened("reserve");
                Ok::<_, Error>(())
            })
            .await?;
            Err::<(), _>(Error::InvalidPolicy("sold out"))
        };
        message.run(handler).await
    };
    assert_dead(deliver().await, DeadLetterReason::Exhausted);
    assert_noted(&found(&consumer, "m").await, "dead letter: exhausted");
    world.advance(29 * DAY).await;
    owner.idem.purge().await.expect("a purge");
    assert_dead(deliver().await, DeadLetterReason::Exhausted);
    assert_eq!(world.runs("reserve"), 1, "it goes on behind the step");
}

async fn a_dead_letter_of_a_call_that_is_switched_off_is_not_kept(world: World) {
    let owner = world.owner_with(|builder| builder.enabled(false)).await;
    let consumer = keeping(&owner);
    let dead = fail(&world, &consumer, "m", 1).await;
    assert_dead(dead, DeadLetterReason::Exhausted);
    assert_eq!(consumer.lookup("m").await, Ok(None));
}
