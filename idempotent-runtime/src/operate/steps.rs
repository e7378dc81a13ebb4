//! The steps of one call, as operators see them.

use std::sync::Arc;

use super::row::OutcomeSummary;
use crate::{
    error::Error,
    handle::Idempotency,
    identity::RecordId,
    policy::OnCrash,
    record::{Note, Step, StepName, StepState, Version},
};

/// A step as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StepRow {
    /// The name, by which [`Settle::step_id`](super::Settle::step_id) finds the step.
    pub name: StepName,
    /// The literal part of the name, for people.
    pub label: Arc<str>,
    /// The state.
    pub state: StepState,
    /// The crash policy: what becomes of it if it has begun and its holder vanishes.
    pub on_crash: OnCrash,
    /// Names the version that stands.
    pub version: Version,
    /// The outcome, if there is one.
    pub outcome: Option<OutcomeSummary>,
    /// Whether it is undone when its call fails for good.
    pub is_to_be_undone: bool,
    /// The person who wrote this version, and why.
    pub note: Option<Arc<Note>>,
}

impl Idempotency {
    /// Lists the steps of a call, in the order of their names. A store that keeps no steps lists
    /// none.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] when the store fails.
    ///
    /// # Cancel safety
    ///
    /// It only reads.
    pub async fn steps(&self, id: RecordId) -> Result<Vec<StepRow>, Error> {
        let Some(store) = self.store().steps() else {
            return Ok(Vec::new());
        };
        let steps = store.load_steps(&id, &StepName::ALL).await?;
        Ok(steps.iter().map(|step| StepRow::from(&**step)).collect())
    }
}

impl From<&Step> for StepRow {
    fn from(step: &Step) -> Self {
        let outcome = step.outcome.as_ref();
        Self {
            name: step.name,
            label: Arc::clone(&step.label),
            state: step.state,
            on_crash: step.on_crash,
            version: step.version,
            outcome: outcome.map(OutcomeSummary::from),
            is_to_be_undone: step.is_to_be_undone(),
            note: step.note.clone(),
        }
    }
}
