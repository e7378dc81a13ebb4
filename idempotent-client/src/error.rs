//! Why a call has no outcome.

use std::{fmt, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use reqwest_middleware::Error;

use crate::key::{ClientKey, InvalidClientKey};
use crate::policy::decide::StopReason;
use idempotent_runtime::StoreError;

/// Says why a call ended without an outcome, and what to do. [`key`](Self::key) is that of a call
/// that was sent: the call can be resumed with it, or an operator can ask the server about it.
///
/// It comes as [`reqwest_middleware::Error::Middleware`]; [`ClientError::from_error`] finds it
/// there. Keys never appear in messages.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The key cannot be one; nothing was sent.
    #[error(transparent)]
    InvalidKey(#[from] InvalidClientKey),

    /// It is unknown whether the call took effect. Send the same call with the same key again while
    /// the server keeps it, or find out.
    #[error("it is unknown whether the call took effect, {}", reason(*.why))]
    #[non_exhaustive]
    Unknown {
        /// Why it is not sent again.
        why: StopReason,
        /// How it went.
        call: Box<CallSummary>,
    },

    /// The call did not take effect, and is not sent again.
    #[error("the call did not take effect, {}", reason(*.why))]
    #[non_exhaustive]
    Exhausted {
        /// Why it is not sent again.
        why: StopReason,
        /// How it went.
        call: Box<CallSummary>,
    },

    /// The server wants to be asked later than the limits here allow. Send the same call with the
    /// same key then.
    #[error("the server wants to be asked again in {after:?}")]
    #[non_exhaustive]
    RetryLater {
        /// How long to wait.
        after: Duration,
        /// How it went.
        call: Box<CallSummary>,
    },

    /// The server knows the key from another request. A person must look: the key is spent, and a
    /// new one is never made up, because it might do the same thing twice.
    #[error(
        "the server knows this key from another request, find out which before you take a new key"
    )]
    #[non_exhaustive]
    KeyReused {
        /// How it went.
        call: Box<CallSummary>,
    },

    /// The journal knows the key from another request; nothing was sent.
    #[error("this key, or this intent, was used for another request, nothing was sent")]
    #[non_exhaustive]
    KeyReusedLocally {
        /// How it went.
        call: Box<CallSummary>,
    },

    /// The call stood in the journal as one to be sent when it was
    /// [listed](crate::IdempotencyKeys::unfinished), and does not any more. Its caller was told
    /// that it did nothing, or how it ended, or it was [forgotten](crate::IdempotencyKeys::forget).
    /// Nothing was sent.
    #[error("the call ended, or left the journal, since it was listed, nothing was sent")]
    #[non_exhaustive]
    Withdrawn {
        /// How it went.
        call: Box<CallSummary>,
    },

    /// Another task of this process is sending a call with this key; nothing was sent.
    #[error("a call with this key is being sent by another task of this process")]
    #[non_exhaustive]
    InFlight {
        /// How it went.
        call: Box<CallSummary>,
    },

    /// The extensions of the request belong to another call, which was sent and has no outcome;
    /// nothing was sent. A middleware outside that retries sends the same request again. Another
    /// request needs extensions, a key or an intent of its own.
    #[error(
        "a middleware outside changed the request between two tries, and the first one may have been carried out: send the same request again"
    )]
    #[non_exhaustive]
    AnotherCallOpen {
        /// The call that has no outcome.
        call: Box<CallSummary>,
    },

    /// The call took effect earlier, and its response is not kept any more, by the server or by the
    /// journal.
    #[error("the call took effect, and its response is not to be had any more")]
    #[non_exhaustive]
    ResultGone {
        /// How it went.
        call: Box<CallSummary>,
    },

    /// The server does not honour keys here, and did nothing.
    #[error("the server does not support idempotency keys here")]
    #[non_exhaustive]
    Unsupported {
        /// How it went.
        call: Box<CallSummary>,
    },

    /// The function that makes the body made other bytes than before; the attempt was broken off.
    /// An earlier one may have taken effect.
    #[error("the body is not the same as before, so it was not sent to its end")]
    #[non_exhaustive]
    BodyChanged {
        /// How it went.
        call: Box<CallSummary>,
    },

    /// The key was sent to another origin, and the call may have taken effect there. Either the
    /// client beneath followed a redirect: build it with
    /// [`KeysBuilder::build`](crate::KeysBuilder::build), which prevents that. Or a middleware
    /// inside changes addresses: put it outside.
    #[error(
        "the key was sent to another origin, by a redirect or by a middleware inside: build the client with `IdempotencyKeys::builder(…).build(…)`, and put what changes addresses outside"
    )]
    #[non_exhaustive]
    LeftOrigin {
        /// How it went.
        call: Box<CallSummary>,
    },

    /// The deadline was over before the body was there that was to be read, or hashed; nothing was
    /// sent.
    #[error("the deadline was over before the body was read, nothing was sent")]
    BodyTimedOut,

    /// The same middleware stands twice in the client; nothing was sent. It is put there once, and
    /// its clones are the same middleware.
    #[error("this middleware stands twice in the client, so nothing was sent: take one out")]
    Twice,

    /// A call without a key was given up at its deadline.
    #[error("the call was given up at its deadline")]
    TimedOut,

    /// The journal could not be written, or did not answer before the deadline; nothing was sent.
    /// If it does not say what it wrote, the call is taken out of it again, after the deadline
    /// where it does not answer sooner. If that fails, too, the call may stand there as one to be
    /// sent.
    #[error("the journal failed or did not answer in time, so nothing was sent")]
    #[non_exhaustive]
    Journal {
        /// The key.
        key: ClientKey,
        /// The journal's error.
        #[source]
        source: StoreError,
    },
}

