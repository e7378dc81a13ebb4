//! First call, replay, expiry.

use std::time::Duration;

use idempotent_runtime::{CallOutcome, CallReport, Error, RecordChange, idempotent, record::State};

use crate::harness::World;

on_every_store![
    a01_first_execution,
    a02_replay_completed,
    a03_many_replays,
    a04_record_expired,
    a05_expired_but_not_purged,
    a07_argument_mutated_by_body,
    a08_other_key,
    a13_same_payload_two_functions,
    a30_caller_knows_replay,
];

const HOUR: Duration = Duration::from_secs(60 * 60);

#[idempotent(name = "calls.charge", key = key, ttl = "1h", skip(world))]
async fn charge(world: &World, key: &str, amount: u32) -> Result<String, Error> {
    world.happened(key);
    Ok(format!("charged {amount}, run {}", world.runs(key)))
}

async fn a01_first_execution(world: World) {
    let owner = world.owner().await;

    let answer = owner.enter(charge(&world, "k", 12)).await;

    assert_eq!(answer, Ok("charged 12, run 1".into()));
    owner.assert_steps(&[RecordChange::Claimed, RecordChange::Recorded]);
    assert_eq!(owner.log.answers(), [CallOutcome::Executed]);
    assert_eq!(owner.store.swaps_to(State::Running), 1);
    assert_eq!(owner.store.swaps_to(State::Done), 1);
    assert_eq!(owner.store.round_trips(), 2);
    assert_eq!(world.record().await.state, State::Done);
}

#[tokio::test]
async fn a_task_without_a_handle_is_told_why_it_has_none() {
    let world = World::memory().await;
    let owner = world.owner().await;
    let spawned = async { tokio::spawn(async move { charge(&world, "k", 12).await }).await };

    let answer = owner.enter(spawned).await.expect("no panic");

    let error = answer.expect_err("it has not inherited the handle");
    assert!(matches!(error, Error::NotConfigured { .. }), "{error:?}");
    assert!(
        error.to_string().contains("a task that is spawned there"),
        "{error}"
    );
}

async fn a02_replay_completed(world: World) {
    let (first, second) = (world.owner().await, world.owner().await);
    let answer = first.enter(charge(&world, "k", 12)).await;
    let recorded = world.record().await;

    let replayed = second.enter(charge(&world, "k", 12)).await;

    assert_eq!(replayed, answer);
    assert_eq!(world.runs("k"), 1);
    assert_eq!(second.log.answers(), [CallOutcome::Replayed]);
    assert_eq!(second.log.steps(), []);
    assert_eq!(second.store.round_trips(), world.round_trips_of_a_replay());
    assert_eq!(world.record().await, recorded);
}

async fn a03_many_replays(world: World) {
    let owner = world.owner().await;
    let first = owner.enter(charge(&world, "k", 12)).await;

    for _ in 0..5 {
        assert_eq!(owner.enter(charge(&world, "k", 12)).await, first);
    }

    assert_eq!(world.runs("k"), 1);
    assert_eq!(world.records().await.len(), 1);
}

async fn a04_record_expired(world: World) {
    let owner = world.owner().await;
    let first = owner.enter(charge(&world, "k", 12)).await;
    // Only the store knows what time it is.
    world.advance_store(HOUR - Duration::from_secs(60)).await;
    assert_eq!(owner.enter(charge(&world, "k", 12)).await, first);
    assert_eq!(owner.idem.purge().await, Ok(0));

    world.advance_store(Duration::from_secs(60)).await;

    assert_eq!(owner.idem.purge().await, Ok(world.to_purge(1)));
    assert_eq!(
        owner.enter(charge(&world, "k", 12)).await,
        Ok("charged 12, run 2".into())
    );
    assert_eq!(world.records().await.len(), 1);
}

