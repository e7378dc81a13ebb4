//! A broker that delivers more than once.

use std::{fmt::Debug, future::Future, pin::pin};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};

use crate::consumer::Disposition;

/// How many deliveries overlap at most.
const AT_ONCE: usize = 4;

/// How often a message is delivered again that is not settled.
const MOST: u32 = 100;

/// Delivers each message one to `copies` times, shuffled and overlapping, and again while its
/// disposition says so. Then it delivers each once to a set-up of its own, in order, and checks
/// that both leave the same state. It gives that state.
///
/// * `setup` makes what a consumer works on: a handle, and the effects beside it.
/// * `handler` processes the n-th delivery of a message, 1 the first time.
/// * `state` tells what the effects are.
///
/// The same `seed` makes the same plan. The deliveries run in the caller's task. A message that is
/// put among the dead letters is settled.
///
/// # Panics
///
/// When the two states differ, when a message is not settled after 100 deliveries, or when `copies`
/// is zero. The message names the seed.
///
/// # Examples
///
/// ```
/// use std::sync::{Arc, atomic::{AtomicU32, Ordering}};
/// use idempotent_runtime::{BoxError, Idempotency, testing::deliver};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let sum = deliver(
///     &[10, 20, 30],
///     3,
///     42,
///     async || {
///         let consumer = Idempotency::memory().consumer("billing").broker_retention("3d").build();
///         (consumer.unwrap(), Arc::new(AtomicU32::new(0)))
///     },
///     async |(consumer, sum), cents, delivery| {
///         let message = consumer.message(cents).without_payload().delivery(delivery);
///         let added = async |_| Ok::<_, BoxError>(sum.fetch_add(*cents, Ordering::SeqCst));
///         message.run(added).await
///     },
///     async |(_, sum)| sum.load(Ordering::SeqCst),
/// )
/// .await;
/// assert_eq!(sum, 60);
/// # }
/// ```
pub async fn deliver<M, W, S>(
    messages: &[M],
    copies: u32,
    seed: u64,
    setup: impl AsyncFn() -> W,
    handler: impl AsyncFn(&W, &M, u32) -> Disposition,
    state: impl AsyncFn(&W) -> S,
) -> S
where
    S: PartialEq + Debug,
{
    assert!(copies > 0, "each message is delivered at least once");
    let once = setup().await;
    for message in messages {
        settle(&once, message, 1, &handler, seed).await;
    }
    let world = setup().await;
    let mut plan = StdRng::seed_from_u64(seed);
    let mut deliveries: Vec<(&M, u32)> = Vec::new();
    for message in messages {
        let copies = plan.random_range(1..=copies);
        deliveries.extend((1..=copies).map(|delivery| (message, delivery)));
    }
    deliveries.shuffle(&mut plan);
    while !deliveries.is_empty() {
        let together = plan.random_range(1..=AT_ONCE).min(deliveries.len());
        let some = deliveries.drain(..together);
        let settled = some.map(|(message, first)| settle(&world, message, first, &handler, seed));
        all(settled).await;
    }
    let (many, single) = (state(&world).await, state(&once).await);
    assert_eq!(
        many, single,
        "several deliveries leave another state than single ones (seed {seed})"
    );
    many
}

/// Delivers a message until it is settled.
async fn settle<M, W>(
    world: &W,
    message: &M,
    first: u32,
    handler: &impl AsyncFn(&W, &M, u32) -> Disposition,
    seed: u64,
) {
    for delivery in first..first + MOST {
        match handler(world, message, delivery).await {
            Disposition::Ack { .. } | Disposition::DeadLetter { .. } => return,
            Disposition::Retry { .. } => tokio::task::yield_now().await,
        }
    }
    panic!("a message is not settled after {MOST} deliveries (seed {seed})");
}

/// Awaits all of them, in this task.
async fn all<F: Future<Output = ()>>(work: impl Iterator<Item = F>) {
    let mut running: Vec<_> = work.map(Box::pin).collect();
    let done = std::future::poll_fn(|cx| {
        running.retain_mut(|work| work.as_mut().poll(cx).is_pending());
        match running.is_empty() {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    });
    pin!(done).await;
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test]
    #[should_panic(expected = "seed 7")]
    async fn a_handler_that_forgets_is_found() {
        let handler = async |sum: &AtomicU32, cents: &u32, _: u32| {
            sum.fetch_add(*cents, Ordering::SeqCst);
            Disposition::Ack { replayed: false }
        };
        let state = async |sum: &AtomicU32| sum.load(Ordering::SeqCst);
        deliver(
            &[1, 2, 3, 4],
            3,
            7,
            async || AtomicU32::new(0),
            handler,
            state,
        )
        .await;
    }

    #[tokio::test]
    async fn a_message_that_comes_again_is_delivered_until_it_is_settled() {
        let handler = async |seen: &AtomicU32, _: &u32, delivery: u32| {
            seen.fetch_max(delivery, Ordering::SeqCst);
            match delivery {
                1..5 => Disposition::Retry {
                    after: std::time::Duration::ZERO,
                    error: None,
                },
                _ => Disposition::Ack { replayed: false },
            }
        };
        let state = async |seen: &AtomicU32| seen.load(Ordering::SeqCst);
        let seen = deliver(&[1], 1, 1, async || AtomicU32::new(0), handler, state).await;
        assert_eq!(seen, 5);
    }
}
