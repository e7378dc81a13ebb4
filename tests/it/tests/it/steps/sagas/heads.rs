//! A takeover reads one value at a time, where it is asked for.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use idempotent_runtime::{
    Idempotency,
    identity::RecordId,
    record::{Draft, ListedStep, Record, Step, StepNames, Version},
    store::{Snapshot, StepStore, StepWrite, Store, StoreError, Swap},
};

use super::{BookError, Saga, successor, verdict};
use crate::harness::World;

on_every_store![mend_22_a_takeover_reads_one_value_at_a_time];

/// A store that knows how many values it gave at once.
#[derive(Debug)]
struct Counting {
    store: Arc<dyn Store>,
    most: Arc<AtomicUsize>,
    lists: Arc<AtomicUsize>,
}

impl Counting {
    fn inner_steps(&self) -> &dyn StepStore {
        self.store.steps().expect("the store keeps steps")
    }
}

#[async_trait]
impl Store for Counting {
    async fn load(&self, id: &RecordId) -> Result<Snapshot, StoreError> {
        self.store.load(id).await
    }

    async fn swap(
        &self,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        self.store.swap(id, seen, next).await
    }

    async fn purge(&self, limit: u32, keep: Duration) -> Result<u64, StoreError> {
        self.store.purge(limit, keep).await
    }

    async fn scan(
        &self,
        after: Option<RecordId>,
        limit: u32,
    ) -> Result<Vec<(RecordId, Arc<Record>)>, StoreError> {
        self.store.scan(after, limit).await
    }

    fn steps(&self) -> Option<&dyn StepStore> {
        Some(self)
    }
}

#[async_trait]
impl StepStore for Counting {
    async fn load_steps(
        &self,
        call: &RecordId,
        names: &StepNames,
    ) -> Result<Vec<Arc<Step>>, StoreError> {
        let steps = self.inner_steps().load_steps(call, names).await?;
        let values = steps.iter().filter(|step| step.outcome.is_some());
        self.most.fetch_max(values.count(), Ordering::SeqCst);
        Ok(steps)
    }

    async fn list_steps(&self, call: &RecordId) -> Result<Vec<ListedStep>, StoreError> {
        self.lists.fetch_add(1, Ordering::SeqCst);
        self.inner_steps().list_steps(call).await
    }

    async fn write_step(
        &self,
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> Result<StepWrite, StoreError> {
        self.inner_steps().write_step(call, seen, next).await
    }
}

/// It goes on forward behind two steps, and undoes three of them; or it undoes the two that are
/// left.
async fn mend_22_a_takeover_reads_one_value_at_a_time(world: World) {
    for (spot, lists) in [("hotel", 2), ("undo hotel", 1)] {
        let dead = Saga::of(&world, &world.owner().await);
        dead.vanishes_at(spot).await;
        let saga = Saga::of(&world, &successor(&world).await);
        let (most, listed) = (Arc::default(), Arc::default());
        let idem = Idempotency::new(Counting {
            store: world.store().await,
            most: Arc::clone(&most),
            lists: Arc::clone(&listed),
        });
        let call = idem.call("trip").key("k").arguments(&1);
        let call = call.classify_errors(verdict);
        let answer = call.run(async |_| saga.body().await).await;
        assert_eq!(answer, Err(BookError::Refused));
        assert_eq!(most.load(Ordering::SeqCst), 1, "{spot}");
        assert_eq!(listed.load(Ordering::SeqCst), lists, "{spot}");
        let order = saga.order();
        assert!(!order.is_empty() && order.iter().all(|value| !value.is_empty()));
        world.advance(Duration::from_secs(48 * 3600)).await;
    }
}
