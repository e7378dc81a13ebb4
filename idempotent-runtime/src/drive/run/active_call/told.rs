//! Tells observers, the log and the span of a call how it ended.

use std::{mem, sync::atomic::Ordering};

use tracing::Span;

use super::{ActiveCall, Progress, TARGET, outcomes::answer_of};
use crate::{
    attempt::Attempt,
    engine::last_words,
    error::Error,
    observe::{CallEvent, CallOutcome, CallReport, RecordChange},
    outcome::OutOfOrder,
    store::StoreErrorKind,
};

impl ActiveCall {
    /// Tells that the call is answered by what its own body returned. An `Err` that may be a
    /// refusal in other words is none to the body around, either.
    pub(crate) fn answered_itself(&mut self, is_error: bool) -> CallReport {
        let attempt = self.attempt.as_ref();
        let is_refused = is_error && attempt.is_some_and(Attempt::is_refused);
        self.asking.note(is_refused);
        self.answered_so(self.outcome)
    }

    /// The same of a call that something else answers: a `refusal`, or an outcome that was found.
    pub(crate) fn answered(&mut self, refusal: Option<&Error>) -> CallReport {
        self.asking.answered(refusal);
        let outcome = match refusal {
            None => self.outcome,
            Some(error) => {
                self.store_error = store_error(error);
                if let Error::Store(error) = error {
                    let handle = &self.request.handle;
                    let (operation, now) = (&self.request.operation, handle.timer().now());
                    handle.observers().store_failed(operation, error, now);
                }
                self.outcome_of(error)
            }
        };
        self.answered_so(outcome)
    }

    /// The same of a call whose number is not the next one. One that is past is answered for good.
    pub(crate) fn answered_out_of_order(&mut self, why: OutOfOrder) -> CallReport {
        let is_gap = matches!(why, OutOfOrder::Gap { .. });
        self.asking.note(is_gap);
        self.answered_so(match is_gap {
            true => CallOutcome::Gap,
            false => CallOutcome::Past,
        })
    }

    fn answered_so(&mut self, outcome: CallOutcome) -> CallReport {
        self.ends(outcome);
        mem::replace(&mut self.how, CallReport::Refused)
    }

    fn outcome_of(&self, refusal: &Error) -> CallOutcome {
        match refusal {
            // Its own body ran, and one of its steps is in doubt.
            Error::Uncertain { .. } if self.outcome == CallOutcome::LeftUncertain => self.outcome,
            Error::Store(_) | Error::Commit { .. } | Error::InvalidPolicy(_)
                if self.ran_in_own_transaction =>
            {
                CallOutcome::RolledBack
            }
            refusal => answer_of(refusal),
        }
    }

    fn ends(&mut self, outcome: CallOutcome) {
        self.progress = Progress::Told;
        if !self.span.is_disabled() {
            self.span.record("outcome", outcome.name());
            if let Some(attempt) = self.number_of_attempt() {
                self.span.record("attempt", attempt);
            }
        }
        self.say(outcome);
        let observers = self.request.handle.observers();
        if let (CallOutcome::RolledBack, Some(attempt)) = (outcome, &self.attempt) {
            observers.changed(attempt, RecordChange::RolledBack);
        }
        let Some(began) = self.began else { return };
        let elapsed = self.request.handle.timer().now().saturating_sub(began);
        observers.answered(&CallEvent {
            operation: &self.request.operation,
            route: self.request.route.as_deref(),
            id: Some(self.request.id),
            outcome,
            elapsed,
            waited: self.waited,
            attempt: self.number_of_attempt(),
            store_error: self.store_error,
        });
    }

    /// The attempt that ran the body, or whose outcome answers the call.
    fn number_of_attempt(&self) -> Option<u32> {
        match self.how {
            CallReport::Executed { attempt, .. } | CallReport::Replayed { attempt, .. } => {
                Some(attempt)
            }
            CallReport::Unprotected(_) => None,
            CallReport::Refused => self.attempt.as_ref().map(Attempt::number),
        }
    }

    /// Tells operators how the call was answered: a key that is used for something else is a
    /// mistake of a client's, and people may ask about it. The fields stand in the span.
    fn say(&self, outcome: CallOutcome) {
        let message = outcome.message();
        self.span.in_scope(|| match outcome {
            CallOutcome::KeyReused => tracing::info!(target: TARGET, "{message}"),
            _ => tracing::debug!(target: TARGET, "{message}"),
        });
    }

    /// Tells that the call ends without an answer, if nothing was told yet.
    fn ends_unanswered(&mut self) {
        if self.progress == Progress::Begun {
            self.ends(match self.is_inside.load(Ordering::Relaxed) {
                true => CallOutcome::Panicked,
                false => CallOutcome::Dropped,
            });
        }
    }
}

/// The kind of the store's error that refuses a call.
fn store_error(refusal: &Error) -> Option<StoreErrorKind> {
    match refusal {
        Error::Store(error) | Error::Commit { source: error, .. } => Some(error.kind()),
        Error::CommitUnknown { .. } => Some(StoreErrorKind::Unavailable),
        _ => None,
    }
}

impl Drop for ActiveCall {
    fn drop(&mut self) {
        last_words::tell(|| self.ends_unanswered());
        let span = mem::replace(&mut self.span, Span::none());
        last_words::inside(&span, || {
            self.held = None;
            if let Some(attempt) = &self.attempt {
                attempt.end();
            }
        });
        last_words::tell(|| drop(span));
    }
}
