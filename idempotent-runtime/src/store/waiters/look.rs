//! One for all: calls that wait here for the same record share the looks at it.

use std::{
    future::poll_fn,
    pin::pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, timeout};

use super::{
    Waiter, Waiters, of,
    polling::{FIRST_PAUSE, LONGEST_PAUSE, jittered},
};
#[cfg(any(feature = "postgres", feature = "redis"))]
use crate::sync::atomic::Ordering;
use crate::{
    identity::RecordId,
    record::Version,
    store::{Store, StoreError},
};

/// How often a record is looked at while a call waits for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PollInterval {
    /// The first pause; each is twice the one before.
    pub(crate) first: Duration,
    /// The longest pause.
    pub(crate) longest: Duration,
}

impl PollInterval {
    /// While no notification tells that a record moved.
    pub(crate) const POLLING: Self = Self {
        first: FIRST_PAUSE,
        longest: LONGEST_PAUSE,
    };
    /// While notifications come: a look is only for the case that one was lost.
    #[cfg(any(feature = "postgres", feature = "redis"))]
    pub(crate) const NOTIFIED: Self = Self {
        first: Duration::from_millis(500),
        longest: Duration::from_secs(2),
    };
}

impl Waiters {
    /// Waits until the record is no longer at version `seen`, its waiters are woken, or `at_most`
    /// has passed. Only one of all that wait for one record in this process looks again and again,
    /// at the `interval` that it asks for before each look. When it sees the record move it wakes
    /// the others, and when it goes away the next one takes its place. If none has looked for long,
    /// because that one is not polled or waits for an answer, one of the others does.
    pub(crate) async fn wait<S: Store + ?Sized>(
        &self,
        store: &S,
        id: &RecordId,
        seen: Version,
        at_most: Duration,
        interval: impl Fn() -> PollInterval + Send,
    ) -> Result<(), StoreError> {
        let waiter = self.register(id);
        let looking = async {
            let mut now = interval();
            waiter.looks();
            if has_moved(store, id, seen).await? {
                return Ok(());
            }
            while !waiter.leads_within(jittered(now.longest * 4)).await {
                now = interval();
                if waiter.looks_for_all(now.longest * 2) && has_moved(store, id, seen).await? {
                    self.wake(id);
                    return Ok(());
                }
            }
            let mut pause = now.first;
            while !waiter.is_woken() {
                let woken = pin!(poll_fn(|context| waiter.poll_woken(context)));
                if timeout(jittered(pause), woken).await.is_ok() {
                    break;
                }
                now = interval();
                waiter.looks();
                if has_moved(store, id, seen).await? {
                    self.wake(id);
                    break;
                }
                pause = (pause * 2).clamp(now.first, now.longest);
            }
            Ok(())
        };
        timeout(at_most, looking).await.unwrap_or(Ok(()))
    }
}

/// For waiters that are told from outside.
#[cfg(any(feature = "postgres", feature = "redis"))]
impl Waiters {
    /// Tells whether any call waits for a record.
    pub(crate) fn are_there(&self) -> bool {
        self.registry.count.load(Ordering::SeqCst) > 0
    }

    /// Wakes all: some record may have moved, and it is unknown which.
    pub(crate) fn wake_all(&self) {
        let mut waiting = self.registry.lock();
        let woken = std::mem::take(&mut waiting.by_ticket);
        self.registry.count.store(0, Ordering::SeqCst);
        drop(waiting);
        for waker in woken.into_values().filter_map(|place| place.waker) {
            waker.wake();
        }
    }
}

async fn has_moved<S: Store + ?Sized>(
    store: &S,
    id: &RecordId,
    seen: Version,
) -> Result<bool, StoreError> {
    let record = store.load(id).await?.record;
    Ok(record.is_none_or(|record| record.version != seen))
}

impl Waiter {
    /// Whether it was woken: a wake takes the ticket away.
    fn is_woken(&self) -> bool {
        !self.registry.lock().by_ticket.contains_key(&self.ticket)
    }

    /// Begins to look at the record.
    fn looks(&self) {
        if let Some(place) = self.registry.lock().by_ticket.get_mut(&self.ticket) {
            place.looked = Some(Instant::now());
        }
    }

    /// Begins to look at the record, unless one of its waiters did since so long ago.
    fn looks_for_all(&self, since: Duration) -> bool {
        let mut waiting = self.registry.lock();
        let places = waiting.by_ticket.range(of(&self.ticket.0));
        let last = places.filter_map(|(_, place)| place.looked).max();
        let is_due = last.is_none_or(|last| last.elapsed() >= since);
        if is_due && let Some(place) = waiting.by_ticket.get_mut(&self.ticket) {
            place.looked = Some(Instant::now());
        }
        is_due
    }

    /// Whether, within this time, it was woken or no other call has waited for this record for
    /// longer.
    async fn leads_within(&self, time: Duration) -> bool {
        let leads = poll_fn(|context| self.poll_to_lead(context));
        timeout(time, leads).await.is_ok()
    }

    /// Resolves when it was woken, or no other call has waited for this record for longer.
    fn poll_to_lead(&self, context: &mut Context<'_>) -> Poll<()> {
        self.poll_until(context, |waiting| {
            waiting.first_of(&self.ticket.0) == Some(self.ticket)
        })
    }
}
