//! Settles a step of which it is unknown whether it happened, or that was undone by hand.

use std::sync::Arc;

use serde::Serialize;

use super::Settle;
use crate::{
    error::{BoxError, Error, Moved, NotSettled},
    handle::{aimed, is_meant},
    key::KeyError,
    protocol::Settlement,
    record::label,
    record::label::StepLabel,
    record::{
        AttemptId, RawOutcome, Record, State, Step, StepName, StepState, Version, note::signed,
    },
    store::{Snapshot, StepWrite},
};

/// Settles one step of a call, on an operator's word: one that has begun, and of which no outcome
/// is recorded. The call goes on behind it with the next duplicate, and is not uncertain any more.
/// So it does behind a step whose value could not be kept
/// ([`Error::NotReplayable`]): an outcome takes the place of that value. A step that was undone by
/// hand is settled by [`undone`](Self::undone).
///
/// Two writes settle it: that of the step, and that of the call. If the call moves between them,
/// the act fails, and the step stays settled. That of a parked call resumes the call first.
///
/// # Cancel safety
///
/// Dropped at any await, it may have settled the step and not the call: settle it again.
#[derive(Debug)]
#[must_use = "nothing is settled until it is said how"]
pub struct SettleStep<'a> {
    settle: Settle<'a>,
    name: Result<StepName, KeyError>,
    for_version: Option<Version>,
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
        self.settles_step(label::named(&name))
    }

    /// Begins to settle a step as a list names it: [`StepRow::name`](super::StepRow::name).
    pub fn step_id(self, name: StepName) -> SettleStep<'a> {
        self.settles_step(Ok(name))
    }

    fn settles_step(self, name: Result<StepName, KeyError>) -> SettleStep<'a> {
        SettleStep {
            settle: self,
            name,
            for_version: None,
        }
    }
}

impl SettleStep<'_> {
    signed!(|it| it.settle.note);
    aimed!(|it| it.for_version);

    /// Sets the schema version of the value, if the step says `version`.
    pub fn version(mut self, schema: u32) -> Self {
        self.settle.schema = schema;
        self
    }

    /// It happened, with this value, which answers it from now on.
    ///
    /// A step whose value could not be kept is settled so in a call that is being undone, too, once
    /// nobody holds that call. A parked one is resumed: its next attempt finds the undos behind the
    /// step.
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
    /// [`Error::NotSettled`] when there is nothing to settle, [`Error::Store`] when the store
    /// fails.
    pub async fn not_happened(self) -> Result<(), Error> {
        self.ends(None).await
    }

    /// It was undone by hand: its undo does not run any more. A parked call is resumed, and the
    /// next one undoes the rest.
    ///
    /// The call has failed for good, and no attempt holds it: it is parked, or it is undoing past
    /// its lease.
    ///
    /// # Errors
    ///
    /// [`Error::NotSettled`] when there is nothing to undo, [`Error::Store`] when the store fails.
    pub async fn undone(self) -> Result<(), Error> {
        let (name, for_version) = (self.name()?, self.for_version);
        let settle = self.settle;
        let (record, step) = settle.find_step(name, why_not_undone).await?;
        if step.state == StepState::Undone {
            return Ok(());
        }
        settle.is_meant_step(for_version, &record, &step)?;
        if !step.is_to_be_undone() {
            return Err(settle.not(NotSettled::AlreadySettled));
        }
        let undone = Step {
            version: Version::random(),
            state: StepState::Undone,
            attempt_id: settle.undoing(&record).await?,
            note: settle.note.checked()?,
            ..Step::clone(&step)
        };
        settle.put_step(for_version, &record, &step, &undone).await
    }

    fn name(&self) -> Result<StepName, Error> {
        let operation = &self.settle.operation;
        self.name
            .map_err(Error::invalid_key(operation, label::STEP_NAME))
    }

    async fn ends(self, outcome: Option<RawOutcome>) -> Result<(), Error> {
        let (name, for_version) = (self.name()?, self.for_version);
        let mut settle = self.settle;
        let outcome = outcome.map(|outcome| outcome.with_schema(settle.schema));
        let record = settle.end_step(name, for_version, outcome).await?;
        match record.state {
            // Its next attempt undoes the steps, and nothing of it is in doubt.
            State::Undoing | State::Parked => Ok(()),
            _ => {
                settle.for_version.get_or_insert(record.version);
                settle.write(&Settlement::GoOn).await
            }
        }
    }
}

