//! The calls that wait in this process, and the records that they wait for.

#[cfg(any(feature = "_sql", feature = "redis"))]
pub(crate) mod look;
mod polling;

use std::{
    collections::BTreeMap,
    future::Future,
    ops::RangeInclusive,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

pub(crate) use self::polling::poll_until_moved;
use crate::{
    identity::RecordId,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Knows which calls wait in this process for which record.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    registry: Arc<Registry>,
}

#[derive(Debug, Default)]
struct Registry {
    /// How many calls wait for a record, so that a write that no call waits for takes no lock.
    count: AtomicUsize,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    next_ticket: u64,
    by_ticket: BTreeMap<(RecordId, u64), WaiterEntry>,
}

/// The place of a caller among those that wait.
#[derive(Debug, Default)]
struct WaiterEntry {
    waker: Option<Waker>,
    /// When it last began to look at the record.
    #[cfg(any(feature = "_sql", feature = "redis"))]
    looked: Option<tokio::time::Instant>,
}

/// Resolves at the first wake of its id after it was registered. When it is dropped, it is
/// forgotten.
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
    /// which it is written. Else the wake may have come before the waiter.
    pub(crate) fn register(&self, id: &RecordId) -> Waiter {
        let mut waiting = self.registry.lock();
        waiting.next_ticket += 1;
        let ticket = (*id, waiting.next_ticket);
        waiting.by_ticket.insert(ticket, WaiterEntry::default());
        self.registry
            .count
            .store(waiting.by_ticket.len(), Ordering::SeqCst);
        Waiter {
            registry: Arc::clone(&self.registry),
            ticket,
        }
    }

    /// Wakes all calls that wait for `id`. A caller does that *after* the write can be seen.
    pub(crate) fn wake(&self, id: &RecordId) {
        if self.registry.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut waiting = self.registry.lock();
        let woken: Vec<_> = waiting.by_ticket.extract_if(of(id), |_, _| true).collect();
        self.registry
            .count
            .store(waiting.by_ticket.len(), Ordering::SeqCst);
        // A waker may poll, or drop, a waiter at once: it would meet this lock.
        drop(waiting);
        for waker in woken.into_iter().filter_map(|(_, place)| place.waker) {
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
            Some(place) => {
                match &mut place.waker {
                    Some(waker) => waker.clone_from(context.waker()),
                    waker => *waker = Some(context.waker().clone()),
                }
                Poll::Pending
            }
        }
    }
}

impl Waiting {
    fn first_of(&self, id: &RecordId) -> Option<(RecordId, u64)> {
        self.by_ticket
            .range(of(id))
            .next()
            .map(|(ticket, _)| *ticket)
    }
}

/// The tickets of the calls that wait for `id`.
fn of(id: &RecordId) -> RangeInclusive<(RecordId, u64)> {
    (*id, u64::MIN)..=(*id, u64::MAX)
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
        // If this one looked for all of them, the next one does.
        let next = waiting
            .first_of(&self.ticket.0)
            .filter(|next| *next > self.ticket)
            .and_then(|next| waiting.by_ticket.get(&next)?.waker.clone());
        drop(waiting);
        drop(forgotten);
        if let Some(next) = next {
            next.wake();
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::{
        sync::atomic::{AtomicU32, Ordering},
        task::Wake,
    };

    use super::*;

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
}
