//! How many writes stand after one commit.

use super::*;

/// All of these are applied, with so many commits.
async fn are_all_applied(held: &Held, writes: &[Job], expected: usize) {
    let (answers, commits) = held.all(writes).await;
    assert!(are_applied(&answers), "{answers:?}");
    assert_eq!(commits, expected);
}

#[tokio::test]
async fn writes_that_stand_in_line_stand_after_one_commit() {
    let held = Held::new().await;
    let claims = some_claims(6);
    are_all_applied(&held, &claims, 1).await;

    let completions = completions(&claims, |_| vec![1]);
    are_all_applied(&held, &completions, 1).await;

    for (number, (_, completion)) in completions.iter().enumerate() {
        let stands = held.store.load(&id(number)).await.expect("it is read");
        let stands = stands.record.expect("it was written");
        assert_eq!(
            (stands.version, &stands.outcome),
            (completion.version, &completion.outcome)
        );
    }
}

#[tokio::test]
async fn claims_and_completions_that_stand_in_line_stand_after_a_commit_each() {
    let held = Held::new().await;
    let claims = held.claimed(2).await;

    let mixed = [completions(&claims, |_| vec![1]), some_claims(2)].concat();
    are_all_applied(&held, &mixed, 2).await;
}

#[tokio::test]
async fn more_than_fit_into_one_message_stand_after_several() {
    let held = Held::new().await;
    let claims = some_claims(2 * MOST_TOGETHER + 1);
    are_all_applied(&held, &claims, 3).await;
}

/// The file is locked while they are written.
#[tokio::test]
async fn outcomes_that_are_large_stand_alone() {
    let held = Held::new().await;
    let claims = held.claimed(4).await;
    let completions = completions(&claims, |number| vec![7; [1, 1, MOST_BYTES, 1][number]]);
    are_all_applied(&held, &completions, 2).await;
}

/// If the connection is closed, such a database goes with it.
#[tokio::test]
async fn databases_that_are_no_files_have_no_line() {
    let memory = SqliteStore::in_memory().await;
    assert!(memory.expect("memory").inner.queue.is_none());
    let urls = [
        "sqlite::memory:",
        "sqlite:%3Amemory%3A",
        "sqlite:file::memory:",
        "sqlite:line?mode=memory",
        "sqlite:line?vfs=memdb",
        "sqlite:file:",
    ];
    for url in urls {
        let store = SqliteStore::builder().connect_url(url).await;
        let store = store.unwrap_or_else(|error| panic!("{url}: {error:?}"));
        assert!(store.inner.queue.is_none(), "{url}");
    }
    let store = SqliteStore::open(":memory:").await.expect("memory");
    assert!(store.inner.queue.is_none());
    assert!(Held::new().await.store.inner.queue.is_some());
}