/// How a call without an outcome went.
#[derive(Debug)]
#[non_exhaustive]
pub struct CallSummary {
    /// Its key.
    pub key: ClientKey,
    /// How many attempts there were.
    pub attempts: u32,
    /// The server's handle for an operator who finds out what happened.
    pub operation_ref: Option<String>,
    /// The last answer, where there was one.
    pub answer: Option<ClientAnswer>,
    /// The last failure, where there was no answer.
    pub failure: Option<Error>,
    /// The journal does not hold this ending: it failed, or did not answer before the deadline of
    /// the call. It may still be written afterwards. Until then, the call stands open there.
    pub unrecorded: bool,
}

/// An answer that is no outcome. `Debug` shows its status and no values.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientAnswer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, where it was short enough to be read.
    pub body: Option<Bytes>,
}

impl fmt::Debug for ClientAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientAnswer")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

impl CallSummary {
    pub(crate) fn unsent(key: ClientKey) -> Box<Self> {
        Box::new(Self {
            key,
            attempts: 0,
            operation_ref: None,
            answer: None,
            failure: None,
            unrecorded: false,
        })
    }
}

impl ClientError {
    /// Finds it in the error of a client, also where another middleware has wrapped it.
    #[must_use]
    pub fn from_error(error: &Error) -> Option<&Self> {
        match error {
            Error::Middleware(error) => error.chain().find_map(|cause| {
                cause
                    .downcast_ref()
                    .or_else(|| cause.downcast_ref().and_then(Self::from_error))
            }),
            Error::Reqwest(_) => None,
        }
    }

    /// The key that the call was sent with, or would have been.
    #[must_use]
    pub fn key(&self) -> Option<&ClientKey> {
        match self {
            ClientError::Journal { key, .. } => Some(key),
            _ => self.call().map(|call| &call.key),
        }
    }

    /// How the call went.
    #[must_use]
    pub fn call(&self) -> Option<&CallSummary> {
        match self {
            ClientError::Unknown { call, .. }
            | ClientError::Exhausted { call, .. }
            | ClientError::RetryLater { call, .. }
            | ClientError::KeyReused { call }
            | ClientError::KeyReusedLocally { call }
            | ClientError::Withdrawn { call }
            | ClientError::InFlight { call }
            | ClientError::AnotherCallOpen { call }
            | ClientError::ResultGone { call }
            | ClientError::Unsupported { call }
            | ClientError::BodyChanged { call }
            | ClientError::LeftOrigin { call } => Some(call),
            ClientError::InvalidKey(_)
            | ClientError::BodyTimedOut
            | ClientError::Twice
            | ClientError::TimedOut
            | ClientError::Journal { .. } => None,
        }
    }
}

fn reason(why: StopReason) -> &'static str {
    match why {
        StopReason::Attempts => "all attempts are used up",
        StopReason::Deadline => "its deadline is over",
        StopReason::Budget => "the retry budget of its server is used up",
        StopReason::Undeclared => "and the server is not known to honour keys",
        StopReason::Body => "and its body was a stream that cannot be sent again",
        StopReason::Recorded => "its failure was recorded, and asking again replays that",
        StopReason::Server => "and the server says that asking again is no use",
        StopReason::Age => "and its key is older than the server keeps keys",
        StopReason::Moved => "and the server says that its target is elsewhere",
        StopReason::Refused => "and the last answer does not say",
        StopReason::Hopeless => "and sending it again would fail in the same way",
        StopReason::Journal => {
            "because the journal may still hold it: another process took it up, or the journal could not be told in time"
        }
        StopReason::Middleware => "and another middleware failed that may have sent it",
    }
}

/// Stands around the error that [`ClientError::from_error`] finds. Wrappers such as those of
/// reqwest-retry show the source of the wrapped error as their own, and never the error itself.
#[derive(Debug)]
struct Outermost(ClientError);

impl fmt::Display for Outermost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Outermost {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

impl From<ClientError> for Error {
    fn from(error: ClientError) -> Self {
        Error::middleware(Outermost(error))
    }
}
