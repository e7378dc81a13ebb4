//! Steps in memory, beside the record of their call.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Cell, MemoryStore};
use crate::{
    identity::RecordId,
    protocol::takes_steps,
    record::{Step, StepNames, Version},
    store::{StepStore, StepWrite, StoreError},
};

#[async_trait]
impl StepStore for MemoryStore {
    async fn load_steps(
        &self,
        call: &RecordId,
        names: &StepNames,
    ) -> Result<Vec<Arc<Step>>, StoreError> {
        let cells = self.shard(call).lock();
        let Some(cell) = cells.records.get(call) else {
            return Ok(Vec::new());
        };
        let steps = cell.steps.range(names.clone());
        Ok(steps.map(|(_, step)| Arc::clone(step)).collect())
    }

    async fn write_step(
        &self,
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> Result<StepWrite, StoreError> {
        let mut cells = self.shard(call).lock();
        let takes = |cell: &&mut Cell| takes_steps(&cell.record, next.attempt_id);
        let Some(cell) = cells.records.get_mut(call).filter(takes) else {
            drop(cells);
            return Ok(StepWrite::Lost(self.look(call)));
        };
        match cell.steps.get(&next.name) {
            Some(step) if seen != Some(step.version) => Ok(StepWrite::Stands(Arc::clone(step))),
            _ => {
                cell.steps.insert(next.name, Arc::new(next.clone()));
                Ok(StepWrite::Written)
            }
        }
    }
}
