//! The invariants of the protocol, each by its number.

mod outcomes;

use std::time::Duration;

use idempotent_runtime::{
    CallReport, Error, InFlight, RecordChange, Status,
    record::{FencingToken, State},
    store::StoreErrorKind,
    testing::{Fault, Gate, On, StoreOperation},
};
use tokio::task::{JoinSet, yield_now};

use crate::{
    answers::{is_in_progress, is_uncertain},
    charge::{Charge, Found, LEASE, MODES, Mode, abort, charges_behind, is_told, lapsed, vanished},
    harness::{Owner, World},
};

on_every_store![
    v01_at_most_one_holder_whose_lease_has_not_ended,
    v03_who_lost_its_lease_changes_nothing_and_is_told,
    v04_fencing_tokens_only_grow,
    v05_a_lost_answer_is_recognised_as_ones_own,
    v08_the_lease_is_kept_while_recording_fails,
    v09_a_waiter_that_gives_up_changes_nothing,
    v10_after_a_crash_a_call_is_answered_within_one_lease,
    v11_functions_tenants_and_nested_calls_never_mix,
    v13_a_dropped_future_and_a_panic_leave_nothing_behind,
];

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

async fn v01_at_most_one_holder_whose_lease_has_not_ended(world: World) {
    lapsed(&world, Mode::Rerun).await;
    let gate = Gate::new();
    let mut calls = JoinSet::new();
    for _owner in 0..3 {
        let owner = world.owner().await;
        for _call in 0..8 {
            calls.spawn(Charge::of(&world, &owner).rejecting().held_at(&gate).call());
        }
    }
    // All are told, except the one inside. Only then may it go on.
    for _rejected in 0..23 {
        let told = calls.join_next().await.expect("23 are told");
        let answer = told.expect("no panic");
        assert!(is_in_progress(&answer), "{answer:?}");
    }
    gate.arrived(1).await;
    assert_eq!(gate.arrivals(), 1);
    gate.open();
    let last = calls.join_next().await.expect("one was inside");
    assert_eq!(last.expect("no panic"), Ok("charged".into()));
    assert_eq!(world.runs("k"), 2);
}

async fn v03_who_lost_its_lease_changes_nothing_and_is_told(world: World) {
    for way in ["value", "release", "uncertain", "drop", "panic"] {
        let (stale, owner) = (world.owner().await, world.owner().await);
        let gate = Gate::new();
        let held = gate.clone();
        let call = stale.call("charge").key(way).arguments(&1);
        let call = call.classify_errors(move |_: &Error| match way {
            "release" => idempotent_runtime::Verdict::Release,
            _ => idempotent_runtime::Verdict::Uncertain,
        });
        let call = tokio::spawn(call.run(move |_| async move {
            held.pass().await;
            match way {
                "value" => Ok("stale".to_owned()),
                "panic" => panic!("a planned panic"),
                _ => Err(Error::InvalidPolicy("stale")),
            }
        }));
        gate.arrived(1).await;
        world.advance_store(LEASE).await;
        let (taken, taken_gate) = Charge::of(&world, &owner).key(way).begun().await;
        let of_key = async || {
            let mut records = world.records().await;
            records.retain(|(_, record)| record.subject.key == way.as_bytes());
            records
        };
        let before = of_key().await;

        stale.timer.advance(LEASE / 3);
        stale.log.await_step(RecordChange::LeaseLost).await;
        if way == "drop" {
            call.abort();
        }
        gate.open();
        let answer = call.await;
        stale.settled().await;

        assert_eq!(of_key().await, before, "{way}");
        if let Ok(answer) = answer {
            assert!(
                matches!(answer, Err(Error::LeaseLost { .. })),
                "{way}: {answer:?}"
            );
        }
        charges_behind(&taken_gate, taken).await;
    }
}

