//! A waiting call is woken, and leaves nothing behind.

use super::*;

/// Waits for a change of that version, for so many seconds at the most.
async fn waited(store: &MemoryStore, version: Version, seconds: u64) {
    let waited = store.wait(&ONE, version, Duration::from_secs(seconds));
    waited.await.expect("memory does not fail");
}

#[tokio::test(start_paused = true)]
async fn a_waiter_wakes_when_the_version_changes() {
    let store = Arc::new(MemoryStore::new());
    let claim = claim(OnCrash::Rerun);
    let begun = applied(&store, &ONE, None, &first(&claim, Version::random())).await;
    let waiting = tokio::spawn({
        let store = Arc::clone(&store);
        async move { waited(&store, begun.version, 3600).await }
    });
    while store.shard(&ONE).waiters.count() == 0 {
        tokio::task::yield_now().await;
    }
    let before = tokio::time::Instant::now();

    applied(&store, &ONE, Some(begun.version), &done(&claim)).await;
    waiting.await.expect("no panic");

    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_wakes_when_the_record_is_purged() {
    let (hands, store) = by_hand();
    let ended = finish(&store, &ONE).await;
    hands.turn(TTL * 2);
    let mut waiter = store.waiter(&ONE, ended.version).expect("it stands");

    purged(&store, 1).await;

    let before = tokio::time::Instant::now();
    (&mut waiter).await;
    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_version_that_does_not_stand_ends_at_once() {
    let store = MemoryStore::new();
    let before = tokio::time::Instant::now();

    waited(&store, Version::random(), 3600).await;
    finish(&store, &ONE).await;
    waited(&store, Version::random(), 3600).await;

    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_at_its_bound_and_leaves_nothing_behind() {
    let store = MemoryStore::new();
    let begun = begin(&store, &ONE).await;
    let before = tokio::time::Instant::now();

    waited(&store, begun.version, 7).await;

    assert_eq!(before.elapsed().as_secs(), 7);
    assert_eq!(store.shard(&ONE).waiters.count(), 0);
}

#[tokio::test]
async fn c05_a_dropped_wait_unregisters() {
    let store = MemoryStore::new();
    let begun = begin(&store, &ONE).await;
    let mut wait = store.wait(&ONE, begun.version, Duration::from_secs(7));
    let polled =
        std::future::poll_fn(|context| std::task::Poll::Ready(wait.as_mut().poll(context)));
    assert!(polled.await.is_pending());
    assert_eq!(store.shard(&ONE).waiters.count(), 1);

    drop(wait);

    assert_eq!(store.shard(&ONE).waiters.count(), 0);
}
