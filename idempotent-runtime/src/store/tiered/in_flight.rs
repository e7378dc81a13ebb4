//! Keeps a look that began before a write from putting what it found after it.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard},
};

use crate::{identity::RecordId, value::lock};

/// The looks and writes of this process that are under way, by record.
#[derive(Debug)]
pub(super) struct InFlight {
    /// By the first byte of the ids, so that calls of different records rarely meet.
    shards: Box<[Mutex<HashMap<RecordId, Doings>>]>,
}

#[derive(Debug, Default)]
struct Doings {
    /// Guards that have not ended.
    open: usize,
    /// Those of them that write.
    writing: usize,
    /// Whether a copy is being put.
    filling: bool,
    /// How many writes began since the first open guard did, and how many copies were put.
    writes: u64,
    fills: u64,
}

const SHARDS: usize = 32;

impl Default for InFlight {
    fn default() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
    }
}

impl InFlight {
    /// Begins to ask the primary store.
    pub(super) fn look(&self, id: &RecordId) -> Guard<'_> {
        self.begin(id, 0)
    }

    /// Begins to write. Until it ends, no copy is given or put.
    pub(super) fn write(&self, id: &RecordId) -> Guard<'_> {
        self.begin(id, 1)
    }

    /// Whether a copy might not be what stands, or is just being put.
    pub(super) fn are_under_way(&self, id: &RecordId) -> bool {
        let shard = self.shard(id);
        shard
            .get(id)
            .is_some_and(|doings| doings.writing > 0 || doings.filling)
    }

    fn begin(&self, id: &RecordId, writing: usize) -> Guard<'_> {
        let mut shard = self.shard(id);
        let doings = shard.entry(*id).or_default();
        doings.open += 1;
        doings.writing += writing;
        doings.writes += writing as u64;
        Guard {
            in_flight: self,
            id: *id,
            writing,
            undisturbed: doings.writing == writing,
            writes: doings.writes,
            fills: doings.fills,
        }
    }

    fn shard(&self, id: &RecordId) -> MutexGuard<'_, HashMap<RecordId, Doings>> {
        let shard = &self.shards[usize::from(id.as_bytes()[0]) % SHARDS];
        lock(shard)
    }
}

/// Something that is being done about one record; it ends when it is dropped.
#[derive(Debug)]
pub(super) struct Guard<'a> {
    in_flight: &'a InFlight,
    id: RecordId,
    writing: usize,
    undisturbed: bool,
    writes: u64,
    fills: u64,
}

impl Guard<'_> {
    /// Begins to put a copy; `None` if there was a write since this guard began, or if a copy is
    /// being put already.
    pub(super) fn fill(&self) -> Option<FillGuard<'_>> {
        let mut shard = self.in_flight.shard(&self.id);
        let doings = shard.get_mut(&self.id)?;
        if !self.undisturbed || doings.writes != self.writes || doings.filling {
            return None;
        }
        doings.filling = true;
        doings.fills += 1;
        Some(FillGuard(self))
    }

    /// Whether a copy was put since this guard began.
    pub(super) fn was_filled(&self) -> bool {
        let shard = self.in_flight.shard(&self.id);
        shard
            .get(&self.id)
            .is_some_and(|doings| doings.fills != self.fills)
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let mut shard = self.in_flight.shard(&self.id);
        if let Some(doings) = shard.get_mut(&self.id) {
            doings.open -= 1;
            doings.writing -= self.writing;
            if doings.open == 0 {
                shard.remove(&self.id);
            }
        }
    }
}

/// A copy that is being put; no other one is, and none is given, until it is dropped.
#[derive(Debug)]
pub(super) struct FillGuard<'a>(&'a Guard<'a>);

impl FillGuard<'_> {
    /// Whether a write began meanwhile.
    pub(super) fn is_outdated(&self) -> bool {
        let shard = self.0.in_flight.shard(&self.0.id);
        shard
            .get(&self.0.id)
            .is_none_or(|doings| doings.writes != self.0.writes)
    }
}

impl Drop for FillGuard<'_> {
    fn drop(&mut self) {
        let mut shard = self.0.in_flight.shard(&self.0.id);
        if let Some(doings) = shard.get_mut(&self.0.id) {
            doings.filling = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: RecordId = RecordId::from_bytes([7; 32]);

    #[test]
    fn a_look_that_a_write_overlaps_puts_nothing() {
        let in_flight = InFlight::default();
        let before = in_flight.look(&ID);
        let write = in_flight.write(&ID);
        let during = in_flight.look(&ID);
        assert!(in_flight.are_under_way(&ID));
        drop(write);
        let after = in_flight.look(&ID);
        assert!(before.fill().is_none());
        assert!(during.fill().is_none());
        assert!(after.fill().is_some());
    }

    #[test]
    fn a_write_that_begins_while_a_copy_is_put_outdates_it() {
        let in_flight = InFlight::default();
        let look = in_flight.look(&ID);
        let fill = look.fill().expect("nobody wrote");
        assert!(in_flight.are_under_way(&ID));
        assert!(!fill.is_outdated());
        drop(in_flight.write(&ID));
        assert!(fill.is_outdated());
        assert!(in_flight.are_under_way(&ID), "the copy is still being put");
        drop(fill);
        assert!(!in_flight.are_under_way(&ID));
    }

    #[test]
    fn one_at_a_time_puts_a_copy_and_others_know() {
        let in_flight = InFlight::default();
        let (one, other) = (in_flight.look(&ID), in_flight.look(&ID));
        let fill = one.fill().expect("nobody wrote");
        assert!(other.fill().is_none());
        drop(fill);
        assert!(other.was_filled());
    }

    #[test]
    fn nothing_is_remembered_when_nothing_is_done() {
        let in_flight = InFlight::default();
        drop((in_flight.look(&ID), in_flight.write(&ID)));
        assert!(
            in_flight
                .shards
                .iter()
                .all(|shard| { shard.lock().is_ok_and(|doings| doings.is_empty()) })
        );
    }
}
