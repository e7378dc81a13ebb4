//! The counts and the explanations of calls, and the secrets that never show.

mod ends;
mod linked;
mod secrets;
mod stopped;
mod store;

use std::time::Duration;

use idempotent_runtime::{
    CallOutcome, CallReport, Error, FingerprintKey, InFlight, RecordChange, StoreErrorKind,
    UnprotectedReason, idempotent,
    record::State,
    testing::{Gate, On, StoreOperation},
};
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use crate::{
    answers::is_in_progress,
    harness::{Event, Owner, World, said_during},
};

on_every_store![
    k01_outcome_metrics,
    k01_latency,
    k02_a_replay_names_the_trace_of_the_first_run,
    k03_hook_per_transition,
    k04_explain,
    k04_explain_a_lost_lease,
    k10_purge_does_not_guess,
];

const LEASE: Duration = Duration::from_secs(30);

#[idempotent(name = "observed.held", key = key, skip(world, gate))]
async fn held(world: World, gate: Gate, key: String, amount: u32) -> Result<u32, Error> {
    world.happened(&key);
    gate.pass().await;
    Ok(amount)
}

fn open() -> Gate {
    let gate = Gate::new();
    gate.open();
    gate
}

/// A call under this key, once its body stands at the gate.
async fn inside(world: &World, owner: &Owner, key: &str) -> (JoinHandle<Result<u32, Error>>, Gate) {
    let gate = Gate::new();
    let call = owner.spawn(held(world.clone(), gate.clone(), key.into(), 1));
    gate.arrived(1).await;
    (call, gate)
}

async fn k01_outcome_metrics(world: World) {
    let owner = world.owner().await;
    let call = |key: &str, amount| owner.enter(held(world.clone(), open(), key.into(), amount));

    // The calls are executed, replayed, and a mismatch.
    assert_eq!(call("k", 1).await, Ok(1));
    assert_eq!(call("k", 1).await, Ok(1));
    assert!(call("k", 2).await.is_err());
    owner.assert_answers(&[
        CallOutcome::Executed,
        CallOutcome::Replayed,
        CallOutcome::KeyReused,
    ]);

    let mut expected = waits_and_is_told(&world, &owner).await;

    // The calls are taken over, and stale.
    let zombie = world.owner().await;
    zombie.fails(
        StoreOperation::Heartbeat,
        On::Every,
        StoreErrorKind::Unavailable,
    );
    let (stale, gate) = inside(&world, &zombie, "stale").await;
    world.advance(LEASE).await;
    assert_eq!(call("stale", 1).await, Ok(1));
    gate.open();
    assert_eq!(stale.await.expect("it does not panic"), Ok(1));
    expected.push(CallOutcome::ExecutedAfterTakeover);
    assert_eq!(zombie.log.answers(), [CallOutcome::LeaseLost]);

    // The calls are indeterminate, unprotected, refused, and a store error.
    for _ in 0..2 {
        let answer = owner
            .call("observed.uncertain")
            .key("k")
            .uncertain_errors()
            .run(|_| async { Err::<(), _>(Error::AlreadyInstalled) })
            .await;
        assert!(answer.is_err());
    }
    expected.extend([CallOutcome::LeftUncertain, CallOutcome::Uncertain]);
    let unprotected = owner.call("observed.held").key("k").unprotected();
    assert_eq!(
        unprotected.run(|_| async { Ok::<_, Error>(7) }).await,
        Ok(7)
    );
    expected.push(CallOutcome::Unprotected);
    assert!(call("", 1).await.is_err());
    expected.push(CallOutcome::Refused);
    owner.fails(StoreOperation::Claim, On::Next, StoreErrorKind::Denied);
    assert!(matches!(call("k", 1).await, Err(Error::Store(_))));
    expected.push(CallOutcome::StoreFailed);

    assert_eq!(owner.log.answers(), expected, "one for each call");
}

