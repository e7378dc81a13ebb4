//! Failures of the body: what becomes of its error, its panic, its caller and its runtime.

use std::{
    error::Error as _,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use idempotent_runtime::{
    Error, How, InFlight, OnCrash, OutcomeKind, Status, Step, Unrecorded, Verdict,
    record::State,
    store::StoreErrorKind,
    testing::{Fault, Gate, Nth, Operation},
};
use serde::{Deserialize, Serialize};

use crate::{
    charge::{Charge, LEASE, Mode, is_in_progress, is_uncertain, vanished},
    harness::World,
};

on_every_store![
    e01_error_releases,
    e02_error_stored,
    e03_error_policy_per_variant,
    e03_a_classifier_that_writes_a_log_releases_nothing,
    e04_transient_not_stored,
    e05_error_type_roundtrip,
    e10_complete_fails_after_effect,
    e11_complete_fails_lasting,
    e18_panic,
    e19_future_dropped_stop,
    e19_future_dropped_detach,
    e21_runtime_shutdown_graceful,
    e22_concurrent_with_error,
    e23_retry_inside_counts_once,
    e25_early_refusal_touches_nothing,
    e26_interrupted_retry_loop_recovers,
];

/// What a bank says, none of which can be stored.
#[derive(Debug, thiserror::Error)]
enum Declined {
    #[error("the bank declined")]
    Bank(#[source] std::io::Error),
    #[error(transparent)]
    Idempotency(#[from] Error),
}

async fn e01_error_releases(world: World) {
    let owner = world.owner().await;
    let call = |outcome: Result<u32, Declined>| {
        let world = world.clone();
        let call = owner.call("charge").key("k").release_errors();
        call.run(move |_| async move {
            world.happened("k");
            outcome
        })
    };
    let cause = std::io::Error::other("connection reset");

    let refused = call(Err(Declined::Bank(cause))).await;

    let error = refused.expect_err("the body failed");
    assert!(matches!(error, Declined::Bank(_)));
    assert_eq!(
        error.source().map(ToString::to_string),
        Some("connection reset".into())
    );
    assert_eq!(world.record().await.state, State::Released);
    assert_eq!(call(Ok(7)).await.expect("it runs again"), 7);
    assert_eq!(world.runs("k"), 2);
}

/// What a payment may come to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
enum Refused {
    #[error("no funds: {missing} missing")]
    NoFunds { missing: u64, hints: Vec<String> },
    #[error("busy")]
    Busy,
    #[error("the answer was cut off")]
    CutOff,
    #[error(transparent)]
    Idempotency(#[from] Error),
}

fn no_funds() -> Refused {
    Refused::NoFunds {
        missing: u64::MAX,
        hints: vec!["save".into(), String::new()],
    }
}

async fn e02_error_stored(world: World) {
    let owner = world.owner().await;
    for _call in 0..3 {
        let world = world.clone();
        let call = owner.call("charge").key("k");
        let answer: Result<(), _> = call
            .run(move |_| async move {
                world.happened("k");
                Err(no_funds())
            })
            .await;
        assert_eq!(answer, Err(no_funds()));
    }
    assert_eq!(world.runs("k"), 1);
    let status = owner.idem.lookup("charge", None::<&str>, "k").await;
    assert!(matches!(status, Ok(Status::Failed(_))), "{status:?}");
}

async fn e03_error_policy_per_variant(world: World) {
    let owner = world.owner().await;
    let verdict = |error: &Refused| match error {
        Refused::NoFunds { .. } => Verdict::Replay,
        Refused::Busy => Verdict::Release,
        Refused::CutOff | Refused::Idempotency(_) => Verdict::Uncertain,
    };
    let call = |key: &'static str, error: Refused| {
        let world = world.clone();
        let call = owner.call("charge").key(key).classify_errors(verdict);
        call.run(move |_| async move {
            world.happened(key);
            Err::<(), _>(error)
        })
    };

    for _call in 0..2 {
        assert_eq!(call("replayed", no_funds()).await, Err(no_funds()));
        assert_eq!(call("released", Refused::Busy).await, Err(Refused::Busy));
    }
    assert_eq!(
        call("uncertain", Refused::CutOff).await,
        Err(Refused::CutOff)
    );
    let again = call("uncertain", Refused::CutOff).await;

    assert!(
        matches!(again, Err(Refused::Idempotency(Error::Uncertain { .. }))),
        "{again:?}"
    );
    let runs = ["replayed", "released", "uncertain"].map(|key| world.runs(key));
    assert_eq!(runs, [1, 2, 1]);
    let unrecorded = owner
        .call("charge")
        .key("unrecorded")
        .classify_errors(|_: &Declined| Unrecorded::Uncertain);
    let answer = unrecorded
        .run(|_| async { Err::<(), _>(Declined::Bank(std::io::Error::other("reset"))) })
        .await;
    assert!(matches!(answer, Err(Declined::Bank(_))));
    let status = owner
        .idem
        .lookup("charge", None::<&str>, "unrecorded")
        .await;
    assert!(matches!(status, Ok(Status::Uncertain)), "{status:?}");
}

/// Has no encoding, and no error of ours in it.
#[derive(Debug, Deserialize, thiserror::Error)]
#[error("no encoding")]
struct Opaque;

impl Serialize for Opaque {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("no encoding"))
    }
}

impl From<Error> for Opaque {
    fn from(error: Error) -> Self {
        assert!(matches!(error, Error::NotReplayable { .. }), "{error:?}");
        Self
    }
}

/// That an error of ours was serialised before does not make this one the failure of a nested call.
async fn e03_a_classifier_that_writes_a_log_releases_nothing(world: World) {
    let owner = world.owner().await;
    let call = || {
        let world = world.clone();
        let call = owner.call("charge").key("k").classify_errors(|_: &Opaque| {
            let ours = Error::InvalidPolicy("for the log");
            assert!(serde_json::to_string(&ours).is_err());
            Verdict::Replay
        });
        call.run(|_| async move {
            world.happened("k");
            Err::<(), _>(Opaque)
        })
    };

    assert!(call().await.is_err());
    let record = world.record().await;
    assert_eq!(record.state, State::Done);
    let kept = record.outcome.as_ref().map(|outcome| outcome.kind);
    assert_eq!(kept, Some(OutcomeKind::NotReplayable));
    assert!(call().await.is_err());
    assert_eq!(world.runs("k"), 1);
}

async fn e04_transient_not_stored(world: World) {
    let (holder, owner) = (world.owner().await, world.owner().await);
    let (inner, gate) = Charge::of(&world, &holder).key("inner").begun().await;
    let outer = |key: &'static str, on_crash| {
        let nested = Charge::of(&world, &owner).key("inner").rejecting();
        let call = owner.call("outer").key(key).on_crash(on_crash);
        call.run(move |_| async move { nested.call().await.map_err(Refused::from) })
    };

    let answer = outer("rerun", OnCrash::Rerun).await;
    assert!(
        matches!(answer, Err(Refused::Idempotency(Error::InProgress { .. }))),
        "{answer:?}"
    );
    let status = owner.idem.lookup("outer", None::<&str>, "rerun").await;
    assert!(
        matches!(status, Ok(Status::Unknown)),
        "released: {status:?}"
    );
    assert!(outer("once", OnCrash::Uncertain).await.is_err());
    let status = owner.idem.lookup("outer", None::<&str>, "once").await;
    assert!(matches!(status, Ok(Status::Uncertain)), "{status:?}");

    gate.open();
    assert_eq!(inner.await.expect("no panic"), Ok("charged".into()));
    assert_eq!(outer("rerun", OnCrash::Rerun).await, Ok("charged".into()));
}

