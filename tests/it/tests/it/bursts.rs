//! Many calls at once.

use std::{collections::HashSet, time::Duration};

use idempotent_runtime::{
    CallOutcome, Error, RecordChange, current, idempotent,
    testing::{Gate, StoreOperation},
};

use crate::harness::{Owner, World};

on_every_store![
    c06_burst_waits,
    c06_burst_is_rejected,
    c06_burst_races,
    c07_burst_on_orphan,
    c09_different_keys,
    c14_a_thousand_duplicates,
];

#[idempotent(name = "bursts.held", key = key, skip(world, gate))]
async fn held(world: World, gate: Gate, key: String) -> Result<String, Error> {
    world.happened(&key);
    gate.pass().await;
    Ok(format!("{key}, run {}", world.runs(&key)))
}

#[idempotent(name = "bursts.held", key = key, in_flight = reject, skip(world, gate))]
async fn held_or_rejected(world: World, gate: Gate, key: String) -> Result<String, Error> {
    world.happened(&key);
    gate.pass().await;
    Ok(format!("{key}, run {}", world.runs(&key)))
}

/// Owners that stand for four processes.
async fn four(world: &World) -> Vec<Owner> {
    let mut owners = Vec::new();
    for _ in 0..4 {
        owners.push(world.owner().await);
    }
    owners
}

type Calls = Vec<tokio::task::JoinHandle<Result<String, Error>>>;

async fn all(calls: Calls) -> Vec<Result<String, Error>> {
    let mut answers = Vec::with_capacity(calls.len());
    for call in calls {
        answers.push(call.await.expect("it does not panic"));
    }
    answers
}

async fn c06_burst_waits(world: World) {
    let owners = four(&world).await;
    let gate = Gate::new();

    let calls: Calls = (0..100)
        .map(|n| owners[n % 4].spawn(held(world.clone(), gate.clone(), "k".into())))
        .collect();
    world.log().await_steps(RecordChange::Waiting, 99).await;
    gate.open();

    for answer in all(calls).await {
        assert_eq!(answer, Ok("k, run 1".into()));
    }
    assert_eq!((world.runs("k"), gate.arrivals()), (1, 1));
    let answers = world.log().answers();
    let executed = |answer: &&CallOutcome| **answer == CallOutcome::Executed;
    assert_eq!(
        (answers.len(), answers.iter().filter(executed).count()),
        (100, 1)
    );
}

async fn c06_burst_is_rejected(world: World) {
    let owners = four(&world).await;
    let gate = Gate::new();
    let rejected = |answer: &&CallOutcome| **answer == CallOutcome::InProgress;

    let calls: Calls = (0..100)
        .map(|n| owners[n % 4].spawn(held_or_rejected(world.clone(), gate.clone(), "k".into())))
        .collect();
    world.log().await_answers(99).await;
    assert_eq!(world.log().answers().iter().filter(rejected).count(), 99);
    gate.open();

    let answers = all(calls).await;
    let refused = |answer: &&Result<String, Error>| matches!(answer, Err(Error::InProgress { .. }));
    assert_eq!(answers.iter().filter(refused).count(), 99);
    assert!(answers.contains(&Ok("k, run 1".into())));
    assert_eq!(world.runs("k"), 1);
}

async fn c06_burst_races(world: World) {
    let owners = four(&world).await;
    let open = Gate::new();
    open.open();

    for round in 0..10 {
        let key = format!("k{round}");
        let calls: Calls = (0..20)
            .map(|n| owners[n % 4].spawn(held(world.clone(), open.clone(), key.clone())))
            .collect();

        for answer in all(calls).await {
            assert_eq!(answer, Ok(format!("{key}, run 1")));
        }
        assert_eq!(world.runs(&key), 1);
    }
}

async fn c07_burst_on_orphan(world: World) {
    let owners = four(&world).await;
    let lost = world.owner().await;
    let gate = Gate::new();
    let orphaned = lost.spawn(held(world.clone(), gate.clone(), "k".into()));
    gate.arrived(1).await;
    lost.die_in(orphaned).await;
    world.advance(Duration::from_secs(30)).await;

    gate.open();
    let calls: Calls = (0..100)
        .map(|n| owners[n % 4].spawn(held(world.clone(), gate.clone(), "k".into())))
        .collect();

    for answer in all(calls).await {
        assert_eq!(answer, Ok("k, run 2".into()));
    }
    assert_eq!(world.runs("k"), 2);
    assert_eq!(world.log().count(RecordChange::TakenOver), 1);
    assert_eq!(world.record().await.attempt, 2);
}

#[idempotent(name = "bursts.own", key = n)]
async fn own(n: u32) -> Result<(u32, String), Error> {
    let before = current().child_key("downstream");
    tokio::task::yield_now().await;
    let after = current().child_key("downstream");
    assert_eq!(before, after, "nobody else's attempt");
    Ok((n, after))
}

async fn c09_different_keys(world: World) {
    let owners = four(&world).await;

    let calls: Vec<_> = (0_u32..64)
        .map(|n| (n, owners[n as usize % 4].spawn(own(n))))
        .collect();

    let mut child_keys = HashSet::new();
    for (n, call) in calls {
        let (answered, child_key) = call
            .await
            .expect("it does not panic")
            .expect("nothing fails");
        assert_eq!(answered, n);
        assert!(child_keys.insert(child_key));
    }
    assert_eq!(world.log().count(RecordChange::Claimed), 64);
    assert_eq!(world.records().await.len(), 64);
}

/// There is no coalescing in front of the store. Each duplicate tries its claim and finds that
/// another call runs. It waits without asking, and looks once when it is woken.
async fn c14_a_thousand_duplicates(world: World) {
    let owner = world.owner().await;
    let gate = Gate::new();

    let calls: Calls = (0..1_000)
        .map(|_| owner.spawn(held(world.clone(), gate.clone(), "k".into())))
        .collect();
    world.log().await_steps(RecordChange::Waiting, 999).await;
    gate.open();

    for answer in all(calls).await {
        assert_eq!(answer, Ok("k, run 1".into()));
    }
    assert_eq!((world.runs("k"), gate.arrivals()), (1, 1));
    assert_eq!(owner.store.calls(StoreOperation::Claim), 1_000);
    // A server may wake a few of them early.
    let waits = owner.store.calls(StoreOperation::Wait);
    assert!((999..1_100).contains(&waits), "{waits}");
    assert_eq!(owner.store.calls(StoreOperation::Load), waits);
    assert_eq!(owner.store.calls(StoreOperation::Ending), 1);
}
