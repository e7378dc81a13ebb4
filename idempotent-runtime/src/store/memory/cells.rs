//! The records of one shard, and the index of what needs somebody.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    mem,
    sync::Arc,
    time::Duration,
};

use super::{hasher::IdHasher, newest::Newest};
use crate::{
    identity::RecordId,
    record::{Draft, FencingToken, Record, Step, StepName, Time, Version},
    store::Stamp,
};

/// A record, how long it stays once it is expired, and the steps of its life.
pub(super) struct Cell {
    pub(super) record: Arc<Record>,
    pub(super) keep: Duration,
    pub(super) steps: BTreeMap<StepName, Arc<Step>>,
}

pub(super) struct Cells {
    pub(super) records: HashMap<RecordId, Cell, IdHasher>,
    /// The records that need somebody. Such a record is never forgotten.
    pub(super) attention: BTreeSet<RecordId>,
    pub(super) newest: Newest,
    /// How many records there may be before the next one that comes in has the expired ones swept.
    pub(super) sweep_at: usize,
    /// The largest token among the records that were forgotten: a record that begins again gets a
    /// larger one.
    pub(super) forgotten: FencingToken,
}

/// The result of a draft, with the parts that are to be freed outside the lock.
pub(super) enum Put {
    Refused(Option<Arc<Record>>),
    Over(Stamp, Previous),
    Anew(Stamp, Vec<(RecordId, Cell)>),
}

/// A version that was written over, by its value or as callers hold it, and the steps of its life
/// if that is over.
pub(super) struct Previous {
    _record: Result<Record, Arc<Record>>,
    _steps: Option<BTreeMap<StepName, Arc<Step>>>,
}

pub(super) const FIRST_SWEEP: usize = 64;

impl Default for Cells {
    fn default() -> Self {
        Self {
            records: HashMap::default(),
            attention: BTreeSet::new(),
            newest: Newest::default(),
            sweep_at: FIRST_SWEEP,
            forgotten: FencingToken::from_u64(0),
        }
    }
}

impl Cell {
    fn new(record: Record, draft: &Draft) -> Self {
        Self {
            record: Arc::new(record),
            keep: draft.keep,
            steps: BTreeMap::new(),
        }
    }

    /// Puts the next version in the place of this one. If no caller holds this one, its memory is
    /// used again.
    fn write(&mut self, next: Record, draft: &Draft) -> Previous {
        self.keep = draft.keep;
        let begins = draft.subject.is_some();
        let record = match Arc::get_mut(&mut self.record) {
            Some(record) => Ok(mem::replace(record, next)),
            None => Err(mem::replace(&mut self.record, Arc::new(next))),
        };
        Previous {
            _record: record,
            _steps: begins.then(|| mem::take(&mut self.steps)),
        }
    }
}

impl Cells {
    pub(super) fn put(
        &mut self,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
        now: Time,
    ) -> Put {
        if let Some(stands) = self.records.get_mut(id) {
            if seen != Some(stands.record.version) {
                return Put::Refused(Some(Arc::clone(&stands.record)));
            }
            let record = next.apply(Some(&stands.record), now);
            let stamp = Stamp::from_record(&record, now);
            let needed = stands.record.state.needs_attention();
            if stands.record.created != record.created {
                self.newest.leave(*id, &stands.record);
                self.newest.enter(*id, &record);
            }
            let previous = stands.write(record, next);
            self.attend(*id, needed, next);
            return Put::Over(stamp, previous);
        }
        if seen.is_some() || next.subject.is_none() {
            return Put::Refused(None);
        }
        let swept = self.sweep(now);
        let mut record = next.apply(None, now);
        record.token = record.token.max(self.forgotten.next(now));
        let stamp = Stamp::from_record(&record, now);
        self.newest.enter(*id, &record);
        self.records.insert(*id, Cell::new(record, next));
        self.attend(*id, false, next);
        Put::Anew(stamp, swept)
    }

    /// Notes whether a record needs somebody, if that has changed.
    fn attend(&mut self, id: RecordId, needed: bool, written: &Draft) {
        match (needed, written.state.needs_attention()) {
            (false, true) => {
                self.attention.insert(id);
            }
            (true, false) => {
                self.attention.remove(&id);
            }
            _ => {}
        }
    }

    /// Forgets the records that are no longer needed, once there are twice as many in all as the
    /// last sweep left. All sweeps together look at about two records for each one that came in.
    fn sweep(&mut self, now: Time) -> Vec<(RecordId, Cell)> {
        if self.records.len() < self.sweep_at {
            return Vec::new();
        }
        let swept = self.forget(usize::MAX, |cell| {
            cell.record.is_forgettable(now, cell.keep)
        });
        self.sweep_at = FIRST_SWEEP.max(self.records.len().saturating_mul(2));
        swept
    }

    pub(super) fn forget(
        &mut self,
        limit: usize,
        which: impl Fn(&Cell) -> bool,
    ) -> Vec<(RecordId, Cell)> {
        let needless = self.records.extract_if(|_, cell| which(cell));
        let forgotten: Vec<_> = needless.take(limit).collect();
        if !forgotten.is_empty() {
            self.newest.retain(|id| self.records.contains_key(id));
        }
        let largest = forgotten.iter().map(|(_, cell)| cell.record.token).max();
        self.forgotten = self.forgotten.max(largest.unwrap_or(self.forgotten));
        forgotten
    }
}
