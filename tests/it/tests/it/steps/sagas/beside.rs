//! Takeovers that undo, where steps stand beside each other.

use std::future::pending;

use idempotent_runtime::{
    Attempt, Error,
    record::State,
    step,
    store::StoreErrorKind,
    testing::{Gate, On, StoreOperation},
};
use tokio::task::yield_now;

use super::{BookError, Saga, successor, verdict};
use crate::{charge::LEASE, harness::World};

on_every_store![
    j21_an_undo_is_found_beside_a_step_that_failed,
    j21_an_undo_is_found_behind_a_step_that_stands_beside_one_that_failed,
    j21_an_undo_is_found_in_a_race_that_is_lost,
    j21_an_undo_is_found_in_a_task_that_is_left,
    j21_an_attempt_that_ended_before_a_step_leaves_its_undo_to_the_next_one,
    j21_a_search_that_the_store_broke_off_is_left_to_the_next_one,
];

async fn j21_an_undo_is_found_beside_a_step_that_failed(world: World) {
    Beside::AFailure.is_undone_by_the_next_one(world).await;
}

async fn j21_an_undo_is_found_behind_a_step_that_stands_beside_one_that_failed(world: World) {
    Beside::AFailureBehindAStep
        .is_undone_by_the_next_one(world)
        .await;
}

async fn j21_an_undo_is_found_in_a_race_that_is_lost(world: World) {
    Beside::ARace.is_undone_by_the_next_one(world).await;
}

async fn j21_an_undo_is_found_in_a_task_that_is_left(world: World) {
    Beside::TheBody.is_undone_by_the_next_one(world).await;
}

async fn j21_an_attempt_that_ended_before_a_step_leaves_its_undo_to_the_next_one(world: World) {
    let (saga, gate) = (Saga::of(&world, &world.owner().await), Gate::new());
    let dead = Beside::AFailure.call(saga.clone().held_at("hotel", &gate), true);
    let dead = tokio::spawn(dead);
    gate.arrived(1).await;
    saga.owner.die_in(dead).await;
    let saga = Saga::of(&world, &successor(&world).await);
    let first = Beside::AFailure.call(saga.clone(), false).await;
    let left = matches!(first, Err(BookError::Ours(Error::LeaseLost { .. })));
    assert!(left || first == Err(BookError::Refused), "{first:?}");
    let next = Beside::AFailure.call(saga.clone(), false).await;
    assert_eq!(next, Err(BookError::Refused));
    assert_eq!(world.record().await.state, State::Done);
    assert_eq!(world.runs("undo flight"), 1);
}

async fn j21_a_search_that_the_store_broke_off_is_left_to_the_next_one(world: World) {
    let dead = Saga::of(&world, &world.owner().await);
    dead.vanishes_at("undo car").await;
    let saga = Saga::of(&world, &successor(&world).await);
    let second = On::Call(2);
    saga.owner
        .fails(StoreOperation::LoadSteps, second, StoreErrorKind::Other);
    let broken = saga.call().await;
    let is_told = matches!(broken, Err(BookError::Ours(Error::Store(_))));
    assert!(is_told, "{broken:?}");
    assert_eq!(saga.call().await, Err(BookError::Refused));
    assert_eq!(saga.runs(), ([1; 3], [1, 1, 2]));
}

/// The place where the flight is booked.
#[derive(Clone, Copy)]
enum Beside {
    AFailure,
    AFailureBehindAStep,
    ARace,
    TheBody,
}

impl Beside {
    /// The holder vanishes in the undo of the flight, and the next call undoes the flight.
    async fn is_undone_by_the_next_one(self, world: World) {
        let (saga, gate) = (Saga::of(&world, &world.owner().await), Gate::new());
        let dead = self.call(saga.clone().held_at("undo flight", &gate), true);
        let dead = tokio::spawn(dead);
        gate.arrived(1).await;
        saga.owner.die_in(dead).await;
        world.advance(LEASE).await;
        let saga = Saga::of(&world, &successor(&world).await);
        let answer = self.call(saga.clone(), false).await;
        assert_eq!(answer, Err(BookError::Refused));
        assert_eq!(world.record().await.state, State::Done);
        assert_eq!((world.runs("flight"), world.runs("undo flight")), (1, 2));
    }

    async fn call(self, saga: Saga, is_first: bool) -> Result<(), BookError> {
        let call = saga.owner.call("trip").key("k").classify_errors(verdict);
        let body = async |attempt| self.body(&saga, &attempt, is_first).await;
        call.run(body).await
    }

    async fn body(self, saga: &Saga, attempt: &Attempt, is_first: bool) -> Result<(), BookError> {
        match self {
            Self::AFailure => {
                tokio::try_join!(no_hotel(saga), saga.book("flight"))?;
            }
            Self::AFailureBehindAStep => {
                let behind = async {
                    step("car", async |_| Ok::<_, BookError>(())).await?;
                    saga.book("flight").await
                };
                tokio::try_join!(no_hotel(saga), behind)?;
            }
            Self::ARace => tokio::select! {
                biased;
                booked = saga.book("flight") => drop(booked?),
                () = never_if(is_first) => {}
            },
            Self::TheBody => {
                let in_task = saga.clone();
                let task = async move { in_task.book("flight").await };
                let task = tokio::spawn(attempt.enter(task));
                if is_first {
                    task.await.expect("it does not panic")?;
                }
            }
        }
        Err(BookError::Refused)
    }
}

/// A step whose failure is recorded once the flight is booked.
async fn no_hotel(saga: &Saga) -> Result<(), BookError> {
    let no_hotel = async |_| {
        while saga.world.runs("flight") == 0 {
            yield_now().await;
        }
        saga.at("hotel").await;
        Err(BookError::Refused)
    };
    step("hotel", no_hotel).on_error(verdict).await
}

async fn never_if(is_so: bool) {
    if is_so {
        pending::<()>().await;
    }
}
