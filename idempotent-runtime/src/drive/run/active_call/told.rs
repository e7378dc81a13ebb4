//! Tells observers, the log and the span of a call how it ended.

use std::{mem, sync::atomic::Ordering, thread};

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
        self.tell_observers(outcome);
        if !self.span.is_disabled() {
            self.span.record("outcome", outcome.name());
            if let Some(attempt) = self.number_of_attempt() {
                self.span.record("attempt", attempt);
            }
        }
        self.say(outcome);
    }

    fn tell_observers(&self, outcome: CallOutcome) {
        let observers = self.request.handle.observers();
        if let Some(attempt) = self
            .attempt
            .as_ref()
            .filter(|_| self.is_rolled_back(outcome))
        {
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

    /// Whether a transaction of its own, in which its body ran, was rolled back. It is unknown of a
    /// call that was dropped: its commit may have been under way.
    fn is_rolled_back(&self, outcome: CallOutcome) -> bool {
        match outcome {
            CallOutcome::RolledBack => true,
            CallOutcome::Dropped => false,
            _ => self.ran_in_own_transaction,
        }
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
            let panicked = self.is_inside.load(Ordering::Relaxed) || thread::panicking();
            self.ends(match panicked {
                true => CallOutcome::Panicked,
                false => CallOutcome::Dropped,
            });
        }
    }
}

#[cfg(feature = "_sql")]
impl ActiveCall {
    /// Tells observers of the record that its own transaction left to be settled, if that has
    /// committed. In a transaction of the application's it is not told of, because that may roll
    /// back. The next call is refused for the same reason.
    pub(crate) fn tell_of_a_record_that_was_left(&mut self, has_committed: bool) {
        if let Some((attempt, change)) = self.left.take().filter(|_| has_committed) {
            let (request, observers) = (&self.request, self.request.handle.observers());
            observers.transition(&request.operation, &request.id, attempt, change);
        }
    }

    /// Tells observers that its transaction is tried again.
    pub(crate) fn tries_again(&self) {
        let (request, observers) = (&self.request, self.request.handle.observers());
        let attempt = self.attempt.as_ref().map_or(1, Attempt::number);
        let change = RecordChange::TriedAgain;
        observers.transition(&request.operation, &request.id, attempt, change);
    }
}

/// The kind of the store's error that refuses a call.
fn store_error(refusal: &Error) -> Option<StoreErrorKind> {
    match refusal {
        Error::Store(error) | Error::Commit { source: error, .. } => Some(error.kind()),
        Error::CommitUnknown { .. } => Some(StoreErrorKind::Unavailable),
        Error::AuditMissing { .. } => Some(StoreErrorKind::Configuration),
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
