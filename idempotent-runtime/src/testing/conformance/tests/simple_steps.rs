//! The steps of that store.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, MutexGuard, PoisonError},
};

use tokio::task::yield_now;

use super::{Defect, simple::Simple};
use crate::{
    identity::RecordId,
    protocol::takes_steps,
    record::{AttemptId, Record, Step, StepName, StepNames, Time, Version},
    store::{Snapshot, StepWrite},
};

/// Every step that was ever written, by record and name, with the beginning of its life.
pub(super) type Steps = BTreeMap<([u8; 32], [u8; 32]), (Time, Arc<Step>)>;

impl Simple {
    fn steps(&self) -> MutexGuard<'_, Steps> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn step_place(&self, call: &RecordId, name: &StepName) -> ([u8; 32], [u8; 32]) {
        let mut name = *name.as_bytes();
        if self.defect == Defect::StepNamesComparedInPart {
            name[16..].fill(0);
        }
        (self.place(call), name)
    }

    fn record(&self, call: &RecordId) -> Option<Arc<Record>> {
        self.cells().get(&self.place(call)).cloned()
    }

    pub(super) fn find_steps(&self, call: &RecordId, names: &StepNames) -> Vec<Arc<Step>> {
        if names.start() == names.end() {
            return self.find_step(call, names.start()).into_iter().collect();
        }
        let known: Vec<_> = self.steps().values().map(|(_, step)| step.name).collect();
        let known: BTreeSet<_> = known.into_iter().filter(|it| names.contains(it)).collect();
        let mut found: Vec<_> = known
            .iter()
            .filter_map(|name| self.find_step(call, name))
            .collect();
        if self.defect == Defect::StepsListedBackwards {
            found.reverse();
        }
        found
    }

    fn find_step(&self, call: &RecordId, name: &StepName) -> Option<Arc<Step>> {
        let record = self.record(call)?;
        let (life, step) = self.steps().get(&self.step_place(call, name)).cloned()?;
        let is_seen = match self.defect {
            Defect::StepsOfEveryLife => true,
            Defect::StepsOfTheAttempt => step.attempt_id == record.attempt_id,
            _ => life == record.created,
        };
        is_seen.then_some(step)
    }

    fn takes(&self, call: &RecordId, attempt_id: AttemptId) -> Option<Arc<Record>> {
        let takes = |record: &Arc<Record>| match self.defect {
            Defect::StepWithoutFence => true,
            _ => takes_steps(record, attempt_id),
        };
        self.record(call).filter(takes)
    }

    pub(super) async fn put_step(
        &self,
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> StepWrite {
        let Some(record) = self.takes(call, next.attempt_id) else {
            let (now, record) = (self.now(), self.record(call));
            return StepWrite::Lost(Snapshot { now, record });
        };
        if self.defect == Defect::StepFenceReadEarly {
            for _ in 0..4 {
                yield_now().await;
            }
        }
        if let Some(stands) = self.find_step(call, &next.name)
            && seen != Some(stands.version)
            && self.defect != Defect::StepLastWriteWins
        {
            return StepWrite::Stands(stands);
        }
        if self.defect == Defect::StepCheckThenAct {
            yield_now().await;
        }
        let mut step = next.clone();
        if self.defect == Defect::StepLabelForgotten {
            step.label = "".into();
        }
        if self.defect == Defect::StepNoteForgotten {
            step.note = None;
        }
        let place = self.step_place(call, &next.name);
        self.steps().insert(place, (record.created, Arc::new(step)));
        StepWrite::Written
    }
}