async fn e05_error_type_roundtrip(world: World) {
    let (first, second) = (world.owner().await, world.owner().await);
    let call = |owner: &crate::harness::Owner| {
        let call = owner.call("charge").key("k");
        call.run(|_| async { Err::<u8, _>(no_funds()) })
    };
    let (executed, replayed) = (call(&first).await, call(&second).await);
    assert_eq!(executed, Err(no_funds()));
    assert_eq!(replayed, executed);
}

async fn e10_complete_fails_after_effect(world: World) {
    let (owner, other) = (world.owner().await, world.owner().await);
    owner
        .store
        .fault(Operation::Ending, Nth::Every, Fault::LoseRequest);
    let body = world.clone();
    let call = owner.call("charge").key("k").arguments(&1);
    let (answer, how) = call
        .run_detailed(|_| async move {
            body.happened("k");
            Ok::<_, Error>("charged".to_owned())
        })
        .await;
    assert_eq!(answer, Ok("charged".into()), "the caller gets the value");
    assert!(
        matches!(
            how,
            How::Executed {
                recorded: false,
                ..
            }
        ),
        "{how:?}"
    );
    assert_eq!(owner.log.count(Step::NotYetRecorded), 1);

    // One comes at once, because the write may have taken long.
    owner.log.await_steps(Step::Heartbeat, 1).await;
    world.advance(LEASE / 3).await;
    owner.log.await_steps(Step::Heartbeat, 2).await;
    let duplicate = Charge::of(&world, &other).rejecting().call().await;
    assert!(
        is_in_progress(&duplicate),
        "the lease is kept: {duplicate:?}"
    );
    owner.store.heal();
    // Slower than any store, so that nothing but what is tried again is late.
    let a_moment = Duration::from_millis(1);
    while tokio::time::timeout(a_moment, owner.log.await_step(Step::Recorded))
        .await
        .is_err()
    {
        owner.timer.advance(Duration::from_millis(10));
    }

    owner.settled().await;
    assert_eq!(
        Charge::of(&world, &other).call().await,
        Ok("charged".into())
    );
    assert_eq!(world.runs("k"), 1);
}

