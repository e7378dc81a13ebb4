//! Dispositions: they say what is to be done with a message, and why.

use std::{error::Error as StdError, fmt, sync::Arc, time::Duration};

use super::{
    failure::Failure,
    settings::{OnFailure, Settings},
};
use crate::{
    error::{BoxError, Error},
    framing::Hex,
    identity::RecordId,
    key::Key,
    observe::{CallReport, FrontEndEvent},
    outcome::OutOfOrder,
    policy::Verdict,
    record::Subject,
    request::INBOX,
    sha256::sha256,
};

/// Says what is to be done with a message.
#[derive(Debug)]
#[non_exhaustive]
#[must_use = "the broker waits for it"]
pub enum Disposition {
    /// Acknowledge it: its effect stands.
    Ack {
        /// Whether it had happened before.
        replayed: bool,
    },
    /// Have it delivered again.
    Retry {
        /// How long the broker is to wait: at most 30 seconds.
        after: Duration,
        /// Why, where there is an error.
        error: Option<BoxError>,
    },
    /// Put it among the dead letters: delivering it again does not help.
    DeadLetter {
        /// Why.
        reason: DeadLetterReason,
        /// The error, if there is one.
        error: Option<BoxError>,
    },
}

/// Why a message is a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeadLetterReason {
    /// Its handler failed for good: the `Err` is recorded.
    Failed,
    /// Its handler failed at each of `max_deliveries` deliveries. If steps of it have an undo, its
    /// record is parked: resume it, or have the steps undone.
    Exhausted,
    /// It is unknown whether its effect stands. Find out, and settle its record.
    Uncertain,
    /// Too many of its consumers vanished, or steps of it could not be undone. Find out, and resume
    /// or settle its record.
    Parked,
    /// Another message had the same id, and another payload.
    KeyReused,
    /// Its id is missing, empty or too long, or its payload cannot be encoded.
    InvalidMessage,
}

impl DeadLetterReason {
    fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Exhausted => "exhausted",
            Self::Uncertain => "uncertain",
            Self::Parked => "parked",
            Self::KeyReused => "key_reused",
            Self::InvalidMessage => "invalid_message",
        }
    }
}

impl fmt::Display for DeadLetterReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The longest time after which a message comes again, and the shortest.
const LONGEST: Duration = Duration::from_secs(30);
const SHORTEST: Duration = Duration::from_millis(100);

/// All that a disposition depends on, beside how the call ended.
pub(super) struct Judge<'a> {
    pub(super) settings: &'a Settings,
    /// The broker's count, 1 the first time.
    pub(super) delivery: u32,
    /// The verdict on an `Err` of the handler, as it was carried out.
    pub(super) verdict: Verdict,
}

