//! The requests of an attempt to its store about steps, repeated while its lease stands.

use std::{future::Future, sync::Arc, time::Duration};

use crate::{
    engine::Engine,
    engine::lease::Lease,
    race::race,
    record::{ListedStep, OutcomeKind, RawOutcome, Step, StepNames, StepState, Version},
    store::{Snapshot, StepWrite, StoreError, StoreErrorKind, Swap},
};

/// How long it waits before it asks the store again.
const FIRST_PAUSE: Duration = Duration::from_millis(15);

/// A store, as long as a lease of its records stands.
pub(crate) struct Writer<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) lease: &'a Lease,
}

/// How a write came out.
pub(crate) enum Wrote {
    /// It stands so, perhaps without its outcome.
    Stands(Arc<Step>),
    /// Another version stands in its place.
    Other(Arc<Step>),
    /// The record takes no steps of this attempt.
    Lost,
}

impl Writer<'_> {
    /// Whether the lease is over by the holder's own timer.
    pub(crate) fn is_over(&self) -> bool {
        self.lease.is_over(self.engine.timer().now())
    }

    /// Looks at the steps of these names; `None` where the lease is over.
    pub(crate) async fn look(
        &self,
        names: &StepNames,
    ) -> Result<Option<Vec<Arc<Step>>>, StoreError> {
        let (store, id) = (self.engine.store().step_store()?, self.lease.attempt.id());
        self.ask(|| store.load_steps(id, names)).await
    }

    /// Lists the steps of the life; `None` where the lease is over.
    pub(crate) async fn list(&self) -> Result<Option<Vec<ListedStep>>, StoreError> {
        let (store, id) = (self.engine.store().step_store()?, self.lease.attempt.id());
        self.ask(|| store.list_steps(id)).await
    }

    async fn ask<T, F>(&self, look: impl Fn() -> F) -> Result<Option<T>, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let mut pause = FIRST_PAUSE;
        while !self.is_over() {
            match self.in_time(look()).await {
                // Behind the lease they may be steps of another life.
                Ok(_) if self.is_over() => break,
                Ok(found) => return Ok(Some(found)),
                Err(error) if !error.is_transient() => return Err(error),
                Err(_) => self.pause(&mut pause).await,
            }
        }
        Ok(None)
    }

    /// Writes a version of a step over `seen`.
    pub(crate) async fn write(
        &self,
        seen: Option<Version>,
        step: &Step,
    ) -> Result<Wrote, StoreError> {
        let (store, id) = (self.engine.store().step_store()?, self.lease.attempt.id());
        let (mut step, mut pause) = (step.clone(), FIRST_PAUSE);
        loop {
            let error = match self.in_time(store.write_step(id, seen, &step)).await {
                Ok(StepWrite::Stands(stands)) if stands.version != step.version => {
                    return Ok(Wrote::Other(stands));
                }
                Ok(StepWrite::Stands(stands)) => return Ok(Wrote::Stands(stands)),
                Ok(StepWrite::Written) => return Ok(Wrote::Stands(Arc::new(step))),
                Ok(StepWrite::Lost(_)) => return Ok(Wrote::Lost),
                Err(error) => error,
            };
            if !error.is_transient() && lighten(&mut step) {
                continue;
            }
            if !error.is_transient() || self.is_over() {
                return Err(error);
            }
            self.pause(&mut pause).await;
        }
    }

    /// Has the record stay for as long as undos are open; whether it still belongs to this attempt.
    pub(crate) async fn keep_record(&self) -> Result<bool, StoreError> {
        let (store, lease) = (self.engine.store(), self.lease);
        // Every heartbeat from here on says so, too.
        lease.keep_undos();
        let (mut seen, mut pause) = (lease.version(), FIRST_PAUSE);
        loop {
            let sent_at = self.engine.timer().now();
            let draft = lease.heartbeat(Version::random());
            let swap = store.swap(lease.attempt.id(), Some(seen), &draft);
            match self.in_time(swap).await {
                Ok(Swap::Applied(stamp)) => {
                    lease.stands_at(stamp.version);
                    lease.prolonged(sent_at);
                    return Ok(true);
                }
                Ok(Swap::Refused(snapshot)) => match self.again(&snapshot) {
                    Some(version) => seen = version,
                    None => return Ok(false),
                },
                Err(error) if !error.is_transient() || self.is_over() => return Err(error),
                Err(_) => self.pause(&mut pause).await,
            }
        }
    }

    fn again(&self, snapshot: &Snapshot) -> Option<Version> {
        use crate::protocol::Beat;
        match self.lease.holding.refused_heartbeat(snapshot) {
            Beat::Again(version) => Some(version),
            Beat::Over | Beat::Lost => None,
        }
    }

    /// Awaits the store for as long as the lease stands, by the holder's own timer.
    async fn in_time<T>(
        &self,
        asking: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let limit = self.engine.timer().sleep_until(self.lease.ends());
        let silent = || StoreError::new(StoreErrorKind::Unavailable, "writing a step");
        let answer = race(asking, limit).await;
        answer.unwrap_or_else(|| Err(silent()))
    }

    async fn pause(&self, pause: &mut Duration) {
        let timer = self.engine.timer();
        let until = timer.now().saturating_add(*pause).min(self.lease.ends());
        timer.sleep_until(until).await;
        *pause = (*pause * 2).min(self.lease.holding.lease() / 12);
    }
}

/// Takes away an outcome that a store will not keep, perhaps because of its size: it happened all
/// the same. The write of an undo carries one that stands already: it stays. Tells whether there
/// was one to take away.
fn lighten(step: &mut Step) -> bool {
    let is_new = step.state != StepState::Undone;
    match &mut step.outcome {
        Some(outcome) if is_new && outcome.kind != OutcomeKind::NotReplayable => {
            *outcome = RawOutcome::not_replayable();
            true
        }
        _ => false,
    }
}
