//! A fast tier that fails, hangs or forgets.

use super::*;

#[tokio::test]
async fn a_tier_that_fails_is_left_alone_for_a_while() {
    for how in [How::Fails, How::Panics] {
        let process = Process::new();
        process.warm("k").await;
        process.fast.now(how);
        let asked = process.fast.asked();

        for _ in 0..2 {
            let trips = process.trips("k").await;
            assert_eq!(trips, 1, "the primary store answers at once");
        }
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
    let before = process.primary.round_trips();
    let asked = process.fast.asked();
    let calling = Arc::clone(&process);
    let call = tokio::spawn(async move { calling.charge("k", 1).await });
    while process.fast.asked() == asked {
        tokio::task::yield_now().await;
    }
    assert_eq!(process.primary.round_trips(), before);

    process.clock.advance(Duration::from_millis(50));

    assert_eq!(call.await.expect("no panic"), Ok(1));
    assert_eq!(process.primary.round_trips(), before + 1);
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
    let other = Process::beside(&process.clock, process.primary.clone());
    assert_eq!(other.trips("k").await, 1, "another process has no copy");
    assert_eq!(other.trips("k").await, 0);
    let (id, _) = only(&process.primary).await;
    assert!(process.fast.forget(&id).await.is_ok());
    assert_eq!(process.trips("k").await, 1);
}

#[tokio::test]
async fn a_copy_of_what_was_deleted_goes_with_the_next_claim() {
    let process = Process::new();
    process.warm("k").await;
    let (id, record) = only(&process.primary).await;
    // Another process finds what a restored database has forgotten; this one asks because its time
    // is old.
    let restored = Process::new();
    let tiered = TieredStore::builder(restored.primary.clone(), process.fast.clone());
    let tiered = tiered.timer(process.clock.clone()).build();
    let draft = claim();

    applied(&tiered, &id, None, &draft).await;

    assert_eq!(shown(&tiered, &id).await.version, draft.version);
    assert_ne!(record.version, draft.version);
}
