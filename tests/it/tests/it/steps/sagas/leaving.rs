//! Callers who leave while steps are undone, and undos that take too long.

use idempotent_runtime::{
    Error,
    record::State,
    testing::{Gate, On, StoreOperation},
};

use super::{BookError, Saga, not_undone, verdict};
use crate::{
    charge::LEASE,
    harness::{Owner, World},
};

on_every_store![
    mend_14_callers_who_leave_in_an_undo_park_nothing,
    mend_14_callers_who_leave_a_claim_of_a_saga_park_nothing,
    mend_14_a_holder_that_vanishes_in_an_undo_counts,
    mend_14_a_panic_while_undos_are_looked_for_counts,
    mend_14_an_undo_that_does_not_end_lets_the_next_one_run,
];

/// More callers than a record may see takeovers.
const MANY: usize = 8;

/// A caller that leaves at a spot, and not its process.
async fn leaves_at(saga: &Saga, spot: &str) {
    let gate = Gate::new();
    let held = saga.clone().held_at(spot, &gate);
    let call = tokio::spawn(async move { held.call().await });
    gate.arrived(1).await;
    call.abort();
    assert!(call.await.is_err(), "it left");
    saga.owner.settled().await;
}

fn is_parked(answer: &Result<(), BookError>) -> bool {
    matches!(answer, Err(BookError::Ours(Error::Parked { .. })))
}

/// An owner whose records see one takeover.
async fn strict(world: &World) -> Owner {
    world.owner_with(|builder| builder.max_takeovers(1)).await
}

async fn mend_14_callers_who_leave_in_an_undo_park_nothing(world: World) {
    let saga = Saga::of(&world, &world.owner().await);
    for _ in 0..MANY {
        leaves_at(&saga, "undo hotel").await;
        assert_eq!(world.record().await.state, State::Undoing);
    }
    assert_eq!(saga.call().await, Err(BookError::Refused));
    assert_eq!(saga.runs(), ([1; 3], [1, MANY + 1, 1]));
    assert_eq!(world.runs("the end"), 1, "nothing ran forward again");
}

async fn mend_14_callers_who_leave_a_claim_of_a_saga_park_nothing(world: World) {
    let saga = Saga::of(&world, &world.owner().await);
    leaves_at(&saga, "undo hotel").await;
    for _ in 0..MANY {
        let owner = world.owner().await;
        let gate = owner.delays_answer(StoreOperation::Swap, On::Every);
        let left = Saga::of(&world, &owner);
        let call = tokio::spawn(async move { left.call().await });
        gate.arrived(1).await;
        call.abort();
        assert!(call.await.is_err(), "it left");
        gate.open();
        owner.settled().await;
    }
    assert_eq!(saga.call().await, Err(BookError::Refused));
    assert_eq!(saga.runs(), ([1; 3], [1, 2, 1]));
}

async fn mend_14_a_holder_that_vanishes_in_an_undo_counts(world: World) {
    for _ in 0..2 {
        let saga = Saga::of(&world, &strict(&world).await);
        leaves_at(&saga, "undo hotel").await;
        saga.vanishes_at("undo hotel").await;
        world.advance(LEASE).await;
    }
    let saga = Saga::of(&world, &strict(&world).await);
    let answer = saga.call().await;
    assert!(is_parked(&answer), "{answer:?}");
    let left = (
        vec!["car".to_owned()],
        vec!["hotel".to_owned(), "flight".into()],
    );
    assert_eq!(not_undone(&saga.call().await), Some(left));
    assert_eq!(saga.runs(), ([1; 3], [0, 4, 1]));
}

async fn mend_14_a_panic_while_undos_are_looked_for_counts(world: World) {
    let owner = strict(&world).await;
    let saga = Saga::of(&world, &owner);
    leaves_at(&saga, "undo hotel").await;
    for _ in 0..2 {
        let call = owner.call("trip").key("k").arguments(&1);
        let call = call.classify_errors(verdict);
        let panics = async |_| panic!("a planned panic") as Result<(), BookError>;
        let panicked = tokio::spawn(async move { call.run(panics).await }).await;
        assert!(panicked.is_err(), "{panicked:?}");
        owner.settled().await;
    }
    let answer = saga.call().await;
    assert!(is_parked(&answer), "{answer:?}");
}

async fn mend_14_an_undo_that_does_not_end_lets_the_next_one_run(world: World) {
    let owner = world.owner_with(|builder| builder.undo_timeout("1s")).await;
    let saga = Saga::of(&world, &owner);
    let stuck = saga.clone().held_at("undo hotel", &Gate::new());
    let left = (
        vec!["car".to_owned(), "flight".into()],
        vec!["hotel".to_owned()],
    );
    assert_eq!(not_undone(&stuck.call_in_time().await), Some(left));
    assert_eq!(saga.runs(), ([1; 3], [1, 3, 1]));
    assert_eq!(world.record().await.state, State::Parked);
    let settle = owner.idem.settle("trip", None::<&str>, "k");
    settle.expect("a key").resume().await.expect("it is parked");
    assert_eq!(saga.call().await, Err(BookError::Refused));
    assert_eq!(saga.runs(), ([1; 3], [1, 4, 1]));
}