/// Has one call replayed after a wait, and one told of a conflict, as the fourth answer and after.
async fn waits_and_is_told(world: &World, owner: &Owner) -> Vec<CallOutcome> {
    let (first, gate) = inside(world, owner, "waited").await;
    let rejected = owner
        .call("observed.held")
        .key("waited")
        .argument("key", "waited")
        .argument("amount", &1)
        .in_flight(InFlight::Reject)
        .run(|_| async { Ok::<u32, Error>(0) })
        .await;
    assert!(is_in_progress(&rejected), "{rejected:?}");
    let second = owner.spawn(held(world.clone(), open(), "waited".into(), 1));
    owner.log.await_step(RecordChange::Waiting).await;
    gate.open();
    assert_eq!(first.await.expect("it does not panic"), Ok(1));
    assert_eq!(second.await.expect("it does not panic"), Ok(1));
    let answers = owner.log.answers();
    assert_eq!(answers[3], CallOutcome::InProgress);
    let mut both = [answers[4], answers[5]];
    both.sort_by_key(|answer| *answer == CallOutcome::ReplayedAfterWait);
    assert_eq!(
        both,
        [CallOutcome::Executed, CallOutcome::ReplayedAfterWait]
    );
    assert_eq!(answers.len(), 6);
    answers
}

async fn k01_latency(world: World) {
    let owner = world.owner().await;
    let (call, gate) = inside(&world, &owner, "k").await;

    world.advance(Duration::from_secs(5)).await;
    gate.open();
    assert_eq!(call.await.expect("it does not panic"), Ok(1));
    assert_eq!(
        owner
            .enter(held(world.clone(), open(), "k".into(), 1))
            .await,
        Ok(1)
    );

    let latencies: Vec<_> = owner
        .log
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::CallOutcome {
                operation,
                answer,
                elapsed,
            } => Some((operation, answer, elapsed)),
            Event::RecordChange { .. } => None,
        })
        .collect();
    let operation = || "observed.held".to_owned();
    assert_eq!(
        latencies,
        [
            (operation(), CallOutcome::Executed, Duration::from_secs(5)),
            (operation(), CallOutcome::Replayed, Duration::ZERO),
        ]
    );
}

