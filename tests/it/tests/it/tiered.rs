//! Copies of finished outcomes in front of the store that decides.

mod answers;
mod bounds;
mod freshness;
mod losses;
mod sagas;

use std::{
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use idempotent_runtime::{
    BoxError, Error, Idempotency, InFlight, OnCrash, StoreError, StoreErrorKind,
    clock::Clock,
    identity::RecordId,
    record::{Draft, OutcomeKind, RawOutcome, Record, State, Time, TokenRule, Version},
    store::{MemoryStore, OutcomeCache, OutcomeTier, Store, Swap, TieredStore},
    testing::{FaultyStore, Gate, ManualClock, StoreOperation},
};

use crate::harness::{applied, claim, completion, only};

const SECOND: Duration = Duration::from_secs(1);
const AGE: Duration = Duration::from_secs(60);

/// A fast tier that does what a test says, and counts how often it was asked.
#[derive(Clone, Debug)]
pub(crate) struct Failing {
    cache: Arc<OutcomeCache>,
    how: Arc<Mutex<How>>,
    asked: Arc<AtomicU64>,
}

#[derive(Clone, Debug)]
pub(crate) enum How {
    Works,
    Fails,
    Hangs,
    Panics,
    /// A copy that it is asked to put is held at the gate.
    PutsLate(Gate),
    /// A copy that it is asked to forget is held at the gate.
    ForgetsLate(Gate),
}

impl Failing {
    pub(crate) fn new(clock: &ManualClock) -> Self {
        Self {
            cache: Arc::new(OutcomeCache::new(100).timer(clock.clone())),
            how: Arc::new(Mutex::new(How::Works)),
            asked: Arc::default(),
        }
    }

    pub(crate) fn now(&self, how: How) {
        *self.how.lock().expect("nobody panicked") = how;
    }

    fn asked(&self) -> u64 {
        self.asked.load(Ordering::SeqCst)
    }

    async fn arrive(&self) -> Result<How, StoreError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let how = self.how.lock().expect("nobody panicked").clone();
        match how {
            How::Fails => Err(StoreError::new(StoreErrorKind::Unavailable, "being asked")),
            How::Hangs => pending().await,
            How::Panics => panic!("a planned panic"),
            how => Ok(how),
        }
    }
}

#[async_trait]
impl OutcomeTier for Failing {
    async fn find(&self, id: &RecordId) -> Result<Option<Arc<Record>>, StoreError> {
        self.arrive().await?;
        self.cache.find(id).await
    }

    fn peek(&self, id: &RecordId) -> Option<Arc<Record>> {
        let how = self.how.lock().expect("nobody panicked").clone();
        match how {
            How::Works | How::PutsLate(_) | How::ForgetsLate(_) => self.cache.peek(id),
            How::Panics => panic!("a planned panic"),
            How::Fails | How::Hangs => None,
        }
    }

    async fn put(
        &self,
        id: &RecordId,
        record: &Arc<Record>,
        at_most: Duration,
    ) -> Result<(), StoreError> {
        if let How::PutsLate(gate) = self.arrive().await? {
            gate.pass().await;
        }
        self.cache.put(id, record, at_most).await
    }

    async fn forget(&self, id: &RecordId) -> Result<(), StoreError> {
        if let How::ForgetsLate(gate) = self.arrive().await? {
            gate.pass().await;
        }
        self.cache.forget(id).await
    }
}

/// A process: a handle over copies in front of a store that others reach, too.
struct Process {
    clock: ManualClock,
    primary: FaultyStore,
    fast: Failing,
    store: TieredStore,
    idem: Idempotency,
}

impl Process {
    fn new() -> Self {
        let clock = ManualClock::new();
        let primary = FaultyStore::new(MemoryStore::with_clock(clock.clone()));
        Self::beside(&clock, primary)
    }

    fn beside(clock: &ManualClock, primary: FaultyStore) -> Self {
        let fast = Failing::new(clock);
        let store = TieredStore::builder(primary.clone(), fast.clone()).age(AGE);
        let store = store.pause(5 * SECOND).timer(clock.clone()).build();
        Self {
            idem: over(store.clone(), clock),
            clock: clock.clone(),
            primary,
            fast,
            store,
        }
    }

    async fn charge(&self, key: &str, cents: u32) -> Result<u32, Error> {
        let call = self.idem.call("tiered.charge").key(key).arguments(&cents);
        call.run(|_| async move { Ok(cents) }).await
    }

    /// Leaves a copy of a finished call.
    async fn warm(&self, key: &str) {
        for _ in 0..2 {
            assert_eq!(self.charge(key, 1).await, Ok(1));
        }
    }

    /// How often the primary store is asked by a duplicate.
    async fn trips(&self, key: &str) -> u64 {
        let before = self.primary.round_trips();
        assert_eq!(self.charge(key, 1).await, Ok(1));
        self.primary.round_trips() - before
    }
}

/// The record that a store shows.
async fn shown(store: &dyn Store, id: &RecordId) -> Arc<Record> {
    let seen = store.load(id).await.expect("a look");
    seen.record.expect("a record")
}

fn over(store: impl Store, clock: &ManualClock) -> Idempotency {
    let builder = Idempotency::builder(store).timer(clock.clone());
    builder.ttl("1h").build().expect("the set-up is sound")
}
