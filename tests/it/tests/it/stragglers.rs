//! A claim that was taken for lost, and arrives after the next one was sent.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use idempotent_runtime::{
    Error, Idempotency, MemoryStore, OnCrash, Store, StoreError, StoreErrorKind,
    identity::RecordId,
    record::{AttemptId, Draft, Record, Version},
    store::{Snapshot, Swap},
    testing::ManualClock,
};

use crate::harness::in_time;

const LEASE: Duration = Duration::from_secs(30);
const TTL: Duration = Duration::from_secs(60);

/// A store in which the first claim straggles. Another call's claim stood before it. That call's
/// holder vanished, and its record is purged by the time the first claim arrives.
#[derive(Debug)]
struct Straggling {
    store: MemoryStore,
    clock: ManualClock,
    swaps: AtomicUsize,
    straggler: Mutex<Option<Draft>>,
}

impl Straggling {
    fn new() -> Self {
        let clock = ManualClock::new();
        Self {
            store: MemoryStore::with_clock(clock.clone()),
            clock,
            swaps: AtomicUsize::new(0),
            straggler: Mutex::default(),
        }
    }

    fn straggler(&self) -> MutexGuard<'_, Option<Draft>> {
        let straggler = self.straggler.lock();
        straggler.unwrap_or_else(PoisonError::into_inner)
    }

    /// Another call's claim arrives instead, and its lease ends.
    async fn first(&self, id: &RecordId, claim: &Draft) -> Result<Swap, StoreError> {
        let somebody = Draft {
            version: Version::random(),
            attempt_id: AttemptId::random(),
            on_crash: OnCrash::Rerun,
            ..claim.clone()
        };
        self.store.swap(id, None, &somebody).await?;
        self.clock.advance(LEASE);
        *self.straggler() = Some(claim.clone());
        Err(StoreError::new(StoreErrorKind::Unavailable, "claiming"))
    }

    /// The claim that straggled arrives, and its lease ends, too.
    async fn arrive(&self, id: &RecordId) -> Result<(), StoreError> {
        let straggler = self.straggler().take();
        self.clock.advance(TTL);
        assert_eq!(self.store.purge(1, Duration::ZERO).await?, 1);
        let straggler = straggler.expect("the first claim straggles");
        let arrived = self.store.swap(id, None, &straggler).await?;
        assert!(matches!(arrived, Swap::Applied(_)), "{arrived:?}");
        self.clock.advance(LEASE);
        Ok(())
    }
}

#[async_trait]
impl Store for Straggling {
    async fn load(&self, id: &RecordId) -> Result<Snapshot, StoreError> {
        self.store.load(id).await
    }

    async fn swap(
        &self,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        match self.swaps.fetch_add(1, Ordering::Relaxed) {
            0 => return self.first(id, next).await,
            2 => self.arrive(id).await?,
            _ => {}
        }
        self.store.swap(id, seen, next).await
    }

    async fn wait(
        &self,
        id: &RecordId,
        seen: Version,
        at_most: Duration,
    ) -> Result<(), StoreError> {
        self.store.wait(id, seen, at_most).await
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
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_arrives_after_an_uncertain_verdict_was_sent_is_run_and_not_called_uncertain()
{
    let handle = Idempotency::builder(Straggling::new()).lease(LEASE);
    let handle = handle.ttl(TTL).build().expect("the set-up is sound");
    let call = handle.call("charge").key("k").on_crash(OnCrash::Uncertain);
    let call = call.run(|_attempt| async { Ok::<_, Error>("charged".to_owned()) });

    assert_eq!(in_time(call).await, Ok("charged".to_owned()));

    let call = handle.call("charge").key("k").on_crash(OnCrash::Uncertain);
    let again = call.run(|_attempt| async { Ok::<_, Error>("charged twice".to_owned()) });
    assert_eq!(in_time(again).await, Ok("charged".to_owned()));
}
