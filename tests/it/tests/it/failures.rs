//! Failures of the body: the fate of its error, its panic, its caller and its runtime.

mod errors;

use std::{
    error::Error as _,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Wake, Waker},
    time::Duration,
};

use idempotent_runtime::{
    CallOutcome, CallReport, Error, InFlight, OnCrash, OutcomeKind, RecordChange, Status,
    Unrecorded, Verdict,
    record::State,
    store::StoreErrorKind,
    testing::{Fault, Gate, On, StoreOperation},
};
use serde::{Deserialize, Serialize};

use crate::{
    answers::{is_in_progress, is_reused, is_uncertain},
    charge::{Charge, LEASE, Mode, abort, charges_behind, is_told, lapsed},
    harness::World,
};

on_every_store![
    e10_complete_fails_after_effect,
    e11_complete_fails_lasting,
    e18_panic,
    e19_future_dropped_stop,
    e19_future_dropped_detach,
    e21_runtime_shutdown_graceful,
    e21_what_outstays_a_shutdown_is_marked_when_it_is_dropped,
    e21_a_shutdown_waits_for_what_a_dropped_call_leaves_to_be_done,
    e22_concurrent_with_error,
    e23_retry_inside_counts_once,
    e25_early_refusal_touches_nothing,
    e26_interrupted_retry_loop_recovers,
];

async fn e10_complete_fails_after_effect(world: World) {
    let (owner, other) = (world.owner().await, world.owner().await);
    owner.fault(StoreOperation::Ending, On::Every, Fault::LoseRequest);
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
            CallReport::Executed {
                recorded: false,
                ..
            }
        ),
        "{how:?}"
    );
    assert_eq!(owner.log.count(RecordChange::NotYetRecorded), 1);

    // One heartbeat comes at once, because the write may have taken long.
    owner.log.await_steps(RecordChange::Heartbeat, 1).await;
    world.advance(LEASE / 3).await;
    owner.log.await_steps(RecordChange::Heartbeat, 2).await;
    // The lease is kept.
    is_told(&Charge::of(&world, &other).rejecting(), is_in_progress).await;
    owner.store.heal();
    // This wait is longer than any store takes, so only a retry is late.
    let a_moment = Duration::from_millis(1);
    while tokio::time::timeout(a_moment, owner.log.await_step(RecordChange::Recorded))
        .await
        .is_err()
    {
        owner.timer.advance(Duration::from_millis(10));
    }

    owner.settled().await;
    Charge::of(&world, &other).charges().await;
    assert_eq!(world.runs("k"), 1);
}

async fn e11_complete_fails_lasting(world: World) {
    for (key, mode) in [("rerun", Mode::Rerun), ("once", Mode::Uncertain)] {
        let (owner, other) = (world.owner().await, world.owner().await);
        owner.fault(StoreOperation::Swap, On::Call(2), Fault::LoseRequest);
        let charge = Charge::of(&world, &owner).key(key).mode(mode);
        // The claim is the first write; from the second one on the store is away.
        let gate = Gate::new();
        let call = charge.held_at(&gate).spawn();
        gate.arrived(1).await;
        owner.die();
        charges_behind(&gate, call).await;
        assert_eq!(owner.log.count(RecordChange::NotYetRecorded), 1);
        world.advance_store(LEASE).await;

        let answer = Charge::of(&world, &other).key(key).mode(mode).call().await;

        match mode {
            Mode::Uncertain => {
                assert!(is_uncertain(&answer) && world.runs(key) == 1);
                assert_eq!(other.log.steps(), [RecordChange::LeftUncertain]);
                assert_eq!(other.log.answers(), [CallOutcome::Uncertain]);
            }
            _ => {
                assert_eq!((answer, world.runs(key)), (Ok("charged".into()), 2));
                other.assert_steps(&[RecordChange::TakenOver, RecordChange::Recorded]);
                assert_eq!(other.log.answers(), [CallOutcome::ExecutedAfterTakeover]);
            }
        }
    }
}

/// Makes the next call after one whose body did not come to its end.
async fn is_taken_up(world: &World, charge: &Charge, key: &str, mode: Mode) {
    let answer = charge.call().await;
    match mode {
        Mode::Uncertain => assert!(is_uncertain(&answer) && world.runs(key) == 1),
        _ => assert_eq!((answer, world.runs(key)), (Ok("charged".into()), 2)),
    }
}

