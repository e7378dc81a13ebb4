//! Switching it off, and listening to it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use idempotent_runtime::{
    Attempt, CallEvent, CallOutcome, CallReport, Error, Idempotency, MemoryStore, Observer,
    OnCrash, OnMissingKey, OnOutage, RecordChange, RecordEvent, UnprotectedReason, idempotent,
    identity::RecordId, testing::StoreOperation,
};

use serde::{Serialize, Serializer, ser};

use crate::harness::{World, said_during};

on_every_store![
    a22_kill_switch,
    a23_skip_per_call,
    a23_a_protected_call_within_an_unprotected_one,
    a29_response_hook_on_replay_only,
];

#[idempotent(name = "switches.charge", key = key, skip(world))]
async fn charge(world: &World, key: &str) -> Result<usize, Error> {
    world.happened(key);
    Ok(world.runs(key))
}

async fn a22_kill_switch(world: World) {
    let ((owner, first, second), said) = said_during(async {
        let owner = world.owner_with(|builder| builder.enabled(false)).await;
        let first = owner.enter(charge(&world, "k")).await;
        let second = owner.enter(charge(&world, "k")).await;
        (owner, first, second)
    })
    .await;

    assert_eq!((first, second), (Ok(1), Ok(2)));
    for operation in [
        StoreOperation::Load,
        StoreOperation::Swap,
        StoreOperation::Wait,
    ] {
        assert_eq!(owner.store.calls(operation), 0, "{operation:?}");
    }
    assert_eq!(world.records().await, []);
    owner.assert_answers(&[CallOutcome::Unprotected, CallOutcome::Unprotected]);
    let loud = |line: &&str| line.contains("WARN") || line.contains("ERROR");
    let loud: Vec<_> = said.lines().filter(loud).collect();
    assert_eq!(
        loud.len(),
        1,
        "once for the handle, not for each call: {said}"
    );
    assert!(loud[0].contains("switched off"), "{said}");
}

/// An argument that cannot be fingerprinted.
struct Unserialisable;

impl Serialize for Unserialisable {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(ser::Error::custom("planned"))
    }
}

mod twice {
    use idempotent_runtime::{Error, idempotent};

    #[idempotent(name = "switches.twice", key = order)]
    pub(super) async fn one(order: u64) -> Result<u64, Error> {
        Ok(order)
    }

    #[idempotent(name = "switches.twice", key = order)]
    pub(super) async fn another(order: u64) -> Result<u64, Error> {
        Ok(order)
    }
}

#[tokio::test]
async fn a22_nothing_that_a_call_is_refused_for_stands_in_its_way_while_it_is_switched_off() {
    let idem = |enabled| {
        let builder = Idempotency::builder(MemoryStore::new()).enabled(enabled);
        builder.build().expect("the set-up is sound")
    };
    let runs = async |idem: &Idempotency| {
        let call = |key: &'static str| idem.call("switches.refused").key(key);
        let ok = async |_| Ok::<_, Error>(());
        [
            call("").run(ok).await,
            call("k").scope(&None::<u64>).run(ok).await,
            call("k").argument("card", &Unserialisable).run(ok).await,
            call("k").ttl(Duration::ZERO).run(ok).await,
            call("k").ttl("soon").run(ok).await,
            call("k").on_crash(OnCrash::Reconcile).run(ok).await,
            idem.call("switches.refused").run(ok).await,
            idem.call("").key("k").run(ok).await,
        ]
    };
    let (on, off) = (idem(true), idem(false));

    let (refused, ran) = (runs(&on).await, runs(&off).await);

    assert!(refused.iter().all(Result::is_err), "{refused:?}");
    assert!(ran.iter().all(Result::is_ok), "{ran:?}");
    let both = async { (twice::one(1).await, twice::another(2).await) };
    assert_eq!(off.enter(both).await, (Ok(1), Ok(2)));
    let child_key = async |attempt: Attempt| Ok::<_, Error>(attempt.child_key("gateway"));
    let nothing_said = || off.call("switches.refused").run(child_key);
    assert_ne!(nothing_said().await, nothing_said().await, "two orders");
}

#[tokio::test]
async fn a22_what_goes_downstream_is_the_same_while_it_is_switched_off() {
    let keys = async |enabled| {
        let builder = Idempotency::builder(MemoryStore::new()).enabled(enabled);
        let idem = builder.build().expect("the set-up is sound");
        let child_key = async |attempt: Attempt| Ok::<_, Error>(attempt.child_key("gateway"));
        let call = || idem.call("switches.child").argument("amount", &12);
        (
            call().key("k").scope("t").run(child_key).await,
            call().run(child_key).await,
        )
    };

    assert_eq!(keys(false).await, keys(true).await);
}

async fn a23_skip_per_call(world: World) {
    let owner = world.owner().await;
    let recorded = owner.enter(charge(&world, "k")).await;
    let calls = owner.store.calls(StoreOperation::Swap);

    let (answer, how) = owner
        .call("switches.charge")
        .key("k")
        .unprotected()
        .run_detailed(|attempt| async move {
            assert_eq!(attempt.fencing_token(), None);
            world.happened("k");
            Ok::<_, Error>(world.runs("k"))
        })
        .await;

    assert_eq!((recorded, answer), (Ok(1), Ok(2)));
    assert_eq!(how, CallReport::Unprotected(UnprotectedReason::OptedOut));
    assert_eq!(owner.store.calls(StoreOperation::Swap), calls);
    assert_eq!(owner.store.calls(StoreOperation::Load), 0);
}

