//! Several calls that claim at once.

use super::*;
use crate::answers::is_reused;

on_every_store![
    c08_parallel_owners,
    c11_lost_race_mismatch,
    c11_lost_race_duplicate,
];

async fn c08_parallel_owners(world: World) {
    let (a, b) = (world.owner().await, world.owner().await);

    let (first, second) = tokio::join!(
        a.spawn(held(world.clone(), open(), "k", 1)),
        b.spawn(held(world.clone(), open(), "k", 1)),
    );

    assert_eq!(first.expect("it does not panic"), Ok("1, run 1".into()));
    assert_eq!(second.expect("it does not panic"), Ok("1, run 1".into()));
    assert_eq!(world.runs("k"), 1);
}

/// A call of `owner` whose claim is held on its way to the store.
async fn claiming(
    world: &World,
    owner: &Owner,
    amount: u32,
) -> (Gate, tokio::task::JoinHandle<Result<String, Error>>) {
    let on_the_way = owner.delays(StoreOperation::Claim, On::Next);
    let task = owner.spawn(held(world.clone(), open(), "k", amount));
    on_the_way.arrived(1).await;
    (on_the_way, task)
}

async fn c11_lost_race_mismatch(world: World) {
    let (a, b, c) = (
        world.owner().await,
        world.owner().await,
        world.owner().await,
    );
    let (b_may_go, b_task) = claiming(&world, &b, 2).await;
    let (c_may_go, c_task) = claiming(&world, &c, 3).await;

    // B finds the winner running, C finds it done.
    let inside = Inside::of(&world, &a).await;
    b_may_go.open();
    let refused = b_task.await.expect("it does not panic");
    assert!(is_reused(&refused), "{refused:?}");
    let first = inside.ends().await;
    c_may_go.open();
    let refused = c_task.await.expect("it does not panic");
    assert!(is_reused(&refused), "{refused:?}");

    assert_eq!(first, Ok("1, run 1".into()));
    assert_eq!(world.runs("k"), 1);
}

async fn c11_lost_race_duplicate(world: World) {
    let (a, b) = (world.owner().await, world.owner().await);
    let (b_may_go, b_task) = claiming(&world, &b, 1).await;
    let inside = Inside::of(&world, &a).await;

    b_may_go.open();
    b.log.await_step(RecordChange::Waiting).await;
    let first = inside.ends().await;

    assert_eq!(b_task.await.expect("it does not panic"), first);
    assert_eq!(world.runs("k"), 1);
}
