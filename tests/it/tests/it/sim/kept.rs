//! The contents of the simulated store, and a ledger of every version that ever stood in it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use idempotent_runtime::{
    identity::RecordId,
    protocol::takes_steps,
    record::{Draft, Record, Step, StepName, StepNames, Time, Version},
    store::{Snapshot, Stamp, StepWrite, Swap},
};

use super::faults::Fault;

#[derive(Debug, Default)]
pub(super) struct Cells {
    pub(super) standing: BTreeMap<RecordId, Arc<Record>>,
    pub(super) ledger: Vec<Entry>,
    pub(super) faults: Vec<Fault>,
    steps: BTreeMap<(RecordId, StepName), (Time, Arc<Step>)>,
    pub(super) step_ledger: Vec<StepEntry>,
}

/// One write: the record under an id before it, and after it.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) at: Time,
    pub(super) id: RecordId,
    pub(super) before: Option<Arc<Record>>,
    pub(super) after: Option<Arc<Record>>,
    /// Whether the caller was not told.
    pub(super) is_lost: bool,
    /// When it was applied, by a timer that those of its clients are never ahead of.
    pub(super) since: Duration,
}

/// One write of a step.
#[derive(Clone, Debug)]
pub(super) struct StepEntry {
    pub(super) call: RecordId,
    /// When the life began that it belongs to.
    pub(super) life: Time,
    /// How many writes of records there were before it.
    pub(super) writes: usize,
    pub(super) before: Option<Arc<Step>>,
    pub(super) after: Arc<Step>,
}

/// How many writes of records there were, and how many of steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) writes: usize,
    pub(super) steps: usize,
}

impl Cells {
    pub(super) fn look(&self, id: &RecordId, now: Time) -> Snapshot {
        Snapshot {
            now,
            record: self.standing.get(id).cloned(),
        }
    }

    pub(super) fn swap(
        &mut self,
        id: RecordId,
        seen: Option<Version>,
        next: &Draft,
        at: Time,
    ) -> Swap {
        let before = self.standing.get(&id).cloned();
        if before.as_ref().map(|record| record.version) != seen {
            return Swap::Refused(self.look(&id, at));
        }
        let after = Arc::new(next.apply(before.as_deref(), at));
        let stamp = Stamp::from_record(&after, at);
        self.standing.insert(id, Arc::clone(&after));
        self.ledger.push(Entry {
            at,
            id,
            before,
            after: Some(after),
            is_lost: false,
            since: Duration::ZERO,
        });
        Swap::Applied(stamp)
    }

    pub(super) fn purge(&mut self, limit: u32, keep: Duration, at: Time) -> u64 {
        let forgettable = |record: &Arc<Record>| record.is_forgettable(at, keep);
        let found = self
            .standing
            .iter()
            .filter(|(_, record)| forgettable(record));
        let ids: Vec<_> = found.map(|(id, _)| *id).take(limit as usize).collect();
        for id in &ids {
            let before = self.standing.remove(id);
            self.steps.retain(|(call, _), _| call != id);
            self.ledger.push(Entry {
                at,
                id: *id,
                before,
                after: None,
                is_lost: false,
                since: Duration::ZERO,
            });
        }
        ids.len() as u64
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            writes: self.ledger.len(),
            steps: self.step_ledger.len(),
        }
    }

    /// The steps of the life that the record is in.
    pub(super) fn find_steps(&self, call: &RecordId, names: &StepNames) -> Vec<Arc<Step>> {
        let Some(record) = self.standing.get(call) else {
            return Vec::new();
        };
        let range = (*call, *names.start())..=(*call, *names.end());
        let of_it = self.steps.range(range).map(|(_, kept)| kept);
        let of_it = of_it.filter(|(life, _)| *life == record.created);
        of_it.map(|(_, step)| Arc::clone(step)).collect()
    }

    pub(super) fn put_step(
        &mut self,
        call: RecordId,
        seen: Option<Version>,
        next: Arc<Step>,
        now: Time,
    ) -> StepWrite {
        let record = self.standing.get(&call);
        let Some(record) = record.filter(|record| takes_steps(record, next.attempt_id)) else {
            return StepWrite::Lost(self.look(&call, now));
        };
        let life = record.created;
        let before = self.find_steps(&call, &next.name.alone()).pop();
        if let Some(stands) = &before
            && seen != Some(stands.version)
        {
            return StepWrite::Stands(Arc::clone(stands));
        }
        self.steps
            .insert((call, next.name), (life, Arc::clone(&next)));
        self.step_ledger.push(StepEntry {
            call,
            life,
            writes: self.ledger.len(),
            before,
            after: next,
        });
        StepWrite::Written
    }
}
