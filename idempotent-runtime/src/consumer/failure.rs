//! The error of a handler, beside the refusal of its call.

use std::{error::Error as StdError, fmt, sync::Mutex};

#[cfg(feature = "_sql")]
use crate::transaction::RetryIf;
use crate::{
    error::{BoxError, Error, mark},
    outcome::{Encoder, OnError, OutOfOrder, Outline, Stored},
    policy::Verdict,
    value::lock,
};

/// Why a message has no effect of its own.
#[derive(Debug)]
pub enum Failure<E> {
    /// The handler gave it.
    Handler(E),
    /// The call was refused.
    Refused(Error),
    /// Its number is not the next one.
    OutOfOrder(OutOfOrder),
    /// It was delivered too often, and the handler did not run.
    TooOften,
    /// The handler gave an error, which was recorded, and this call cannot read it back.
    Unread(BoxError),
}

impl<E> From<Error> for Failure<E> {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl<E: fmt::Display> fmt::Display for Failure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Handler(error) => error.fmt(f),
            Self::Refused(error) => error.fmt(f),
            Self::OutOfOrder(_) => f.write_str("the number is not the next one"),
            Self::TooOften => f.write_str("the message was delivered too often"),
            Self::Unread(error) => error.fmt(f),
        }
    }
}

impl<E: StdError + 'static> StdError for Failure<E> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Handler(error) => Some(error),
            Self::Refused(error) => Some(error),
            Self::OutOfOrder(_) | Self::TooOften => None,
            Self::Unread(error) => Some(&**error),
        }
    }
}

/// Decides as the message says, and remembers how.
#[derive(Debug)]
pub(crate) struct VerdictRecorder<P> {
    inner: P,
    noted: Mutex<Verdict>,
    /// Whether an error that cannot be read back is no outcome.
    is_exact: bool,
}

impl<P> VerdictRecorder<P> {
    pub(crate) fn new(inner: P) -> Self {
        Self {
            inner,
            noted: Mutex::new(Verdict::Release),
            is_exact: false,
        }
    }

    /// The same, where an error that cannot be read back is kept as a mark only.
    pub(crate) fn exact(inner: P) -> Self {
        Self {
            is_exact: true,
            ..Self::new(inner)
        }
    }

    fn note(&self, verdict: Verdict) {
        *lock(&self.noted) = verdict;
    }

    /// The verdict that was given last.
    pub(crate) fn noted(&self) -> Verdict {
        *lock(&self.noted)
    }
}

impl<E, P: OnError<E>> OnError<Failure<E>> for &VerdictRecorder<P> {
    const RELEASES: bool = P::RELEASES;
    fn can_end(usual: Verdict) -> bool {
        P::can_end(usual)
    }

    fn verdict(&self, error: &Failure<E>, usual: Verdict) -> Verdict {
        let verdict = match error {
            Failure::Handler(error) => self.inner.verdict(error, usual),
            _ => Verdict::Release,
        };
        self.note(verdict);
        verdict
    }

    fn out_of_order(why: OutOfOrder) -> Option<Failure<E>> {
        Some(Failure::OutOfOrder(why))
    }

    fn encode(&self, error: &Failure<E>, coder: &Encoder<'_>) -> Result<Vec<u8>, BoxError> {
        match error {
            // Recorded as a mark only, it would read as an effect that stands.
            Failure::Handler(error) => self.inner.encode(error, coder).inspect_err(|_| mark()),
            _ => Err("a refusal is not recorded".into()),
        }
    }

    fn decode(&self, stored: &Stored) -> Result<Failure<E>, BoxError> {
        // It is recorded, whatever is said of it now: a takeover that undoes runs no handler.
        self.note(Verdict::Replay);
        match self.inner.decode(stored) {
            Err(error) if self.is_exact => Err(error),
            read => Ok(read.map_or_else(Failure::Unread, Failure::Handler)),
        }
    }

    fn reads(stored: &Stored) -> Result<Outline, BoxError> {
        P::reads(stored)
    }

    fn carried_out(&self, verdict: Verdict) {
        self.note(verdict);
    }

    fn is_copy(error: &Failure<E>, copy: &Failure<E>) -> bool {
        match (error, copy) {
            (Failure::Handler(error), Failure::Handler(copy)) => P::is_copy(error, copy),
            (Failure::Handler(_), Failure::Unread(_)) => true,
            _ => false,
        }
    }
}

/// The errors of a call stand around those of its body.
#[cfg(feature = "_sql")]
pub(crate) struct HandlerErrors<Q>(pub(crate) Q);

#[cfg(feature = "_sql")]
impl<E, Q: RetryIf<E>> RetryIf<Failure<E>> for HandlerErrors<Q> {
    fn is_reason(&self, error: &Failure<E>) -> bool {
        match error {
            Failure::Handler(error) => self.0.is_reason(error),
            _ => false,
        }
    }
}