async fn k02_a_replay_names_the_trace_of_the_first_run(world: World) {
    const FIRST: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const SECOND: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let first = world
        .owner_with(|builder| builder.trace_parent(|| Some(FIRST.into())))
        .await;
    let second = world
        .owner_with(|builder| builder.trace_parent(|| Some(SECOND.into())))
        .await;
    for owner in [&first, &second] {
        let call = owner.call("observed.traced").key("k");
        let (answer, how) = call.run_detailed(|_| async { Ok::<_, Error>(1) }).await;
        assert_eq!(answer, Ok(1));
        match how {
            CallReport::Executed { .. } => {}
            CallReport::Replayed { trace_parent, .. } => {
                assert_eq!(trace_parent.as_deref(), Some(FIRST));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(second.log.answers(), [CallOutcome::Replayed]);
}

async fn k03_hook_per_transition(world: World) {
    let (a, b, c) = (
        world.owner().await,
        world.owner().await,
        world.owner().await,
    );
    a.fails(
        StoreOperation::Heartbeat,
        On::Every,
        StoreErrorKind::Unavailable,
    );

    let (stale, gate) = inside(&world, &a, "k").await;
    world.advance(LEASE).await;
    a.log.await_step(RecordChange::LeaseLost).await;
    let (taken_over, second_gate) = inside(&world, &b, "k").await;
    let waiting = c.spawn(held(world.clone(), second_gate.clone(), "k".into(), 1));
    c.log.await_step(RecordChange::Waiting).await;
    second_gate.open();

    for call in [taken_over, waiting] {
        assert_eq!(call.await.expect("it does not panic"), Ok(1));
    }
    gate.open();
    assert_eq!(stale.await.expect("it does not panic"), Ok(1));
    let steps = a.log.steps();
    assert_eq!(steps.first(), Some(&RecordChange::Claimed));
    assert_eq!(steps.last(), Some(&RecordChange::LeaseLost));
    assert!(
        steps[1..steps.len() - 1]
            .iter()
            .all(|step| *step == RecordChange::HeartbeatFailed),
        "{steps:?}"
    );
    b.assert_steps(&[RecordChange::TakenOver, RecordChange::Recorded]);
    assert_eq!(c.log.steps(), [RecordChange::Waiting]);
    let takeover = Event::RecordChange {
        operation: "observed.held".into(),
        step: RecordChange::TakenOver,
        attempt: 2,
    };
    assert!(b.log.events().contains(&takeover));
}

type Explained = (Result<u32, Error>, CallReport);

/// A call of this name, once its body stands at the gate.
async fn explains(owner: &Owner, name: &str) -> (JoinHandle<Explained>, Gate) {
    let gate = Gate::new();
    let (call, held) = (owner.call(name).key("k"), gate.clone());
    let call = tokio::spawn(call.run_detailed(|_| async move {
        held.pass().await;
        Ok::<u32, Error>(1)
    }));
    gate.arrived(1).await;
    (call, gate)
}

/// Whether its body ran in the first attempt, and was recorded.
fn is_first_run(how: &CallReport) -> bool {
    let CallReport::Executed {
        attempt, recorded, ..
    } = how
    else {
        return false;
    };
    *attempt == 1 && *recorded
}

async fn k04_explain(world: World) {
    let (a, b) = (world.owner().await, world.owner().await);
    let call = || {
        let call = b.call("observed.explained").key("k");
        call.run_detailed(|_| async { Ok::<_, Error>(2) })
    };
    let (first, gate) = explains(&a, "observed.explained").await;

    let rejected = b
        .call("observed.explained")
        .key("k")
        .in_flight(InFlight::Reject)
        .run_detailed(|_| async { Ok::<u32, Error>(0) })
        .await;
    assert!(matches!(
        rejected,
        (Err(Error::InProgress { .. }), CallReport::Refused)
    ));
    let waiting = tokio::spawn({
        let call = b.call("observed.explained").key("k");
        call.run_detailed(|_| async { Ok::<u32, Error>(0) })
    });
    b.log.await_step(RecordChange::Waiting).await;
    gate.open();

    let (answer, how) = first.await.expect("it does not panic");
    assert_eq!(answer, Ok(1));
    assert!(is_first_run(&how), "{how:?}");
    let (answer, how) = waiting.await.expect("it does not panic");
    assert_eq!(answer, Ok(1));
    let CallReport::Replayed {
        waited, attempt, ..
    } = how
    else {
        panic!("{how:?}")
    };
    assert_eq!((waited, attempt), (true, 1));
    let (answer, how) = call().await;
    assert_eq!(answer, Ok(1));
    assert!(
        matches!(how, CallReport::Replayed { waited: false, .. }),
        "{how:?}"
    );
    let call = b.call("observed.explained").key("k").unprotected();
    let (answer, how) = call.run_detailed(|_| async { Ok::<_, Error>(2) }).await;
    assert_eq!(
        (answer, how),
        (Ok(2), CallReport::Unprotected(UnprotectedReason::OptedOut))
    );
}

/// A holder that lost its lease is given the outcome that stands, and told that it does.
async fn k04_explain_a_lost_lease(world: World) {
    let (paused, other) = (world.owner().await, world.owner().await);
    paused.fails(
        StoreOperation::Heartbeat,
        On::Every,
        StoreErrorKind::Unavailable,
    );
    let (stale, gate) = explains(&paused, "observed.lost").await;
    world.advance(LEASE).await;
    let call = other.call("observed.lost").key("k");
    assert_eq!(call.run(|_| async { Ok::<_, Error>(2) }).await, Ok(2));
    gate.open();

    let (answer, how) = stale.await.expect("it does not panic");
    assert_eq!(answer, Ok(2));
    assert!(
        matches!(
            how,
            CallReport::Executed {
                attempt: 1,
                taken_over: true,
                ..
            }
        ),
        "{how:?}"
    );
    let call = other.call("observed.lost").key("k");
    let (answer, how) = call.run_detailed(|_| async { Ok::<_, Error>(3) }).await;
    assert_eq!(answer, Ok(2));
    assert!(
        matches!(how, CallReport::Replayed { attempt: 2, .. }),
        "it is the second attempt's: {how:?}"
    );
}

async fn k10_purge_does_not_guess(world: World) {
    // Everything about it looks old. It runs ten times longer than its outcome would be kept.
    let a = world.owner_with(|builder| builder.ttl("1s")).await;
    let b = world
        .owner_with(|builder| builder.in_flight(InFlight::Reject))
        .await;
    let (call, gate) = inside(&world, &a, "k").await;

    for beat in 1..=10 {
        world.advance(LEASE / 3).await;
        a.log.await_steps(RecordChange::Heartbeat, beat).await;
        assert_eq!(b.idem.purge().await, Ok(0));
    }

    let rejected = b.enter(held(world.clone(), open(), "k".into(), 1)).await;
    assert!(
        matches!(rejected, Err(Error::InProgress { attempt: 1, .. })),
        "{rejected:?}"
    );
    gate.open();
    assert_eq!(call.await.expect("it does not panic"), Ok(1));
    assert_eq!(world.runs("k"), 1);
    world.advance(Duration::from_secs(1)).await;
    assert_eq!(
        b.idem.purge().await,
        Ok(world.to_purge(1)),
        "once it has ended, it is old"
    );
    assert!(world.records().await.is_empty());
}