async fn e18_panic(world: World) {
    for (key, mode) in [("rerun", Mode::Rerun), ("once", Mode::Uncertain)] {
        let owner = world.owner().await;
        let charge = Charge::of(&world, &owner).key(key).mode(mode).rejecting();

        let panicked = charge.clone().awaits(1).panics_at(0).spawn().await;

        assert!(panicked.expect_err("it goes on").is_panic());
        owner.settled().await;
        is_taken_up(&world, &charge, key, mode).await;
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
        is_taken_up(&world, &charge, key, mode).await;
        // The same key with other arguments stays refused.
        is_told(&charge.amount(2), is_reused).await;
    }
}

async fn e19_future_dropped_detach(world: World) {
    let owner = world.owner().await;
    let charge = Charge::of(&world, &owner).mode(Mode::Detach);
    let (call, gate) = charge.clone().begun().await;

    call.abort();
    assert!(call.await.expect_err("it is dropped").is_cancelled());
    gate.open();
    owner.log.await_step(RecordChange::Recorded).await;

    charge.charges().await;
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

async fn e21_what_outstays_a_shutdown_is_marked_when_it_is_dropped(world: World) {
    let owner = world.owner().await;
    for (key, mode) in [("rerun", Mode::Rerun), ("once", Mode::Uncertain)] {
        let charge = Charge::of(&world, &owner).key(key).mode(mode).rejecting();
        let (call, _gate) = charge.clone().begun().await;

        assert!(!owner.idem.shutdown(Duration::ZERO).await, "one is inside");
        abort(call).await;
        assert!(owner.idem.shutdown(Duration::MAX).await);

        is_taken_up(&world, &charge, key, mode).await;
    }
}

/// Counts how often it was woken.
#[derive(Default)]
struct Woken(AtomicU32);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

async fn e21_a_shutdown_waits_for_what_a_dropped_call_leaves_to_be_done(world: World) {
    let owner = world.owner().await;
    let (call, _gate) = Charge::of(&world, &owner).begun().await;
    let written = owner.delays(StoreOperation::Ending, On::Every);
    let mut shutdown = pin!(owner.idem.shutdown(Duration::MAX));
    let woken = Arc::new(Woken::default());
    let mut poll = || {
        let waker = Waker::from(Arc::clone(&woken));
        shutdown.as_mut().poll(&mut Context::from_waker(&waker))
    };
    assert!(poll().is_pending());

    call.abort();
    written.arrived(1).await;

    assert_eq!(
        woken.0.load(Ordering::SeqCst),
        0,
        "there was something to do all the time"
    );
    assert!(poll().is_pending());
    written.open();
    assert!(shutdown.await);
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
    is_told(&Charge::of(&world, &owner).rejecting(), is_in_progress).await;
    let waiting = Charge::of(&world, &owner).answers("waited").spawn();
    owner.log.await_step(RecordChange::Waiting).await;

    gate.open();

    let failed = failing.await.expect("no panic");
    assert_eq!(failed, Err(Error::InvalidPolicy("the body's own")));
    assert_eq!(waiting.await.expect("no panic"), Ok("waited".into()));
    assert_eq!(Charge::of(&world, &owner).call().await, Ok("waited".into()));
    assert_eq!(world.runs("k"), 1);
}

async fn e23_retry_inside_counts_once(world: World) {
    let (owner, other) = (world.owner().await, world.owner().await);
    let tries = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&tries);
    let duplicate = Charge::of(&world, &other).rejecting();
    let meanwhile = duplicate.clone();
    let call = owner.call("charge").key("k").arguments(&1).release_errors();
    let answer: Result<String, _> = call
        .run(|_| async move {
            for _retry in 0..3 {
                counted.fetch_add(1, Ordering::SeqCst);
                // It runs in a task of its own, as the call of another process.
                let rejected = meanwhile.spawn().await.expect("no panic");
                assert!(is_in_progress(&rejected), "{rejected:?}");
            }
            Err(Error::InvalidPolicy("exhausted"))
        })
        .await;
    assert_eq!(answer, Err(Error::InvalidPolicy("exhausted")));
    assert_eq!(tries.load(Ordering::SeqCst), 3);
    let record = world.record().await;
    assert_eq!((record.state, record.attempt), (State::Released, 1));
    owner.assert_steps(&[RecordChange::Claimed, RecordChange::Released]);
    duplicate.charges().await;
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
        lapsed(&world, Mode::Rerun).await;
    }
    let owner = world.owner().await;
    Charge::of(&world, &owner).charges().await;
    assert_eq!(world.record().await.attempt, 4);
    assert_eq!(world.runs("k"), 4, "one more than there were deaths");
    let denied = StoreErrorKind::Denied;
    owner.fails(StoreOperation::Claim, On::Every, denied);
    let other = Charge::of(&world, &owner).key("other").call().await;
    assert!(other.is_err());
}
