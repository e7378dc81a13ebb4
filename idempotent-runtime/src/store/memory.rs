//! The store in the process's own memory: the reference for all others, and gone with the process.

mod cells;
mod hasher;
mod list;
mod newest;
mod steps;

use std::{mem, sync::Arc, time::Duration};

use async_trait::async_trait;

use self::cells::{Cell, Cells, Put};
use crate::{
    clock::{Clock, SystemClock},
    identity::RecordId,
    record::{Draft, Record, Subject, Version},
    store::{
        RecordList, Snapshot, StepStore, Store, StoreError, Swap,
        waiters::{Waiter, Waiters},
    },
    sync::{Mutex, MutexGuard, PoisonError},
    value::opaque,
};

/// Keeps records in this process's memory: for tests, and for services of one process that may
/// forget on restart.
///
/// It runs no background work. Records that are expired, and were kept for as long as their handle
/// says, are swept while new ones come in. So it holds at most about twice as many as were needed
/// at the busiest time. After that it may hold as many for long, if few come in:
/// [`purge`](Store::purge) sweeps on demand, and
/// [`Idempotency::purge_every`](crate::Idempotency::purge_every) again and again. A record holds
/// its key, its scope, its outcome, and its arguments where they are short: of arguments longer
/// than a kilobyte it holds only a digest each. A clone is the same store.
///
/// # Examples
///
/// ```
/// use idempotent_runtime::store::{MemoryStore, Store};
///
/// let store: Box<dyn Store> = Box::new(MemoryStore::new());
/// # drop(store);
/// ```
#[derive(Clone)]
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    /// In the order of the ids that they hold.
    shards: Arc<[Shard]>,
}

impl MemoryStore {
    /// Makes an empty store that goes by the machine's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(SystemClock)
    }

    /// Makes an empty store that goes by `clock`.
    #[must_use]
    pub fn with_clock(clock: impl Clock + 'static) -> Self {
        Self {
            clock: Arc::new(clock),
            shards: (0..SHARDS).map(|_| Shard::new()).collect(),
        }
    }

    fn shard(&self, id: &RecordId) -> &Shard {
        &self.shards[usize::from(id.as_bytes()[0]) * SHARDS / 256]
    }

    fn look(&self, id: &RecordId) -> Snapshot {
        let cells = self.shard(id).lock();
        Snapshot {
            now: self.clock.now(),
            record: cells.records.get(id).map(|cell| Arc::clone(&cell.record)),
        }
    }

    /// Begins to wait for the end of version `seen`; `None` where it does not stand (any more).
    ///
    /// The look and the registration happen under the lock under which the record is written: a
    /// later write finds the waiter.
    fn waiter(&self, id: &RecordId, seen: Version) -> Option<Waiter> {
        let shard = self.shard(id);
        let cells = shard.lock();
        let stands = cells
            .records
            .get(id)
            .is_some_and(|cell| cell.record.version == seen);
        stands.then(|| shard.waiters.register(id))
    }

    /// Keeps only a digest of each long argument, enough to tell which of them differ: the record
    /// may stand for much longer than its call.
    fn forget_arguments(&self, id: &RecordId, written: &Draft) {
        let long = |begun: &&Arc<Subject>| begun.fingerprint.held() > LONGEST_HELD;
        let Some(begun) = written.subject.as_ref().filter(long) else {
            return;
        };
        let subject = Arc::new(begun.as_stored());
        let mut cells = self.shard(id).lock();
        let cell = cells.records.get_mut(id);
        let cell = cell.filter(|cell| Arc::ptr_eq(&cell.record.subject, begun));
        let _freed_without_the_lock = cell.map(|cell| {
            let record = Record {
                subject,
                ..Record::clone(&cell.record)
            };
            mem::replace(&mut cell.record, Arc::new(record))
        });
        drop(cells);
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn load(&self, id: &RecordId) -> Result<Snapshot, StoreError> {
        Ok(self.look(id))
    }

    fn peek(&self, id: &RecordId) -> Option<Snapshot> {
        Some(self.look(id))
    }

    fn name(&self) -> &'static str {
        "memory"
    }

    async fn swap(
        &self,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        let shard = self.shard(id);
        let mut cells = shard.lock();
        // It is read under the lock: a later write has the later time, and the larger token.
        let now = self.clock.now();
        let put = cells.put(id, seen, next, now);
        drop(cells);
        // Memory is freed here, where no call waits for the lock.
        Ok(match put {
            Put::Refused(record) => Swap::Refused(Snapshot { now, record }),
            Put::Over(stamp, _previous) => {
                shard.waiters.wake(id);
                self.forget_arguments(id, next);
                Swap::Applied(stamp)
            }
            Put::Anew(stamp, swept) => {
                shard.forgotten(swept);
                self.forget_arguments(id, next);
                Swap::Applied(stamp)
            }
        })
    }

    async fn wait(
        &self,
        id: &RecordId,
        seen: Version,
        at_most: Duration,
    ) -> Result<(), StoreError> {
        if let Some(waiter) = self.waiter(id, seen) {
            let _moved_or_over = tokio::time::timeout(at_most, waiter).await;
        }
        Ok(())
    }

    async fn purge(&self, limit: u32, keep: Duration) -> Result<u64, StoreError> {
        let limit = limit as usize;
        let mut purged = 0;
        for shard in &*self.shards {
            if purged == limit {
                break;
            }
            let mut cells = shard.lock();
            let now = self.clock.now();
            let forgotten =
                cells.forget(limit - purged, |cell| cell.record.is_forgettable(now, keep));
            drop(cells);
            purged += forgotten.len();
            shard.forgotten(forgotten);
        }
        Ok(purged as u64)
    }

    async fn scan(
        &self,
        after: Option<RecordId>,
        limit: u32,
    ) -> Result<Vec<(RecordId, Arc<Record>)>, StoreError> {
        let limit = limit as usize;
        let mut found = Vec::new();
        let first_shard = after.map_or(0, |after| usize::from(after.as_bytes()[0]) * SHARDS / 256);
        for shard in &self.shards[first_shard..] {
            if found.len() >= limit {
                break;
            }
            let mut of_shard: Vec<_> = {
                let cells = shard.lock();
                let later = cells
                    .records
                    .iter()
                    .filter(|(id, _)| after.is_none_or(|after| **id > after));
                later
                    .map(|(id, cell)| (*id, Arc::clone(&cell.record)))
                    .collect()
            };
            of_shard.sort_unstable_by_key(|(id, _)| *id);
            found.append(&mut of_shard);
        }
        found.truncate(limit);
        Ok(found)
    }

    fn steps(&self) -> Option<&dyn StepStore> {
        Some(self)
    }

    fn lists(&self) -> Option<&dyn RecordList> {
        Some(self)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

opaque!(MemoryStore, |it| clock = it.clock);

const SHARDS: usize = 64;

/// How many bytes of encoded arguments a record may hold: more than most have, to which their
/// digests would add a hash each.
const LONGEST_HELD: usize = 1024;

/// Records whose ids begin alike, under one lock.
struct Shard {
    cells: Mutex<Cells>,
    waiters: Waiters,
}

impl Shard {
    fn new() -> Self {
        Self {
            cells: Mutex::default(),
            waiters: Waiters::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Cells> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells those who wait for records that were deleted.
    fn forgotten(&self, forgotten: Vec<(RecordId, Cell)>) {
        for (id, _) in forgotten {
            self.waiters.wake(&id);
        }
    }
}

#[cfg(all(test, shuttle))]
mod shuttle;

#[cfg(all(test, not(shuttle)))]
pub(crate) mod tests;
