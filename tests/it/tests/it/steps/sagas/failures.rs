//! Undos that fail.

use idempotent_runtime::{
    Error, NotSettled, StoreErrorKind,
    record::{RawOutcome, State, StepName, StepState},
    testing::{On, StoreOperation},
};

use super::{BookError, Saga, not_undone};
use crate::harness::{World, while_time_goes_on};

on_every_store![
    j23_an_undo_that_fails_twice_is_tried_a_third_time,
    j23_what_is_not_undone_is_parked_and_resumed,
    j23_an_undo_that_panics_has_failed,
    j23_a_store_that_refuses_the_end_of_an_undo_keeps_the_value_of_its_step,
    j23_an_undo_adds_no_value_that_the_store_refused,
    j24_what_is_parked_has_no_error_until_it_is_undone,
];

async fn j23_an_undo_that_fails_twice_is_tried_a_third_time(world: World) {
    let saga = Saga::of(&world, &world.owner().await).failing_to_undo("hotel", 2);
    assert_eq!(saga.call_in_time().await, Err(BookError::Refused));
    assert_eq!(saga.runs(), ([1; 3], [1, 3, 1]));
}

async fn j23_what_is_not_undone_is_parked_and_resumed(world: World) {
    let saga = Saga::of(&world, &world.owner().await).failing_to_undo("hotel", 3);
    let parked = (
        vec!["car".to_owned(), "flight".into()],
        vec!["hotel".into()],
    );
    assert_eq!(
        not_undone(&saga.call_in_time().await).as_ref(),
        Some(&parked)
    );
    assert_eq!(world.record().await.state, State::Parked);
    assert_eq!(saga.runs(), ([1; 3], [1, 3, 1]), "the others are undone");
    assert_eq!(
        not_undone(&saga.call_in_time().await).as_ref(),
        Some(&parked)
    );
    assert_eq!(
        saga.runs(),
        ([1; 3], [1, 3, 1]),
        "until somebody resumes it"
    );
    let settle = saga.owner.idem.settle("trip", None::<&str>, "k");
    settle.expect("a key").resume().await.expect("it is parked");
    assert_eq!(world.record().await.state, State::Undoing);
    assert_eq!(saga.call_in_time().await, Err(BookError::Refused));
    assert_eq!(saga.runs(), ([1; 3], [1, 4, 1]), "the rest is undone");
    assert_eq!(world.runs("the end"), 1, "the body never ran forward again");
    assert_eq!(world.record().await.state, State::Done);
}

async fn j23_an_undo_that_panics_has_failed(world: World) {
    let owner = world.owner().await;
    let timer = owner.timer.clone();
    let call = async move {
        let call = owner.call("trip").key("k").classify_errors(super::verdict);
        let body = async |_| {
            let body = async |_| Ok::<_, BookError>(());
            let undo = |_| async { panic!("a planned panic") as Result<(), BookError> };
            idempotent_runtime::step("car", body)
                .undo(undo)
                .run()
                .await?;
            Err::<(), _>(BookError::Refused)
        };
        call.run(body).await
    };
    let ended = while_time_goes_on(&timer, call).await;
    assert_eq!(not_undone(&ended), Some((vec![], vec!["car".to_owned()])));
}

/// Without the value of the first step the body would never come to the second one again.
async fn j23_a_store_that_refuses_the_end_of_an_undo_keeps_the_value_of_its_step(world: World) {
    let owner = world.owner().await;
    // It comes behind two writes of each step, and that of the last one's undo.
    owner.fails(StoreOperation::WriteStep, On::Call(8), StoreErrorKind::Full);
    let saga = Saga::of(&world, &owner).failing_to_undo("hotel", 3);
    let refused = saga.call_in_time().await;
    let refuses = matches!(&refused, Err(BookError::Ours(Error::Store(_))));
    assert!(refuses, "{refused:?}");
    assert_eq!(saga.runs(), ([1; 3], [1, 3, 1]));
    assert_eq!(saga.call_in_time().await, Err(BookError::Refused));
    assert_eq!(saga.runs(), ([1; 3], [2, 4, 1]));
}

/// The undo itself is told of it, because its own attempt knows it.
async fn j23_an_undo_adds_no_value_that_the_store_refused(world: World) {
    let owner = world.owner().await;
    owner.fails(StoreOperation::WriteStep, On::Call(2), StoreErrorKind::Full);
    let saga = Saga::of(&world, &owner);
    assert_eq!(saga.call_in_time().await, Err(BookError::Refused));
    assert_eq!(saga.order(), ["car-1", "hotel-1", "flight-1"]);
    let store = owner.idem.store();
    let records = store.scan(None, 10).await.expect("it lists");
    let steps = store.steps().expect("the store keeps steps");
    let steps = steps.load_steps(&records[0].0, &StepName::ALL).await;
    let steps = steps.expect("it is read");
    assert!(steps.iter().all(|step| step.state == StepState::Undone));
    let flight = steps.iter().find(|step| &*step.label == "flight");
    let outcome = flight.and_then(|flight| flight.outcome.as_ref());
    assert!(outcome.is_some_and(RawOutcome::is_not_replayable));
}

async fn j24_what_is_parked_has_no_error_until_it_is_undone(world: World) {
    let saga = Saga::of(&world, &world.owner().await).failing_to_undo("car", 3);
    assert!(not_undone(&saga.call_in_time().await).is_some());
    let settle = || {
        saga.owner
            .idem
            .settle("trip", None::<&str>, "k")
            .expect("a key")
    };
    let refused = settle().with_error(&BookError::Refused).await;
    let refused = refused.expect_err("a step is not undone");
    let reason = crate::harness::not_settled(Err::<(), _>(refused));
    assert_eq!(reason, Some(NotSettled::OpenUndos));
    settle()
        .with_value(&())
        .await
        .expect("it happened after all");
    assert_eq!(saga.call_in_time().await, Ok(()));
}
