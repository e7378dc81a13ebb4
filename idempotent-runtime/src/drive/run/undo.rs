//! Undoes what the steps did of a call that has failed for good.

use std::{
    collections::HashMap,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use crate::{
    attempt::{Attempt, INSIDE},
    engine::{
        ending::Ended,
        lease::Lease,
        steps::{Registered, StepContext, StepScope, Writer, Wrote},
    },
    error::Error,
    handle::Idempotency,
    observe::{CallOutcome, StepOutcome},
    outcome::Stored,
    protocol::Ending,
    race::{race, survive},
    record::{ListedStep, OutcomeKind, Step, StepName, StepState, Version},
    run::active_call::{ActiveCall, Instead},
    store::StoreError,
};

/// How often an attempt tries an undo.
const TRIES: u32 = 3;

/// How long it waits before the second try, and four times as long before the third.
const PAUSE: Duration = Duration::from_millis(50);

/// The results of an attempt to undo, by the labels of the steps.
#[derive(Debug, Default)]
struct Undone {
    undone: Vec<String>,
    left: Vec<String>,
}

/// Why it stopped in the middle: the next attempt goes on.
enum Stopped {
    Lost,
    Store(StoreError),
}

impl From<StoreError> for Stopped {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl ActiveCall {
    /// Polls the body of a call that has failed for good, only to find the undos of its steps
    /// again, and then undoes them. Gives what answers the call.
    pub(crate) async fn find_and_undo<B: Future>(
        &mut self,
        attempt: &Attempt,
        body: Pin<&mut Option<B>>,
    ) -> Instead {
        let steps = match self.find_undos(attempt, body).await {
            Ok(steps) => steps,
            Err(stopped) => return self.stopped(stopped),
        };
        match self.undo(attempt, Some(steps)).await {
            Ok(is_written) => self.recorded_error(attempt, is_written).await,
            Err(instead) => instead,
        }
    }

    /// Until every open undo is found, or the body and its tasks end, or too long a time has
    /// passed.
    async fn find_undos<B: Future>(
        &mut self,
        attempt: &Attempt,
        body: Pin<&mut Option<B>>,
    ) -> Result<Vec<ListedStep>, Stopped> {
        let (Some(undoing), Some(scope)) = (self.undoing(attempt), attempt.steps()) else {
            return Err(Stopped::Lost);
        };
        let steps = undoing.steps(scope).await?;
        let open = steps.iter().filter(|step| step.is_to_be_undone());
        scope.undos().look_for(open);
        if scope.undos().are_found() {
            // Nothing of the body runs if nothing is looked for.
            return Ok(steps);
        }
        let grace = self.request.handle.defaults().step_grace;
        let limit = self.request.handle.timer().sleep(grace);
        let mut running = pin!(async {
            drop(self.run(attempt, body).await);
            scope.is_through().await;
        });
        let mut finding = pin!(scope.undos().found());
        let looking = poll_fn(|cx| match running.as_mut().poll(cx) {
            Poll::Ready(_) => Poll::Ready(()),
            Poll::Pending => finding.as_mut().poll(cx),
        });
        race(looking, limit).await;
        match scope.undos().out_of_reach() {
            Some(error) => Err(error.into()),
            None => Ok(steps),
        }
    }

    /// Undoes what is open, from the latest step on, and records the error of the call. Gives what
    /// answers the call instead of its own error, else whether that stands already.
    ///
    /// `steps` are those of the life, where they were looked at.
    pub(super) async fn undo(
        &mut self,
        attempt: &Attempt,
        steps: Option<Vec<ListedStep>>,
    ) -> Result<bool, Instead> {
        let (Some(undoing), Some(scope)) = (self.undoing(attempt), attempt.steps()) else {
            return Err(self.stopped(Stopped::Lost));
        };
        scope.close();
        let steps = match steps {
            Some(steps) => Ok(steps),
            None => undoing.steps(scope).await,
        };
        let undone = match steps {
            // The body ended before it came to all that an earlier attempt began: the next attempt
            // polls it to find the rest.
            Ok(steps) if !scope.is_looking() && !scope.undos().know(&steps) => Err(Stopped::Lost),
            Ok(steps) => undoing.run(scope, &steps).await,
            Err(stopped) => Err(stopped),
        };
        let undone = undone.map_err(|stopped| self.stopped(stopped))?;
        let ending = match (&undone.left[..], undoing.lease.holding.error()) {
            ([], Some(error)) => Ending::Done(error.clone()),
            _ => Ending::NotUndone,
        };
        let Some(held) = &mut self.held else {
            return Err(self.stopped(Stopped::Lost));
        };
        let ended = held.end(ending).await;
        if let Ok(Ended::Lost(_)) = ended {
            return Err(self.stopped(Stopped::Lost));
        }
        let Undone { undone, left } = undone;
        if left.is_empty() {
            return Ok(ended.is_ok());
        }
        let not_undone = Error::NotUndone {
            operation: Arc::clone(&self.request.operation),
            undone,
            left,
            id: *attempt.id(),
        };
        Err(not_undone.into())
    }

    fn undoing(&self, attempt: &Attempt) -> Option<Undoing> {
        let held = self.held.as_ref()?;
        Some(Undoing {
            attempt: attempt.clone(),
            handle: self.request.handle.clone(),
            lease: Arc::clone(held.lease()),
        })
    }

    /// Leaves the rest to the next attempt.
    fn stopped(&mut self, why: Stopped) -> Instead {
        self.held = None;
        match why {
            Stopped::Lost => self.lease_lost().into(),
            Stopped::Store(error) => error.into(),
        }
    }

    /// The error that has just been recorded.
    async fn recorded_error(&mut self, attempt: &Attempt, is_written: bool) -> Instead {
        self.held = None;
        match self.request.handle.store().load(&self.request.id).await {
            Ok(snapshot) => match snapshot.record {
                Some(record) if self.request.is_about(&record) => {
                    self.executed(attempt, CallOutcome::ExecutedAfterTakeover, is_written);
                    Instead::Recorded(record)
                }
                _ => self.lease_lost().into(),
            },
            Err(error) => error.into(),
        }
    }
}

/// One attempt to undo.
struct Undoing {
    attempt: Attempt,
    handle: Idempotency,
    lease: Arc<Lease>,
}

impl Undoing {
    fn writer(&self) -> Writer<'_> {
        Writer {
            engine: self.handle.engine(),
            lease: &self.lease,
        }
    }

    /// The steps that have an undo, from the latest on. An attempt that began the life knows all
    /// of them.
    async fn steps(&self, scope: &StepScope) -> Result<Vec<ListedStep>, Stopped> {
        let mut steps: Vec<_> = if scope.is_fresh() {
            let known = scope.undos().all().into_values();
            known.map(|known| ListedStep::from(&*known.step)).collect()
        } else {
            self.writer().list().await?.ok_or(Stopped::Lost)?
        };
        steps.retain(|step| step.undo.is_some());
        steps.sort_by_key(|step| std::cmp::Reverse(step.undo));
        Ok(steps)
    }

    async fn run(&self, scope: &StepScope, steps: &[ListedStep]) -> Result<Undone, Stopped> {
        let known = scope.undos().all();
        let mut came_of_it = Undone::default();
        for step in steps {
            let label = step.label.to_string();
            if step.state == StepState::Undone {
                came_of_it.undone.push(label);
            } else if step.is_to_be_undone() {
                let is_undone = self.undo_known(scope, step, &known).await?;
                let (outcome, list) = match is_undone {
                    true => (StepOutcome::Undone, &mut came_of_it.undone),
                    false => (StepOutcome::NotUndone, &mut came_of_it.left),
                };
                let observers = self.handle.observers();
                observers.step(&self.attempt, &label, outcome);
                list.push(label);
            }
        }
        Ok(came_of_it)
    }

    /// Whether it is undone. A step whose undo was not found is not.
    async fn undo_known(
        &self,
        scope: &StepScope,
        listed: &ListedStep,
        known: &HashMap<StepName, Registered>,
    ) -> Result<bool, Stopped> {
        let Some(known) = known.get(&listed.name) else {
            self.warn(&listed.label, &"the body did not come to this step");
            return Ok(false);
        };
        let step = &self.whole(scope, known).await?;
        if step.fingerprint != known.step.fingerprint {
            self.warn(&step.label, &"its arguments are others now");
            return Ok(false);
        }
        let mut pause = PAUSE;
        for number in 1..=TRIES {
            if self.writer().is_over() || self.attempt.is_lost() {
                return Err(Stopped::Lost);
            }
            match self.try_once(step, known).await {
                Ok(()) => return self.record(step).await.map(|()| true),
                Err(error) => self.warn(&step.label, &error),
            }
            if number < TRIES {
                self.handle.timer().sleep(pause).await;
                pause *= 4;
            }
        }
        Ok(false)
    }

    /// The step with its outcome. An attempt that began the life knows it.
    async fn whole(&self, scope: &StepScope, known: &Registered) -> Result<Arc<Step>, Stopped> {
        if scope.is_fresh() {
            return Ok(Arc::clone(&known.step));
        }
        let found = self.writer().look(&known.step.name.alone()).await?;
        let found = found.ok_or(Stopped::Lost)?;
        found.into_iter().next().ok_or(Stopped::Lost)
    }

    async fn try_once(&self, step: &Step, known: &Registered) -> Result<(), String> {
        let context = StepContext::new(&self.attempt, step.name, false);
        let value = known.outcome.as_ref().or(step.outcome.as_ref());
        let value = value.filter(|outcome| outcome.kind == OutcomeKind::Value);
        let value = value.map(|outcome| Stored::new(outcome.clone(), self.handle.coder().clone()));
        let undoing = async { known.undo.run(context, value).await };
        let inside = INSIDE.scope(self.attempt.clone(), undoing);
        let limit = self.handle.defaults().undo_timeout;
        let attempt = self.attempt.within(step.name, true);
        let tried = survive(attempt.enter(inside));
        match race(tried, self.handle.timer().sleep(limit)).await {
            Some(Some(undone)) => undone.map_err(|error| error.to_string()),
            Some(None) => Err("it panicked".to_owned()),
            None => Err("it did not end within `undo_timeout`".to_owned()),
        }
    }

    /// Records that it is undone.
    async fn record(&self, step: &Step) -> Result<(), Stopped> {
        let (own, mut seen) = (self.lease.holding.attempt_id(), step.version);
        let mut undone = Step {
            version: Version::random(),
            state: StepState::Undone,
            attempt_id: own,
            note: None,
            ..step.clone()
        };
        loop {
            match self.writer().write(Some(seen), &undone).await {
                Ok(Wrote::Stands(_)) => return Ok(()),
                // The step was dropped while its outcome was written, and that write came through.
                Ok(Wrote::Other(late)) if late.attempt_id == own => {
                    seen = late.version;
                    undone.outcome.clone_from(&late.outcome);
                }
                Ok(Wrote::Other(_) | Wrote::Lost) => {
                    self.attempt.lose();
                    return Err(Stopped::Lost);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn warn(&self, label: &str, error: &dyn std::fmt::Display) {
        tracing::warn!(
            operation = self.attempt.operation(), id = self.attempt.id().to_hex(),
            step = label, %error, "a step is not undone"
        );
    }
}
