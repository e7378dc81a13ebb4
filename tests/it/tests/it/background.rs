//! The heartbeat thread beside a store that panics or hangs: nothing of it is lost for good.

use std::time::Duration;

use idempotent_runtime::{
    Answer, Step,
    record::State,
    store::StoreErrorKind,
    testing::{Fault, Gate, Nth, Operation},
};

use crate::{
    charge::{Charge, LEASE},
    harness::{Owner, World},
};

on_every_store![
    heartbeats_survive_a_panic_while_they_connect,
    heartbeats_survive_a_panic_in_one_of_them,
    an_outcome_survives_a_panic_in_the_background,
    an_outcome_survives_a_write_that_hangs_in_the_background,
];

/// Lets time go on until the outcome is recorded, heartbeat by heartbeat: these come from the thread that writes it. One that
/// was under way to a server while time went on has failed, and is followed by the next, which may need more time to be due.
async fn beats_until_recorded(world: &World, owner: &Owner) {
    // The first one comes at once.
    owner.log.await_step(Step::Heartbeat).await;
    while owner.log.count(Step::Recorded) == 0 {
        let beats = owner.log.count(Step::Heartbeat);
        let failures = owner.log.count(Step::HeartbeatFailed);
        world.advance(LEASE / 3).await;
        tokio::select! {
            () = owner.log.await_steps(Step::Heartbeat, beats + 1) => {}
            () = owner.log.await_steps(Step::HeartbeatFailed, failures + 1) => {}
            () = owner.log.await_step(Step::Recorded) => {}
            () = tokio::time::sleep(Duration::from_millis(50)) => {}
        }
    }
}

async fn heartbeats_survive_a_panic_while_they_connect(world: World) {
    let owner = world.owner().await;
    owner
        .store
        .fault(Operation::ForHeartbeats, Nth::Every, Fault::Panic);

    let (call, gate) = Charge::of(&world, &owner).begun().await;
    for beat in 1..=4 {
        world.advance(LEASE / 3).await;
        owner.log.await_steps(Step::Heartbeat, beat).await;
    }

    gate.open();
    assert_eq!(call.await.expect("no panic"), Ok("charged".into()));
    owner.settled().await;
    assert_eq!(owner.log.steps(), [Step::Claimed, Step::Recorded]);
}

async fn heartbeats_survive_a_panic_in_one_of_them(world: World) {
    let owner = world.owner().await;
    owner
        .store
        .fault(Operation::Heartbeat, Nth::Call(1), Fault::Panic);

    let (call, gate) = Charge::of(&world, &owner).begun().await;
    world.advance(LEASE / 3).await;
    while owner.store.calls(Operation::Heartbeat) == 0 {
        tokio::task::yield_now().await;
    }
    // The next try comes sooner than after a heartbeat that went well.
    world.advance(LEASE / 12).await;
    owner.log.await_step(Step::Heartbeat).await;
    world.advance(LEASE / 3).await;
    owner.log.await_steps(Step::Heartbeat, 2).await;

    gate.open();
    assert_eq!(call.await.expect("no panic"), Ok("charged".into()));
    owner.settled().await;
    assert_eq!(owner.log.steps(), [Step::Claimed, Step::Recorded]);
}

async fn an_outcome_survives_a_panic_in_the_background(world: World) {
    let owner = world.owner().await;
    let refused = Fault::Fail(StoreErrorKind::Unavailable);
    owner.store.fault(Operation::Ending, Nth::Call(1), refused);
    for in_the_background in 2..=3 {
        let nth = Nth::Call(in_the_background);
        owner.store.fault(Operation::Ending, nth, Fault::Panic);
    }

    let answer = Charge::of(&world, &owner).call().await;
    assert_eq!(answer, Ok("charged".into()));
    assert_eq!(owner.log.steps(), [Step::Claimed, Step::NotYetRecorded]);

    beats_until_recorded(&world, &owner).await;
    owner.settled().await;
    assert!(owner.store.calls(Operation::Ending) >= 4);
    assert_eq!(Charge::of(&world, &owner).call().await, answer);
    assert_eq!(world.runs("k"), 1);
}

async fn an_outcome_survives_a_write_that_hangs_in_the_background(world: World) {
    let owner = world.owner().await;
    let hanging = Gate::new();
    let refused = Fault::Fail(StoreErrorKind::Unavailable);
    owner.store.fault(Operation::Ending, Nth::Call(1), refused);
    let hangs = Fault::Delay(hanging.clone());
    owner.store.fault(Operation::Ending, Nth::Call(2), hangs);

    let answer = Charge::of(&world, &owner).call().await;
    assert_eq!(answer, Ok("charged".into()));
    hanging.arrived(1).await;
    // It is given up after a lease, and meanwhile the lease is kept.
    owner.log.await_step(Step::Heartbeat).await;
    for beat in 2..=3 {
        world.advance(LEASE / 3).await;
        owner.log.await_steps(Step::Heartbeat, beat).await;
        assert_eq!(owner.store.calls(Operation::Ending), 2);
        assert_eq!(world.record().await.state, State::Running);
    }

    beats_until_recorded(&world, &owner).await;
    owner.settled().await;
    assert!(owner.store.calls(Operation::Ending) >= 3);
    assert!(
        owner.log.count(Step::Heartbeat) < 30,
        "given up after a lease"
    );
    let duplicate = Charge::of(&world, &owner).call().await;
    assert_eq!(duplicate, answer);
    assert_eq!(owner.log.answers(), [Answer::Executed, Answer::Replayed]);
    assert_eq!(world.runs("k"), 1);
}
