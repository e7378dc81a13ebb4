//! From the reasons why a call got no answer to problems.

#[cfg(feature = "axum")]
use http::StatusCode;

use super::{Kind, Problem, Reason};
use crate::{error::Error, key::KeyError, record::label::STEP_NAME};

/// The answer of a handler that carries the attribute itself.
impl From<&Error> for Problem {
    fn from(error: &Error) -> Self {
        match error {
            Error::InProgress {
                silent: true,
                retry_after,
                ..
            } => Self::new(Kind::RequestInProgress).with_retry_after(*retry_after),
            // The rest of the lease, which the error knows, is a bound: most requests end much
            // sooner.
            Error::InProgress { .. } | Error::LeaseLost { .. } | Error::Stopped { .. } => {
                Self::new(Kind::RequestInProgress)
            }
            Error::KeyReused { .. } => Self::new(Kind::KeyReused),
            Error::Uncertain { .. } | Error::Parked { .. } | Error::NotUndone { .. } => {
                Self::new(Kind::OutcomeUnknown)
            }
            Error::NotLoaded { .. } if error.is_retryable() => Self::new(Kind::ResultOutOfReach),
            Error::NotLoaded { .. } | Error::Unreadable { .. } | Error::NotReplayable { .. } => {
                Self::new(Kind::ResultUnavailable)
            }
            Error::Expired { .. } => Self::new(Kind::ResultExpired),
            Error::InvalidKey { part: "scope", .. } => Self::new(Kind::ScopeUnresolved),
            Error::InvalidKey {
                part: STEP_NAME, ..
            } => Self::new(Kind::Misconfigured),
            Error::InvalidKey { source, .. } => invalid(source),
            Error::Store(error) if error.is_transient() => Self::new(Kind::StoreUnavailable),
            Error::Store(_) | Error::AuditMissing { .. } => Self::new(Kind::StoreUnavailable)
                .until_mended()
                .with_detail(
                    "The request was not executed. The store of the keys has to be mended first.",
                ),
            Error::TransactionEnded { .. } | Error::Commit { .. } => Self::new(Kind::HandlerFailed),
            Error::CommitUnknown { .. } => Self::new(Kind::OutcomeUnknown),
            #[cfg(feature = "_sql")]
            Error::InvalidMessage { .. } | Error::MessageChanged { .. } => {
                Self::new(Kind::HandlerFailed)
            }
            Error::DuplicateStep { .. }
            | Error::StepChanged { .. }
            | Error::StepInTransaction { .. }
            | Error::MisplacedStep { .. }
            | Error::Recursive { .. }
            | Error::DuplicateOperation { .. }
            | Error::InvalidArguments { .. }
            | Error::InvalidPolicy(_)
            | Error::NotConfigured { .. }
            | Error::NotSettled { .. }
            | Error::Moved { .. }
            | Error::AlreadyInstalled => Self::new(Kind::Misconfigured),
        }
    }
}

#[cfg(feature = "axum")]
impl Problem {
    /// The same for a call that a handler makes while the layer guards its request: a fault of the
    /// inner key is none of the client's.
    pub(crate) fn of_inner_call(error: &Error) -> Self {
        let problem = Self::from(error);
        match problem.kind() {
            Kind::KeyReused => Self::new(Kind::InnerCallRefused),
            Kind::KeyInvalid | Kind::KeyMissing => {
                Self::new(Kind::InnerCallRefused).with_status(StatusCode::BAD_REQUEST)
            }
            _ => problem,
        }
    }
}

fn invalid(key: &KeyError) -> Problem {
    let because = |reason| {
        let mut problem = Problem::new(Kind::KeyInvalid);
        problem.reason = Some(reason);
        problem
    };
    match key {
        KeyError::Missing => Problem::new(Kind::KeyMissing),
        KeyError::Empty => because(Reason::Empty),
        KeyError::TooLong { .. } => because(Reason::TooLong),
        KeyError::Unwritable => Problem::new(Kind::Misconfigured),
    }
}