async fn v04_fencing_tokens_only_grow(world: World) {
    let owner = world.owner().await;
    let mut newest = FencingToken::from_u64(0);
    let mut grows = |token: FencingToken, after: &str| {
        assert!(token > newest, "{after}: {token} after {newest}");
        newest = token;
    };
    let release = || {
        let call = owner.call("charge").key("k").arguments(&1).release_errors();
        call.run(|_| async { Err::<(), _>(Error::InvalidPolicy("released")) })
    };
    for _round in 0..3 {
        assert!(release().await.is_err());
        grows(world.record().await.token, "release");
        vanished(&world, Mode::Rerun).await;
        grows(world.record().await.token, "a first claim");
        world.advance(LEASE).await;
        Charge::of(&world, &owner).charges().await;
        grows(world.record().await.token, "takeover");
        world.advance(DAY).await;
        assert_eq!(owner.idem.purge().await, Ok(world.to_purge(1)));
        assert!(world.records().await.is_empty());
    }
}

async fn v05_a_lost_answer_is_recognised_as_ones_own(world: World) {
    for (number, mode) in MODES.into_iter().enumerate() {
        for operation in [StoreOperation::Claim, StoreOperation::Ending] {
            let key = format!("{operation:?}{number}");
            let owner = world.owner().await;
            owner.fault(operation, On::Call(1), Fault::LoseAnswer);
            let charge = Charge::of(&world, &owner).key(key.as_str()).mode(mode);
            let call = charge.spawn();
            let a_moment = Duration::from_millis(1);
            let mut done = std::pin::pin!(async {
                let answer = call.await.expect("no panic");
                owner.settled().await;
                answer
            });
            let answer = loop {
                match tokio::time::timeout(a_moment, &mut done).await {
                    Ok(answer) => break answer,
                    Err(_) => owner.timer.advance(Duration::from_millis(5)),
                }
            };
            assert_eq!(answer, Ok("charged".into()), "{mode:?}, {operation:?}");
            assert_eq!(world.runs(&key), 1, "{mode:?}, {operation:?}");
            let status = owner.idem.lookup("charge", None::<&str>, &*key).await;
            assert!(matches!(status, Ok(Status::Completed(_))), "{status:?}");
            assert_eq!(
                owner.log.count(RecordChange::Recorded),
                1,
                "{mode:?}, {operation:?}: observers are told once"
            );
        }
    }
}

async fn v08_the_lease_is_kept_while_recording_fails(world: World) {
    let (owner, other) = (world.owner().await, world.owner().await);
    owner.fails(
        StoreOperation::Ending,
        On::Every,
        StoreErrorKind::Unavailable,
    );
    let once = Charge::of(&world, &owner).mode(Mode::Uncertain);
    once.charges().await;

    // One heartbeat comes at once, because the write may have taken long.
    owner.log.await_step(RecordChange::Heartbeat).await;
    for beat in 2..=7 {
        world.advance(LEASE / 3).await;
        owner.log.await_steps(RecordChange::Heartbeat, beat).await;
        is_told(&Charge::of(&world, &other).rejecting(), is_in_progress).await;
    }
    owner.store.heal();
    let a_moment = Duration::from_millis(1);
    while tokio::time::timeout(a_moment, owner.log.await_step(RecordChange::Recorded))
        .await
        .is_err()
    {
        owner.timer.advance(Duration::from_millis(100));
    }
    Charge::of(&world, &other).charges().await;
    assert_eq!(world.runs("k"), 1);
}

async fn v09_a_waiter_that_gives_up_changes_nothing(world: World) {
    let (holder, waiter) = (world.owner().await, world.owner().await);
    let (call, gate) = Charge::of(&world, &holder).begun().await;
    let before = world.record().await;
    let gives_up = Charge::of(&world, &waiter).spawn();
    let dropped = Charge::of(&world, &waiter).spawn();
    waiter.log.await_steps(RecordChange::Waiting, 2).await;

    abort(dropped).await;
    while !gives_up.is_finished() {
        waiter.timer.advance(Duration::from_secs(1));
        yield_now().await;
    }

    let answer = gives_up.await.expect("no panic");
    assert!(is_in_progress(&answer), "{answer:?}");
    waiter.settled().await;
    assert_eq!(world.record().await, before);
    assert_eq!(
        waiter.store.calls(StoreOperation::Swap),
        2,
        "each tried to claim, once"
    );
    charges_behind(&gate, call).await;
}

