//! How a call ended.

use std::time::Duration;

use http::Method;
use reqwest::Response;
use reqwest_middleware::Result;

use crate::error::ClientError;
use crate::outcome::{ClientOutcome, Origin};
use crate::policy::StopReason;

/// The end of a call.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CallEnded<'a> {
    /// The origin that the call is for, such as `https://api.example.com`.
    pub server: &'a str,
    /// The method.
    pub method: &'a Method,
    /// How it ended.
    pub end: CallEnd,
    /// Why it was not sent again, if it ended as [`CallEnd::Unknown`] or [`CallEnd::Exhausted`] and
    /// the error names a reason.
    pub reason: Option<StopReason>,
    /// How many attempts this process made.
    pub attempts: u32,
    /// Whether it went on with a call that stood open in the journal.
    pub resumed: bool,
    /// How long it took, pauses included.
    pub elapsed: Duration,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallEnd {
    /// The server answered, with whatever status.
    Answered,
    /// The server answered with the outcome of an earlier call, and said so.
    Replayed,
    /// The journal had the answer, and nothing was sent.
    FromJournal,
    /// It is unknown whether the call took effect: [`ClientError::Unknown`],
    /// [`ClientError::LeftOrigin`] or [`ClientError::BodyChanged`].
    Unknown,
    /// [`ClientError::Exhausted`]: it did not take effect.
    Exhausted,
    /// [`ClientError::RetryLater`].
    RetryLater,
    /// [`ClientError::KeyReused`] or [`ClientError::KeyReusedLocally`].
    KeyReused,
    /// [`ClientError::ResultGone`]: it took effect earlier.
    ResultGone,
    /// [`ClientError::Unsupported`]: it did not take effect.
    Unsupported,
    /// [`ClientError::Journal`]: the journal failed, and nothing was sent.
    JournalFailed,
    /// It was refused here, and nothing was sent, such as for a key that another task of this
    /// process uses.
    Refused,
    /// It had no answer, and its error is none of those above. Such a call has no key, or its error
    /// is one of the client beneath or of a middleware inside.
    Failed,
    /// Its caller dropped it, or code inside panicked, before it had an end.
    Dropped,
}

impl CallEnd {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Answered,
        Self::Replayed,
        Self::FromJournal,
        Self::Unknown,
        Self::Exhausted,
        Self::RetryLater,
        Self::KeyReused,
        Self::ResultGone,
        Self::Unsupported,
        Self::JournalFailed,
        Self::Refused,
        Self::Failed,
        Self::Dropped,
    ];

    /// Its name, as metrics spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.words().0
    }

    /// Its message, for people.
    pub(super) fn message(self) -> &'static str {
        self.words().1
    }

    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Answered => ("answered", "the server answered"),
            Self::Replayed => ("replayed", "the server replayed an earlier answer"),
            Self::FromJournal => ("from_journal", "the journal had the answer"),
            Self::Unknown => (
                "unknown",
                "it is unknown whether the call took effect: send it again with its key, or find out",
            ),
            Self::Exhausted => ("exhausted", "the call did not take effect"),
            Self::RetryLater => ("retry_later", "the server wants to be asked later"),
            Self::KeyReused => ("key_reused", "the key was used for another request"),
            Self::ResultGone => ("result_gone", "the result is not kept any more"),
            Self::Unsupported => ("unsupported", "the server does not honour keys here"),
            Self::JournalFailed => ("journal_failed", "the journal failed, nothing was sent"),
            Self::Refused => ("refused", "the call was refused here, nothing was sent"),
            Self::Failed => ("failed", "the call failed"),
            Self::Dropped => ("dropped", "the call was dropped before it had an end"),
        }
    }

    /// The end that a caller sees, and why it was not sent again.
    pub(super) fn of(sent: &Result<Response>) -> (Self, Option<StopReason>) {
        let error = match sent {
            Ok(response) => return (Self::of_answer(response), None),
            Err(error) => ClientError::from_error(error),
        };
        let end = match error {
            None | Some(ClientError::TimedOut) => Self::Failed,
            Some(ClientError::Unknown { why, .. }) => return (Self::Unknown, Some(*why)),
            Some(ClientError::Exhausted { why, .. }) => return (Self::Exhausted, Some(*why)),
            Some(ClientError::LeftOrigin { .. } | ClientError::BodyChanged { .. }) => Self::Unknown,
            Some(ClientError::RetryLater { .. }) => Self::RetryLater,
            Some(ClientError::KeyReused { .. } | ClientError::KeyReusedLocally { .. }) => {
                Self::KeyReused
            }
            Some(ClientError::ResultGone { .. }) => Self::ResultGone,
            Some(ClientError::Unsupported { .. }) => Self::Unsupported,
            Some(ClientError::Journal { .. }) => Self::JournalFailed,
            Some(
                ClientError::InvalidKey(_)
                | ClientError::Withdrawn { .. }
                | ClientError::InFlight { .. }
                | ClientError::AnotherCallOpen { .. }
                | ClientError::BodyTimedOut
                | ClientError::Twice,
            ) => Self::Refused,
        };
        (end, None)
    }

    fn of_answer(response: &Response) -> Self {
        match ClientOutcome::from_response(response) {
            Some(outcome) if outcome.origin == Origin::Journal => Self::FromJournal,
            Some(outcome) if outcome.replayed => Self::Replayed,
            _ => Self::Answered,
        }
    }
}
