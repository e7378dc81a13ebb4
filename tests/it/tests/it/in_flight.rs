//! A duplicate while the first call is still running.

mod deadline;
mod races;
mod woken;

use std::{sync::Arc, time::Duration};

use idempotent_runtime::{
    Builder, CallOutcome, Error, InFlight, RecordChange, StoreErrorKind, Verdict, idempotent,
    record::State,
    testing::{Fault, Gate, On, StoreOperation},
};

use crate::harness::{Owner, World};

on_every_store![
    c01_reject,
    c02_wait_then_replay,
    c02_wait_that_ends,
    c02_wait_then_owner_vanished,
    c03_wait_then_owner_failed_released,
    c03_wait_then_owner_failed_shared,
    c05_wait_cancelled,
    c16_attach_never_early,
    c17_finished_policy_matrix,
    c18_conflict_names_the_owner,
];

const LEASE: Duration = Duration::from_secs(30);

#[idempotent(name = "in_flight.held", key = key, skip(world, gate))]
async fn held(world: World, gate: Gate, key: &'static str, amount: u32) -> Result<String, Error> {
    world.happened(key);
    gate.pass().await;
    Ok(format!("{amount}, run {}", world.runs(key)))
}

#[idempotent(name = "in_flight.held", key = key, in_flight = reject, skip(world, gate))]
async fn held_or_rejected(
    world: World,
    gate: Gate,
    key: &'static str,
    amount: u32,
) -> Result<String, Error> {
    world.happened(key);
    gate.pass().await;
    Ok(format!("{amount}, run {}", world.runs(key)))
}

/// A call that stands inside its body, at the gate.
struct Inside {
    gate: Gate,
    task: tokio::task::JoinHandle<Result<String, Error>>,
}

impl Inside {
    async fn of(world: &World, owner: &Owner) -> Self {
        let gate = Gate::new();
        let task = owner.spawn(held(world.clone(), gate.clone(), "k", 1));
        gate.arrived(1).await;
        Self { gate, task }
    }

    async fn ends(self) -> Result<String, Error> {
        self.gate.open();
        self.task.await.expect("it does not panic")
    }
}

fn open() -> Gate {
    let gate = Gate::new();
    gate.open();
    gate
}

async fn c01_reject(world: World) {
    let (a, b) = (world.owner().await, world.owner().await);
    let inside = Inside::of(&world, &a).await;
    world.advance(Duration::from_secs(5)).await;

    let rejected = b
        .enter(held_or_rejected(world.clone(), open(), "k", 1))
        .await;

    let Err(error) = &rejected else {
        panic!("{rejected:?}")
    };
    assert!(error.is_retryable());
    let Error::InProgress {
        operation,
        since,
        retry_after,
        attempt,
        holder,
        ..
    } = error
    else {
        panic!("{error:?}")
    };
    assert_eq!(
        (&**operation, *attempt, &**holder),
        ("in_flight.held", 1, "owner-1")
    );
    let seconds = Duration::from_secs;
    assert!(*since >= seconds(5) && *since < seconds(15), "{since:?}");
    assert!(
        *retry_after > seconds(15) && *retry_after <= seconds(25),
        "the rest of the lease: {retry_after:?}"
    );
    assert_eq!(error.retry_after(), Some(*retry_after));
    assert_eq!(b.log.answers(), [CallOutcome::InProgress]);
    assert_eq!(b.store.round_trips(), 1);

    assert_eq!(inside.ends().await, Ok("1, run 1".into()));
    assert_eq!(world.runs("k"), 1);
}

async fn c02_wait_then_replay(world: World) {
    let (a, b) = (world.owner().await, world.owner().await);
    let inside = Inside::of(&world, &a).await;
    let waiting = b.spawn(held(world.clone(), open(), "k", 1));
    b.log.await_step(RecordChange::Waiting).await;
    assert!(!waiting.is_finished());

    let first = inside.ends().await;

    assert_eq!(first, Ok("1, run 1".into()));
    assert_eq!(waiting.await.expect("it does not panic"), first);
    assert_eq!(world.runs("k"), 1);
    assert_eq!(b.log.answers(), [CallOutcome::ReplayedAfterWait]);
}

