//! How long a copy is given: never beyond its expiry or its age, and not once something else was
//! written.

use std::{future::poll_fn, task::Poll};

use idempotent_runtime::testing::{Fault, On};

use super::*;

/// A call whose outcome, the time at which its body ran, expires after ten seconds.
async fn charge_at(process: &Process) -> Result<i64, Error> {
    let call = process.idem.call("tiered.charge").key("k");
    let call = call.ttl(10 * SECOND).arguments(&1_u32);
    let now = process.clock.now();
    call.run(async |_| Ok(now.as_micros())).await
}

#[tokio::test]
async fn a26_a_copy_is_not_given_once_it_has_expired() {
    let process = Process::new();
    let charge = || charge_at(&process);
    let first = charge().await;
    process.clock.advance(9 * SECOND);
    assert_eq!(charge().await, first);
    let before = process.primary.round_trips();
    process.clock.advance(SECOND - Duration::from_micros(1));
    assert_eq!(charge().await, first);
    assert_eq!(process.primary.round_trips(), before, "from the copy");
    let (id, _) = only(&process.primary).await;
    assert!(process.store.peek(&id).is_some(), "at hand");

    process.clock.advance(Duration::from_micros(1));

    assert!(process.store.peek(&id).is_none());
    assert_ne!(charge().await, first, "the body ran again");
}

/// The answer that brought the copy was long under way, so that the cache's own count ends late.
#[tokio::test]
async fn a26_a_cache_in_front_of_a_store_reckons_by_its_own_clocks() {
    let mut process = Process::new();
    let copies = OutcomeCache::new(100).timer(process.clock.clone());
    process.store = copies
        .clock(process.clock.clone())
        .in_front_of(process.primary.clone());
    process.idem = over(process.store.clone(), &process.clock);
    let first = charge_at(&process).await;
    let slow = Gate::new();
    let delay = Fault::DelayAnswer(slow.clone());
    process
        .primary
        .fault(StoreOperation::Claim, On::Next, delay);
    let meanwhile = async {
        slow.arrived(1).await;
        process.clock.advance(9 * SECOND);
        slow.open();
    };
    let (second, ()) = tokio::join!(charge_at(&process), meanwhile);
    assert_eq!(second, first);

    process.clock.advance(2 * SECOND);

    assert_ne!(charge_at(&process).await, first, "it has expired");
}

#[tokio::test]
async fn a26_expiry_goes_by_the_clock_of_the_store() {
    let process = Process::new();
    process.warm("k").await;
    let now = Clock::now(&process.clock);
    process.clock.step(now.plus(Duration::from_secs(3600)));
    assert_eq!(process.trips("k").await, 0, "nobody knows yet");

    process.warm("other").await;

    let before = process.primary.swaps_to(State::Running);
    assert_eq!(process.charge("k", 1).await, Ok(1));
    assert_eq!(
        process.primary.swaps_to(State::Running),
        before + 2,
        "claimed anew"
    );
}

