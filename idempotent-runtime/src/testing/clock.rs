//! Time that moves only when a test says so.

use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::sync::watch;

use crate::{
    clock::{Clock, Timer},
    record::Time,
    value::lock,
};

/// A clock and a timer that stand still until [`advance`](ManualClock::advance) is called.
///
/// As a [`Clock`] it is the time of a memory store. As a [`Timer`] it is the time that leases,
/// heartbeats and waits of a handle go by. Clones share one time. It begins on the first of January
/// 2026.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use idempotent_runtime::{clock::Clock, testing::ManualClock};
///
/// let clock = ManualClock::new();
/// let before = clock.now();
/// clock.advance(Duration::from_secs(30));
/// assert_eq!(clock.now().since(before), Duration::from_secs(30));
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    hands: Mutex<Hands>,
    /// Tells that the number of sleepers has changed, but not the number: two changes may be told
    /// in another order than made.
    changes: watch::Sender<()>,
}

#[derive(Debug)]
struct Hands {
    elapsed: Duration,
    wall: Time,
    sleepers: BTreeMap<u64, Sleeper>,
    next: u64,
}

#[derive(Debug)]
struct Sleeper {
    until: Duration,
    waker: Waker,
}

const BEGIN: Time = Time::from_micros(1_767_225_600_000_000);

impl ManualClock {
    /// Makes a clock that stands at its beginning.
    #[must_use]
    pub fn new() -> Self {
        let hands = Hands {
            elapsed: Duration::ZERO,
            wall: BEGIN,
            sleepers: BTreeMap::new(),
            next: 0,
        };
        Self {
            inner: Arc::new(Inner {
                hands: Mutex::new(hands),
                changes: watch::Sender::new(()),
            }),
        }
    }

    /// Moves the time on, and wakes all that sleep until then or earlier.
    pub fn advance(&self, by: Duration) {
        let due: Vec<Waker> = {
            let mut hands = lock(&self.inner.hands);
            hands.elapsed = hands.elapsed.saturating_add(by);
            hands.wall = hands.wall.plus(by);
            let now = hands.elapsed;
            hands
                .sleepers
                .values()
                .filter(|sleeper| sleeper.until <= now)
                .map(|sleeper| sleeper.waker.clone())
                .collect()
        };
        for waker in due {
            waker.wake();
        }
    }

    /// Sets the time of day, forwards or back, without moving the timer, as a step of a server's
    /// clock does.
    pub fn step(&self, to: Time) {
        lock(&self.inner.hands).wall = to;
    }

    /// How many sleeps are under way.
    #[must_use]
    pub fn sleepers(&self) -> usize {
        lock(&self.inner.hands).sleepers.len()
    }

    /// How long it is until the next sleep ends: nothing while one that has ended is not taken up
    /// yet.
    #[must_use]
    pub fn until_next(&self) -> Option<Duration> {
        let hands = lock(&self.inner.hands);
        let ends = hands.sleepers.values().map(|sleeper| sleeper.until).min();
        ends.map(|end| end.saturating_sub(hands.elapsed))
    }

    /// Resolves when at least `n` sleeps are under way: then everything that was to be set up has
    /// come to rest.
    pub async fn await_sleepers(&self, n: usize) {
        // No change is told while the hands are locked. So counting under the lock of the channel
        // waits for no task that waits for that lock. The sender lives in `self`, so the channel
        // cannot close.
        let _ = self
            .inner
            .changes
            .subscribe()
            .wait_for(|()| self.sleepers() >= n)
            .await;
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Time {
        lock(&self.inner.hands).wall
    }
}

impl Timer for ManualClock {
    fn now(&self) -> Duration {
        lock(&self.inner.hands).elapsed
    }

    fn is_manual(&self) -> bool {
        true
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let until = lock(&self.inner.hands).elapsed.saturating_add(duration);
        self.sleep_until(until)
    }

    fn sleep_until(&self, until: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(Sleep {
            clock: self.clone(),
            until,
            place: None,
        })
    }
}

struct Sleep {
    clock: ManualClock,
    until: Duration,
    place: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let clock = self.clock.clone();
        let mut hands = lock(&clock.inner.hands);
        if hands.elapsed >= self.until {
            return Poll::Ready(());
        }
        let place = *self.place.get_or_insert_with(|| {
            hands.next += 1;
            hands.next
        });
        hands.sleepers.insert(
            place,
            Sleeper {
                until: self.until,
                waker: context.waker().clone(),
            },
        );
        drop(hands);
        clock.inner.changes.send_replace(());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            lock(&self.clock.inner.hands).sleepers.remove(&place);
            self.clock.inner.changes.send_replace(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        hint,
        pin::pin,
        sync::atomic::{AtomicUsize, Ordering},
        thread,
    };

    use super::*;

    #[tokio::test]
    async fn a_sleep_ends_when_its_time_has_come_and_not_before() {
        let clock = ManualClock::new();
        let sleep = tokio::spawn(clock.sleep(Duration::from_secs(10)));
        clock.await_sleepers(1).await;

        clock.advance(Duration::from_secs(9));
        tokio::task::yield_now().await;
        assert!(!sleep.is_finished());
        assert_eq!(clock.until_next(), Some(Duration::from_secs(1)));

        clock.advance(Duration::from_secs(1));
        assert_eq!(clock.until_next(), Some(Duration::ZERO));
        sleep.await.expect("the sleep ends");
        assert_eq!((clock.sleepers(), clock.until_next()), (0, None));
    }

    #[tokio::test]
    async fn a_dropped_sleep_is_no_sleeper() {
        let clock = ManualClock::new();
        let sleep = tokio::spawn(clock.sleep(Duration::from_secs(10)));
        clock.await_sleepers(1).await;
        sleep.abort();
        assert!(sleep.await.is_err());
        assert_eq!(clock.sleepers(), 0);
    }

    /// In every round two sleeps begin at the same moment: whichever tells of it last, no wait is
    /// for more than there are.
    #[test]
    fn sleeps_that_begin_at_once_are_all_seen() {
        const ROUNDS: usize = 20_000;
        let clock = ManualClock::new();
        let arrived = AtomicUsize::new(0);
        // A thread that has to be woken comes too late to meet the other, and yet a machine may
        // have one core for both.
        let meet = |turn: usize| {
            arrived.fetch_add(1, Ordering::SeqCst);
            let mut waited = 0_u32;
            while arrived.load(Ordering::SeqCst) < 2 * turn {
                waited += 1;
                if waited.is_multiple_of(1_000) {
                    thread::yield_now();
                }
                hint::spin_loop();
            }
        };
        let unseen = || {
            let mut unseen = 0;
            for round in 0..ROUNDS {
                let mut sleep = clock.sleep(Duration::from_secs(10));
                meet(3 * round + 1);
                let polled = sleep.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                assert!(polled.is_pending());
                meet(3 * round + 2);
                let both = pin!(clock.await_sleepers(2));
                let seen = both.poll(&mut Context::from_waker(Waker::noop()));
                unseen += usize::from(seen.is_pending());
                meet(3 * round + 3);
            }
            unseen
        };
        let unseen = thread::scope(|scope| {
            let other = scope.spawn(unseen);
            unseen() + other.join().expect("it sleeps")
        });
        assert_eq!(unseen, 0);
    }

    #[test]
    fn the_time_of_day_steps_without_the_timer() {
        let clock = ManualClock::new();
        clock.step(Time::from_micros(5));
        assert_eq!(Clock::now(&clock), Time::from_micros(5));
        assert_eq!(Timer::now(&clock), Duration::ZERO);
    }
}
