//! The calls of a store, as observers hear of them.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use idempotent_runtime::{
    MemoryStore, Observer, RecordChange, StoreErrorKind,
    store::{OutcomeCache, StoreAction, StoreEvent, TieredStore},
    testing::{On, StoreOperation},
};

use super::{LEASE, held, inside, open};
use crate::harness::{Owner, World, said_during};

on_every_store![
    each_call_of_a_store_is_told_of,
    a_store_that_fails_is_told_of_with_the_kind_of_its_error,
];

/// Writes down the calls of a store.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<StoreEvent>>>);

impl Observer for Calls {
    fn store(&self, event: &StoreEvent) {
        let mut events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        events.push(*event);
    }

    fn wants_store_events(&self) -> bool {
        true
    }
}

/// Hears nothing of the calls of a store.
struct Deaf;

impl Observer for Deaf {
    fn store(&self, event: &StoreEvent) {
        panic!("nobody asked for {event:?}");
    }
}

impl Calls {
    async fn of(world: &World) -> (Owner, Self) {
        let calls = Self::default();
        let observer = calls.clone();
        let owner = world.owner_with(|builder| builder.observer(observer).observer(Deaf));
        (owner.await, calls)
    }

    fn take(&self) -> Vec<StoreEvent> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn take_actions(&self) -> Vec<StoreAction> {
        self.take().iter().map(|event| event.action).collect()
    }
}

async fn each_call_of_a_store_is_told_of(world: World) {
    let (owner, calls) = Calls::of(&world).await;
    let (call, gate) = inside(&world, &owner, "k").await;
    world.advance(LEASE / 3).await;
    owner.log.await_step(RecordChange::Heartbeat).await;
    gate.open();
    assert_eq!(call.await.expect("it does not panic"), Ok(1));
    owner.settled().await;

    let events = calls.take();
    let of = |action| events.iter().filter(move |event| event.action == action);
    for action in [
        StoreAction::Claim,
        StoreAction::Heartbeat,
        StoreAction::Ending,
    ] {
        assert_eq!(of(action).count(), 1, "{action:?} in {events:?}");
    }
    assert!(events.iter().all(|event| event.error_kind.is_none()));
    let name = events[0].store;
    assert_ne!(name, "other");
    assert!(events.iter().all(|event| event.store == name), "{events:?}");

    assert_eq!(owner.idem.purge().await, Ok(0));
    assert_eq!(calls.take_actions(), [StoreAction::Purge]);
    let again = owner.enter(held(world.clone(), open(), "k".into(), 1));
    assert_eq!(again.await, Ok(1));
    let asked = calls.take_actions();
    // A duplicate that finds its outcome in the process's own memory asks nothing.
    assert!(
        asked.is_empty() || asked == [StoreAction::Claim],
        "{asked:?}"
    );
}

async fn a_store_that_fails_is_told_of_with_the_kind_of_its_error(world: World) {
    let (owner, calls) = Calls::of(&world).await;
    owner.fails(StoreOperation::Claim, On::Next, StoreErrorKind::Denied);
    let refused = owner.enter(held(world.clone(), open(), "k".into(), 1));
    assert!(refused.await.is_err());
    let events = calls.take();
    let kinds: Vec<_> = events.iter().map(|event| event.error_kind).collect();
    assert_eq!(kinds, [Some(StoreErrorKind::Denied)], "{events:?}");
}

#[tokio::test]
async fn a_replay_from_a_tier_is_told_apart() {
    let calls = Calls::default();
    let store = TieredStore::new(MemoryStore::new(), OutcomeCache::new(100));
    let idem = idempotent_runtime::Idempotency::builder(store).observer(calls.clone());
    let idem = idem.build().expect("a handle");
    let mut all = Vec::new();
    for _ in 0..3 {
        let call = idem.call("observed.tier").key("k");
        let answer = call
            .run(async |_| Ok::<_, idempotent_runtime::Error>(1))
            .await;
        assert_eq!(answer, Ok(1));
        let told = calls.take();
        all.push(Vec::from_iter(
            told.iter().map(|event| (event.store, event.action)),
        ));
    }
    let (claim, load) = (StoreAction::Claim, StoreAction::Load);
    let expected = [
        vec![("memory", claim), ("memory", StoreAction::Ending)],
        vec![("memory", claim)],
        vec![("tier", load)],
    ];
    assert_eq!(all, expected);
}

#[tokio::test]
async fn an_outage_is_one_warning_and_then_one_every_thirty_seconds() {
    let world = World::memory().await;
    let owner = world.owner().await;
    owner.store.outage(StoreErrorKind::Denied);
    let calls = async {
        for _ in 0..40 {
            let refused = owner.enter(held(world.clone(), open(), "k".into(), 1));
            assert!(refused.await.is_err());
            world.advance(Duration::from_secs(1)).await;
        }
    };

    let ((), said) = said_during(calls).await;

    assert_eq!(said.matches("WARN").count(), 2, "{said}");
    assert_eq!(said.matches("the store fails").count(), 2, "{said}");
    assert!(said.contains("failures=30"), "{said}");
    assert!(said.contains("observed.held"), "{said}");
    assert!(said.contains("may not be written"), "{said}");
}