async fn e11_complete_fails_lasting(world: World) {
    for (key, mode) in [("rerun", Mode::Rerun), ("once", Mode::Uncertain)] {
        let (owner, other) = (world.owner().await, world.owner().await);
        owner
            .store
            .fault(Operation::Swap, Nth::Call(2), Fault::LoseRequest);
        let charge = Charge::of(&world, &owner).key(key).mode(mode);
        // The claim is the first write; from the second one on the store is away.
        let gate = Gate::new();
        let call = charge.held_at(&gate).spawn();
        gate.arrived(1).await;
        owner.die();
        gate.open();
        assert_eq!(call.await.expect("no panic"), Ok("charged".into()));
        assert_eq!(owner.log.count(Step::NotYetRecorded), 1);
        world.advance_store(LEASE).await;

        let answer = Charge::of(&world, &other).key(key).mode(mode).call().await;

        match mode {
            Mode::Uncertain => assert!(is_uncertain(&answer) && world.runs(key) == 1),
            _ => assert_eq!((answer, world.runs(key)), (Ok("charged".into()), 2)),
        }
    }
}

async fn e18_panic(world: World) {
    for (key, mode) in [("rerun", Mode::Rerun), ("once", Mode::Uncertain)] {
        let owner = world.owner().await;
        let charge = Charge::of(&world, &owner).key(key).mode(mode).rejecting();

        let panicked = charge.clone().awaits(1).panics_at(0).spawn().await;

        assert!(panicked.expect_err("it goes on").is_panic());
        owner.settled().await;
        let answer = charge.call().await;
        match mode {
            Mode::Uncertain => assert!(is_uncertain(&answer) && world.runs(key) == 1),
            _ => assert_eq!((answer, world.runs(key)), (Ok("charged".into()), 2)),
        }
    }
}

async fn e19_future_dropped_stop(world: World) {
    for (key, mode) in [("rerun", Mode::Rerun), ("once", Mode::Uncertain)] {
        let owner = world.owner().await;
        let charge = Charge::of(&world, &owner).key(key).mode(mode).rejecting();
        let (call, _gate) = charge.clone().begun().await;

        call.abort();
        assert!(call.await.expect_err("it is dropped").is_cancelled());

        owner.settled().await;
        let answer = charge.call().await;
        match mode {
            Mode::Uncertain => assert!(is_uncertain(&answer) && world.runs(key) == 1),
            _ => assert_eq!((answer, world.runs(key)), (Ok("charged".into()), 2)),
        }
        // The same key with other arguments stays refused.
        let other = charge.amount(2).call().await;
        assert!(matches!(other, Err(Error::KeyReused { .. })), "{other:?}");
    }
}

async fn e19_future_dropped_detach(world: World) {
    let owner = world.owner().await;
    let charge = Charge::of(&world, &owner).mode(Mode::Detach);
    let (call, gate) = charge.clone().begun().await;

    call.abort();
    assert!(call.await.expect_err("it is dropped").is_cancelled());
    gate.open();
    owner.log.await_step(Step::Recorded).await;

    assert_eq!(charge.call().await, Ok("charged".into()));
    assert_eq!(world.runs("k"), 1);
}

