//! Who waits in this process for which record, and how to wait where nobody says that it moved.

#[cfg(any(
    feature = "mysql",
    feature = "postgres",
    feature = "redis",
    feature = "sqlite"
))]
pub(crate) mod look;

use std::{
    collections::BTreeMap,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use crate::{
    identity::RecordId,
    record::Version,
    store::{Store, StoreError},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Knows who waits in this process for which record.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    registry: Arc<Registry>,
}

#[derive(Debug, Default)]
struct Registry {
    /// How many wait for anything, so that a write that nobody waits for takes no lock.
    count: AtomicUsize,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    next_ticket: u64,
    by_ticket: BTreeMap<(RecordId, u64), Option<Waker>>,
}

/// Resolves at the first wake of its id after it was registered. Dropped, it is forgotten.
#[derive(Debug)]
pub(crate) struct Waiter {
    registry: Arc<Registry>,
    ticket: (RecordId, u64),
}

impl Waiters {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Begins to wait for `id`. A caller looks at the record *after* that, or holds the lock under
    /// which it is written; else the wake may have come before the waiter.
    pub(crate) fn register(&self, id: &RecordId) -> Waiter {
        let mut waiting = self.registry.lock();
        waiting.next_ticket += 1;
        let ticket = (*id, waiting.next_ticket);
        waiting.by_ticket.insert(ticket, None);
        self.registry
            .count
            .store(waiting.by_ticket.len(), Ordering::SeqCst);
        Waiter {
            registry: Arc::clone(&self.registry),
            ticket,
        }
    }

    /// Wakes everyone who waits for `id`. A caller does that *after* the write can be seen.
    pub(crate) fn wake(&self, id: &RecordId) {
        if self.registry.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut waiting = self.registry.lock();
        let of_this_id = (*id, u64::MIN)..=(*id, u64::MAX);
        let woken: Vec<_> = waiting
            .by_ticket
            .extract_if(of_this_id, |_, _| true)
            .collect();
        self.registry
            .count
            .store(waiting.by_ticket.len(), Ordering::SeqCst);
        // A waker may poll, or drop, a waiter at once: it would meet this lock.
        drop(waiting);
        for waker in woken.into_iter().filter_map(|(_, waker)| waker) {
            waker.wake();
        }
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.registry.lock().by_ticket.len()
    }
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiter {
    fn poll_woken(&self, context: &mut Context<'_>) -> Poll<()> {
        self.poll_until(context, |_| false)
    }

    fn poll_until(
        &self,
        context: &mut Context<'_>,
        enough: impl FnOnce(&Waiting) -> bool,
    ) -> Poll<()> {
        let mut waiting = self.registry.lock();
        if enough(&waiting) {
            return Poll::Ready(());
        }
        match waiting.by_ticket.get_mut(&self.ticket) {
            None => Poll::Ready(()),
            Some(waker) => {
                match waker {
                    Some(waker) => waker.clone_from(context.waker()),
                    None => *waker = Some(context.waker().clone()),
                }
                Poll::Pending
            }
        }
    }
}

impl Waiting {
    fn first_of(&self, id: &RecordId) -> Option<(RecordId, u64)> {
        let of_this_id = (*id, u64::MIN)..=(*id, u64::MAX);
        self.by_ticket
            .range(of_this_id)
            .next()
            .map(|(ticket, _)| *ticket)
    }
}

impl Future for Waiter {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.poll_woken(context)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut waiting = self.registry.lock();
        let forgotten = waiting.by_ticket.remove(&self.ticket);
        self.registry
            .count
            .store(waiting.by_ticket.len(), Ordering::SeqCst);
        // Where this one looked for all of them, the next one does.
        let next = waiting
            .first_of(&self.ticket.0)
            .filter(|next| *next > self.ticket)
            .and_then(|next| waiting.by_ticket.get(&next)?.clone());
        drop(waiting);
        drop(forgotten);
        if let Some(next) = next {
            next.wake();
        }
    }
}

const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Looks again and again, in growing intervals, until the record is no longer at version `seen`,
/// `woken` resolves, or `at_most` has passed. `woken` was registered before, so that what is
/// written between two looks wakes it; [`std::future::pending`] where nobody wakes.
pub(crate) async fn poll_until_moved<S: Store + ?Sized>(
    store: &S,
    id: &RecordId,
    seen: Version,
    at_most: Duration,
    woken: impl Future<Output = ()>,
) -> Result<(), StoreError> {
    let looking = async {
        let mut pause = FIRST_PAUSE;
        while store
            .load(id)
            .await?
            .record
            .is_some_and(|record| record.version == seen)
        {
            tokio::time::sleep(jittered(pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Ok(())
    };
    let mut looking = pin!(tokio::time::timeout(at_most, looking));
    let mut woken = pin!(woken);
    poll_fn(|context| {
        if woken.as_mut().poll(context).is_ready() {
            return Poll::Ready(Ok(()));
        }
        looking
            .as_mut()
            .poll(context)
            .map(|looked| looked.unwrap_or(Ok(())))
    })
    .await
}

/// Somewhere in the upper half of `pause`, so that those who began together do not look together.
fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(rand::random_range(0.5..=1.0))
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::{
        sync::atomic::{AtomicU32, Ordering},
        task::Wake,
    };

    use async_trait::async_trait;

    use super::*;
    use crate::{
        record::{Draft, Record, Time},
        store::{MemoryStore, Snapshot, Swap},
    };

    #[derive(Default)]
    struct Counted(AtomicU32);

    impl Wake for Counted {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn poll(waiter: &mut Waiter, counted: &Arc<Counted>) -> Poll<()> {
        let waker = Waker::from(Arc::clone(counted));
        Pin::new(waiter).poll(&mut Context::from_waker(&waker))
    }

    const ONE: RecordId = RecordId::from_bytes([1; 32]);
    const OTHER: RecordId = RecordId::from_bytes([2; 32]);

    #[test]
    fn a_wake_reaches_every_waiter_of_the_id_and_no_other() {
        let waiters = Waiters::new();
        let counted = Arc::new(Counted::default());
        let (mut first, mut second, mut other) = (
            waiters.register(&ONE),
            waiters.register(&ONE),
            waiters.register(&OTHER),
        );
        for waiter in [&mut first, &mut second, &mut other] {
            assert!(poll(waiter, &counted).is_pending());
        }

        waiters.wake(&ONE);

        assert_eq!(counted.0.load(Ordering::SeqCst), 2);
        assert!(poll(&mut first, &counted).is_ready());
        assert!(poll(&mut second, &counted).is_ready());
        assert!(poll(&mut other, &counted).is_pending());
    }

    #[test]
    fn a_wake_before_the_first_poll_counts() {
        let waiters = Waiters::new();
        let mut waiter = waiters.register(&ONE);

        waiters.wake(&ONE);

        assert!(poll(&mut waiter, &Arc::default()).is_ready());
    }

    #[test]
    fn a_wake_before_the_registration_does_not_count() {
        let waiters = Waiters::new();
        waiters.wake(&ONE);

        let mut waiter = waiters.register(&ONE);

        assert!(poll(&mut waiter, &Arc::default()).is_pending());
    }

    #[test]
    fn the_waker_of_the_last_poll_is_the_one_that_is_woken() {
        let waiters = Waiters::new();
        let (early, late) = (Arc::new(Counted::default()), Arc::new(Counted::default()));
        let mut waiter = waiters.register(&ONE);
        assert!(poll(&mut waiter, &early).is_pending());
        assert!(poll(&mut waiter, &late).is_pending());

        waiters.wake(&ONE);

        assert_eq!(
            (
                early.0.load(Ordering::SeqCst),
                late.0.load(Ordering::SeqCst)
            ),
            (0, 1)
        );
    }

    #[test]
    fn c05_a_dropped_waiter_leaves_nothing_behind() {
        let waiters = Waiters::new();
        let counted = Arc::new(Counted::default());
        let mut polled = waiters.register(&ONE);
        assert!(poll(&mut polled, &counted).is_pending());
        let unpolled = waiters.register(&ONE);
        let woken = waiters.register(&OTHER);
        waiters.wake(&OTHER);

        drop((polled, unpolled, woken));
        waiters.wake(&ONE);

        assert_eq!(waiters.count(), 0);
        assert_eq!(counted.0.load(Ordering::SeqCst), 0);
        assert_eq!(Arc::strong_count(&counted), 1);
    }

    /// Answers the same version for so many looks, then that nothing stands there.
    #[derive(Debug)]
    struct Stubborn {
        inner: MemoryStore,
        looks: AtomicU32,
        moves_at: u32,
    }

    #[async_trait]
    impl Store for Stubborn {
        async fn load(&self, _: &RecordId) -> Result<Snapshot, StoreError> {
            let look = self.looks.fetch_add(1, Ordering::SeqCst) + 1;
            let record =
                (look < self.moves_at).then(|| Arc::new(crate::store::memory::tests::record(SEEN)));
            Ok(Snapshot {
                now: Time::from_micros(0),
                record,
            })
        }
        async fn swap(
            &self,
            id: &RecordId,
            seen: Option<Version>,
            next: &Draft,
        ) -> Result<Swap, StoreError> {
            self.inner.swap(id, seen, next).await
        }
        async fn wait(
            &self,
            id: &RecordId,
            seen: Version,
            at_most: Duration,
        ) -> Result<(), StoreError> {
            poll_until_moved(self, id, seen, at_most, std::future::pending()).await
        }
        async fn purge(&self, limit: u32, keep: Duration) -> Result<u64, StoreError> {
            self.inner.purge(limit, keep).await
        }
        async fn scan(
            &self,
            after: Option<RecordId>,
            limit: u32,
        ) -> Result<Vec<(RecordId, Arc<Record>)>, StoreError> {
            self.inner.scan(after, limit).await
        }
    }

    const SEEN: Version = Version::from_u128(7);

    fn stubborn(moves_at: u32) -> Stubborn {
        Stubborn {
            inner: MemoryStore::new(),
            looks: AtomicU32::new(0),
            moves_at,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn polling_sees_what_nobody_wakes_for() {
        let store = stubborn(4);
        let began = tokio::time::Instant::now();

        store
            .wait(&ONE, SEEN, Duration::from_secs(60))
            .await
            .expect("the store answers");

        // Three pauses of 5, 10 and 20 ms, each shortened by at most half; tokio rounds up to whole milliseconds.
        let took = began.elapsed();
        assert!(
            took >= Duration::from_micros(17_500) && took <= Duration::from_millis(38),
            "{took:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn polling_slows_down_to_two_looks_a_second_and_ends_at_its_bound() {
        let store = stubborn(u32::MAX);
        let began = tokio::time::Instant::now();

        store
            .wait(&ONE, SEEN, Duration::from_secs(60))
            .await
            .expect("the store answers");

        assert!(began.elapsed() < Duration::from_millis(60_002));
        let looks = store.looks.load(Ordering::SeqCst);
        assert!((120..=260).contains(&looks), "{looks} looks");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wake_ends_polling_at_once() {
        let (store, waiters) = (stubborn(u32::MAX), Waiters::new());
        let woken = waiters.register(&ONE);
        let began = tokio::time::Instant::now();
        waiters.wake(&ONE);

        poll_until_moved(&store, &ONE, SEEN, Duration::from_secs(60), woken)
            .await
            .expect("the store answers");

        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