async fn a05_expired_but_not_purged(world: World) {
    let owner = world.owner().await;
    let _ = owner.enter(charge(&world, "k", 12)).await;
    let before = world.record().await;
    world.advance(HOUR).await;
    let left: Vec<_> = world.records().await;
    assert_eq!(left.len() as u64, world.to_purge(1));
    assert!(left.iter().all(|(_, left)| left.version == before.version));

    let answer = owner.enter(charge(&world, "k", 12)).await;

    assert_eq!(answer, Ok("charged 12, run 2".into()));
    let after = world.record().await;
    assert_eq!(after.attempt, 1, "a new record, not a takeover");
    assert!(after.token > before.token);
    assert_eq!(
        owner.enter(charge(&world, "k", 12)).await,
        Ok("charged 12, run 2".into())
    );
}

#[idempotent(name = "calls.consume", key = lines[0], skip(world))]
async fn consume(world: &World, mut lines: Vec<String>) -> Result<Vec<String>, Error> {
    world.happened("consume");
    lines[0] = "mutated".into();
    lines.push("by the body".into());
    Ok(lines)
}

async fn a07_argument_mutated_by_body(world: World) {
    let owner = world.owner().await;
    let original = vec!["k".to_owned()];

    let first = owner.enter(consume(&world, original.clone())).await;
    let second = owner.enter(consume(&world, original)).await;

    assert_eq!(first, Ok(vec!["mutated".into(), "by the body".into()]));
    assert_eq!(second, first);
    assert_eq!(world.runs("consume"), 1);
    assert_eq!(world.record().await.subject.key, b"k");
}

async fn a08_other_key(world: World) {
    let owner = world.owner().await;
    let _ = owner.enter(charge(&world, "k1", 12)).await;

    let answer = owner.enter(charge(&world, "k2", 12)).await;

    assert_eq!(answer, Ok("charged 12, run 1".into()));
    assert_eq!((world.runs("k1"), world.runs("k2")), (1, 1));
}

#[idempotent(name = "calls.refund", key = key, ttl = "1h", skip(world))]
async fn refund(world: &World, key: &str, amount: u32) -> Result<String, Error> {
    world.happened(key);
    Ok(format!("refunded {amount}"))
}

async fn a13_same_payload_two_functions(world: World) {
    let owner = world.owner().await;

    let charged = owner.enter(charge(&world, "k", 12)).await;
    let refunded = owner.enter(refund(&world, "k", 12)).await;

    assert_eq!(charged, Ok("charged 12, run 1".into()));
    assert_eq!(refunded, Ok("refunded 12".into()));
    assert_eq!(world.records().await.len(), 2);
    assert_eq!(owner.enter(charge(&world, "k", 12)).await, charged);
    assert_eq!(owner.enter(refund(&world, "k", 12)).await, refunded);
}

async fn a30_caller_knows_replay(world: World) {
    const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let first = world
        .owner_with(|builder| builder.trace_parent(|| Some(TRACE.into())))
        .await;
    let second = world.owner().await;
    let call = |owner: &crate::harness::Owner| {
        owner
            .call("calls.detailed")
            .key("k")
            .run_detailed(|attempt| async move { Ok::<_, Error>(attempt.number()) })
    };

    let (answer, how) = call(&first).await;
    world.advance(Duration::from_secs(300)).await;
    let (replayed, how_replayed) = call(&second).await;

    assert_eq!((answer, replayed), (Ok(1), Ok(1)));
    let record = world.record().await;
    let CallReport::Executed {
        attempt: 1,
        token,
        recorded: true,
        ..
    } = how
    else {
        panic!("{how:?}")
    };
    assert_eq!(token, record.token);
    let CallReport::Replayed {
        finished,
        age,
        attempt: 1,
        waited: false,
        trace_parent: Some(trace_parent),
        ..
    } = how_replayed
    else {
        panic!("{how_replayed:?}")
    };
    assert_eq!(Some(finished), record.finished);
    assert!(age >= Duration::from_secs(300), "{age:?}");
    assert!(age < Duration::from_secs(360), "{age:?}");
    assert_eq!(&*trace_parent, TRACE);
}
