//! The writes of a permit in a transaction.

use std::sync::Arc;

use super::permit::Permit;
use crate::{
    error::Error,
    record::{Step, Version},
    store::{JoinedConnection, StepWrite, StoreError},
};

impl Permit {
    /// Writes a version of the step in the transaction that is open there. Gives another version
    /// that stands in its place.
    pub(super) async fn write_in(
        &self,
        connection: JoinedConnection<'_>,
        seen: Option<Version>,
        step: &Step,
    ) -> Result<Option<Arc<Step>>, Error> {
        self.check_lease()?;
        match self.try_write_in(connection, seen, step).await? {
            StepWrite::Written => Ok(None),
            StepWrite::Stands(stands) => Ok(Some(stands)),
            StepWrite::Lost(_) => Err(self.lose()),
        }
    }

    pub(super) async fn try_write_in(
        &self,
        mut connection: JoinedConnection<'_>,
        seen: Option<Version>,
        step: &Step,
    ) -> Result<StepWrite, StoreError> {
        let store = self.engine.store().transaction_store()?;
        let call = self.attempt.id();
        store.write_step_in(&mut connection, call, seen, step).await
    }

    /// From now on its life may have the step.
    pub(super) fn commits(&self) {
        self.scope().has_one();
    }

    /// Keeps its name, because it is recorded.
    pub(super) fn has_committed(&mut self) {
        self.keeps_name = true;
    }
}
