//! How a call that waits comes to know that the first one has ended.

use idempotent_runtime::OnOutage;

use super::*;

on_every_store![
    c13_wake_by_notification,
    c13_a_lost_notification_is_made_up_for,
    c13_a_wait_that_fails_is_made_up_for,
    c13_a_look_that_fails_is_made_up_for,
    c13_looks_that_fail_end_with_the_patience,
];

async fn c13_wake_by_notification(world: World) {
    // There is one owner: the waiters of one process. Only a wake-up ends this wait before the
    // scenario's time is up.
    const HOUR: Duration = Duration::from_secs(60 * 60);
    let owner = world
        .owner_with(|builder| builder.lease(HOUR).in_flight(InFlight::Wait(HOUR)))
        .await;
    let inside = Inside::of(&world, &owner).await;
    let waiting = owner.spawn(held(world.clone(), open(), "k", 1));
    owner.log.await_step(RecordChange::Waiting).await;
    let loads = owner.store.calls(StoreOperation::Load);

    let first = inside.ends().await;

    assert_eq!(waiting.await.expect("it does not panic"), first);
    assert_eq!(
        owner.store.calls(StoreOperation::Load) - loads,
        1,
        "it looks when it is woken, and only then"
    );
    assert_eq!(owner.store.calls(StoreOperation::Wait), 1);
}

async fn c13_a_lost_notification_is_made_up_for(world: World) {
    // There are two owners. On a file, the other process is not told, so it looks by itself.
    let (a, b) = (world.owner().await, world.owner().await);
    let inside = Inside::of(&world, &a).await;
    let waiting = b.spawn(held(world.clone(), open(), "k", 1));
    b.log.await_step(RecordChange::Waiting).await;

    let first = inside.ends().await;

    assert_eq!(waiting.await.expect("it does not panic"), first);
    assert_eq!(b.store.calls(StoreOperation::Load), 1);
}

async fn c13_a_wait_that_fails_is_made_up_for(world: World) {
    let (a, b) = (world.owner().await, world.owner().await);
    b.fails(StoreOperation::Wait, On::Every, StoreErrorKind::Unavailable);
    let inside = Inside::of(&world, &a).await;
    let waiting = b.spawn(held(world.clone(), open(), "k", 1));
    b.timer.await_sleepers(1).await;

    let first = inside.ends().await;
    world.advance(Duration::from_millis(100)).await;

    assert_eq!(waiting.await.expect("it does not panic"), first);
    assert_eq!(world.runs("k"), 1);
}

async fn c13_a_look_that_fails_is_made_up_for(world: World) {
    let (a, b) = (world.owner().await, world.owner().await);
    let inside = Inside::of(&world, &a).await;
    let waiting = b.spawn(held(world.clone(), open(), "k", 1));
    b.log.await_step(RecordChange::Waiting).await;
    b.fault(StoreOperation::Load, On::Call(1), Fault::LoseRequest);

    let first = inside.ends().await;
    while b.store.calls(StoreOperation::Load) == 0 {
        tokio::task::yield_now().await;
    }
    b.timer.await_sleepers(1).await;
    b.timer.advance(Duration::from_millis(100));

    assert_eq!(waiting.await.expect("it does not panic"), first);
    assert_eq!(b.log.answers(), [CallOutcome::ReplayedAfterWait]);
    assert_eq!(b.store.calls(StoreOperation::Load), 2);
}

/// The waiter saw a holder of the call, so no outage lets it run itself.
async fn c13_looks_that_fail_end_with_the_patience(world: World) {
    let a = world.owner().await;
    let b = world
        .owner_with(|builder| builder.on_outage(OnOutage::Open))
        .await;
    let inside = Inside::of(&world, &a).await;
    let waiting = b.spawn(held(world.clone(), open(), "k", 1));
    b.log.await_step(RecordChange::Waiting).await;
    for away in [StoreOperation::Load, StoreOperation::Swap] {
        b.fault(away, On::Every, Fault::LoseRequest);
    }

    assert_eq!(inside.ends().await, Ok("1, run 1".into()));
    while b.store.calls(StoreOperation::Load) == 0 {
        tokio::task::yield_now().await;
    }
    while !waiting.is_finished() {
        // Time stands still while it looks, or its patience would be over before it looks again.
        let sleeps = b.timer.until_next().filter(|left| !left.is_zero());
        if let Some(left) = sleeps {
            b.timer.advance(left.min(Duration::from_millis(100)));
        }
        tokio::task::yield_now().await;
    }

    let answer = waiting.await.expect("it does not panic");
    assert!(matches!(answer, Err(Error::Store(_))), "{answer:?}");
    assert!(b.store.calls(StoreOperation::Load) > 1, "it tried again");
    assert_eq!(world.runs("k"), 1);
}
