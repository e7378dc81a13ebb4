//! One step from its name to its record, without the types of its body: this code is compiled once.

use std::sync::Arc;

use super::{AnyUndo, StepContext, described::Described};
use crate::{
    attempt::Attempt,
    engine::{
        Engine,
        lease::Lease,
        steps::{StepScope, Writer, Wrote},
    },
    error::Error,
    fingerprint::Fingerprinted,
    observe::{RecordChange, StepOutcome},
    policy::OnCrash,
    protocol::{StepDecision, decide_step},
    record::{RawOutcome, Step, StepName, StepState, Version, label::STEP_NAME},
    run::typed::record::OutcomePlace,
    store::StoreError,
};

/// How a step goes on.
pub(super) enum Begun {
    /// Its body runs, or the reconciling function is asked first.
    Run(Permit),
    /// The recorded outcome answers.
    Recorded(Permit, Arc<Step>),
    /// The call runs without a record, and so does the step.
    Unprotected(StepContext),
}

/// A step that may run: it has its name, and what it writes is written through this. Dropped before
/// an outcome is recorded, it lets go of its name, except where it must not run again.
pub(super) struct Permit {
    pub(super) attempt: Attempt,
    pub(super) engine: Arc<Engine>,
    pub(super) lease: Arc<Lease>,
    pub(super) label: &'static str,
    pub(super) name: StepName,
    pub(super) fingerprint: Fingerprinted,
    on_crash: OnCrash,
    schema: u32,
    /// The version of it that stands.
    pub(super) seen: Option<Version>,
    pub(super) undo: Option<AnyUndo>,
    /// Its number among the steps of its life that have an undo.
    pub(super) number: Option<u32>,
    /// Whether an earlier attempt began it, and the reconciling function knows more.
    asks: bool,
    pub(super) keeps_name: bool,
}

