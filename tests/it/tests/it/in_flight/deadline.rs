//! Until when a call waits: one moment, which is set when it begins.

use super::*;

on_every_store![
    mend_18_the_time_to_wait_counts_from_the_beginning_of_the_call,
    mend_18_a_busy_store_is_not_asked_again_after_the_deadline,
];

async fn mend_18_the_time_to_wait_counts_from_the_beginning_of_the_call(world: World) {
    let (a, b) = (world.owner().await, world.owner().await);
    let inside = Inside::of(&world, &a).await;
    a.fault(StoreOperation::Heartbeat, On::Every, Fault::LoseRequest);
    let slow = b.delays(StoreOperation::Claim, On::Next);
    let waiting = b.spawn(held(world.clone(), open(), "k", 1));
    slow.arrived(1).await;
    world.advance(Duration::from_secs(6)).await;
    slow.open();
    b.log.await_step(RecordChange::Waiting).await;
    b.timer.await_sleepers(1).await;

    // Ten seconds are the default.
    world.advance(Duration::from_secs(4)).await;

    let ended = waiting.await.expect("it does not panic");
    assert!(matches!(ended, Err(Error::InProgress { .. })), "{ended:?}");
    assert_eq!(inside.ends().await, Ok("1, run 1".into()));
}

async fn mend_18_a_busy_store_is_not_asked_again_after_the_deadline(world: World) {
    let owner = world.owner().await;
    let busy = Fault::Fail(StoreErrorKind::Busy);
    owner.fault(StoreOperation::Claim, On::Every, busy);
    let called = owner.spawn(held(world.clone(), open(), "k", 1));
    owner.timer.await_sleepers(1).await;

    world.advance(Duration::from_secs(10)).await;

    let refused = called.await.expect("it does not panic");
    let Err(Error::Store(error)) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(error.kind(), StoreErrorKind::Busy);
    // Pauses of milliseconds would have asked it more often.
    assert!(owner.store.calls(StoreOperation::Claim) <= 3);
    assert_eq!(world.runs("k"), 0);
}
