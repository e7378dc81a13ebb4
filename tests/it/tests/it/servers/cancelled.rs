//! A `begin()` that is cancelled on the pool of an application leaves its connection in the
//! transaction (sqlx 0.9.0, issue 4385).

use std::{future::poll_fn, task::Poll};

use idempotent_runtime::{Error, Idempotency};
use sqlx::{Database, Pool, pool::PoolOptions};
use tokio::task::yield_now;

/// How many are begun, and left after a poll or two.
const BEGINS: u32 = 400;

/// At least so many of them are under way then. On a busy machine most of them are through by then,
/// and more are begun.
const CANCELLED: u32 = BEGINS / 4;

/// A pool of one connection, so that the next call gets that one. It does not ping before: the ping
/// would be cancelled instead.
pub(super) async fn pool<D: Database>(url: &str) -> Pool<D> {
    let options = PoolOptions::new().max_connections(1);
    let options = options.test_before_acquire(false);
    options.connect(url).await.expect("a pool")
}

/// Cancels a `begin()` before each of many writes. Asserts that some of the plain ones through the
/// pool were acknowledged and did not stand, and that all of ours stand for the other handle.
/// `writes` says whether a plain one stands.
pub(super) async fn loses_nothing<D: Database>(
    pool: &Pool<D>,
    [ours, other]: [&Idempotency; 2],
    mut writes: impl AsyncFnMut(u32) -> bool,
) {
    let (mut begun, mut cancelled, mut in_the_air) = (0, 0, 0);
    while begun < BEGINS || cancelled < CANCELLED {
        assert!(begun < 50 * BEGINS, "only {cancelled} were under way");
        cancelled += u32::from(cancel(pool, 1 + begun % 2).await);
        in_the_air += u32::from(!writes(begun).await);
        assert_eq!(call(ours, begun, begun).await.ok(), Some(begun));
        begun += 1;
    }
    assert!(in_the_air > 0, "no transaction was left open");
    for number in 0..begun {
        let again = call(other, number, u32::MAX).await;
        assert_eq!(again.ok(), Some(number), "its outcome is lost");
    }
}

async fn call(idem: &Idempotency, key: u32, value: u32) -> Result<u32, Error> {
    let call = idem.call("charge").key(&key);
    call.run(|_| async move { Ok(value) }).await
}

/// Begins a transaction, and leaves it after so many polls. Returns whether it was under way.
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
