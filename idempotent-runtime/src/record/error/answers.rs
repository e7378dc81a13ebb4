//! The answers of an error, and the words that its message is made of.

use std::{fmt, sync::Arc, time::Duration};

use super::Error;
use crate::key::KeyError;

/// How a handle is made with what this build has.
pub(super) const SET_UP: &str = if cfg!(feature = "sqlite") {
    "Idempotency::sqlite(\"idempotency.db\").await?"
} else if cfg!(feature = "postgres") {
    "Idempotency::postgres(url).await?"
} else if cfg!(feature = "mysql") {
    "Idempotency::mysql(url).await?"
} else if cfg!(feature = "redis") {
    "Idempotency::redis(url).await?"
} else {
    "Idempotency::memory()"
};

/// The names of arguments, in a message.
pub(super) struct Differing<'a>(pub(super) &'a [String]);

impl fmt::Display for Differing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        in_brackets(f, "", self.0)
    }
}

/// The steps that are left, in a message.
pub(super) struct LeftSteps<'a>(pub(super) &'a [String]);

impl fmt::Display for LeftSteps<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        in_brackets(f, "left: ", self.0)
    }
}

/// The call of which it is unknown whether it happened, in a message.
pub(super) struct Called<'a>(pub(super) &'a Option<u64>);

impl fmt::Display for Called<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(number) => write!(f, "the number {number}"),
            None => f.write_str("an earlier call"),
        }
    }
}

/// The number that was given up, in a message.
pub(super) struct GivenUp<'a>(pub(super) &'a Option<u64>);

impl fmt::Display for GivenUp<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(number) => write!(f, "the number {number} of "),
            None => Ok(()),
        }
    }
}

/// The function by which an operator settles it, in a message.
pub(super) struct Settles<'a>(pub(super) &'a Option<u64>);

impl fmt::Display for Settles<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(number) => write!(f, "`Sequence::settle({number})`"),
            None => f.write_str("`Idempotency::settle_id`"),
        }
    }
}

/// The advice about a commit that is unknown, in a message: whether a record knows it.
pub(super) struct Told(pub(super) bool);

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            true => "call again with the same key for what became of it",
            false => "and no record tells: look at its rows before you call again",
        })
    }
}

fn in_brackets(f: &mut fmt::Formatter<'_>, first: &str, names: &[String]) -> fmt::Result {
    for (i, name) in names.iter().enumerate() {
        let before = if i == 0 { " (" } else { ", " };
        write!(f, "{before}{}`{name}`", if i == 0 { first } else { "" })?;
    }
    match names {
        [] => Ok(()),
        _ => f.write_str(")"),
    }
}

impl Error {
    /// Makes the error of a part of a call that cannot be one, from the reason.
    pub(crate) fn invalid_key(
        operation: &Arc<str>,
        part: &'static str,
    ) -> impl Fn(KeyError) -> Self {
        move |source| Self::InvalidKey {
            operation: Arc::clone(operation),
            part,
            source,
        }
    }

    /// Tells whether the same call with the same key can succeed later without help.
    ///
    /// [`NotLoaded`](Error::NotLoaded) counts as that, because a `load` fails most often while a
    /// database is out of reach; if `load` fails with an error of ours, that one's answer counts.
    /// [`Unreadable::inner`](crate::Unreadable::inner) tells more.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::InProgress { .. }
            | Error::LeaseLost { .. }
            | Error::Stopped { .. }
            | Error::AuditMissing { .. } => true,
            Error::Store(error) => error.is_transient(),
            Error::CommitUnknown { has_record, .. } => *has_record,
            Error::NotLoaded { source, .. } => match source.inner().downcast_ref::<Error>() {
                Some(ours) => ours.is_retryable(),
                None => true,
            },
            _ => false,
        }
    }

    /// How long to wait at most before it is worth trying again, where that is known: the rest of
    /// the holder's lease.
    ///
    /// It is a bound, not an estimate: the call may end much sooner. A call that was dropped, or
    /// panicked, is seen running until its ending is written, in the background and usually within
    /// milliseconds.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::InProgress { retry_after, .. } => Some(*retry_after),
            _ => None,
        }
    }
}