async fn c02_wait_that_ends(world: World) {
    let (a, b) = (world.owner().await, world.owner().await);
    let inside = Inside::of(&world, &a).await;
    // A heartbeat would move the record, and have the waiter look at it.
    a.fault(StoreOperation::Heartbeat, On::Every, Fault::LoseRequest);
    let waiting = b.spawn(held(world.clone(), open(), "k", 1));
    b.log.await_step(RecordChange::Waiting).await;
    b.timer.await_sleepers(1).await;

    // Ten seconds are the default.
    world.advance(Duration::from_secs(10)).await;

    let ended = waiting.await.expect("it does not panic");
    assert!(matches!(ended, Err(Error::InProgress { .. })), "{ended:?}");
    assert_eq!(inside.ends().await, Ok("1, run 1".into()));
    assert_eq!(world.runs("k"), 1);
}

async fn c02_wait_then_owner_vanished(world: World) {
    const HOUR: Duration = Duration::from_secs(60 * 60);
    let a = world.owner().await;
    let b = world
        .owner_with(|builder| builder.in_flight(InFlight::Wait(HOUR)))
        .await;
    let inside = Inside::of(&world, &a).await;
    let waiting = b.spawn(held(world.clone(), open(), "k", 1));
    b.log.await_step(RecordChange::Waiting).await;
    b.timer.await_sleepers(1).await;

    // The end of the lease is not announced.
    a.die_in(inside.task).await;
    world.advance(LEASE).await;

    let answer = waiting.await.expect("it does not panic");
    assert_eq!(answer, Ok("1, run 2".into()));
    b.assert_steps(&[
        RecordChange::Waiting,
        RecordChange::TakenOver,
        RecordChange::Recorded,
    ]);
}

#[idempotent(name = "in_flight.failing", key = key, on_error = release, skip(world, gate))]
async fn failing_at_first(world: World, gate: Gate, key: &'static str) -> Result<String, Error> {
    world.happened(key);
    gate.pass().await;
    match world.runs(key) {
        1 => Err(Error::AlreadyInstalled),
        run => Ok(format!("run {run}")),
    }
}

async fn c03_wait_then_owner_failed_released(world: World) {
    let (a, b) = (world.owner().await, world.owner().await);
    let gate = Gate::new();
    let first = a.spawn(failing_at_first(world.clone(), gate.clone(), "k"));
    gate.arrived(1).await;
    let second = b.spawn(failing_at_first(world.clone(), gate.clone(), "k"));
    b.log.await_step(RecordChange::Waiting).await;

    gate.open();

    let first = first.await.expect("it does not panic");
    assert_eq!(first, Err(Error::AlreadyInstalled));
    let second = second.await.expect("it does not panic");
    assert_eq!(second, Ok("run 2".into()));
    assert_eq!(world.runs("k"), 2);
    assert_eq!(b.log.answers(), [CallOutcome::Executed]);
    assert_eq!(
        world.record().await.attempt,
        1,
        "no takeover: nobody vanished"
    );
}

async fn c03_wait_then_owner_failed_shared(world: World) {
    let (a, b) = (world.owner().await, world.owner().await);
    let gate = Gate::new();
    let call = |owner: &Owner| {
        let (call, world, gate) = (
            owner.call("in_flight.shared").key("k"),
            world.clone(),
            gate.clone(),
        );
        tokio::spawn(async move {
            call.run(|_| async move {
                world.happened("k");
                gate.pass().await;
                Err::<(), _>(Failed(world.runs("k")))
            })
            .await
        })
    };
    let first = call(&a);
    gate.arrived(1).await;
    let second = call(&b);
    b.log.await_step(RecordChange::Waiting).await;

    gate.open();

    assert_eq!(first.await.expect("it does not panic"), Err(Failed(1)));
    assert_eq!(second.await.expect("it does not panic"), Err(Failed(1)));
    assert_eq!(world.runs("k"), 1);
}

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Failed(usize);

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        panic!("a call got no answer: {error}")
    }
}

async fn c05_wait_cancelled(world: World) {
    let (a, b) = (world.owner().await, world.owner().await);
    let inside = Inside::of(&world, &a).await;
    let before = world.record().await;
    let waiting = b.spawn(held(world.clone(), open(), "k", 1));
    b.log.await_step(RecordChange::Waiting).await;
    b.timer.await_sleepers(1).await;
    let asked = || [StoreOperation::Swap, StoreOperation::Load].map(|call| b.store.calls(call));
    let before_it_left = asked();

    waiting.abort();

    assert!(waiting.await.is_err());
    assert_eq!(b.timer.sleepers(), 0, "nothing is left behind");
    b.settled().await;
    assert_eq!(asked(), before_it_left);
    assert_eq!(world.record().await, before, "the holder is not disturbed");
    let first = inside.ends().await;
    assert_eq!(first, Ok("1, run 1".into()));
    assert_eq!(b.enter(held(world.clone(), open(), "k", 1)).await, first);
}

