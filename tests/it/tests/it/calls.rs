//! First call, replay, expiry.

use std::time::Duration;

use idempotent_runtime::{Answer, Error, Step, idempotent, record::State};

use crate::harness::World;

on_every_store![
    a01_first_execution,
    a02_replay_completed,
    a04_record_expired,
];

#[idempotent(name = "calls.charge", key = key, ttl = "1h", skip(world))]
async fn charge(world: &World, key: &str, amount: u32) -> Result<String, Error> {
    world.happened(key);
    Ok(format!("charged {amount}, run {}", world.runs(key)))
}

async fn a01_first_execution(world: World) {
    let owner = world.owner().await;

    let answer = owner.enter(charge(&world, "k", 12)).await;

    assert_eq!(answer, Ok("charged 12, run 1".into()));
    assert_eq!(owner.log.steps(), [Step::Claimed, Step::Recorded]);
    assert_eq!(owner.log.answers(), [Answer::Executed]);
    assert_eq!(owner.store.round_trips(), 2);
    assert_eq!(world.record().await.state, State::Done);
}

async fn a02_replay_completed(world: World) {
    let (first, second) = (world.owner().await, world.owner().await);
    let answer = first.enter(charge(&world, "k", 12)).await;

    let replayed = second.enter(charge(&world, "k", 12)).await;

    assert_eq!(replayed, answer);
    assert_eq!(world.runs("k"), 1);
    assert_eq!(second.log.answers(), [Answer::Replayed]);
    assert_eq!(second.store.round_trips(), 1);
}

async fn a04_record_expired(world: World) {
    let owner = world.owner().await;
    let first = owner.enter(charge(&world, "k", 12)).await;
    world.advance(Duration::from_secs(59 * 60)).await;
    assert_eq!(owner.enter(charge(&world, "k", 12)).await, first);

    world.advance(Duration::from_secs(60)).await;

    assert_eq!(
        owner.enter(charge(&world, "k", 12)).await,
        Ok("charged 12, run 2".into())
    );
    assert_eq!(world.records().await.len(), 1);
}