impl Judge<'_> {
    /// Decides what is to be done with a message whose call ended so.
    pub(super) fn judge<E: Into<BoxError>>(
        &self,
        result: Result<(), Failure<E>>,
        report: &CallReport,
    ) -> Disposition {
        let replayed = report.is_of_another();
        let unwritten = matches!(
            report,
            CallReport::Executed {
                recorded: false,
                ..
            }
        );
        match result {
            Ok(()) if unwritten => self.retry(None),
            Ok(()) => Disposition::Ack { replayed },
            Err(Failure::Refused(error)) => self.refused(error),
            Err(Failure::OutOfOrder(_)) => self.refused(OutOfOrder::NO_NUMBER),
            Err(Failure::TooOften) => Disposition::DeadLetter {
                reason: DeadLetterReason::Exhausted,
                error: None,
            },
            Err(Failure::Unread(error)) => self.failed(error, replayed),
            Err(Failure::Handler(error)) if replayed => self.failed(error.into(), replayed),
            Err(Failure::Handler(error)) => {
                let error = error.into();
                if let Some(disposition) = self.nested(&error) {
                    return disposition(error);
                }
                match self.verdict {
                    Verdict::Release => self.released(error),
                    _ if unwritten => self.retry(Some(error)),
                    Verdict::Replay => self.failed(error, replayed),
                    Verdict::Uncertain => dead(DeadLetterReason::Uncertain, error),
                }
            }
        }
    }

    /// The `Err` is recorded.
    fn failed(&self, error: BoxError, replayed: bool) -> Disposition {
        match self.settings.on_failure {
            OnFailure::DeadLetter => dead(DeadLetterReason::Failed, error),
            OnFailure::Ack => Disposition::Ack { replayed },
        }
    }

    /// Nothing stands, and the handler may run again.
    fn released(&self, error: BoxError) -> Disposition {
        match self.delivery >= self.settings.max_deliveries {
            true => dead(DeadLetterReason::Exhausted, error),
            false => self.retry(Some(error)),
        }
    }

    /// A refusal of a nested call is no outcome of the message.
    fn nested(&self, error: &BoxError) -> Option<fn(BoxError) -> Disposition> {
        let mut cause: &(dyn StdError + 'static) = &**error;
        let ours: &Error = loop {
            match cause.downcast_ref() {
                Some(ours) => break ours,
                None => cause = cause.source()?,
            }
        };
        match ours {
            Error::Uncertain { .. } => Some(|error| dead(DeadLetterReason::Uncertain, error)),
            Error::Parked { .. } | Error::NotUndone { .. } => {
                Some(|error| dead(DeadLetterReason::Parked, error))
            }
            Error::KeyReused { .. } => Some(|error| dead(DeadLetterReason::KeyReused, error)),
            ours if ours.is_retryable() => Some(|error| Disposition::Retry {
                after: with_jitter(SHORTEST * 10),
                error: Some(error),
            }),
            _ => None,
        }
    }

    fn refused(&self, error: Error) -> Disposition {
        match error {
            Error::NotReplayable { .. } | Error::Unreadable { .. } | Error::Expired { .. } => {
                tracing::warn!(%error, "a message was processed before, and its outcome is not known");
                Disposition::Ack { replayed: true }
            }
            Error::Uncertain { .. } => dead(DeadLetterReason::Uncertain, error.into()),
            Error::Parked { .. } | Error::NotUndone { .. } => {
                dead(DeadLetterReason::Parked, error.into())
            }
            Error::KeyReused { .. } => dead(DeadLetterReason::KeyReused, error.into()),
            Error::InvalidKey { part: "key", .. } | Error::InvalidArguments { .. } => {
                dead(DeadLetterReason::InvalidMessage, error.into())
            }
            Error::TransactionEnded { .. } | Error::Commit { .. } => self.released(error.into()),
            Error::InProgress { retry_after, .. } => Disposition::Retry {
                after: with_jitter(retry_after.clamp(SHORTEST, LONGEST)),
                error: Some(error.into()),
            },
            Error::LeaseLost { .. }
            | Error::Stopped { .. }
            | Error::CommitUnknown { .. }
            | Error::AuditMissing { .. }
            | Error::Store(_) => self.retry(Some(error.into())),
            mistake => {
                tracing::error!(error = %mistake, "a consumer is set up in a way that processes nothing");
                self.retry(Some(mistake.into()))
            }
        }
    }

    /// A dead letter does not come again. So a call that stands half done is parked before, and an
    /// operator decides whether it goes on or is undone.
    pub(super) async fn park(&self, disposition: Disposition, id: &RecordId) -> Disposition {
        if !matches!(disposition, Disposition::DeadLetter { .. }) {
            return disposition;
        }
        let (handle, operation) = (&self.settings.handle, &self.settings.operation);
        match handle.park(operation, id).await {
            Ok(true) => disposition,
            Ok(false) => self.retry(None),
            Err(error) => self.retry(Some(error.into())),
        }
    }

    /// The first retry comes after about a second, and each later one after twice the time.
    pub(super) fn retry(&self, error: Option<BoxError>) -> Disposition {
        let doublings = self.delivery.saturating_sub(1).min(5);
        let after = with_jitter(Duration::from_secs(1 << doublings).min(LONGEST));
        Disposition::Retry { after, error }
    }
}

fn dead(reason: DeadLetterReason, error: BoxError) -> Disposition {
    Disposition::DeadLetter {
        reason,
        error: Some(error),
    }
}

/// Half of it to all of it, so that messages which failed together do not come back together.
fn with_jitter(longest: Duration) -> Duration {
    longest.mul_f64(rand::random_range(0.5..=1.0))
}

/// A disposition before anyone is told of it, with the record that it is about.
#[derive(Debug)]
pub(super) struct Decided {
    pub(super) disposition: Disposition,
    pub(super) settings: Arc<Settings>,
    pub(super) message: Option<Key>,
    pub(super) record: Option<RecordId>,
    pub(super) subject: Option<Arc<Subject>>,
}

impl Decided {
    /// Tells observers, and people who read the log.
    pub(super) fn tell(self) -> Disposition {
        let operation = &*self.settings.operation;
        let kind = self.disposition.kind();
        match &self.disposition {
            Disposition::Ack { .. } | Disposition::Retry { .. } => {
                tracing::debug!(operation, kind, "message");
            }
            Disposition::DeadLetter { error, .. } => {
                let error = error.as_ref().map(tracing::field::display);
                let consumer = operation.strip_prefix(INBOX).unwrap_or(operation);
                let message_id = self.message.map(digest);
                let record = self.record.as_ref().map(RecordId::to_hex);
                tracing::warn!(
                    consumer,
                    kind,
                    message_id,
                    record,
                    error,
                    "a message is a dead letter"
                );
            }
        }
        let event = FrontEndEvent::new("consumer", operation, kind, self.record);
        self.settings.handle.observers().front_end(&event);
        self.disposition
    }
}

/// The first 16 hexadecimal digits of the SHA-256 of a message's id, which is not to be shown.
fn digest(message: Key) -> String {
    let digest = sha256(&mut message.into_readable());
    Hex(&digest[..8]).to_string()
}

impl Disposition {
    fn kind(&self) -> &'static str {
        match self {
            Self::Ack { replayed: false } => "ack",
            Self::Ack { replayed: true } => "duplicate",
            Self::Retry { .. } => "retry",
            Self::DeadLetter { reason, .. } => reason.name(),
        }
    }
}