impl Settle<'_> {
    /// Ends a step, and returns its record as it stood.
    async fn end_step(
        &self,
        name: StepName,
        for_version: Option<Version>,
        outcome: Option<RawOutcome>,
    ) -> Result<Arc<Record>, Error> {
        let (record, step) = self.find_step(name, why_not_ended).await?;
        let (note, has_ended) = (self.note.checked()?, step.state != StepState::Begun);
        let is_own = note.is_some() && step.note == note;
        let is_meant = is_own || for_version.is_none_or(|meant| meant == step.version);
        if has_ended && step.outcome == outcome && is_meant {
            // The call was not settled with it.
            return Ok(record);
        }
        self.is_meant_step(for_version, &record, &step)?;
        let stands = step.outcome.as_ref();
        let lacks_outcome = stands.is_some_and(RawOutcome::is_not_replayable);
        let state = match (step.state, &outcome) {
            // An undone step answers, too, while the undos of others are looked for.
            (state, Some(_)) if lacks_outcome => state,
            _ if record.state == State::Undoing => return Err(self.not(NotSettled::StillRunning)),
            _ if record.state == State::Parked => return Err(self.not(NotSettled::AlreadySettled)),
            (StepState::Begun, Some(_)) => StepState::Done,
            (StepState::Begun, None) => StepState::Released,
            _ => return Err(self.not(NotSettled::AlreadySettled)),
        };
        let ended = Step {
            version: Version::random(),
            state,
            attempt_id: self.undoing(&record).await?,
            outcome,
            note,
            ..Step::clone(&step)
        };
        self.put_step(for_version, &record, &step, &ended).await?;
        Ok(record)
    }

    /// The attempt in whose name a step of this record is written. No step of a parked record can
    /// be written, so it is resumed.
    async fn undoing(&self, record: &Record) -> Result<AttemptId, Error> {
        match record.state {
            State::Parked => {
                let mut parked = self.clone();
                parked.for_version = Some(record.version);
                parked.resume().await?;
                Ok(AttemptId::RESUMED)
            }
            _ => Ok(record.attempt_id),
        }
    }

    /// The record and its step. `why_not` tells by the record, and by whether its lease is over,
    /// why the step cannot be settled.
    async fn find_step(
        &self,
        name: StepName,
        why_not: impl Fn(&Record, bool) -> Option<NotSettled> + Send,
    ) -> Result<(Arc<Record>, Arc<Step>), Error> {
        let store = self.handle.store();
        let snapshot = store.load(&self.id).await?;
        let Some(record) = snapshot.record else {
            return Err(self.not(self.unknown().await?));
        };
        let operation = &self.operation;
        is_meant(operation, self.for_version, record.version, || {
            Moved::record(&record)
        })?;
        if let Some(reason) = why_not(&record, record.lease_is_over(snapshot.now)) {
            return Err(self.not(reason));
        }
        let found = store
            .step_store()?
            .load_steps(&self.id, &name.alone())
            .await?;
        let Some(step) = found.into_iter().next() else {
            return Err(self.not(NotSettled::UnknownStep));
        };
        Ok((record, step))
    }

    fn is_meant_step(
        &self,
        for_version: Option<Version>,
        record: &Record,
        step: &Step,
    ) -> Result<(), Error> {
        let moved = || Moved::step(record, step);
        is_meant(&self.operation, for_version, step.version, moved)
    }

    async fn put_step(
        &self,
        for_version: Option<Version>,
        record: &Record,
        seen: &Step,
        next: &Step,
    ) -> Result<(), Error> {
        if let Some(audit) = self.handle.engine().unseen_audit() {
            audit.confirm(&self.operation).await?;
        }
        let store = self.handle.store().step_store()?;
        let seen = Some(seen.version);
        match store.write_step(&self.id, seen, next).await? {
            StepWrite::Written => Ok(()),
            StepWrite::Stands(stands) => {
                self.is_meant_step(for_version, record, &stands)?;
                Err(self.not(NotSettled::AlreadySettled))
            }
            StepWrite::Lost(stands) => Err(self.lost(for_version, &stands)),
        }
    }

    /// Why the record takes no such step any more.
    fn lost(&self, for_version: Option<Version>, stands: &Snapshot) -> Error {
        let Some(record) = &stands.record else {
            return self.not(NotSettled::UnknownKey);
        };
        match why_not_ended(record, record.lease_is_over(stands.now)) {
            Some(NotSettled::StillRunning) => self.not(NotSettled::StillRunning),
            why_not => {
                let moved = || Moved::record(record);
                let meant = self.for_version.or(for_version);
                let is_meant = is_meant(&self.operation, meant, record.version, moved);
                let why_not = why_not.unwrap_or(NotSettled::AlreadySettled);
                is_meant.err().unwrap_or_else(|| self.not(why_not))
            }
        }
    }
}

/// Why no outcome of a step can be settled; `None` if one can.
fn why_not_ended(record: &Record, lease_is_over: bool) -> Option<NotSettled> {
    match record.state {
        State::Running | State::Undoing if !lease_is_over => Some(NotSettled::StillRunning),
        State::Done => Some(NotSettled::AlreadySettled),
        State::Released => Some(NotSettled::UnknownKey),
        State::Running | State::Undoing | State::Uncertain | State::Parked => None,
    }
}

/// Why no step can be settled as undone; `None` if one can.
fn why_not_undone(record: &Record, lease_is_over: bool) -> Option<NotSettled> {
    let is_undone = || match record.state {
        State::Parked => record.outcome.is_some(),
        state => state == State::Undoing,
    };
    let why_not = why_not_ended(record, lease_is_over);
    why_not.or_else(|| (!is_undone()).then_some(NotSettled::NotUndoing))
}
