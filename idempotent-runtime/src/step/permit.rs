//! One step from its name to its record, without the types of its body: what stands here is
//! compiled once.

use std::{sync::Arc, time::Duration};

use super::{StepContext, described::Described, name::STEP_NAME, scope::StepScope};
use crate::{
    attempt::{Attempt, try_current},
    error::Error,
    fingerprint::Fingerprinted,
    handle::Idempotency,
    lease::{StepDecision, decide_step},
    observe::RecordChange,
    policy::OnCrash,
    record::{OutcomeKind, RawOutcome, Step, StepName, StepState, Version},
    run::{lease::Lease, race, typed::record::Place},
    store::{StepWrite, StoreError, StoreErrorKind, no_steps},
};

tokio::task_local! {
    /// The attempt whose step runs here.
    pub(super) static INSIDE: Attempt;
}

/// What a step may do.
pub(super) enum Begun {
    /// Its body runs, or the reconciling function is asked first.
    Run(Permit),
    /// The recorded outcome answers.
    Recorded(Permit, Arc<Step>),
    /// The call runs without a record, and so does the step.
    Unprotected(StepContext),
}

/// A step that may run: it has its name, and what it writes is written through this. Dropped before
/// an outcome is recorded, it lets go of its name, but where it must not run again.
pub(super) struct Permit {
    pub(super) attempt: Attempt,
    pub(super) handle: Idempotency,
    pub(super) lease: Arc<Lease>,
    label: &'static str,
    name: StepName,
    fingerprint: Fingerprinted,
    on_crash: OnCrash,
    schema: u32,
    /// The version of it that stands.
    seen: Option<Version>,
    /// Whether an earlier attempt began it, and the reconciling function knows more.
    asks: bool,
    pub(super) keeps_name: bool,
}

/// Takes a step's name, and finds out what it may do.
pub(super) async fn begin(described: Described) -> Result<Begun, Error> {
    let attempt = described.place()?;
    let operation = || Arc::clone(attempt.operation_name());
    let name = described.name.map_err(|source| Error::InvalidKey {
        operation: operation(),
        part: STEP_NAME,
        source,
    })?;
    let Some(scope) = attempt.steps() else {
        return Ok(Begun::Unprotected(StepContext::new(&attempt, name, false)));
    };
    let lost = || Error::LeaseLost {
        operation: operation(),
    };
    let (handle, lease) = scope.held().ok_or_else(lost)?;
    let store = handle.store();
    if !store.keeps_steps() {
        return Err(no_steps().into());
    }
    store.accepts(described.on_crash)?;
    let fingerprint = described.arguments.finish(handle.fingerprint_key());
    let fingerprint = fingerprint.map_err(|source| Error::InvalidArguments {
        operation: operation(),
        source,
    })?;
    let before = scope.take(name).map_err(|()| Error::DuplicateStep {
        operation: operation(),
        step: described.label,
    })?;
    let mut permit = Permit {
        attempt: attempt.clone(),
        handle: handle.clone(),
        lease,
        label: described.label,
        name,
        fingerprint,
        on_crash: described.on_crash,
        schema: described.version,
        seen: None,
        asks: false,
        keeps_name: false,
    };
    let found = match scope.is_fresh() && before.is_none() {
        true => None,
        false => permit.look().await?,
    };
    permit.decide(found.as_ref()).await
}

impl Permit {
    /// Goes on from what stands under its name.
    async fn decide(mut self, found: Option<&Arc<Step>>) -> Result<Begun, Error> {
        match decide_step(found, &self.fingerprint, self.on_crash) {
            StepDecision::Replay(step) => {
                self.keeps_name = true;
                return Ok(Begun::Recorded(self, step));
            }
            StepDecision::Changed(step) => {
                let theirs = step.fingerprint.digests();
                return Err(Error::StepChanged {
                    operation: Arc::clone(self.attempt.operation_name()),
                    step: self.label,
                    differing: self.fingerprint.digests().differing(&theirs),
                });
            }
            StepDecision::Uncertain(_) => return Err(self.doubt()),
            StepDecision::Ask(step) => (self.seen, self.asks) = (Some(step.version), true),
            StepDecision::Run(seen) => self.seen = seen,
        }
        self.check_lease()?;
        if self.on_crash != OnCrash::Rerun && self.seen.is_none() {
            self.begin_durably().await?;
        }
        Ok(Begun::Run(self))
    }