/// A process whose machine has a wall clock of its own, beside the clock of its store and the
/// timer.
fn with_wall_clock() -> (Process, ManualClock) {
    let (mut process, wall) = (Process::new(), ManualClock::new());
    let fast = OutcomeCache::new(100).timer(process.clock.clone());
    let store = TieredStore::builder(process.primary.clone(), fast.clock(wall.clone()))
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
    let charge = || charge_at(&process);
    let first = charge().await;
    assert_eq!(charge().await, first);
    let before = process.primary.round_trips();
    assert_eq!(charge().await, first);
    assert_eq!(process.primary.round_trips(), before, "from the copy");

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
    let (id, record) = only(&process.primary).await;
    let draft = completion(&claim(), b"2".to_vec());
    applied(&process.primary, &id, Some(record.version), &draft).await;

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

/// A draft that writes another outcome over that of a call, which has an outcome and a copy of it.
async fn another_outcome(process: &Process) -> (RecordId, Version, Draft) {
    process.warm("k").await;
    let (id, record) = only(&process.primary).await;
    (id, record.version, completion(&claim(), b"2".to_vec()))
}

#[tokio::test]
async fn a28_what_is_written_elsewhere_is_seen_within_the_age() {
    let process = Process::new();
    let (id, seen, draft) = another_outcome(&process).await;
    applied(&process.primary, &id, Some(seen), &draft).await;

    process.clock.advance(AGE - SECOND);
    process.warm("keeps the time").await;
    assert_eq!(process.charge("k", 1).await, Ok(1));
    process.clock.advance(SECOND);

    assert_eq!(process.charge("k", 1).await, Ok(2));
}

#[tokio::test]
async fn a28_what_is_written_through_the_store_is_seen_at_once() {
    let process = Process::new();
    let (id, seen, draft) = another_outcome(&process).await;

    applied(&process.store, &id, Some(seen), &draft).await;

    assert_eq!(process.charge("k", 1).await, Ok(2));
}

#[tokio::test]
async fn what_heartbeats_write_is_seen_at_once() {
    let process = Process::new();
    let (id, seen, draft) = another_outcome(&process).await;
    // The memory store has none of its own to give: one that has is wrapped alike.
    assert!(matches!(process.store.for_heartbeats().await, Ok(None)));
    let tiered = TieredStore::builder(WithAnother(process.primary.clone()), process.fast.clone());
    let tiered = tiered.timer(process.clock.clone()).build();
    assert!(tiered.load(&id).await.is_ok());
    assert!(tiered.load(&id).await.is_ok());
    let own = tiered.for_heartbeats().await.expect("an answer");

    applied(&own.expect("another"), &id, Some(seen), &draft).await;

    assert_eq!(shown(&tiered, &id).await.version, draft.version);
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
    async fn for_heartbeats(&self) -> Result<Option<Arc<dyn Store>>, StoreError> {
        Ok(Some(Arc::new(self.0.clone())))
    }
}

#[tokio::test]
async fn a_copy_that_is_put_late_does_not_outlive_a_write() {
    let process = Process::new();
    assert_eq!(process.charge("k", 1).await, Ok(1));
    let (id, record) = only(&process.primary).await;
    let gate = Gate::new();
    process.fast.now(How::PutsLate(gate.clone()));
    let store = process.store.clone();
    let looking = tokio::spawn(async move { store.load(&id).await });
    gate.arrived(1).await;

    let draft = completion(&claim(), b"2".to_vec());
    applied(&process.store, &id, Some(record.version), &draft).await;
    assert_eq!(shown(&process.store, &id).await.version, draft.version);
    gate.open();
    let looked = looking.await.expect("no panic").expect("a look").record;
    assert_eq!(looked.expect("a record").version, record.version);

    assert_eq!(shown(&process.store, &id).await.version, draft.version);
}

#[tokio::test]
async fn a_write_is_not_answered_before_its_copy_is_forgotten() {
    let process = Process::new();
    let (id, seen, draft) = another_outcome(&process).await;
    let gate = Gate::new();
    process.fast.now(How::ForgetsLate(gate.clone()));
    let mut swap = process.store.swap(&id, Some(seen), &draft);
    for _ in 0..3 {
        let polled = poll_fn(|context| Poll::Ready(swap.as_mut().poll(context))).await;
        assert!(polled.is_pending(), "{polled:?}");
    }
    // Meanwhile no caller is given the copy, which is still there.
    assert!(process.store.peek(&id).is_none());
    assert_eq!(shown(&process.store, &id).await.version, draft.version);

    gate.open();

    assert!(matches!(swap.await, Ok(Swap::Applied(_))));
    assert_eq!(process.charge("k", 1).await, Ok(2));
}

#[tokio::test]
async fn a28_a_copy_is_as_old_as_the_question_that_found_it() {
    let process = Process::new();
    assert_eq!(process.charge("k", 1).await, Ok(1));
    let (id, record) = only(&process.primary).await;
    let slow = Gate::new();
    let slowly = Fault::DelayAnswer(slow.clone());
    process
        .primary
        .fault(StoreOperation::Load, On::Next, slowly);
    let store = process.store.clone();
    let looking = tokio::spawn(async move { store.load(&id).await });
    slow.arrived(1).await;
    // Something else is written after the question was answered.
    let draft = completion(&claim(), b"2".to_vec());
    applied(&process.primary, &id, Some(record.version), &draft).await;
    process.clock.advance(AGE / 2);
    slow.open();
    assert!(looking.await.expect("no panic").is_ok());

    process.clock.advance(AGE / 2);
    process.warm("keeps the time").await;

    assert_eq!(process.charge("k", 1).await, Ok(2));
}
