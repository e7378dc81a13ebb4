//! Who waits is woken, and leaves nothing behind.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_waiter_wakes_when_the_version_changes() {
    let store = Arc::new(MemoryStore::new());
    let claim = claim(OnCrash::Rerun);
    let begun = applied(&store, &ONE, None, &first(&claim, Version::random())).await;
    let waiting = tokio::spawn({
        let store = Arc::clone(&store);
        async move {
            store
                .wait(&ONE, begun.version, Duration::from_secs(3600))
                .await
        }
    });
    while store.shard(&ONE).waiters.count() == 0 {
        tokio::task::yield_now().await;
    }
    let before = tokio::time::Instant::now();

    applied(&store, &ONE, Some(begun.version), &done(&claim)).await;
    waiting
        .await
        .expect("no panic")
        .expect("memory does not fail");

    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_wakes_when_the_record_is_purged() {
    let hands = Hands::at(100);
    let store = Arc::new(MemoryStore::with_clock(hands.clone()));
    let ended = finish(&store, &ONE).await;
    hands.turn(TTL * 2);
    let mut waiter = store.waiter(&ONE, ended.version).expect("it stands");

    store
        .purge(1, Duration::ZERO)
        .await
        .expect("memory does not fail");

    let before = tokio::time::Instant::now();
    (&mut waiter).await;
    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_version_that_does_not_stand_ends_at_once() {
    let store = MemoryStore::new();
    let before = tokio::time::Instant::now();

    store
        .wait(&ONE, Version::random(), Duration::from_secs(3600))
        .await
        .expect("memory does not fail");
    finish(&store, &ONE).await;
    store
        .wait(&ONE, Version::random(), Duration::from_secs(3600))
        .await
        .expect("memory does not fail");

    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_at_its_bound_and_leaves_nothing_behind() {
    let store = MemoryStore::new();
    let begun = applied(
        &store,
        &ONE,
        None,
        &first(&claim(OnCrash::Rerun), Version::random()),
    )
    .await;
    let before = tokio::time::Instant::now();

    store
        .wait(&ONE, begun.version, Duration::from_secs(7))
        .await
        .expect("memory does not fail");

    assert!(
        before.elapsed() >= Duration::from_secs(7) && before.elapsed() < Duration::from_secs(8)
    );
    assert_eq!(store.shard(&ONE).waiters.count(), 0);
}

#[tokio::test]
async fn c05_a_dropped_wait_unregisters() {
    let store = MemoryStore::new();
    let begun = applied(
        &store,
        &ONE,
        None,
        &first(&claim(OnCrash::Rerun), Version::random()),
    )
    .await;
    let mut wait = store.wait(&ONE, begun.version, Duration::from_secs(7));
    assert!(
        std::future::poll_fn(|context| std::task::Poll::Ready(wait.as_mut().poll(context)))
            .await
            .is_pending()
    );
    assert_eq!(store.shard(&ONE).waiters.count(), 1);

    drop(wait);

    assert_eq!(store.shard(&ONE).waiters.count(), 0);
}