async fn v10_after_a_crash_a_call_is_answered_within_one_lease(world: World) {
    for (number, mode) in MODES.into_iter().enumerate() {
        let owner = world.owner().await;
        let patient = world
            .owner_with(|builder| builder.in_flight(InFlight::Wait(DAY)))
            .await;
        let charge = |by: &Owner, key| {
            let charge = Charge::of(&world, by).mode(mode);
            charge.key(format!("{key}{number}"))
        };
        for key in ["waited for", "asked later"] {
            let dead = world.owner().await;
            charge(&dead, key).vanishes().await;
        }
        let waiting = charge(&patient, "waited for").spawn();
        patient.log.await_step(RecordChange::Waiting).await;
        patient.timer.await_sleepers(1).await;

        world.advance(LEASE).await;

        // A call that waited need not wait any longer than that, and a later call need not, either.
        let waited = waiting.await.expect("no panic");
        let later = charge(&owner, "asked later").rejecting().call().await;
        for answer in [waited, later] {
            match mode {
                Mode::Uncertain | Mode::Reconcile(Found::Unknown) => {
                    assert!(is_uncertain(&answer), "{mode:?}: {answer:?}");
                }
                _ => assert!(answer.is_ok(), "{mode:?}: {answer:?}"),
            }
        }
    }
}

async fn v11_functions_tenants_and_nested_calls_never_mix(world: World) {
    let owner = world.owner().await;
    let mut calls = JoinSet::new();
    for operation in ["f", "g"] {
        for scope in [None, Some("t1"), Some("t2")] {
            for key in ["k1", "k2"] {
                let inner = owner.call("inner");
                let inner = inner.key(&(operation, scope.unwrap_or("nobody"), key));
                let call = owner.call(operation).key(key);
                let call = match scope {
                    Some(scope) => call.scope(scope),
                    None => call,
                };
                calls.spawn(async move {
                    let expected = format!("{operation} {scope:?} {key}");
                    let value = expected.clone();
                    let answer = call.run(|outer| async move {
                        let nested = inner.run(|inner| async move {
                            assert_ne!(inner.child_key("x"), outer.child_key("x"));
                            Ok::<_, Error>(format!("inner of {value}"))
                        });
                        nested.await
                    });
                    assert_eq!(answer.await, Ok(format!("inner of {expected}")));
                });
            }
        }
    }
    while let Some(call) = calls.join_next().await {
        call.expect("no panic");
    }
    assert_eq!(world.records().await.len(), 24);
}

async fn v13_a_dropped_future_and_a_panic_leave_nothing_behind(world: World) {
    for (number, mode) in MODES.into_iter().enumerate() {
        if mode == Mode::Detach {
            continue;
        }
        for panics in [false, true] {
            let key = format!("k{number}{panics}");
            let owner = world.owner().await;
            let charge = Charge::of(&world, &owner).key(key.as_str()).mode(mode);
            if panics {
                assert!(charge.awaits(1).panics_at(0).spawn().await.is_err());
            } else {
                let (call, _gate) = charge.begun().await;
                abort(call).await;
            }
            owner.settled().await;

            let beats = owner.store.calls(StoreOperation::Heartbeat);
            let records = world.records().await;
            // The thread of the heartbeats lingers for a while, and no other sleeper is left.
            loop {
                owner.timer.advance(LEASE);
                yield_now().await;
                if owner.timer.sleepers() == 0 {
                    break;
                }
            }
            owner.settled().await;
            assert_eq!(owner.store.calls(StoreOperation::Heartbeat), beats);
            assert_eq!(world.records().await, records);
            let state = world.record_of(&key).await.map(|record| record.state);
            let expected = if mode == Mode::Rerun {
                State::Running
            } else {
                State::Uncertain
            };
            assert_eq!(state, Some(expected), "the rule for what stopped, at once");
            if mode == Mode::Rerun {
                let next = Charge::of(&world, &world.owner().await).key(key.as_str());
                let answer = next.rejecting().call().await;
                assert_eq!(answer, Ok("charged".into()), "the lease is over");
                assert_eq!(world.runs(&key), 2);
            }
        }
    }
    let owner = world.owner().await;
    let call = owner.call("charge").key("how");
    let (_, how) = call.run_detailed(|_| async { Ok::<_, Error>(()) }).await;
    assert!(
        matches!(how, CallReport::Executed { recorded: true, .. }),
        "{how:?}"
    );
}
