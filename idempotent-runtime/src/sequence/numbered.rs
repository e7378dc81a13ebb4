//! One call of a stream, from its number to its decision.

use std::{fmt, future::Future, sync::Arc};

use super::{
    decision::{Decision, decide},
    failing::{Tried, tell},
};
use crate::{
    attempt::Attempt,
    consumer::failure::{Failure, VerdictRecorder},
    drive::run,
    outcome::{Classified, FromRefusal, LeftUncertain, OnError, Recorded, Released, Storable},
    request::{Call, Fingerprintable},
    run::Typed,
};

/// A call with a number.
///
/// Its parameter says what becomes of an `Err` of the body. By default an `Err` is released: the
/// number stays, and comes again.
#[derive(Debug)]
#[must_use = "a number is not applied until it is run"]
pub struct NumberedCall<P = Released> {
    pub(super) call: Call,
    pub(super) operation: Arc<str>,
    pub(super) on_error: P,
    pub(super) number: u64,
    pub(super) keeps_error_text: bool,
}

impl NumberedCall {
    pub(super) fn new(
        mut call: Call,
        number: u64,
        operation: Arc<str>,
        keeps_error_text: bool,
    ) -> Self {
        call.fingerprint(&number);
        Self {
            call,
            operation,
            on_error: Released,
            number,
            keeps_error_text,
        }
    }
}

impl<P> NumberedCall<P> {
    /// Sets the arguments that must be equal in a copy: with other arguments, the number that runs
    /// and the last one are [`Error::KeyReused`](crate::Error::KeyReused). Smaller numbers are not
    /// compared.
    pub fn arguments<T: Fingerprintable + ?Sized>(mut self, arguments: &T) -> Self {
        self.call.whole("arguments", &(self.number, arguments));
        self
    }

    /// An `Err` is recorded as the outcome of its number: the stream goes on with the next one.
    pub fn record_errors(self) -> NumberedCall<Recorded> {
        self.with_on_error(Recorded)
    }

    /// An `Err` leaves it unknown whether the number happened: the stream stops until the number is
    /// settled.
    pub fn uncertain_errors(self) -> NumberedCall<LeftUncertain> {
        self.with_on_error(LeftUncertain)
    }

    /// A function from `&E` to [`Verdict`](crate::Verdict) or [`Unrecorded`](crate::Unrecorded)
    /// decides, error by error.
    pub fn classify_errors<F>(self, classify: F) -> NumberedCall<Classified<F>> {
        self.with_on_error(Classified(classify))
    }

    fn with_on_error<Q>(self, on_error: Q) -> NumberedCall<Q> {
        NumberedCall {
            on_error,
            call: self.call,
            operation: self.operation,
            number: self.number,
            keeps_error_text: self.keeps_error_text,
        }
    }

    /// Runs the body if the number is the next one, and tells what became of it.
    ///
    /// # Errors
    ///
    /// The body's own, or one of ours, after which the number is not known to be applied:
    ///
    /// * [`KeyReused`](crate::Error::KeyReused): the same number came with other arguments.
    /// * [`InProgress`](crate::Error::InProgress): this number, or the one before it, is held for
    ///   longer than `in_flight` waits.
    /// * [`Uncertain`](crate::Error::Uncertain) and [`Parked`](crate::Error::Parked): the stream
    ///   stops at this number or an earlier one, until that is [settled](super::Sequence::settle).
    /// * [`Store`](crate::Error::Store): the store failed, or the outcome of a body that ran is not
    ///   recorded yet. The same number again tells.
    ///
    /// # Panics
    ///
    /// If the body does. The number is then as that of a holder that vanished.
    ///
    /// # Cancel safety
    ///
    /// As [`CallBuilder::run`](crate::CallBuilder::run). Dropped while it waits, it changes
    /// nothing; dropped after the body was polled, `on_crash` applies to the number.
    pub async fn run<T, E, F, B>(self, body: F) -> Result<Decision<T>, E>
    where
        T: Storable,
        E: FromRefusal + fmt::Display,
        P: OnError<E>,
        F: FnOnce(Attempt) -> B,
        B: Future<Output = Result<T, E>>,
    {
        let recorder = VerdictRecorder::exact(self.on_error);
        let typed = Typed::whole(&recorder);
        let described = self.call.describe();
        let tried = Tried::of(&described, self.number, self.keeps_error_text);
        let body = |attempt| {
            let body = body(attempt);
            async move { body.await.map_err(Failure::Handler) }
        };
        let (result, report) = run(described, typed, body).await;
        if let Some(tried) = &tried
            && let Some(failed) = tried.failed(&result, recorder.noted())
        {
            tried.note(&failed).await;
        }
        tell(tried, decide(&self.operation, result, &report))
    }
}
