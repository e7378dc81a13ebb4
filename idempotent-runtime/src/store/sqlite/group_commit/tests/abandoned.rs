//! Callers that go away before their write is answered.

use super::*;

/// No other call would wake it.
#[tokio::test]
async fn who_waits_for_a_record_is_woken_where_its_writer_went_away() {
    let held = Held::patient().await;
    let completions = completions(&held.claimed(2).await, |_| vec![1]);
    let mut side = held.side().await;
    let connection = held.connection().await;
    let [goes_away, stays] = held.queue_these(&completions).await;
    side.execute("BEGIN IMMEDIATE").await.expect("it is free");
    drop(connection);
    held.is_empty().await;
    give_up(goes_away).await;
    let waiters = Arc::clone(&held.store.inner.waiters);
    let waiter = waiters.register(&id(0));
    side.execute("COMMIT").await.expect("it has the lock");

    assert!(are_applied(&[stays.await.expect("no panic")]));
    let woken = timeout(PATIENCE / 3, waiter).await;
    woken.expect("it is woken");
}

#[tokio::test]
async fn what_its_caller_gave_up_in_line_is_not_written() {
    let held = Held::new().await;
    let connection = held.connection().await;
    let [given_up, waits] = held.queue_these(&some_claims(2)).await;
    give_up(given_up).await;

    drop(connection);

    assert!(are_applied(&[waits.await.expect("no panic")]));
    let stands = held.store.load(&id(0)).await.expect("it is read");
    assert_eq!(stands.record, None);
}

#[tokio::test]
async fn what_its_caller_gave_up_is_not_written_when_others_have_failed() {
    let held = Held::patient().await;
    let claims = held.claimed(3).await;
    let mut side = held.side().await;
    refuse_two(&mut side).await;
    let connection = held.connection().await;
    let completions = completions(&claims, |number| vec![u8::from(number == 0) + 1]);
    let [fails, stays, given_up] = held.queue_these(&completions).await;
    side.execute("BEGIN IMMEDIATE").await.expect("it is free");

    drop(connection);
    held.is_empty().await;
    give_up(given_up).await;
    side.execute("COMMIT").await.expect("it has the lock");

    assert!(are_applied(&[stays.await.expect("no panic")]));
    assert!(!are_applied(&[fails.await.expect("no panic")]));
    // A caller that has the connection after those has it after all of them.
    drop(held.connection().await);
    let stands = held.store.load(&id(2)).await.expect("it is read");
    let stands = stands.record.expect("it was claimed");
    assert_eq!(stands.version, claims[2].1.version);
}

/// Others wait for what the one in front of them began.
#[tokio::test]
async fn who_goes_away_while_it_writes_for_others_takes_nothing_along() {
    let held = Held::patient().await;
    let mut side = held.side().await;
    let commits = Arc::new(AtomicUsize::new(0));
    let mut connection = held.connection().await;
    count_commits(&mut connection, &commits).await;
    let [goes_away, waits] = held.queue_these(&some_claims(2)).await;
    side.execute("BEGIN IMMEDIATE").await.expect("it is free");

    drop(connection);
    held.is_empty().await;
    give_up(goes_away).await;
    side.execute("COMMIT").await.expect("it has the lock");

    assert!(are_applied(&[waits.await.expect("no panic")]));
    let commits = commits.load(Ordering::SeqCst);
    assert_eq!(commits, 1, "the one that waited did not write alone");
    let stands = held.store.load(&id(0)).await.expect("it is read");
    assert!(stands.record.is_some());
}
