//! A store that never writes over what stands there, and says only that something does: a trigger drops it, for example.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use idempotent_runtime::{
    Error, How, Idempotency, OnCrash, StoreError, StoreErrorKind,
    identity::RecordId,
    record::{Draft, Record, Version},
    store::{MemoryStore, Snapshot, Store, Swap},
    testing::ManualClock,
};

use crate::harness::in_time;

#[derive(Debug)]
struct Stubborn(MemoryStore);

#[async_trait]
impl Store for Stubborn {
    async fn load(&self, id: &RecordId) -> Result<Snapshot, StoreError> {
        self.0.load(id).await
    }

    async fn swap(
        &self,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        match seen {
            None => self.0.swap(id, None, next).await,
            Some(_) => self.0.load(id).await.map(Swap::Refused),
        }
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

#[tokio::test]
async fn what_is_never_written_over_keeps_nobody_waiting() {
    let clock = ManualClock::new();
    let store = Arc::new(Stubborn(MemoryStore::with_clock(clock.clone())));
    let owner = || {
        Idempotency::builder(Arc::clone(&store))
            .on_crash(OnCrash::Rerun)
            .lease("30s")
            .timer(clock.clone())
            .build()
            .expect("the set-up is sound")
    };
    let charge = |owner: &Idempotency| {
        let call = owner.call("stubborn.charge").key("k");
        in_time(call.run_detailed(async |_| Ok::<_, Error>(1)))
    };
    let (one, other) = (owner(), owner());

    let (first, how) = charge(&one).await;
    assert_eq!(first, Ok(1), "its body has run");
    let unrecorded = matches!(
        how,
        How::Executed {
            recorded: false,
            ..
        }
    );
    assert!(unrecorded, "{how:?}");

    clock.advance(Duration::from_secs(60));
    let (taken_over, _) = charge(&other).await;
    let Err(Error::Store(error)) = taken_over else {
        panic!("{taken_over:?}")
    };
    assert_eq!(error.kind(), StoreErrorKind::Denied);
}
