//! How a call ends whose body has returned.

use super::{ActiveCall, Instead, is_kept, outcomes::ended};
use crate::{
    attempt::{Attempt, Stage},
    engine::{ending::Ended, last_words::within},
    observe::CallOutcome,
    protocol::Ending,
    race::race,
};

impl ActiveCall {
    /// Whether steps have undos that are open.
    pub(crate) fn keeps_undos(&self) -> bool {
        let held = self.held.as_ref();
        held.is_some_and(|held| held.lease().keeps_undos())
    }

    /// Writes how the body ended, and tells what answers the call instead of what its body said,
    /// where anything does.
    pub(crate) async fn end(&mut self, attempt: &Attempt, ending: Ending) -> Option<Instead> {
        self.await_steps(attempt, &ending).await;
        let held = self.held.as_mut()?;
        let ending = attempt.close_steps(ending, held.lease());
        if attempt.is_poisoned() {
            // Dropped, it ends its lease in the background, and writes nothing of the outcome.
            self.held = None;
            return Some(Instead::Refused(self.lease_lost()));
        }
        let in_doubt = ending == Ending::Uncertain && attempt.is_in_doubt();
        let outcome = ended(held.meaning(), attempt.stage(), &ending);
        let sent_at = self.request.handle.timer().now();
        let (written, error) = match ending.error() {
            None => {
                let mut ending = Box::pin(held.end(ending));
                (within(&self.span, ending.as_mut()).await, None)
            }
            Some(error) => match Box::pin(held.decide(error)).await {
                Ok((ended, error)) => (Ok(ended), Some(error)),
                // Its error is final only once its steps are undone.
                Err(error) => return Some(Instead::Refused(error.into())),
            },
        };
        let mut is_written = true;
        if let (Some(error), Some(version)) = (error, written.as_ref().ok().and_then(Ended::stands))
        {
            held.begin_to_undo(error, version, sent_at);
            if attempt.stage() == Stage::Answered {
                // Its body did not come to the undos: the next call does.
                self.held = None;
                return Some(Instead::Refused(self.lease_lost()));
            }
            match Box::pin(self.undo(attempt, None)).await {
                Ok(written) => is_written = written,
                Err(instead) => return Some(instead),
            }
        }
        let is_stale = self.held.take().is_some_and(|held| held.is_stale());
        let (recorded, outcome, instead) = match written {
            Ok(Ended::StoodAlready(record)) if is_kept(&record) => {
                (true, outcome, Some(Instead::Recorded(record)))
            }
            Ok(Ended::Stands(_) | Ended::StoodAlready(_)) => (is_written, outcome, None),
            // After a release the key may have gone to a call with other arguments: its outcome is
            // not ours.
            Ok(Ended::Lost(Some(record))) if self.request.is_about(&record) => {
                self.executed(attempt, CallOutcome::LeaseLost, true);
                return Some(Instead::Recorded(record));
            }
            // Another attempt may have recorded what every later call gets.
            Err(_) if is_stale => return Some(Instead::Refused(self.lease_lost())),
            Ok(Ended::Lost(_)) => return Some(Instead::Refused(self.lease_lost())),
            Err(error) => {
                self.store_error = Some(error.kind());
                (false, outcome, None)
            }
        };
        self.executed(attempt, outcome, recorded);
        match instead {
            None if in_doubt => Some(Instead::Refused(attempt.doubt())),
            instead => instead,
        }
    }

    /// Steps in other tasks are waited for, but no longer than `step_grace`. From now on none
    /// begins, and a caller that leaves meanwhile leaves this ending.
    async fn await_steps(&self, attempt: &Attempt, ending: &Ending) {
        let Some(scope) = attempt.steps() else { return };
        scope.begin_to_close();
        if scope.is_at_work() {
            self.know(ending.clone());
            let handle = &self.request.handle;
            let limit = handle.timer().sleep(handle.defaults().step_grace);
            Box::pin(race(scope.is_through(), limit)).await;
        }
    }
}