async fn c16_attach_never_early(world: World) {
    let (a, b) = (world.owner().await, world.owner().await);
    let durable = a.delays(StoreOperation::Ending, On::Next);
    let inside = Inside::of(&world, &a).await;
    let waiting: Vec<_> = (0..3)
        .map(|_| b.spawn(held(world.clone(), open(), "k", 1)))
        .collect();
    b.log.await_steps(RecordChange::Waiting, 3).await;

    // The body has ended, and its outcome is on the way.
    let first = tokio::spawn(inside.ends());
    durable.arrived(1).await;
    assert_eq!(world.record().await.state, State::Running);
    assert_eq!(world.log().answers(), [], "nobody has an answer");
    durable.open();

    let first = first.await.expect("it does not panic");
    assert_eq!(first, Ok("1, run 1".into()));
    for waiter in waiting {
        assert_eq!(waiter.await.expect("it does not panic"), first);
    }
    assert_eq!(world.runs("k"), 1);
}

async fn c17_finished_policy_matrix(world: World) {
    /// The outcome of a duplicate of a finished call.
    #[derive(Debug, PartialEq)]
    enum Duplicate {
        Replays,
        RunsAgain,
        IsUncertain,
    }
    use Duplicate::{IsUncertain, Replays, RunsAgain};

    let table = [
        (Verdict::Replay, true, Replays),
        (Verdict::Replay, false, Replays),
        (Verdict::Release, true, Replays),
        (Verdict::Release, false, RunsAgain),
        (Verdict::Uncertain, true, Replays),
        (Verdict::Uncertain, false, IsUncertain),
    ];
    for (row, (verdict, succeeds, expected)) in table.into_iter().enumerate() {
        let owner = world.owner_with(|builder| builder.on_error(verdict)).await;
        let key = format!("row {row}");
        let call = || {
            let call = owner.call("in_flight.finished").key(&key);
            call.run(|_| async {
                world.happened(&key);
                if succeeds {
                    Ok(world.runs(&key))
                } else {
                    Err(Ended::Failed(world.runs(&key)))
                }
            })
        };

        let first = call().await;
        let second = call().await;

        let came = match (&second, world.runs(&key)) {
            (Err(Ended::Refused(Error::Uncertain { .. })), 1) => IsUncertain,
            (second, 1) if *second == first => Replays,
            (_, 2) => RunsAgain,
            other => panic!("{verdict:?}, {succeeds}: {other:?}"),
        };
        assert_eq!(came, expected, "{verdict:?}, {succeeds}");
    }
}

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
enum Ended {
    Failed(usize),
    Refused(Error),
}

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

/// The holder that a rejected call names, with its attempt and its trace.
fn holder_of(rejected: Result<String, Error>) -> (Arc<str>, u32, Option<Arc<str>>) {
    match rejected {
        Err(Error::InProgress {
            holder,
            attempt,
            trace_parent,
            ..
        }) => (holder, attempt, trace_parent),
        _ => panic!("{rejected:?}"),
    }
}

async fn c18_conflict_names_the_owner(world: World) {
    const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let labelled = |builder: Builder| {
        let builder = builder.holder_name("till-3");
        builder.trace_parent(|| Some(TRACE.to_owned()))
    };
    let a = world.owner_with(labelled).await;
    let b = world
        .owner_with(|builder| builder.in_flight(InFlight::Reject))
        .await;
    let inside = Inside::of(&world, &a).await;
    a.die_in(inside.task).await;
    world.advance(LEASE).await;

    // This is the second attempt, by another owner, without a trace.
    let c = world.owner().await;
    let inside = Inside::of(&world, &c).await;
    let rejected = b.enter(held(world.clone(), open(), "k", 1)).await;
    assert_eq!(holder_of(rejected), ("owner-3".into(), 2, None));
    inside.ends().await.expect("it succeeds");

    // This is the first attempt of another key, by the labelled owner.
    let d = world.owner_with(labelled).await;
    let gate = Gate::new();
    let task = d.spawn(held(world.clone(), gate.clone(), "other", 1));
    gate.arrived(1).await;
    let rejected = b.enter(held(world.clone(), open(), "other", 1)).await;
    assert_eq!(
        holder_of(rejected),
        ("till-3".into(), 1, Some(TRACE.into()))
    );
    gate.open();
    assert!(task.await.expect("it does not panic").is_ok());
}
