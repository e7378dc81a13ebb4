//! A store that never writes over what stands there, and says only that something does: a trigger drops it, for example.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

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
struct Stubborn {
    inner: MemoryStore,
    is_still_willing: AtomicBool,
}

#[async_trait]
impl Store for Stubborn {
    async fn load(&self, id: &RecordId) -> Result<Snapshot, StoreError> {
        self.inner.load(id).await
    }

    async fn swap(
        &self,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        match seen {
            None => self.inner.swap(id, None, next).await,
            Some(_) if self.is_still_willing.load(Ordering::SeqCst) => {
                self.inner.swap(id, seen, next).await
            }
            Some(_) => self.inner.load(id).await.map(Swap::Refused),
        }
    }

    async fn purge(&self, limit: u32, keep: Duration) -> Result<u64, StoreError> {
        self.inner.purge(limit, keep).await
    }

    async fn scan(
        &self,
        after: Option<RecordId>,
        limit: u32,
    ) -> Result<Vec<(RecordId, Arc<Record>)>, StoreError> {
        self.inner.scan(after, limit).await
    }
}

impl Stubborn {
    fn over(clock: &ManualClock) -> Arc<Self> {
        Arc::new(Self {
            inner: MemoryStore::with_clock(clock.clone()),
            is_still_willing: AtomicBool::new(false),
        })
    }
}

fn is_denied(error: &Error) -> bool {
    matches!(error, Error::Store(error) if error.kind() == StoreErrorKind::Denied)
}

#[tokio::test]
async fn what_is_never_written_over_keeps_nobody_waiting() {
    let clock = ManualClock::new();
    let store = Stubborn::over(&clock);
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
    assert!(taken_over.is_err_and(|error| is_denied(&error)));
}

#[tokio::test]
async fn what_is_never_written_over_is_not_settled_either() {
    let store = Stubborn::over(&ManualClock::new());
    store.is_still_willing.store(true, Ordering::SeqCst);
    let idem = Idempotency::new(Arc::clone(&store));
    let call = idem.call("stubborn.charge").key("k");
    let left = call
        .uncertain_errors()
        .run(async |_| Err::<u32, _>(Error::AlreadyInstalled));
    assert!(left.await.is_err());
    store.is_still_willing.store(false, Ordering::SeqCst);

    let settled = idem.settle("stubborn.charge", None::<&str>, "k");
    let settled = settled.expect("a key");
    let settled = in_time(settled.as_done()).await;

    assert!(settled.is_err_and(|error| is_denied(&error)));
}