    pub(super) fn context(&self) -> StepContext {
        StepContext::new(&self.attempt, self.name, self.asks)
    }

    pub(super) fn is_fresh(&self) -> bool {
        self.scope().is_fresh()
    }

    /// Where its outcome is kept.
    pub(super) fn place(&self) -> Place<'_> {
        Place {
            operation: self.attempt.operation(),
            id: self.attempt.id(),
            coder: self.handle.coder(),
            schema: self.schema,
            longest: self.handle.defaults().max_outcome,
        }
    }

    /// Names the step in an error that an outcome of its own leads to.
    pub(super) fn described(&self) -> Arc<str> {
        format!("{}: {}", self.attempt.operation(), self.label).into()
    }

    /// Nobody knows whether it happened: the call becomes uncertain, whatever its body returns.
    pub(super) fn doubt(&mut self) -> Error {
        self.keeps_name = true;
        self.attempt.doubt()
    }

    fn lost(&self) -> Error {
        Error::LeaseLost {
            operation: Arc::clone(self.attempt.operation_name()),
        }
    }

    /// A step begins only while the lease stands.
    pub(super) fn check_lease(&self) -> Result<(), Error> {
        let is_over = self.lease.is_over(self.handle.timer().now());
        match is_over || self.attempt.is_lost() {
            true => Err(self.lost()),
            false => Ok(()),
        }
    }

    /// Looks at what stands under its name, again and again while the lease stands.
    async fn look(&mut self) -> Result<Option<Arc<Step>>, Error> {
        let mut pause = FIRST_PAUSE;
        loop {
            self.check_lease()?;
            let looking = self.handle.store().load_step(self.attempt.id(), &self.name);
            match self.in_time(looking).await {
                Ok(found) => {
                    // Behind the lease it may be a step of another life.
                    self.check_lease()?;
                    if found.is_some() {
                        self.scope().has_one();
                    }
                    return Ok(found);
                }
                Err(error) if !error.is_transient() => return Err(error.into()),
                Err(_) => self.pause(&mut pause).await,
            }
        }
    }

    /// Writes that it has begun, before its body does.
    async fn begin_durably(&mut self) -> Result<(), Error> {
        let begun = self.step(StepState::Begun, None);
        let stands = self.write(&begun).await?;
        match stands {
            None => {
                self.seen = Some(begun.version);
                self.keeps_name = self.on_crash == OnCrash::Uncertain;
                self.check_lease()
            }
            // What was in flight of an earlier run of it in this attempt.
            Some(_) => Err(self.doubt()),
        }
    }

    /// Records how it ended. Gives what stands there instead, where something does: the first write
    /// wins.
    pub(super) async fn record(&mut self, outcome: RawOutcome) -> Result<Option<Arc<Step>>, Error> {
        let step = self.step(StepState::Done, Some(outcome));
        let stands = self.write(&step).await?;
        self.keeps_name = true;
        Ok(stands)
    }

    /// Records that nobody knows how it ended.
    pub(super) async fn record_doubt(&mut self) -> Result<(), Error> {
        self.on_crash = OnCrash::Uncertain;
        let step = self.step(StepState::Begun, None);
        self.write(&step).await?;
        self.doubt();
        Ok(())
    }

    pub(super) fn step(&self, state: StepState, outcome: Option<RawOutcome>) -> Step {
        Step {
            name: self.name,
            label: self.label.into(),
            version: Version::random(),
            state,
            attempt_id: self.lease.holding.attempt_id(),
            on_crash: self.on_crash,
            fingerprint: self.fingerprint.clone(),
            outcome,
        }
    }

    /// Writes a version of the step, again and again while the lease stands. Where it cannot, the
    /// attempt is poisoned. Gives another version that stands in its place.
    async fn write(&self, step: &Step) -> Result<Option<Arc<Step>>, Error> {
        let scope = self.scope();
        // In this order, because the end of the call closes first and asks then.
        scope.has_one();
        if scope.held().is_none() {
            return Err(self.lost());
        }
        let (mut step, mut pause) = (step.clone(), FIRST_PAUSE);
        loop {
            let store = self.handle.store();
            let writing = store.write_step(self.attempt.id(), self.seen, &step);
            let error = match self.in_time(writing).await {
                Ok(StepWrite::Written) => return Ok(None),
                Ok(StepWrite::Stands(stands)) => {
                    return Ok(Some(stands).filter(|stands| stands.version != step.version));
                }
                Ok(StepWrite::Lost(_)) => return Err(self.lose()),
                Err(error) => error,
            };
            if !error.is_transient() && lighten(&mut step) {
                continue;
            }
            if !error.is_transient() || self.lease.is_over(self.handle.timer().now()) {
                self.poison(&error);
                return Err(error.into());
            }
            self.pause(&mut pause).await;
        }
    }

    /// Awaits the store for as long as the lease stands, by the holder's own timer.
    async fn in_time<T>(
        &self,
        asking: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let limit = self.handle.timer().sleep_until(self.lease.ends());
        let silent = || StoreError::new(StoreErrorKind::Unavailable, "writing a step");
        let answer = race(asking, limit).await;
        answer.unwrap_or_else(|| Err(silent()))
    }

    async fn pause(&self, pause: &mut Duration) {
        let timer = self.handle.timer();
        let until = timer.now().saturating_add(*pause).min(self.lease.ends());
        timer.sleep_until(until).await;
        *pause = (*pause * 2).min(self.lease.holding.lease() / 12);
    }

    /// The step is done and cannot be recorded: the next attempt must not find this one at work.
    pub(super) fn poison(&self, error: &StoreError) {
        let operation = self.attempt.operation();
        tracing::error!(
            operation, id = %self.attempt.id(), step = self.label, %error,
            "a step could not be recorded: this attempt of the call writes nothing more"
        );
        self.scope().poison();
        self.lease.abandon();
        self.lose();
    }

    /// Says that another attempt holds the record, or somebody has settled it.
    pub(super) fn lose(&self) -> Error {
        let attempt = &self.attempt;
        if attempt.lose() {
            let (observers, change) = (self.handle.observers(), RecordChange::LeaseLost);
            observers.transition(attempt.operation(), attempt.id(), attempt.number(), change);
        }
        self.lost()
    }

    pub(super) fn scope(&self) -> &StepScope {
        let scope = self.attempt.steps();
        scope.expect("a permit is given by the scope of its attempt")
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if !self.keeps_name {
            self.scope().let_go(self.name);
        }
    }
}

