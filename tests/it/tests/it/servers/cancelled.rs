//! A `begin()` that is cancelled on the pool of an application leaves its connection in the transaction (sqlx 0.9.0, issue 4385).

use std::{future::poll_fn, task::Poll};

use sqlx::{Database, Pool, pool::PoolOptions};
use tokio::task::yield_now;

/// How many are cancelled.
pub(super) const BEGINS: u32 = 400;

/// A pool of one connection, so that whoever comes next gets that one. It does not ping before: that is what would be cancelled.
pub(super) async fn pool<D: Database>(url: &str) -> Pool<D> {
    let options = PoolOptions::new()
        .max_connections(1)
        .test_before_acquire(false);
    options.connect(url).await.expect("a pool")
}

/// Cancels a `begin()` before each of these pieces of work, and asserts that many were under way.
pub(super) async fn before_each<D: Database>(pool: &Pool<D>, mut work: impl AsyncFnMut(u32)) {
    let mut cancelled = 0;
    for number in 0..BEGINS {
        cancelled += u32::from(cancel(pool, 1 + number % 2).await);
        work(number).await;
    }
    assert!(cancelled > BEGINS / 4, "{cancelled} were under way");
}

/// Begins a transaction, and leaves it after so many polls; whether it was under way.
async fn cancel<D: Database>(pool: &Pool<D>, polls: u32) -> bool {
    let mut begin = Box::pin(pool.begin());
    for _ in 0..polls {
        let poll = poll_fn(|context| Poll::Ready(begin.as_mut().poll(context).is_ready()));
        if poll.await {
            return false;
        }
        yield_now().await;
    }
    true
}