/// Takes a step's name, and finds out what it may do.
pub(super) async fn begin(described: Described) -> Result<Begun, Error> {
    let attempt = described.place()?;
    let operation = || Arc::clone(attempt.operation_name());
    let invalid = Error::invalid_key(attempt.operation_name(), STEP_NAME);
    let name = described.name.map_err(invalid)?;
    let Some(scope) = attempt.steps() else {
        return Ok(Begun::Unprotected(StepContext::new(&attempt, name, false)));
    };
    let held = scope.held().filter(|_| scope.is_open());
    let (engine, lease) = held.ok_or_else(|| attempt.lease_lost())?;
    let store = engine.store();
    store.step_store()?;
    store.accepts(described.strictest())?;
    if described.undo.is_some() && !scope.errors_can_end() {
        return Err(described.never_undone());
    }
    let fingerprint = described.arguments.finish(engine.fingerprint_key());
    let fingerprint = fingerprint.map_err(|source| Error::InvalidArguments {
        operation: operation(),
        source,
    })?;
    let is_version = described.is_version;
    let before = scope.take(name).map_err(|()| Error::DuplicateStep {
        operation: operation(),
        step: described.label,
    })?;
    let permit = Permit {
        attempt: attempt.clone(),
        engine: Arc::clone(&engine),
        lease,
        label: described.label,
        name,
        fingerprint,
        on_crash: described.on_crash,
        schema: described.version,
        seen: None,
        undo: described.undo,
        number: None,
        asks: false,
        keeps_name: false,
    };
    scope.begins();
    #[cfg(feature = "testing")]
    if let Some(replay) = scope.replay() {
        return permit.replay(replay, is_version).await;
    }
    if scope.is_looking() {
        return permit.look_for_undo(is_version).await;
    }
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
                self.has_undo(&step);
                return Ok(Begun::Recorded(self, step));
            }
            StepDecision::Changed(step) => return Err(self.changed(&step)),
            StepDecision::Uncertain(_) => return Err(self.doubt()),
            StepDecision::Ask(step) => (self.seen, self.asks) = (Some(step.version), true),
            StepDecision::Run(seen) => self.seen = seen,
        }
        self.check_open()?;
        let begun = found.filter(|step| step.state == StepState::Begun);
        match begun {
            Some(step) if self.undo.is_none() || step.undo.is_some() => self.has_undo(step),
            _ if self.on_crash != OnCrash::Rerun || self.undo.is_some() => {
                self.begin_durably().await?;
            }
            _ => {}
        }
        Ok(Begun::Run(self))
    }

    pub(super) fn changed(&self, step: &Step) -> Error {
        let theirs = step.fingerprint.digests();
        Error::StepChanged {
            operation: Arc::clone(self.attempt.operation_name()),
            step: self.label,
            differing: self.fingerprint.differing(&theirs),
        }
    }

    pub(super) fn context(&self) -> StepContext {
        StepContext::new(&self.attempt, self.name, self.asks)
    }

    pub(super) fn is_fresh(&self) -> bool {
        self.scope().is_fresh()
    }

    /// The place where its outcome is kept.
    pub(super) fn place(&self) -> OutcomePlace<'_> {
        OutcomePlace {
            operation: self.attempt.operation(),
            id: self.attempt.id(),
            coder: self.engine.coder(),
            schema: self.schema,
            longest: self.engine.defaults().max_outcome,
            forgets_errors: false,
        }
    }

    /// Names the step in an error that an outcome of its own leads to.
    pub(super) fn described(&self) -> Arc<str> {
        format!("{}: {}", self.attempt.operation(), self.label).into()
    }

    /// It is unknown whether it happened: the call becomes uncertain, whatever its body returns.
    pub(super) fn doubt(&mut self) -> Error {
        self.keeps_name = true;
        self.attempt.doubt()
    }

    pub(super) fn lost(&self) -> Error {
        self.attempt.lease_lost()
    }

    /// A step begins only while the lease stands and the body runs.
    pub(super) fn check_open(&self) -> Result<(), Error> {
        self.check_lease()?;
        match self.scope().is_open() {
            true => Ok(()),
            false => Err(self.lost()),
        }
    }

    /// It is written only while the lease stands, and until the call ends.
    pub(super) fn check_lease(&self) -> Result<(), Error> {
        let is_over = self.writer().is_over() || self.attempt.is_lost();
        match is_over || self.scope().held().is_none() {
            true => Err(self.lost()),
            false => Ok(()),
        }
    }

    pub(super) fn writer(&self) -> Writer<'_> {
        Writer {
            engine: &self.engine,
            lease: &self.lease,
        }
    }

    /// Looks at what stands under its name, again and again while the lease stands.
    pub(super) async fn look(&self) -> Result<Option<Arc<Step>>, Error> {
        let found = self.writer().look(&self.name.alone()).await?;
        let found = found.ok_or_else(|| self.lost())?.pop();
        if found.is_some() {
            self.scope().has_one();
        }
        Ok(found)
    }

    /// Writes that it has begun, before its body does.
    async fn begin_durably(&mut self) -> Result<(), Error> {
        if self.undo.is_some() {
            self.number = Some(self.take_number().await?);
        }
        let begun = self.step(StepState::Begun, None);
        let stands = self.write(&begun).await?;
        match stands {
            None => {
                self.seen = Some(begun.version);
                self.has_undo(&Arc::new(begun));
                self.check_open()
            }
            // A write of an earlier run of it in this attempt was in flight.
            Some(_) => Err(self.doubt()),
        }
    }

    /// Its body has ended without an outcome to record. A body that was dropped lets go of the name
    /// instead: the next step of it finds that this one has begun.
    pub(super) fn has_no_outcome(&mut self) {
        self.keeps_name |= self.on_crash == OnCrash::Uncertain;
    }

    /// Records how it ended. Gives the version that stands there instead, if one does: the first
    /// write wins.
    pub(super) async fn record(&mut self, outcome: RawOutcome) -> Result<Option<Arc<Step>>, Error> {
        let step = self.step(StepState::Done, Some(outcome));
        let stands = self.write(&step).await?;
        self.keeps_name = true;
        self.tell(match stands {
            None => StepOutcome::Executed,
            Some(_) => StepOutcome::Replayed,
        });
        Ok(stands)
    }

    /// Tells observers how it ended.
    pub(super) fn tell(&self, outcome: StepOutcome) {
        let observers = self.engine.observers();
        observers.step(&self.attempt, self.label, outcome);
    }

    /// Records that nothing happened, where it is registered to be undone.
    pub(super) async fn record_release(&mut self) -> Result<(), Error> {
        self.tell(StepOutcome::Released);
        if self.number.is_none() {
            return Ok(());
        }
        let released = self.step(StepState::Released, None);
        self.write(&released).await.map(drop)
    }

    /// Records that it is unknown how it ended.
    pub(super) async fn record_doubt(&mut self) -> Result<(), Error> {
        self.on_crash = OnCrash::Uncertain;
        let step = self.step(StepState::Begun, None);
        self.write(&step).await?;
        self.doubt();
        self.tell(StepOutcome::LeftUncertain);
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
            undo: self.number,
            note: None,
        }
    }

    /// Writes a version of the step, again and again while the lease stands. If it cannot, the
    /// attempt is poisoned. Gives another version that stands in its place.
    async fn write(&self, step: &Step) -> Result<Option<Arc<Step>>, Error> {
        let scope = self.scope();
        // In this order, because the end of the call closes first and asks then.
        scope.has_one();
        if scope.held().is_none() {
            return Err(self.lost());
        }
        match self.writer().write(self.seen, step).await {
            Ok(Wrote::Stands(stands)) => {
                scope.undos().moved(stands, step.outcome.clone());
                Ok(None)
            }
            Ok(Wrote::Other(stands)) => Ok(Some(stands)),
            Ok(Wrote::Lost) => Err(self.lose()),
            Err(error) => {
                self.poison(&error);
                Err(error.into())
            }
        }
    }

    /// The step is done and cannot be recorded: the next attempt must not find this one at work.
    pub(super) fn poison(&self, error: &StoreError) {
        let operation = self.attempt.operation();
        tracing::error!(
            operation, id = self.attempt.id().to_hex(), step = self.label, %error,
            "a step could not be recorded: this attempt of the call writes nothing more"
        );
        self.scope().poison();
        self.lease.abandon();
        self.lose();
    }

    /// Says that another attempt holds the record, or an operator has settled it.
    pub(super) fn lose(&self) -> Error {
        if self.attempt.lose() {
            let observers = self.engine.observers();
            observers.changed(&self.attempt, RecordChange::LeaseLost);
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
        let scope = self.scope();
        scope.ends();
        if !self.keeps_name {
            scope.let_go(self.name);
        }
    }
}
