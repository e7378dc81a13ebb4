//! How many copies are held, and how long.

use super::*;

#[tokio::test]
async fn no_more_copies_are_held_than_allowed() {
    let clock = ManualClock::new();
    let primary = FaultyStore::new(MemoryStore::with_clock(clock.clone()));
    let cache = OutcomeCache::new(2).timer(clock.clone()).largest(10);
    let store = TieredStore::builder(primary.clone(), cache).timer(clock.clone());
    let idem = over(store.build(), &clock);
    let charge = async |key: &str, text: &str| {
        let before = primary.round_trips();
        let (call, text) = (idem.call("tiered.say").key(key), text.to_owned());
        let said = call.run(|_| async move { Ok::<_, Error>(text) }).await;
        said.expect("an answer");
        primary.round_trips() - before
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
    let primary = MemoryStore::with_clock(clock.clone());
    let id = RecordId::from_bytes([1; 32]);
    applied(&primary, &id, None, &claim()).await;
    let record = shown(&primary, &id).await;
    assert!(cache.put(&id, &record, SECOND).await.is_ok());
    clock.advance(SECOND - Duration::from_nanos(1));
    assert_eq!(cache.find(&id).await, Ok(Some(record)));
    clock.advance(Duration::from_nanos(1));
    assert_eq!(cache.find(&id).await, Ok(None));
}
