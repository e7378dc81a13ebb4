//! Keeps a look that began before a write from putting what it found after it.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::identity::RecordId;

/// What this process is doing about each record at the moment.
#[derive(Debug)]
pub(super) struct Turns {
    /// By the first byte of the ids, so that calls of different records rarely meet.
    shards: Box<[Mutex<HashMap<RecordId, Doings>>]>,
}

#[derive(Debug, Default)]
struct Doings {
    /// Turns that have not ended.
    open: usize,
    /// Those of them that write.
    writing: usize,
    /// Whether somebody puts a copy.
    filling: bool,
    /// How many writes began since the first open turn did, and how many copies were put.
    writes: u64,
    fills: u64,
}

const SHARDS: usize = 32;

impl Default for Turns {
    fn default() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
    }
}

impl Turns {
    /// Begins to ask the truth.
    pub(super) fn look(&self, id: &RecordId) -> Turn<'_> {
        self.begin(id, 0)
    }

    /// Begins to write. Until it ends, no copy is given or put.
    pub(super) fn write(&self, id: &RecordId) -> Turn<'_> {
        self.begin(id, 1)
    }

    /// Whether a copy might not be what stands, or is just being put.
    pub(super) fn are_under_way(&self, id: &RecordId) -> bool {
        let shard = self.shard(id);
        shard
            .get(id)
            .is_some_and(|doings| doings.writing > 0 || doings.filling)
    }

    fn begin(&self, id: &RecordId, writing: usize) -> Turn<'_> {
        let mut shard = self.shard(id);
        let doings = shard.entry(*id).or_default();
        doings.open += 1;
        doings.writing += writing;
        doings.writes += writing as u64;
        Turn {
            turns: self,
            id: *id,
            writing,
            undisturbed: doings.writing == writing,
            writes: doings.writes,
            fills: doings.fills,
        }
    }

    fn shard(&self, id: &RecordId) -> MutexGuard<'_, HashMap<RecordId, Doings>> {
        let shard = &self.shards[usize::from(id.as_bytes()[0]) % SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something that is being done about one record; it ends when it is dropped.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    id: RecordId,
    writing: usize,
    undisturbed: bool,
    writes: u64,
    fills: u64,
}

impl Turn<'_> {
    /// Begins to put a copy; `None` where somebody wrote since this turn began, or puts one already.
    pub(super) fn fill(&self) -> Option<Filling<'_>> {
        let mut shard = self.turns.shard(&self.id);
        let doings = shard.get_mut(&self.id)?;
        if !self.undisturbed || doings.writes != self.writes || doings.filling {
            return None;
        }
        doings.filling = true;
        doings.fills += 1;
        Some(Filling(self))
    }

    /// Whether a copy was put since this turn began.
    pub(super) fn was_filled(&self) -> bool {
        let shard = self.turns.shard(&self.id);
        shard
            .get(&self.id)
            .is_some_and(|doings| doings.fills != self.fills)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut shard = self.turns.shard(&self.id);
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
pub(super) struct Filling<'a>(&'a Turn<'a>);

impl Filling<'_> {
    /// Whether somebody began to write meanwhile.
    pub(super) fn is_outdated(&self) -> bool {
        let shard = self.0.turns.shard(&self.0.id);
        shard
            .get(&self.0.id)
            .is_none_or(|doings| doings.writes != self.0.writes)
    }
}

impl Drop for Filling<'_> {
    fn drop(&mut self) {
        let mut shard = self.0.turns.shard(&self.0.id);
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
        let turns = Turns::default();
        let before = turns.look(&ID);
        let write = turns.write(&ID);
        let during = turns.look(&ID);
        assert!(turns.are_under_way(&ID));
        drop(write);
        let after = turns.look(&ID);
        assert!(before.fill().is_none());
        assert!(during.fill().is_none());
        assert!(after.fill().is_some());
    }

    #[test]
    fn a_write_that_begins_while_a_copy_is_put_outdates_it() {
        let turns = Turns::default();
        let look = turns.look(&ID);
        let filling = look.fill().expect("nobody wrote");
        assert!(turns.are_under_way(&ID));
        assert!(!filling.is_outdated());
        drop(turns.write(&ID));
        assert!(filling.is_outdated());
        assert!(turns.are_under_way(&ID), "the copy is still being put");
        drop(filling);
        assert!(!turns.are_under_way(&ID));
    }

    #[test]
    fn one_at_a_time_puts_a_copy_and_others_know() {
        let turns = Turns::default();
        let (one, other) = (turns.look(&ID), turns.look(&ID));
        let filling = one.fill().expect("nobody wrote");
        assert!(other.fill().is_none());
        drop(filling);
        assert!(other.was_filled());
    }

    #[test]
    fn nothing_is_remembered_when_nothing_is_done() {
        let turns = Turns::default();
        drop((turns.look(&ID), turns.write(&ID)));
        assert!(
            turns
                .shards
                .iter()
                .all(|shard| { shard.lock().is_ok_and(|doings| doings.is_empty()) })
        );
    }
}
