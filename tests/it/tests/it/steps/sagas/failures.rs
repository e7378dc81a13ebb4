//! Undos that fail.

use idempotent_runtime::{NotSettled, record::State};

use super::{BookError, Saga, not_undone};
use crate::harness::{World, while_time_goes_on};

on_every_store![
    j23_an_undo_that_fails_twice_is_tried_a_third_time,
    j23_what_is_not_undone_is_parked_and_resumed,
    j23_an_undo_that_panics_has_failed,
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
