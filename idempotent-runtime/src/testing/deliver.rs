//! A broker that delivers more than once.

use std::{cell::Cell, fmt::Debug, future::Future, pin::pin, task::Poll, time::Duration};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};
use tokio::sync::Notify;

use crate::{
    clock::{SystemTimer, Timer},
    consumer::Disposition,
    race::race,
    testing::ManualClock,
};

/// How many deliveries overlap at most.
const AT_ONCE: usize = 4;

/// How often a message is delivered again that is not settled.
const MOST: u32 = 100;

/// Delivers each message one to `copies` times, shuffled and overlapping, and again while its
/// disposition says so. Then it delivers each once to a set-up of its own, in order, and checks
/// that both leave the same state. It returns that state.
///
/// A delivery waits for its handler, however long that takes. A message that is to be retried comes
/// again `after` the time that its disposition names, by tokio's timer. It comes earlier once no
/// copy of it is with the handler any more, because it may have been put back for a copy that was.
/// Where the handles go by a [`ManualClock`], [`deliver_on`] moves that instead, and no time is
/// waited for.
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
    let plan = Plan::new(messages, copies, seed, None);
    plan.carry_out(setup, handler, state).await
}

/// Does the same as [`deliver`], and moves `clock` on when all deliveries that are under way wait
/// for their message to come again: up to the next moment for which anything sleeps by that clock.
///
/// Let the handles and the memory store of `setup` go by the same clock. Then the lease of a call
/// that vanished ends, too, before its message comes again. A handler that sleeps by the clock is
/// waited for, and does not see it move.
///
/// # Panics
///
/// As [`deliver`].
pub async fn deliver_on<M, W, S>(
    clock: &ManualClock,
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
    let plan = Plan::new(messages, copies, seed, Some(clock));
    plan.carry_out(setup, handler, state).await
}

/// The deliveries that are to be made, and the time that they go by.
struct Plan<'a, M> {
    messages: &'a [M],
    copies: u32,
    seed: u64,
    clock: Option<&'a ManualClock>,
    /// How many deliveries wait for their message to come again.
    waiting: Cell<usize>,
    /// Whether one of them may not wait any more, without having gone on.
    woken: Cell<bool>,
}

/// A message, and its copies that are with the handler.
struct Message<'a, M> {
    content: &'a M,
    running: Cell<u32>,
    /// Notified when none of them is any more.
    at_rest: Notify,
}

impl<'a, M> Message<'a, M> {
    fn new(content: &'a M) -> Self {
        Self {
            content,
            running: Cell::new(0),
            at_rest: Notify::new(),
        }
    }
}

impl<'a, M> Plan<'a, M> {
    fn new(messages: &'a [M], copies: u32, seed: u64, clock: Option<&'a ManualClock>) -> Self {
        assert!(copies > 0, "each message is delivered at least once");
        Self {
            messages,
            copies,
            seed,
            clock,
            waiting: Cell::new(0),
            woken: Cell::new(false),
        }
    }

