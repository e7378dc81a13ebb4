//! Steps that an operator has undone by hand.

use idempotent_runtime::{Error, NotSettled, OnCrash, record::State, testing::Gate};

use super::{BookError, Saga, not_undone, successor};
use crate::harness::{Owner, World, not_settled};

on_every_store![
    j23_a_step_that_was_undone_by_hand_is_undone_no_more,
    j22_a_step_that_the_body_comes_to_no_more_is_undone_by_hand,
    j23_a_step_is_undone_by_hand_where_its_holder_vanished,
    j23_what_cannot_have_been_undone_by_hand_is_refused,
    mend_13_the_undos_behind_a_value_that_was_not_kept_are_found_once_it_is_settled,
];

async fn undone(owner: &Owner, step: &'static str) -> Result<(), Error> {
    let settle = owner.idem.settle("trip", None::<&str>, "k");
    settle.expect("a key").step(step).undone().await
}

fn left(ended: &Result<(), BookError>) -> Vec<String> {
    not_undone(ended).expect("it is parked").1
}

async fn j23_a_step_that_was_undone_by_hand_is_undone_no_more(world: World) {
    let saga = Saga::of(&world, &world.owner().await).failing_to_undo("hotel", u32::MAX);
    assert_eq!(left(&saga.call_in_time().await), ["hotel"]);
    for _ in 0..2 {
        undone(&saga.owner, "hotel").await.expect("it is parked");
    }
    assert_eq!(world.record().await.state, State::Undoing);
    for _ in 0..2 {
        assert_eq!(saga.call().await, Err(BookError::Refused));
    }
    assert_eq!(saga.runs(), ([1; 3], [1, 3, 1]));
    assert_eq!(world.runs("the end"), 1);
    let reason = not_settled(undone(&saga.owner, "hotel").await);
    assert_eq!(reason, Some(NotSettled::AlreadySettled));
}

async fn j22_a_step_that_the_body_comes_to_no_more_is_undone_by_hand(world: World) {
    let dead = Saga::of(&world, &world.owner().await);
    dead.vanishes_at("undo car").await;
    let mut saga = Saga::of(&world, &successor(&world).await);
    saga.steps = 2;
    assert_eq!(left(&saga.call_in_time().await), ["car"]);
    undone(&saga.owner, "car").await.expect("it is parked");
    assert_eq!(saga.call().await, Err(BookError::Refused));
    assert_eq!(saga.runs(), ([1; 3], [1, 1, 1]));
}

async fn j23_a_step_is_undone_by_hand_where_its_holder_vanished(world: World) {
    let dead = Saga::of(&world, &world.owner().await);
    dead.vanishes_at("undo car").await;
    let saga = Saga::of(&world, &successor(&world).await);
    undone(&saga.owner, "hotel").await.expect("nobody holds it");
    assert_eq!(saga.call().await, Err(BookError::Refused));
    assert_eq!(saga.order(), ["car-1", "flight-1"]);
    assert_eq!(saga.runs(), ([1; 3], [1, 0, 2]));
}

async fn j23_what_cannot_have_been_undone_by_hand_is_refused(world: World) {
    let owner = world.owner().await;
    let why = async |step| not_settled(undone(&owner, step).await);
    assert_eq!(why("car").await, Some(NotSettled::UnknownOperation));

    let gate = Gate::new();
    let mut dead = Saga::of(&world, &world.owner().await).held_at("hotel", &gate);
    dead.on_crash = OnCrash::Uncertain;
    let (holder, saga) = (dead.owner.clone(), dead.clone());
    let call = tokio::spawn(async move { saga.call().await });
    gate.arrived(1).await;
    assert_eq!(why("hotel").await, Some(NotSettled::StillRunning));
    holder.die_in(call).await;
    let mut saga = Saga::of(&world, &successor(&world).await).failing_to_undo("hotel", 3);
    saga.on_crash = OnCrash::Uncertain;
    assert_eq!(why("hotel").await, Some(NotSettled::NotUndoing));
    assert!(saga.call().await.is_err());
    assert_eq!(why("hotel").await, Some(NotSettled::NotUndoing));

    let settle = saga.owner.idem.settle("trip", None::<&str>, "k");
    let settle = settle.expect("a key").undo(&BookError::Refused);
    settle.await.expect("nobody holds it");
    assert_eq!(left(&saga.call_in_time().await), ["hotel"]);
    assert_eq!(why("car").await, Some(NotSettled::UnknownStep));
    assert_eq!(world.record().await.state, State::Parked);
}

async fn mend_13_the_undos_behind_a_value_that_was_not_kept_are_found_once_it_is_settled(
    world: World,
) {
    // The error of the call is kept, and so are the values of the steps, except the one in between.
    let saga_of = |owner: &Owner| {
        let mut saga = Saga::of(&world, owner);
        saga.long = Some("hotel");
        saga
    };
    let owner = world.owner_with(|builder| builder.max_outcome(64)).await;
    saga_of(&owner).vanishes_at("undo car").await;
    let saga = saga_of(&successor(&world).await);
    assert_eq!(left(&saga.call_in_time().await), ["car"]);
    let settle = || {
        let settle = saga.owner.idem.settle("trip", None::<&str>, "k");
        settle.expect("a key").step("hotel")
    };
    for _ in 0..2 {
        let settled = settle().with_value(&"hotel-1").await;
        settled.expect("it is parked, and the value is not known");
    }
    assert_eq!(saga.call_in_time().await, Err(BookError::Refused));
    assert_eq!(saga.runs(), ([1; 3], [1, 1, 2]));
}