async fn e21_runtime_shutdown_graceful(world: World) {
    let owner = world.owner().await;
    let gate = Gate::new();
    let calls: Vec<_> = ["a", "b", "c"]
        .into_iter()
        .map(|key| Charge::of(&world, &owner).key(key).held_at(&gate).spawn())
        .collect();
    gate.arrived(3).await;

    let bounded = tokio::spawn({
        let idem = owner.idem.clone();
        async move { idem.shutdown(Duration::from_millis(1)).await }
    });
    while !bounded.is_finished() {
        owner.timer.advance(Duration::from_millis(1));
        tokio::task::yield_now().await;
    }
    assert!(!bounded.await.expect("no panic"), "three bodies are inside");
    gate.open();

    assert!(owner.idem.shutdown(Duration::MAX).await);
    for call in calls {
        assert_eq!(call.await.expect("no panic"), Ok("charged".into()));
    }
    let states = world.records().await;
    assert!(states.iter().all(|(_, record)| record.state == State::Done));
}

async fn e22_concurrent_with_error(world: World) {
    let owner = world.owner().await;
    let gate = Gate::new();
    let failing = tokio::spawn({
        let gate = gate.clone();
        let call = owner.call("charge").key("k").arguments(&1).release_errors();
        call.run(move |_| async move {
            gate.pass().await;
            Err::<String, _>(Error::InvalidPolicy("the body's own"))
        })
    });
    gate.arrived(1).await;
    let rejected = Charge::of(&world, &owner).rejecting().call().await;
    assert!(is_in_progress(&rejected), "{rejected:?}");
    let waiting = Charge::of(&world, &owner).answers("waited").spawn();
    owner.log.await_step(Step::Waiting).await;

    gate.open();

    let failed = failing.await.expect("no panic");
    assert_eq!(failed, Err(Error::InvalidPolicy("the body's own")));
    assert_eq!(waiting.await.expect("no panic"), Ok("waited".into()));
    assert_eq!(Charge::of(&world, &owner).call().await, Ok("waited".into()));
    assert_eq!(world.runs("k"), 1);
}

async fn e23_retry_inside_counts_once(world: World) {
    let owner = world.owner().await;
    let tries = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&tries);
    let call = owner.call("charge").key("k").release_errors();
    let answer = call
        .run(|_| async move {
            for attempt in 0..3 {
                if counted.fetch_add(1, Ordering::SeqCst) == 5 {
                    return Ok(attempt);
                }
                tokio::task::yield_now().await;
            }
            Err(Error::InvalidPolicy("exhausted"))
        })
        .await;
    assert_eq!(answer, Err(Error::InvalidPolicy("exhausted")));
    assert_eq!(tries.load(Ordering::SeqCst), 3);
    let record = world.record().await;
    assert_eq!((record.state, record.attempt), (State::Released, 1));
    assert_eq!(owner.log.steps(), [Step::Claimed, Step::Released]);
}

async fn e25_early_refusal_touches_nothing(world: World) {
    let owner = world.owner().await;
    let (call, ran) = (|| owner.call("charge"), || async { Ok::<_, Error>(()) });

    let answers = [
        call().key("").run(|_| ran()).await,
        call().key(&None::<&str>).run(|_| ran()).await,
        call().key(&"k".repeat(1 << 20)).run(|_| ran()).await,
        call().key("k").scope("").run(|_| ran()).await,
        call().key("k").ttl("0s").run(|_| ran()).await,
        call().key("k").lease("never").run(|_| ran()).await,
        call()
            .key("k")
            .ttl(Duration::from_nanos(1))
            .run(|_| ran())
            .await,
        call()
            .key("k")
            .in_flight(InFlight::Reject)
            .on_crash(OnCrash::Reconcile)
            .run(|_| ran())
            .await,
    ];

    for answer in answers {
        assert!(
            matches!(
                answer,
                Err(Error::InvalidKey { .. } | Error::InvalidPolicy(_))
            ),
            "{answer:?}"
        );
    }
    assert_eq!(owner.store.round_trips(), 0);
    assert!(owner.log.steps().is_empty());
}

async fn e26_interrupted_retry_loop_recovers(world: World) {
    for _death in 0..3 {
        vanished(&world, Mode::Rerun).await;
        world.advance(LEASE).await;
    }
    let owner = world.owner().await;
    assert_eq!(
        Charge::of(&world, &owner).call().await,
        Ok("charged".into())
    );
    assert_eq!(world.record().await.attempt, 4);
    assert_eq!(world.runs("k"), 4, "one more than there were deaths");
    let denied = StoreErrorKind::Denied;
    owner
        .store
        .fault(Operation::Claim, Nth::Every, Fault::Fail(denied));
    assert!(
        Charge::of(&world, &owner)
            .key("other")
            .call()
            .await
            .is_err()
    );
}