/// How long a step waits before it asks the store again.
const FIRST_PAUSE: Duration = Duration::from_millis(15);

/// Takes an outcome away that a store will not keep, perhaps because of its size: it happened all
/// the same. Whether there was one.
fn lighten(step: &mut Step) -> bool {
    let light = RawOutcome::not_replayable();
    match &mut step.outcome {
        Some(outcome) if outcome.kind != OutcomeKind::NotReplayable => {
            *outcome = light;
            true
        }
        _ => false,
    }
}

impl Described {
    /// The attempt that the step is a part of, where a step can stand.
    fn place(&self) -> Result<Attempt, Error> {
        let step = self.label;
        let misplaced = |reason| Err(Error::MisplacedStep { step, reason });
        let Some(attempt) = try_current() else {
            return misplaced(
                "it is not in the body of an idempotent call; in a task spawned from one, use `attempt.enter(future)`",
            );
        };
        if INSIDE
            .try_with(|inside| inside.is(&attempt))
            .unwrap_or(false)
        {
            return misplaced("it is inside another step");
        }
        match attempt.steps() {
            Some(_) => Ok(attempt),
            None if attempt.is_of_number() => misplaced("a call with a number has no steps"),
            None if attempt.fencing_token().is_some() => Err(Error::StepInTransaction {
                operation: Arc::clone(attempt.operation_name()),
                step,
            }),
            None if self.on_crash == OnCrash::Rerun || attempt.is_switched_off() => Ok(attempt),
            None => {
                misplaced("the call runs unprotected, and nothing would keep that it has begun")
            }
        }
    }
}