    async fn carry_out<W, S>(
        &self,
        setup: impl AsyncFn() -> W,
        handler: impl AsyncFn(&W, &M, u32) -> Disposition,
        state: impl AsyncFn(&W) -> S,
    ) -> S
    where
        S: PartialEq + Debug,
    {
        let messages: Vec<_> = self.messages.iter().map(Message::new).collect();
        let once = setup().await;
        for message in &messages {
            let settled = self.settle(&once, message, 1, &handler);
            self.all(std::iter::once(settled)).await;
        }
        let world = setup().await;
        let mut random = StdRng::seed_from_u64(self.seed);
        let mut deliveries: Vec<(&Message<'_, M>, u32)> = Vec::new();
        for message in &messages {
            let copies = random.random_range(1..=self.copies);
            deliveries.extend((1..=copies).map(|delivery| (message, delivery)));
        }
        deliveries.shuffle(&mut random);
        while !deliveries.is_empty() {
            let together = random.random_range(1..=AT_ONCE).min(deliveries.len());
            let some = deliveries.drain(..together);
            let settled =
                some.map(|(message, first)| self.settle(&world, message, first, &handler));
            self.all(settled).await;
        }
        let (many, single) = (state(&world).await, state(&once).await);
        let seed = self.seed;
        assert_eq!(
            many, single,
            "several deliveries leave another state than single ones (seed {seed})"
        );
        many
    }

    /// Delivers a message until it is settled.
    async fn settle<W>(
        &self,
        world: &W,
        message: &Message<'_, M>,
        first: u32,
        handler: &impl AsyncFn(&W, &M, u32) -> Disposition,
    ) {
        for delivery in first..first + MOST {
            message.running.set(message.running.get() + 1);
            let disposition = handler(world, message.content, delivery).await;
            message.running.set(message.running.get() - 1);
            if message.running.get() == 0 {
                message.at_rest.notify_waiters();
                self.woken.set(true);
            }
            match disposition {
                Disposition::Ack { .. } | Disposition::DeadLetter { .. } => return,
                Disposition::Retry { after, .. } => self.comes_again(message, after).await,
            }
        }
        let seed = self.seed;
        panic!("a message is not settled after {MOST} deliveries (seed {seed})");
    }

    /// Waits as a broker does before it delivers a message again.
    async fn comes_again(&self, message: &Message<'_, M>, after: Duration) {
        let timer: &dyn Timer = match self.clock {
            Some(clock) => clock,
            None => &SystemTimer,
        };
        self.waiting.set(self.waiting.get() + 1);
        race(message.at_rest.notified(), timer.sleep(after)).await;
        self.waiting.set(self.waiting.get() - 1);
        // The one that was put back first is not always the first to come again.
        tokio::task::yield_now().await;
    }

    /// Awaits all of them, in this task.
    async fn all<F: Future<Output = ()>>(&self, work: impl Iterator<Item = F>) {
        let mut running: Vec<_> = work.map(Box::pin).collect();
        let done = std::future::poll_fn(|cx| {
            running.retain_mut(|work| work.as_mut().poll(cx).is_pending());
            if running.is_empty() {
                return Poll::Ready(());
            }
            if self.woken.take() {
                cx.waker().wake_by_ref();
            } else if let Some(clock) = self.clock
                && self.waiting.get() == running.len()
                && let Some(next) = clock.until_next()
            {
                clock.advance(next);
            }
            Poll::Pending
        });
        pin!(done).await;
    }
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
                    after: Duration::ZERO,
                    error: None,
                },
                _ => Disposition::Ack { replayed: false },
            }
        };
        let state = async |seen: &AtomicU32| seen.load(Ordering::SeqCst);
        let seen = deliver(&[1], 1, 1, async || AtomicU32::new(0), handler, state).await;
        assert_eq!(seen, 5);
    }

    const SECOND: Duration = Duration::from_secs(1);

    fn retry(after: Duration) -> Disposition {
        Disposition::Retry { after, error: None }
    }

    #[tokio::test]
    async fn mend_26_a_copy_comes_again_when_the_one_that_runs_has_ended() {
        let setup = async || (Cell::new(false), Cell::new(0));
        // It takes more turns than a message is delivered.
        let handler = async |(running, runs): &(Cell<bool>, Cell<u32>), _: &u32, _: u32| {
            if runs.get() > 0 {
                return Disposition::Ack { replayed: true };
            }
            if running.replace(true) {
                return retry(Duration::MAX);
            }
            for _ in 0..10 * MOST {
                tokio::task::yield_now().await;
            }
            running.set(false);
            runs.set(runs.get() + 1);
            Disposition::Ack { replayed: false }
        };
        for seed in 0..8 {
            let runs = deliver(&[1], 4, seed, setup, handler, async |(_, runs)| runs.get());
            assert_eq!(runs.await, 1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn mend_26_a_message_comes_again_after_the_time_that_was_said() {
        let began = tokio::time::Instant::now();
        let setup = async || Cell::new(None);
        let handler = async |first: &Cell<Option<Duration>>, _: &u32, _: u32| {
            let now = began.elapsed();
            match first.get() {
                Some(first) if now >= first + 30 * SECOND => Disposition::Ack { replayed: false },
                Some(_) => panic!("it came too early"),
                None => {
                    first.set(Some(now));
                    retry(30 * SECOND)
                }
            }
        };
        let state = async |first: &Cell<Option<Duration>>| first.get().is_some();
        assert!(deliver(&[1], 1, 1, setup, handler, state).await);
    }

    #[tokio::test]
    async fn mend_26_the_given_clock_is_moved_to_where_a_message_comes_again() {
        let clock = ManualClock::new();
        let now = || Timer::now(&clock);
        let setup = async || Cell::new(None);
        let handler = async |first: &Cell<Option<Duration>>, _: &u32, _: u32| {
            tokio::task::yield_now().await;
            match first.get() {
                Some(first) if now() >= first + 30 * SECOND => Disposition::Ack { replayed: false },
                Some(_) => panic!("it came too early"),
                None => {
                    first.set(Some(now()));
                    retry(30 * SECOND)
                }
            }
        };
        let state = async |first: &Cell<Option<Duration>>| first.get().is_some();
        assert!(deliver_on(&clock, &[1], 1, 1, setup, handler, state).await);
        assert_eq!(now(), 60 * SECOND);
    }
}
