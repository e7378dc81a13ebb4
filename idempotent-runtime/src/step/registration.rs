//! Steps with an undo: how they are registered, and found again.

#[cfg(feature = "testing")]
use std::future::pending;
use std::sync::Arc;

use super::permit::{Begun, Permit};
use crate::{
    error::Error,
    record::{RawOutcome, Step},
};

impl Permit {
    /// Notes the undo of a step that stands so.
    pub(super) fn has_undo(&mut self, step: &Arc<Step>) {
        self.number = step.undo;
        if let Some(undo) = self.undo.clone().filter(|_| step.undo.is_some()) {
            // An attempt that goes on with others' steps reads a value again for its undo.
            let known = match self.is_fresh() {
                true => Arc::clone(step),
                false => Arc::new(Step {
                    outcome: None,
                    ..Step::clone(step)
                }),
            };
            self.scope().undos().register(known, undo);
        }
    }

    /// Has the record stay for as long as undos are open, and gives the next number.
    pub(super) async fn take_number(&self) -> Result<u32, Error> {
        let (scope, writer) = (self.scope(), self.writer());
        scope.has_one();
        let keep = async {
            match writer.keep_record().await {
                Ok(true) => Ok(()),
                Ok(false) => Err(self.lose()),
                Err(error) => Err(Error::from(error)),
            }
        };
        scope.undos().keep(keep).await?;
        let last = async {
            if scope.is_fresh() {
                return Ok(None);
            }
            let steps = writer.list().await?;
            let steps = steps.ok_or_else(|| self.lost())?;
            Ok::<_, Error>(steps.iter().filter_map(|step| step.undo).max())
        };
        scope.undos().number(last).await
    }

    /// Whether nothing is written: the body is polled only to find undos, or to be replayed.
    pub(super) fn only_reads(&self) -> bool {
        #[cfg(feature = "testing")]
        if self.scope().replay().is_some() {
            return true;
        }
        self.scope().is_looking()
    }

    /// The call has failed for good: a recorded step answers, and its undo is found; any other one
    /// stays pending, except a `step_version`.
    pub(super) async fn look_for_undo(mut self, is_version: bool) -> Result<Begun, Error> {
        let sought = self.scope().undos().sought(&self.name);
        // At once, because the body may drop this step before the store has answered.
        if let Some(listed) = sought {
            self.number = listed.undo;
            let step = self.step(listed.state, None);
            self.has_undo(&Arc::new(step));
        }
        let found = match self.scope().looks(self.look()).await {
            Err(Error::Store(error)) => {
                self.scope().undos().are_out_of_reach(&error);
                return Err(error.into());
            }
            found => found?,
        };
        let is_changed = |step: &Arc<Step>| step.fingerprint != self.fingerprint;
        let outcome = found.as_ref().and_then(|step| step.outcome.as_ref());
        if outcome.is_some_and(RawOutcome::is_error) || found.as_ref().is_some_and(is_changed) {
            // The body may end here, and must not do so before it has come to the steps beside.
            self.scope().has_looked().await;
        }
        // Behind the last one nothing of the body runs any more.
        let goes_on = !self.scope().undos().are_found();
        match found {
            None if is_version && goes_on => {
                self.keeps_name = true;
                return Ok(Begun::Run(self));
            }
            Some(step) if is_changed(&step) => return Err(self.changed(&step)),
            Some(step) if goes_on && step.state.has_ended() => {
                self.keeps_name = true;
                return Ok(Begun::Recorded(self, step));
            }
            _ => {}
        }
        // A task that the body left behind goes on when the undos are through, and does nothing.
        self.scope().is_over().await;
        Err(self.lost())
    }

    /// A step that is recorded answers, and any other one stays pending.
    #[cfg(feature = "testing")]
    pub(super) async fn replay(
        mut self,
        replay: &crate::engine::steps::Replay,
        is_version: bool,
    ) -> Result<Begun, Error> {
        match replay.find(&self.name) {
            None if is_version => {
                self.keeps_name = true;
                return Ok(Begun::Run(self));
            }
            None => replay.is_new(self.label),
            Some(step) if step.fingerprint != self.fingerprint => {
                let theirs = step.fingerprint.digests();
                replay.differs(super::StepDifference::Changed {
                    step: self.label.to_owned(),
                    differing: self.fingerprint.differing(&theirs),
                });
            }
            Some(step) => {
                replay.met(self.name);
                self.keeps_name = true;
                return Ok(Begun::Recorded(self, step));
            }
        }
        pending().await
    }
}
