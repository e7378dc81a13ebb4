//! A call that fails for good undoes its steps, and answers with its error.

use std::collections::HashSet;

use idempotent_runtime::{
    Error, RecordChange, consumer::Disposition, record::State, step, testing::StoreOperation,
};

use serde::{Deserialize, Serialize};

use super::{BookError, STEPS, Saga, verdict};
use crate::harness::World;

on_every_store![
    j18_a_call_that_fails_undoes_its_steps_from_the_last_one_on,
    j18_a_call_that_ends_well_undoes_nothing,
    j18_an_undo_is_told_the_value_and_its_keys,
    j19_a_step_that_nobody_knows_of_is_undone_without_a_value,
    j19_a_step_with_a_recorded_error_is_not_undone,
    j19_a_step_that_was_released_is_not_undone,
    a_failed_saga_costs_one_write_and_one_an_undo,
    j20_an_undo_without_a_final_error_is_refused,
    j18_an_error_that_cannot_be_kept_undoes_all_the_same,
    j18_a_handler_of_messages_undoes_its_steps,
];

async fn j18_a_call_that_fails_undoes_its_steps_from_the_last_one_on(world: World) {
    let owner = world.owner().await;
    let saga = Saga::of(&world, &owner);
    assert_eq!(saga.call().await, Err(BookError::Refused));
    assert_eq!(saga.order(), ["car-1", "hotel-1", "flight-1"]);
    assert_eq!(saga.runs(), ([1; 3], [1; 3]));
    let record = world.record().await;
    assert_eq!(record.state, State::Done);
    assert!(!record.has_open_undos(), "it expires as any other one");
    assert_eq!(saga.call().await, Err(BookError::Refused));
    assert_eq!(saga.runs(), ([1; 3], [1; 3]), "the error is given again");
    use RecordChange::{Claimed, Recorded, Undoing};
    owner.assert_steps(&[Claimed, Undoing, Recorded]);
}

async fn j18_a_call_that_ends_well_undoes_nothing(world: World) {
    let saga = Saga::of(&world, &world.owner().await);
    let call = saga.owner.call("trip").key("k").classify_errors(verdict);
    let ended = call.run(async |_| {
        saga.book("flight").await?;
        assert!(world.record().await.has_open_undos(), "it does not expire");
        Ok::<_, BookError>(())
    });
    ended.await.expect("it ends well");
    assert_eq!(saga.runs(), ([1, 0, 0], [0; 3]));
    assert!(!world.record().await.has_open_undos());
}

async fn j18_an_undo_is_told_the_value_and_its_keys(world: World) {
    let saga = Saga::of(&world, &world.owner().await).failing_to_undo("hotel", 1);
    assert_eq!(saga.call_in_time().await, Err(BookError::Refused));
    let told = saga.told.lock().expect("nobody panicked").clone();
    let keys: Vec<_> = told
        .iter()
        .map(|undo| (undo.key(), undo.step_key()))
        .collect();
    assert_eq!(keys[1], keys[2], "the same on every try");
    let different: HashSet<_> = keys.iter().flat_map(|(key, step)| [key, step]).collect();
    assert_eq!(
        different.len(),
        2 * STEPS.len(),
        "one of each step, and one of each undo"
    );
    assert_eq!(told[2].value().map(String::as_str), Some("hotel-1"));
}

async fn j19_a_step_that_nobody_knows_of_is_undone_without_a_value(world: World) {
    let mut saga = Saga::of(&world, &world.owner().await);
    saga.unknown = Some("hotel");
    assert_eq!(saga.call().await, Err(BookError::Refused));
    assert_eq!(saga.order(), ["", "flight-1"]);
    assert_eq!(saga.runs(), ([1, 1, 0], [1, 1, 0]));
}

async fn j19_a_step_with_a_recorded_error_is_not_undone(world: World) {
    assert_eq!(undos_of_a_failed_step(&world, verdict).await, 0);
}

async fn j19_a_step_that_was_released_is_not_undone(world: World) {
    let released = |_: &BookError| idempotent_runtime::Verdict::Release;
    assert_eq!(undos_of_a_failed_step(&world, released).await, 0);
}

/// How often the undo runs of a step whose error is judged so.
async fn undos_of_a_failed_step(
    world: &World,
    verdict_of_step: fn(&BookError) -> idempotent_runtime::Verdict,
) -> usize {
    let owner = world.owner().await;
    let call = owner.call("trip").key("k").classify_errors(verdict);
    let of_undo = world.clone();
    let ended = call.run(async |_| {
        let body = async |_| Err::<(), _>(BookError::Refused);
        let step = step("car", body).on_error(verdict_of_step).undo(move |_| {
            of_undo.happened("undo");
            async { Ok::<_, Error>(()) }
        });
        step.run().await
    });
    assert_eq!(ended.await, Err(BookError::Refused));
    assert_eq!(world.record().await.state, State::Done);
    world.runs("undo")
}

async fn a_failed_saga_costs_one_write_and_one_an_undo(world: World) {
    let owner = world.owner().await;
    let saga = Saga::of(&world, &owner);
    assert_eq!(saga.call().await, Err(BookError::Refused));
    // Each step writes that it has begun and its value, and each undo that it is through.
    assert_eq!(
        owner.store.calls(StoreOperation::WriteStep),
        3 * STEPS.len() as u64
    );
    assert_eq!(owner.store.calls(StoreOperation::LoadSteps), 0);
    // The claim, that the record stays, that the call has failed, and the outcome.
    assert_eq!(owner.store.calls(StoreOperation::Swap), 4);
}

async fn j20_an_undo_without_a_final_error_is_refused(world: World) {
    let owner = world.owner().await;
    let call = owner.call("trip").key("k").release_errors();
    let saga = Saga::of(&world, &owner);
    let refused = call.run(async |_| saga.book("flight").await).await;
    let is_refused = matches!(
        refused,
        Err(BookError::Ours(Error::MisplacedStep { step: "flight", .. }))
    );
    assert!(is_refused, "{refused:?}");
    assert_eq!(saga.runs(), ([0; 3], [0; 3]));
}

async fn j18_an_error_that_cannot_be_kept_undoes_all_the_same(world: World) {
    let owner = world.owner_with(|builder| builder.max_outcome(20)).await;
    let saga = Saga::of(&world, &owner);
    let call = || owner.call("trip").key("k");
    let answer = call().run(async |_| {
        saga.book("flight")
            .await
            .map_err(|error| Long(error.to_string()))?;
        Err::<(), _>(Long("x".repeat(100)))
    });
    assert_eq!(answer.await.map_err(|Long(error)| error.len()), Err(100));
    assert_eq!(saga.runs(), ([1, 0, 0], [1, 0, 0]));
    let again = call().run(async |_| Ok::<(), Long>(())).await;
    assert!(again.is_err(), "it happened, and its error is not known");
}

#[derive(Debug, Serialize, Deserialize)]
struct Long(String);

impl From<Error> for Long {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

async fn j18_a_handler_of_messages_undoes_its_steps(world: World) {
    let owner = world.owner().await;
    let saga = Saga::of(&world, &owner);
    let consumer = owner
        .idem
        .consumer("billing")
        .ttl("7d")
        .broker_retention("3d");
    let consumer = consumer.build().expect("a consumer");
    for _ in 0..2 {
        let message = consumer.message("m").without_payload().record_errors();
        let handled = message.run(async |_| saga.body().await).await;
        let is_dead = matches!(handled, Disposition::DeadLetter { .. });
        assert!(is_dead, "{handled:?}");
    }
    assert_eq!(saga.runs(), ([1; 3], [1; 3]));
}
