//! Undos that are registered before the body of their step, and writes of that which come late.

use idempotent_runtime::{
    current,
    record::State,
    testing::{On, StoreOperation},
};

use super::{BookError, Saga, a_moment, verdict};
use crate::harness::{World, while_time_goes_on};

on_every_store![
    j25_no_step_side_by_side_runs_before_the_record_stays,
    j18_a_step_that_is_registered_after_the_end_does_not_run,
    j19_a_step_that_is_dropped_while_it_is_recorded_is_undone,
];

async fn j25_no_step_side_by_side_runs_before_the_record_stays(world: World) {
    let saga = Saga::of(&world, &world.owner().await);
    let staying = saga.owner.delays(StoreOperation::Heartbeat, On::Next);
    let its = saga.clone();
    let call = tokio::spawn(async move {
        let call = its.owner.call("trip").key("k").classify_errors(verdict);
        let body = async |_| {
            let (flight, hotel) = tokio::join!(its.book("flight"), its.book("hotel"));
            flight?;
            hotel.map(drop)
        };
        call.run(body).await
    });
    staying.arrived(1).await;
    // Time for the step that does not send it.
    a_moment().await;
    assert_eq!(saga.runs().0, [0; 3]);
    staying.open();
    call.await.expect("no panic").expect("it ends well");
    assert_eq!(saga.runs().0, [1, 1, 0]);
}

async fn j18_a_step_that_is_registered_after_the_end_does_not_run(world: World) {
    let owner = world.owner_with(|builder| builder.step_grace("1s")).await;
    let saga = Saga::of(&world, &owner);
    let registering = owner.delays_answer(StoreOperation::WriteStep, On::Next);
    let (its, held, timer) = (saga.clone(), registering.clone(), owner.timer.clone());
    let call = async move {
        let call = its.owner.call("trip").key("k").classify_errors(verdict);
        let left_behind = std::sync::Mutex::new(None);
        let body = async |_| {
            let saga = its.clone();
            let booking = async move { saga.book("flight").await };
            let booking = tokio::spawn(current().enter(booking));
            held.arrived(1).await;
            *left_behind.lock().expect("nobody panicked") = Some(booking);
            Err::<(), _>(BookError::Refused)
        };
        let ended = call.run(body).await;
        (ended, left_behind.into_inner().expect("nobody panicked"))
    };
    let (ended, booking) = while_time_goes_on(&timer, call).await;
    assert_eq!(ended, Err(BookError::Refused));
    registering.open();
    let booked = booking.expect("it was begun").await.expect("no panic");
    assert!(matches!(booked, Err(BookError::Ours(_))), "{booked:?}");
    assert_eq!(saga.runs(), ([0; 3], [0; 3]));
}

async fn j19_a_step_that_is_dropped_while_it_is_recorded_is_undone(world: World) {
    let saga = Saga::of(&world, &world.owner().await);
    // The first write registers the step.
    let recording = saga
        .owner
        .delays_answer(StoreOperation::WriteStep, On::Call(2));
    let call = saga.owner.call("trip").key("k").classify_errors(verdict);
    let body = async |_| {
        tokio::select! {
            booked = saga.book("flight") => panic!("it is held: {booked:?}"),
            () = recording.arrived(1) => Err::<(), _>(BookError::Refused),
        }
    };
    assert_eq!(call.run(body).await, Err(BookError::Refused));
    assert_eq!(saga.runs(), ([1, 0, 0], [1, 0, 0]));
    assert_eq!(world.record().await.state, State::Done);
}
