//! Why a command ends without what was asked for, and the exit code of it.

use std::{error::Error as StdError, fmt, io, process::ExitCode};

use idempotent_audit::{AuditError, Proposal};
use idempotent_runtime::{BoxError, Error, NotSettled, StoreError};

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It failed.
    Failed(String),
    /// It was asked for in a way that makes no sense.
    Usage(String),
    /// Nothing was found.
    NotFound(String),
    /// It was refused, or the record has moved.
    Refused(String),
    /// Nobody reads the output any more.
    Unread,
}

impl Failure {
    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Failed(_) => 1,
            Self::Usage(_) => 2,
            Self::NotFound(_) => 3,
            Self::Refused(_) => 4,
            Self::Unread => 0,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(text) | Self::Usage(text) | Self::NotFound(text) | Self::Refused(text) => {
                f.write_str(text)
            }
            Self::Unread => Ok(()),
        }
    }
}

/// An error with its causes, in one line.
fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    text
}

/// The way to the approval of a second person, if an act lacks it.
fn needs_approval(error: &(dyn StdError + 'static)) -> Option<Failure> {
    let proposal = Proposal::refused(error)?;
    Some(Failure::Refused(format!(
        "a second person has to approve this. Say `idempotent audit propose ID --proposal '{proposal}' --reason TEXT`, \
         and act again when it is approved"
    )))
}

impl From<AuditError> for Failure {
    fn from(error: AuditError) -> Self {
        let text = chain(&error);
        match error {
            AuditError::InvalidAct(_) => Self::Refused(text),
            AuditError::OtherAnchor { .. } => Self::Usage(text),
            _ => Self::Failed(text),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        if let Some(refused) = needs_approval(&error) {
            return refused;
        }
        let text = chain(&error);
        match error {
            Error::NotSettled {
                reason: NotSettled::UnknownKey | NotSettled::UnknownOperation,
                ..
            } => Self::NotFound(text),
            Error::NotSettled { .. } | Error::Moved { .. } => Self::Refused(text),
            Error::InvalidPolicy(_) | Error::InvalidKey { .. } => Self::Usage(text),
            _ => Self::Failed(text),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Failed(chain(&error))
    }
}

impl From<BoxError> for Failure {
    fn from(error: BoxError) -> Self {
        match error.downcast::<Error>() {
            Ok(error) => (*error).into(),
            Err(error) => needs_approval(&*error).unwrap_or_else(|| Self::Failed(chain(&*error))),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Unread,
            _ => Self::Failed(chain(&error)),
        }
    }
}
