//! Copies in the process's own memory.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use async_trait::async_trait;

use super::{OutcomeTier, TieredStore};
use crate::{
    clock::{Clock, Timer},
    identity::RecordId,
    record::Record,
    store::{
        Store, StoreError,
        moment::{Clocks, Moment},
    },
    value::opaque,
};

/// Copies of finished outcomes in this process's memory: the fast tier that needs no server.
///
/// It holds so many at most, and drops the one that was put first when another comes in. How old a
/// copy may be is said by the
/// [`TieredStore`] that it stands in front of. Outcomes of more than 64 KiB are not copied, unless
/// [`largest`](Self::largest) says otherwise.
///
/// # Examples
///
/// ```
/// use idempotent_runtime::{Idempotency, MemoryStore, store::OutcomeCache};
///
/// # let primary = MemoryStore::new();
/// let idem = Idempotency::new(OutcomeCache::new(10_000).in_front_of(primary));
/// ```
pub struct OutcomeCache {
    copies: RwLock<Copies>,
    clocks: Clocks,
    capacity: usize,
    largest: usize,
}

impl OutcomeCache {
    /// Makes one that holds no more than `capacity` outcomes.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            copies: RwLock::default(),
            clocks: Clocks::default(),
            capacity,
            largest: 64 * 1024,
        }
    }

    /// Sets how many bytes an encoded outcome may have to be copied.
    #[must_use]
    pub fn largest(mut self, bytes: usize) -> Self {
        self.largest = bytes;
        self
    }

    /// Sets what measures the age of copies: for tests with a manual clock.
    #[must_use]
    pub fn timer(mut self, timer: impl Timer + 'static) -> Self {
        self.clocks.set_timer(timer);
        self
    }

    /// Sets the wall clock that tells how long the machine was suspended, while the timer stood
    /// still: for tests with a manual clock.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clocks.set_wall(clock);
        self
    }

    /// Puts it in front of a store, with its own timer and clock, and else the defaults of
    /// [`TieredBuilder`](super::TieredBuilder).
    pub fn in_front_of(self, primary: impl Store) -> TieredStore {
        let clocks = self.clocks.clone();
        TieredStore::builder(primary, self).clocks(clocks).build()
    }
}

opaque!(OutcomeCache, |it| capacity = it.capacity);

#[async_trait]
impl OutcomeTier for OutcomeCache {
    async fn find(&self, id: &RecordId) -> Result<Option<Arc<Record>>, StoreError> {
        Ok(self.peek(id))
    }

    fn peek(&self, id: &RecordId) -> Option<Arc<Record>> {
        let copies = self.copies.read().unwrap_or_else(PoisonError::into_inner);
        let copy = copies.by_id.get(id);
        let fresh = copy.filter(|copy| !copy.is_old(self.clocks.now()));
        fresh.map(|copy| Arc::clone(&copy.record))
    }

    async fn put(
        &self,
        id: &RecordId,
        record: &Arc<Record>,
        at_most: Duration,
    ) -> Result<(), StoreError> {
        let outcome = record.outcome.as_ref();
        let length = outcome.map_or(0, |outcome| outcome.bytes.len());
        let now = self.clocks.now();
        let copy = Copied {
            record: Arc::clone(record),
            put: now,
            at_most,
            number: 0,
        };
        let mut copies = self.copies.write().unwrap_or_else(PoisonError::into_inner);
        copies.forget(id);
        copies.forget_old(now);
        if length <= self.largest && self.capacity > 0 {
            copies.make_room(self.capacity);
            copies.put(*id, copy);
        }
        Ok(())
    }

    async fn forget(&self, id: &RecordId) -> Result<(), StoreError> {
        // Nearly every write is of a record that has no copy.
        let copies = self.copies.read().unwrap_or_else(PoisonError::into_inner);
        let is_there = copies.by_id.contains_key(id);
        drop(copies);
        if is_there {
            let mut copies = self.copies.write().unwrap_or_else(PoisonError::into_inner);
            copies.forget(id);
        }
        Ok(())
    }
}

#[derive(Default)]
struct Copies {
    by_id: HashMap<RecordId, Copied>,
    /// In the order in which they were put.
    by_number: BTreeMap<u64, RecordId>,
    next: u64,
}

struct Copied {
    record: Arc<Record>,
    put: Moment,
    at_most: Duration,
    number: u64,
}

impl Copied {
    fn is_old(&self, now: Moment) -> bool {
        now.since(self.put) >= self.at_most
    }
}

impl Copies {
    fn put(&mut self, id: RecordId, copy: Copied) {
        let number = self.next;
        self.next += 1;
        self.by_number.insert(number, id);
        self.by_id.insert(id, Copied { number, ..copy });
    }

    fn forget(&mut self, id: &RecordId) {
        if let Some(copy) = self.by_id.remove(id) {
            self.by_number.remove(&copy.number);
        }
    }

    /// Forgets those whose time is over, from the first that was put to one whose time is not.
    fn forget_old(&mut self, now: Moment) {
        while let Some(first) = self.by_number.first_entry() {
            let is_old = |copy: &Copied| copy.is_old(now);
            if !self.by_id.get(first.get()).is_none_or(is_old) {
                return;
            }
            self.by_id.remove(&first.remove());
        }
    }

    /// Leaves room for one more.
    fn make_room(&mut self, capacity: usize) {
        while self.by_id.len() >= capacity
            && let Some((_, first)) = self.by_number.pop_first()
        {
            self.by_id.remove(&first);
        }
    }
}
