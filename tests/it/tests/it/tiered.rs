//! Copies of finished outcomes in front of the store that decides.

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
    record::{Record, State, Time},
    store::{FastTier, MemoryStore, OutcomeCache, Store, Swap, TieredStore},
    testing::{FaultyStore, Gate, ManualClock, Operation},
};

use crate::harness::{claim, completion};

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
    /// What it is asked to put is held at the gate.
    PutsLate(Gate),
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
impl FastTier for Failing {
    async fn find(&self, id: &RecordId) -> Result<Option<Arc<Record>>, StoreError> {
        self.arrive().await?;
        self.cache.find(id).await
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
        self.arrive().await?;
        self.cache.forget(id).await
    }
}

/// A process: a handle over copies in front of a store that others reach, too.
struct Process {
    clock: ManualClock,
    truth: FaultyStore,
    fast: Failing,
    store: TieredStore,
    idem: Idempotency,
}

impl Process {
    fn new() -> Self {
        let clock = ManualClock::new();
        let truth = FaultyStore::new(MemoryStore::with_clock(clock.clone()));
        Self::beside(&clock, truth)
    }

    fn beside(clock: &ManualClock, truth: FaultyStore) -> Self {
        let fast = Failing::new(clock);
        let store = TieredStore::builder(truth.clone(), fast.clone())
            .age(AGE)
            .pause(5 * SECOND)
            .timer(clock.clone())
            .build();
        Self {
            idem: over(store.clone(), clock),
            clock: clock.clone(),
            truth,
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

    /// How often the truth is asked by a duplicate.
    async fn trips(&self, key: &str) -> u64 {
        let before = self.truth.round_trips();
        assert_eq!(self.charge(key, 1).await, Ok(1));
        self.truth.round_trips() - before
    }
}

fn over(store: impl Store, clock: &ManualClock) -> Idempotency {
    let builder = Idempotency::builder(store).timer(clock.clone());
    builder.ttl("1h").build().expect("the set-up is sound")
}

#[tokio::test]
async fn a24_a_replay_from_a_copy_asks_the_store_nothing() {
    let process = Process::new();
    assert_eq!(process.charge("k", 1).await, Ok(1));
    assert_eq!(
        process.truth.round_trips(),
        2,
        "a first call costs the same"
    );
    assert_eq!(
        process.trips("k").await,
        1,
        "a replay that finds no copy, too"
    );
    for _ in 0..3 {
        assert_eq!(process.trips("k").await, 0);
    }
    let id = process.truth.scan(None, 1).await.expect("a list")[0].0;
    let loads = process.truth.calls(Operation::Load);
    let seen = process.store.load(&id).await.expect("a look");
    assert_eq!(seen.record.expect("a copy").state, State::Done);
    assert_eq!(
        process.truth.calls(Operation::Load),
        loads,
        "nor does a look"
    );
}

#[tokio::test]
async fn a24_other_arguments_are_found_in_a_copy() {
    let process = Process::new();
    process.warm("k").await;
    let before = process.truth.round_trips();

    let refused = process.charge("k", 2).await;

    assert!(
        matches!(refused, Err(Error::KeyReused { .. })),
        "{refused:?}"
    );
    assert_eq!(process.truth.round_trips(), before);
}

#[tokio::test]
async fn a25_what_runs_is_never_copied() {
    let process = Process::new();
    let gate = Gate::new();
    let (elsewhere, held) = (over(process.truth.clone(), &process.clock), gate.clone());
    let running = tokio::spawn(async move {
        let call = elsewhere.call("tiered.charge").key("k").arguments(&1_u32);
        let body = |_| async move {
            held.pass().await;
            Ok::<_, Error>(1_u32)
        };
        call.run(body).await
    });
    gate.arrived(1).await;
    for _ in 0..3 {
        let before = process.truth.round_trips();
        let call = process.idem.call("tiered.charge").key("k");
        let call = call.arguments(&1_u32).in_flight(InFlight::Reject);
        let refused = call.run(|_| async { Ok::<u32, Error>(2) }).await;
        assert!(
            matches!(refused, Err(Error::InProgress { .. })),
            "{refused:?}"
        );
        assert_eq!(process.truth.round_trips(), before + 1);
    }
    gate.open();
    assert_eq!(running.await.expect("no panic"), Ok(1));
    assert_eq!(process.charge("k", 1).await, Ok(1));
}

#[tokio::test]
async fn a26_a_copy_is_not_given_once_it_has_expired() {
    let process = Process::new();
    let charge = || {
        let call = process.idem.call("tiered.charge").key("k");
        let call = call.ttl(10 * SECOND).arguments(&1_u32);
        let now = process.clock.now();
        call.run(move |_| async move { Ok::<_, Error>(now.as_micros()) })
    };
    let first = charge().await;
    process.clock.advance(9 * SECOND);
    assert_eq!(charge().await, first);
    let before = process.truth.round_trips();
    process.clock.advance(SECOND - Duration::from_micros(1));
    assert_eq!(charge().await, first);
    assert_eq!(process.truth.round_trips(), before, "from the copy");

    process.clock.advance(Duration::from_micros(1));

    assert_ne!(charge().await, first, "the body ran again");
}

#[tokio::test]
async fn a26_expiry_goes_by_the_clock_of_the_store() {
    let process = Process::new();
    process.warm("k").await;
    let now = Clock::now(&process.clock);
    process.clock.step(now.plus(Duration::from_secs(3600)));
    assert_eq!(process.trips("k").await, 0, "nobody knows yet");

    process.warm("other").await;

    let before = process.truth.swaps_to(State::Running);
    assert_eq!(process.charge("k", 1).await, Ok(1));
    assert_eq!(
        process.truth.swaps_to(State::Running),
        before + 2,
        "claimed anew"
    );
}

/// A process whose machine has a wall clock of its own, beside the clock of its store and the timer.
fn with_wall_clock() -> (Process, ManualClock) {
    let (mut process, wall) = (Process::new(), ManualClock::new());
    let fast = OutcomeCache::new(100).timer(process.clock.clone());
    let store = TieredStore::builder(process.truth.clone(), fast.clock(wall.clone()))
        .age(AGE)
        .timer(process.clock.clone())
        .clock(wall.clone());
    process.store = store.build();
    process.idem = over(process.store.clone(), &process.clock);
    (process, wall)
}

#[tokio::test]
async fn a26_a_suspended_machine_gives_no_expired_copy() {
    let (process, wall) = with_wall_clock();
    let charge = || {
        let call = process.idem.call("tiered.charge").key("k");
        let call = call.ttl(10 * SECOND).arguments(&1_u32);
        let now = process.clock.now();
        call.run(move |_| async move { Ok::<_, Error>(now.as_micros()) })
    };
    let first = charge().await;
    assert_eq!(charge().await, first);
    let before = process.truth.round_trips();
    assert_eq!(charge().await, first);
    assert_eq!(process.truth.round_trips(), before, "from the copy");

    // The store's time and the time of day go on, and the timer stands still.
    process
        .clock
        .step(Clock::now(&process.clock).plus(10 * SECOND));
    wall.advance(10 * SECOND);

    assert_ne!(charge().await, first, "the body ran again");
}

#[tokio::test]
async fn a28_a_suspended_machine_gives_no_copy_beyond_its_age() {
    let (process, wall) = with_wall_clock();
    process.warm("k").await;
    let (id, record) = process.truth.scan(None, 1).await.expect("a list").remove(0);
    let draft = completion(&claim(), b"2".to_vec());
    let swap = process.truth.swap(&id, Some(record.version), &draft).await;
    assert!(matches!(swap, Ok(Swap::Applied(_))), "{swap:?}");

    wall.advance(AGE);
    process.warm("tells the time").await;

    assert_eq!(process.charge("k", 1).await, Ok(2));
}

#[tokio::test]
async fn a26_a_wall_clock_that_is_set_costs_a_look_at_most() {
    let (process, wall) = with_wall_clock();
    process.warm("k").await;
    let begun = Clock::now(&wall);

    wall.step(Time::from_micros(begun.as_micros() - 3_600_000_000));
    assert_eq!(process.trips("k").await, 0, "back: nothing changes");

    wall.step(begun.plus(Duration::from_secs(3600)));
    assert_eq!(process.trips("k").await, 1, "forward: one look");
    assert_eq!(process.trips("k").await, 0);
}

#[tokio::test]
async fn a28_what_is_written_elsewhere_is_seen_within_the_age() {
    let process = Process::new();
    process.warm("k").await;
    let id = process.truth.scan(None, 1).await.expect("a list")[0].0;
    let (_, record) = &process.truth.scan(None, 1).await.expect("a list")[0];
    let draft = completion(&claim(), b"2".to_vec());
    let swap = process.truth.swap(&id, Some(record.version), &draft).await;
    assert!(matches!(swap, Ok(Swap::Applied(_))), "{swap:?}");

    process.clock.advance(AGE - SECOND);
    process.warm("keeps the time").await;
    assert_eq!(process.charge("k", 1).await, Ok(1));
    process.clock.advance(SECOND);

    assert_eq!(process.charge("k", 1).await, Ok(2));
}

#[tokio::test]
async fn a28_what_is_written_through_the_store_is_seen_at_once() {
    let process = Process::new();
    process.warm("k").await;
    let (id, record) = process.truth.scan(None, 1).await.expect("a list").remove(0);
    let draft = completion(&claim(), b"2".to_vec());

    let swap = process.store.swap(&id, Some(record.version), &draft).await;

    assert!(matches!(swap, Ok(Swap::Applied(_))), "{swap:?}");
    assert_eq!(process.charge("k", 1).await, Ok(2));
}

#[tokio::test]
async fn what_heartbeats_write_is_seen_at_once() {
    let process = Process::new();
    process.warm("k").await;
    let (id, record) = process.truth.scan(None, 1).await.expect("a list").remove(0);
    // The memory store has none of its own to give: one that has is wrapped alike.
    let own = process.store.for_heartbeats().await.expect("an answer");
    assert!(own.is_none());
    let tiered = TieredStore::builder(WithAnother(process.truth.clone()), process.fast.clone())
        .timer(process.clock.clone())
        .build();
    assert!(tiered.load(&id).await.is_ok());
    assert!(tiered.load(&id).await.is_ok());
    let own = tiered.for_heartbeats().await.expect("an answer");
    let own = own.expect("another");
    let draft = completion(&claim(), b"2".to_vec());

    let swap = own.swap(&id, Some(record.version), &draft).await;

    assert!(matches!(swap, Ok(Swap::Applied(_))), "{swap:?}");
    let seen = tiered.load(&id).await.expect("a look").record;
    assert_eq!(seen.expect("a record").version, draft.version);
}

/// A store that has connections of its own for heartbeats.
#[derive(Debug)]
struct WithAnother(FaultyStore);

#[async_trait]
impl Store for WithAnother {
    async fn load(&self, id: &RecordId) -> Result<idempotent_runtime::store::Snapshot, StoreError> {
        self.0.load(id).await
    }
    async fn swap(
        &self,
        id: &RecordId,
        seen: Option<idempotent_runtime::record::Version>,
        next: &idempotent_runtime::record::Draft,
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
    async fn for_heartbeats(&self) -> Result<Option<Arc<dyn Store>>, StoreError> {
        Ok(Some(Arc::new(self.0.clone())))
    }
}

#[tokio::test]
async fn a_copy_that_is_put_late_does_not_outlive_a_write() {
    let process = Process::new();
    assert_eq!(process.charge("k", 1).await, Ok(1));
    let (id, record) = process.truth.scan(None, 1).await.expect("a list").remove(0);
    let gate = Gate::new();
    process.fast.now(How::PutsLate(gate.clone()));
    let store = process.store.clone();
    let looking = tokio::spawn(async move { store.load(&id).await });
    gate.arrived(1).await;

    let draft = completion(&claim(), b"2".to_vec());
    let swap = process.store.swap(&id, Some(record.version), &draft).await;
    assert!(matches!(swap, Ok(Swap::Applied(_))), "{swap:?}");
    let seen = process.store.load(&id).await.expect("a look").record;
    assert_eq!(seen.expect("a record").version, draft.version);
    gate.open();
    let looked = looking.await.expect("no panic").expect("a look").record;
    assert_eq!(looked.expect("a record").version, record.version);

    let seen = process.store.load(&id).await.expect("a look").record;
    assert_eq!(seen.expect("a record").version, draft.version);
}

#[tokio::test]
async fn what_is_settled_is_never_given_as_it_was() {
    let process = Process::new();
    let call = process
        .idem
        .call("tiered.charge")
        .key("k")
        .arguments(&1_u32);
    let call = call.on_crash(OnCrash::Uncertain).uncertain_errors();
    let left = call.run(|_| async { Err::<u32, BoxError>("who knows".into()) });
    assert!(left.await.is_err());
    for _ in 0..2 {
        let refused = process.charge("k", 1).await;
        assert!(
            matches!(refused, Err(Error::Uncertain { .. })),
            "{refused:?}"
        );
    }

    let settle = process.idem.settle("tiered.charge", None::<&str>, "k");
    let settled = settle.expect("a key").with_value(&7_u32).await;

    assert!(settled.expect("an answer"));
    for _ in 0..3 {
        assert_eq!(process.charge("k", 1).await, Ok(7));
    }
}

#[tokio::test]
async fn a_tier_that_fails_is_left_alone_for_a_while() {
    for how in [How::Fails, How::Panics] {
        let process = Process::new();
        process.warm("k").await;
        process.fast.now(how);
        let asked = process.fast.asked();

        assert_eq!(process.trips("k").await, 1, "the truth answers at once");
        assert_eq!(process.trips("k").await, 1);
        assert_eq!(process.fast.asked(), asked + 1, "it is asked only once");

        process.fast.now(How::Works);
        process.clock.advance(5 * SECOND);
        assert_eq!(process.trips("k").await, 0, "it is tried again");
    }
}

#[tokio::test]
async fn a_tier_that_hangs_is_waited_for_with_patience() {
    let process = Arc::new(Process::new());
    process.warm("k").await;
    process.fast.now(How::Hangs);
    let before = process.truth.round_trips();
    let sleepers = process.clock.sleepers();
    let calling = Arc::clone(&process);
    let call = tokio::spawn(async move { calling.charge("k", 1).await });
    process.clock.await_sleepers(sleepers + 1).await;
    assert_eq!(process.truth.round_trips(), before);

    process.clock.advance(Duration::from_millis(50));

    assert_eq!(call.await.expect("no panic"), Ok(1));
    assert_eq!(process.truth.round_trips(), before + 1);
    assert_eq!(
        process.charge("new", 1).await,
        Ok(1),
        "it is not waited for"
    );
}

#[tokio::test]
async fn losing_every_copy_loses_nothing() {
    let process = Process::new();
    process.warm("k").await;
    let other = Process::beside(&process.clock, process.truth.clone());
    assert_eq!(other.trips("k").await, 1, "another process has no copy");
    assert_eq!(other.trips("k").await, 0);
    let (id, _) = process.truth.scan(None, 1).await.expect("a list").remove(0);
    assert!(process.fast.forget(&id).await.is_ok());
    assert_eq!(process.trips("k").await, 1);
}

#[tokio::test]
async fn a_copy_of_what_was_deleted_goes_with_the_next_claim() {
    let process = Process::new();
    process.warm("k").await;
    let (id, record) = process.truth.scan(None, 1).await.expect("a list").remove(0);
    // Another process finds what a restored database has forgotten; this one asks because its time is old.
    let restored = Process::new();
    let tiered = TieredStore::builder(restored.truth.clone(), process.fast.clone())
        .timer(process.clock.clone())
        .build();
    let draft = claim();

    let swap = tiered.swap(&id, None, &draft).await;

    assert!(matches!(swap, Ok(Swap::Applied(_))), "{swap:?}");
    let seen = tiered.load(&id).await.expect("a look").record;
    assert_eq!(seen.expect("a record").version, draft.version);
    assert_ne!(record.version, draft.version);
}

#[tokio::test]
async fn no_more_copies_are_held_than_allowed() {
    let clock = ManualClock::new();
    let truth = FaultyStore::new(MemoryStore::with_clock(clock.clone()));
    let cache = OutcomeCache::new(2).timer(clock.clone()).largest(10);
    let store = TieredStore::builder(truth.clone(), cache).timer(clock.clone());
    let idem = over(store.build(), &clock);
    let charge = async |key: &str, text: &str| {
        let before = truth.round_trips();
        let (call, text) = (idem.call("tiered.say").key(key), text.to_owned());
        let said = call.run(|_| async move { Ok::<_, Error>(text) }).await;
        said.expect("an answer");
        truth.round_trips() - before
    };
    for key in ["a", "b", "c"] {
        charge(key, "short").await;
        charge(key, "short").await;
    }
    let mut trips = Vec::new();
    for key in ["b", "c", "a", "c", "b"] {
        trips.push(charge(key, "short").await);
    }
    assert_eq!(
        trips,
        [0, 0, 1, 0, 1],
        "the first of three went, then the second"
    );

    for _ in 0..3 {
        assert!(charge("long", "more than ten bytes").await > 0);
    }
}

#[tokio::test]
async fn a_cache_forgets_by_age() {
    let clock = ManualClock::new();
    let cache = OutcomeCache::new(10).timer(clock.clone());
    let cache = cache.clock(clock.clone());
    let truth = MemoryStore::with_clock(clock.clone());
    let id = RecordId::from_bytes([1; 32]);
    let swap = truth.swap(&id, None, &claim()).await;
    assert!(matches!(swap, Ok(Swap::Applied(_))));
    let record = truth.load(&id).await.expect("a look").record;
    let record = record.expect("a record");
    assert!(cache.put(&id, &record, SECOND).await.is_ok());
    clock.advance(SECOND - Duration::from_nanos(1));
    assert_eq!(cache.find(&id).await, Ok(Some(record)));
    clock.advance(Duration::from_nanos(1));
    assert_eq!(cache.find(&id).await, Ok(None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_duplicates_at_once_are_answered_alike() {
    let process = Arc::new(Process::new());
    let mut callers = Vec::new();
    for _ in 0..8 {
        let process = Arc::clone(&process);
        callers.push(tokio::spawn(async move {
            let mut answers = Vec::new();
            for number in 0..50 {
                answers.push(process.charge(&format!("k{}", number % 5), 1).await);
            }
            answers
        }));
    }
    for caller in callers {
        let answers = caller.await.expect("no panic");
        assert!(answers.iter().all(|answer| *answer == Ok(1)), "{answers:?}");
    }
    assert_eq!(process.truth.swaps_to(State::Done), 5);
    let before = process.truth.round_trips();
    for number in 0..5 {
        process.charge(&format!("k{number}"), 1).await.expect("1");
    }
    assert_eq!(process.truth.round_trips(), before, "all are copied");
}
