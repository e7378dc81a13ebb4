//! Settles a step of which it is unknown whether it happened.

use std::sync::Arc;

use serde::Serialize;

use super::{NotSettled, Settle};
use crate::{
    error::{BoxError, Error},
    key::KeyError,
    lease::Settlement,
    record::{RawOutcome, Record, Step, StepName, StepState, Version},
    step::{StepLabel, name},
    store::StepWrite,
};

/// Settles one step of a call, on an operator's word: one that has begun, and of which no outcome
/// is recorded. The call goes on behind it with the next duplicate, and is not uncertain any more.
///
/// # Cancel safety
///
/// Dropped at any await, it may have settled the step and not the call: settle it again.
#[derive(Debug)]
#[must_use = "nothing is settled until it is said how"]
pub struct SettleStep<'a> {
    settle: Settle<'a>,
    name: Result<StepName, KeyError>,
}

impl<'a> Settle<'a> {
    /// Begins to settle a step of the call, by the name that it has there.
    ///
    /// # Examples
    ///
    /// ```
    /// # use idempotent_runtime::{BoxError, Idempotency};
    /// # async fn example(idem: Idempotency) -> Result<(), BoxError> {
    /// // The airline shows the booking: the step happened.
    /// let call = idem.settle("trips.book", Some("customer-7"), "trip-42")?;
    /// call.step("flight").with_value(&"seat 12A").await?;
    /// # Ok(()) }
    /// ```
    pub fn step<N: StepLabel>(self, name: N) -> SettleStep<'a> {
        SettleStep {
            settle: self,
            name: name::named(&name),
        }
    }
}

impl SettleStep<'_> {
    /// Sets the schema version of the value, if the step says `version`.
    pub fn version(mut self, schema: u32) -> Self {
        self.settle.schema = schema;
        self
    }

    /// It happened, with this value, which answers it from now on.
    ///
    /// # Errors
    ///
    /// [`Error::NotSettled`] when there is nothing to settle; when the value cannot be encoded, or
    /// the store fails.
    pub async fn with_value<T: Serialize>(self, value: &T) -> Result<(), BoxError> {
        let bytes = self.settle.handle.coder().encode(value)?;
        Ok(self.ends(Some(RawOutcome::value(bytes))).await?)
    }

    /// It failed for good, with this error, which answers it from now on if its `on_error` reads
    /// one back.
    ///
    /// # Errors
    ///
    /// As [`with_value`](Self::with_value).
    pub async fn with_error<E: Serialize>(self, error: &E) -> Result<(), BoxError> {
        let bytes = self.settle.handle.coder().encode(error)?;
        Ok(self.ends(Some(RawOutcome::error(bytes))).await?)
    }

    /// It did not happen: the next attempt runs it.
    ///
    /// # Errors
    ///
    /// [`Error::NotSettled`] when there is nothing to settle, [`Error::Store`] when the store fails.
    pub async fn not_happened(self) -> Result<(), Error> {
        self.ends(None).await
    }

    async fn ends(self, outcome: Option<RawOutcome>) -> Result<(), Error> {
        let Self { settle, name } = self;
        let name = name.map_err(|source| Error::InvalidKey {
            operation: Arc::clone(&settle.operation),
            part: name::STEP_NAME,
            source,
        })?;
        let outcome = outcome.map(|outcome| outcome.with_schema(settle.schema));
        settle.write_step(name, outcome).await?;
        settle.write(&Settlement::GoOn).await
    }
}

impl Settle<'_> {
    async fn write_step(&self, name: StepName, outcome: Option<RawOutcome>) -> Result<(), Error> {
        let store = self.handle.store();
        let snapshot = store.load(&self.id).await?;
        let Some(record) = snapshot.record else {
            return Err(self.not(self.unknown().await?));
        };
        if let Some(reason) = self.why_no_step(&record, record.lease_is_over(snapshot.now)) {
            return Err(self.not(reason));
        }
        let found = store.load_steps(&self.id, &name.alone()).await?;
        let Some(step) = found.first() else {
            return Err(self.not(NotSettled::UnknownStep));
        };
        let ended = |outcome: Option<RawOutcome>| Step {
            version: Version::random(),
            state: outcome
                .as_ref()
                .map_or(StepState::Released, |_| StepState::Done),
            attempt_id: record.attempt_id,
            outcome,
            ..Step::clone(step)
        };
        match step.state {
            StepState::Begun => {}
            // The call was not settled with it.
            StepState::Done | StepState::Released if step.outcome == outcome => return Ok(()),
            _ => return Err(self.not(NotSettled::AlreadySettled)),
        }
        let seen = Some(step.version);
        match store.write_step(&self.id, seen, &ended(outcome)).await? {
            StepWrite::Written => Ok(()),
            StepWrite::Stands(_) => Err(self.not(NotSettled::AlreadySettled)),
            StepWrite::Lost(_) => Err(self.not(NotSettled::StillRunning)),
        }
    }

    fn why_no_step(&self, record: &Record, lease_is_over: bool) -> Option<NotSettled> {
        use crate::record::State;
        match record.state {
            State::Uncertain => None,
            State::Running if lease_is_over => None,
            State::Running | State::Undoing => Some(NotSettled::StillRunning),
            State::Done | State::Parked => Some(NotSettled::AlreadySettled),
            State::Released => Some(NotSettled::UnknownKey),
        }
    }
}
