//! A wrapper offers what the store inside does, and holds over one that keeps records alone.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;

use crate::{
    identity::RecordId,
    record::{Draft, Record, Version},
    store::{MemoryStore, OutcomeCache, Snapshot, Store, StoreError, Swap, TieredStore},
    testing::{
        FaultyStore, ManualClock,
        conformance::{StoreUnderTest, run_all},
    },
};

/// Memory that keeps records, and offers nothing beside them.
#[derive(Debug)]
struct RecordsAlone(MemoryStore);

#[async_trait]
impl Store for RecordsAlone {
    async fn load(&self, id: &RecordId) -> Result<Snapshot, StoreError> {
        self.0.load(id).await
    }

    async fn swap(
        &self,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        self.0.swap(id, seen, next).await
    }

    async fn purge(&self, limit: u32, keep: Duration) -> Result<u64, StoreError> {
        self.0.purge(limit, keep).await
    }

    async fn scan(
        &self,
        after: Option<RecordId>,
        limit: u32,
    ) -> Result<Vec<(RecordId, Arc<Record>)>, StoreError> {
        self.0.scan(after, limit).await
    }
}

struct Wrapped {
    store: Arc<dyn Store>,
    clock: ManualClock,
}

#[async_trait]
impl StoreUnderTest for Wrapped {
    async fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }
    async fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }
}

type Wrap = fn(Arc<dyn Store>, &ManualClock) -> Arc<dyn Store>;

/// Tests a wrapper of this kind over a store with steps, over one without, and over one that takes
/// part in transactions.
pub(crate) async fn check(wrap: Wrap) {
    let over = |inside: fn(MemoryStore) -> Arc<dyn Store>| {
        let clock = ManualClock::new();
        let store = wrap(inside(MemoryStore::with_clock(clock.clone())), &clock);
        Wrapped { store, clock }
    };
    let with = || over(|memory| Arc::new(memory));
    let without = || over(|memory| Arc::new(RecordsAlone(memory)));
    assert!(with().store.steps().is_some(), "memory keeps steps");
    assert!(without().store.steps().is_none());
    assert!(with().store.transactions().is_none());
    run_all(async || with()).await;
    run_all(async || without()).await;
}

/// Over a database it takes part in transactions, as that does.
#[cfg(feature = "sqlite")]
async fn offers_transactions(wrap: Wrap) {
    let database = crate::store::SqliteStore::in_memory().await;
    let database = Arc::new(database.expect("memory opens"));
    let wrapped = wrap(database, &ManualClock::new());
    assert!(wrapped.transactions().is_some());
}

#[cfg(not(feature = "sqlite"))]
async fn offers_transactions(_: Wrap) {}

macro_rules! wrappers {
    ($($name:ident: $wrap:expr,)*) => { $(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            offers_transactions($wrap).await;
            check($wrap).await;
        }
    )* };
}

wrappers! {
    an_arc_offers_what_it_wraps: |store, _| Arc::new(store),
    a_faulty_store_offers_what_it_wraps: |store, _| Arc::new(FaultyStore::new(store)),
    a_tiered_store_offers_what_it_wraps: |store, clock| {
        let tier = OutcomeCache::new(100).timer(clock.clone());
        let tiered = TieredStore::builder(store, tier).age(Duration::MAX);
        Arc::new(tiered.timer(clock.clone()).build())
    },
}

#[cfg(any(feature = "mysql", feature = "postgres"))]
mod together {
    use super::*;
    use crate::store::together::{Together, Write, WriteAnswer, WriteTogether};

    impl WriteTogether for Arc<dyn Store> {
        async fn write_together(&self, writes: &[Write]) -> Vec<WriteAnswer> {
            let mut answers = Vec::new();
            for Write { id, seen, next } in writes {
                answers.push(Some(self.swap(id, Some(*seen), next).await));
            }
            answers
        }
    }

    wrappers! {
        batches_offer_what_they_wrap: |store, _| Arc::new(Together::new(store)),
    }
}
