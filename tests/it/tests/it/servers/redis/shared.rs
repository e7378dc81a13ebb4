//! Duplicates of one call in one process.

use std::sync::{Arc, atomic::AtomicU32};

use idempotent_runtime::{Idempotency, OnCrash};
use tokio::task::JoinSet;

use super::private::{Private, charge};

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn duplicates_that_come_together_share_the_looks_at_the_outcome() {
    let server = Private::new().await;
    let idem = Idempotency::new(server.store().await);
    let runs = Arc::new(AtomicU32::new(0));
    let first = charge(&idem, OnCrash::Rerun, &runs).await;
    let before = server.ran("hmget").await;

    let mut duplicates = JoinSet::new();
    for _ in 0..64 {
        let (idem, runs) = (idem.clone(), Arc::clone(&runs));
        duplicates.spawn(async move { charge(&idem, OnCrash::Rerun, &runs).await });
    }
    let answers = duplicates.join_all().await;

    assert!(first.is_ok_and(|value| value == 1));
    assert!(
        answers
            .into_iter()
            .all(|it| it.is_ok_and(|value| value == 1))
    );
    let looks = server.ran("hmget").await - before;
    assert!((1..=8).contains(&looks), "{looks} looks of 64 callers");
}