/// A call without a record holds nothing that one within it would wait for.
async fn a23_a_protected_call_within_an_unprotected_one(world: World) {
    let owner = world.owner().await;

    let outer = owner.call("switches.charge").key("k").unprotected();
    let answer = outer.run(async |_| owner.enter(charge(&world, "k")).await);

    assert_eq!(answer.await, Ok(1));
    assert_eq!(owner.enter(charge(&world, "k")).await, Ok(1), "a replay");
}

/// Notes replays, and panics at each.
#[derive(Clone, Default)]
struct Hook(Arc<Mutex<Vec<Told>>>);

/// The operation and the record of a replay.
type Told = (String, Option<RecordId>);

impl Observer for Hook {
    fn transition(&self, transition: &RecordEvent<'_>) {
        assert_ne!(transition.change, RecordChange::Recorded, "a planned panic");
    }

    fn answered(&self, answered: &CallEvent<'_>) {
        if answered.outcome == CallOutcome::Replayed {
            let mut told = self.0.lock().expect("nobody panics while it is held");
            told.push((answered.operation.to_owned(), answered.id));
            drop(told);
            panic!("a planned panic");
        }
    }
}

async fn a29_response_hook_on_replay_only(world: World) {
    let hook = Hook::default();
    let owner = world
        .owner_with(|builder| builder.observer(hook.clone()))
        .await;
    let call = || {
        owner
            .call("switches.unit")
            .key("k")
            .run(|_| async { Ok::<(), Error>(()) })
    };

    assert_eq!(call().await, Ok(()));
    assert!(hook.0.lock().expect("not poisoned").is_empty());
    let recorded = world.records().await;
    assert_eq!(call().await, Ok(()));

    let told = hook.0.lock().expect("not poisoned").clone();
    assert_eq!(told, [("switches.unit".into(), Some(recorded[0].0))]);
    assert_eq!(world.records().await, recorded);
}

/// A real store may take longer to answer; a clock that stands still lets no lease go by.
#[tokio::test]
async fn first_hour_22_a_lease_under_100_ms_is_refused_but_on_a_manual_clock() {
    let builder = || Idempotency::builder(MemoryStore::new());
    let says_so =
        |error: &Error| matches!(error, Error::InvalidPolicy(said) if said.contains("100 ms"));
    for short in ["1ms", "99ms"] {
        let built = builder().lease(short).build();
        assert!(built.is_err_and(|error| says_so(&error)), "{short}");

        let idem = builder().lease("100ms").build().expect("it is the least");
        let call = idem.call("switches.lease").key("k").lease(short);
        let answer = call.run(async |_| Ok::<_, Error>(())).await;
        assert!(answer.is_err_and(|error| says_so(&error)), "{short}");

        let by_hand = builder()
            .timer(idempotent_runtime::testing::ManualClock::new())
            .lease(short)
            .build();
        let idem = by_hand.expect("time stands still");
        let call = idem.call("switches.lease").key("k").lease("1ms");
        assert_eq!(call.run(async |_| Ok::<_, Error>(())).await, Ok(()));
    }
}

/// Nothing is built, and nothing is run, with durations that no store can keep its promises with.
#[tokio::test]
async fn f28_ttl_validation() {
    let builder = || Idempotency::builder(MemoryStore::new());
    let refused = |built: Result<Idempotency, Error>, why: &str| {
        let error = built.expect_err(why);
        assert!(matches!(error, Error::InvalidPolicy(_)), "{why}: {error:?}");
    };
    refused(builder().ttl("0s").build(), "zero");
    refused(builder().ttl("-1s").build(), "negative");
    refused(builder().ttl("99999999999999999999d").build(), "overflow");
    refused(builder().ttl("a day").build(), "no duration");
    refused(builder().lease("0s").build(), "zero");
    refused(builder().lease(Duration::MAX).build(), "overflow");
    refused(builder().ttl("10s").lease("10s").build(), "not shorter");
    refused(builder().lease("1m").ttl("10s").build(), "not shorter");
    refused(builder().max_run_time("0s").build(), "zero");
    refused(builder().undo_timeout("0s").build(), "zero");
    refused(builder().lease("48h").build(), "longer than the usual ttl");
    assert!(builder().ttl("10s").build().is_ok());
    assert!(builder().ttl("24h").lease("30s").build().is_ok());

    let owner = World::memory().await.owner().await;
    let call = owner.call("switches.ttl").key("k").ttl(Duration::ZERO);
    let answer = call.run(|_| async { Ok::<_, Error>(()) }).await;
    assert!(matches!(answer, Err(Error::InvalidPolicy(_))), "{answer:?}");
    assert_eq!(owner.store.round_trips(), 0);
}

#[idempotent(name = "switches.open", key = key, on_missing_key = run, on_outage = open)]
async fn open(key: Option<&str>) -> Result<(), Error> {
    Ok(())
}

#[idempotent(name = "switches.closed", key = key)]
async fn closed(key: &str) -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn the_inventory_tells_what_may_run_without_a_record() {
    let idem = Idempotency::memory();
    let both = idem.enter(async { (open(Some("k")).await, closed("k").await) });
    assert_eq!(both.await, (Ok(()), Ok(())));

    let operations = idem.operations();

    let told = operations
        .iter()
        .filter(|operation| operation.is_seen)
        .map(|operation| {
            (
                operation.name,
                operation.on_missing_key,
                operation.on_outage,
            )
        })
        .collect::<Vec<_>>();
    let open = (Some(OnMissingKey::Run), Some(OnOutage::Open));
    assert_eq!(
        told,
        [
            ("switches.closed", None, None),
            ("switches.open", open.0, open.1)
        ]
    );
}
