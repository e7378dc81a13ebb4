//! Why arguments could not be fingerprinted.

use std::fmt;

use serde::ser;

/// The arguments of a call cannot be fingerprinted.
///
/// Its message names the argument and never its value; the text that the value's own `Serialize`
/// gave is in `source()`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FingerprintError {
    /// The `Serialize` of an argument, or of something in it, failed.
    #[error(
        "argument `{argument}` cannot be fingerprinted because its `Serialize` failed; mend that, or leave the argument out with `skip({argument})`"
    )]
    Serialize {
        /// Which argument.
        argument: &'static str,
        /// The error of its `Serialize`.
        source: SerializeFailure,
    },
    /// An argument holds values in values to a depth that would endanger the stack.
    #[error(
        "argument `{argument}` cannot be fingerprinted because it is nested deeper than {limit} levels; flatten it, or leave it out with `skip({argument})`"
    )]
    TooDeep {
        /// Which argument.
        argument: &'static str,
        /// How many levels there may be.
        limit: usize,
    },
    /// An argument is a `HashSet`, or holds one in a field or a list: the order of its elements is
    /// another one in every copy.
    #[error(
        "argument `{argument}` cannot be fingerprinted because there is a `HashSet` in it, whose order is another one in every copy; make it a `BTreeSet`"
    )]
    Unordered {
        /// Which argument.
        argument: &'static str,
    },
}

/// The error of a failing `Serialize`, in its own words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SerializeFailure(Box<str>);

/// A failure while one value is encoded; [`FingerprintError`] adds whose value it was.
#[derive(Debug, thiserror::Error)]
pub(super) enum EncodeFailure {
    #[error("{0}")]
    Said(SerializeFailure),
    #[error("nested too deeply")]
    TooDeep,
    #[error("a set has no order")]
    Unordered,
}

impl ser::Error for EncodeFailure {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Said(SerializeFailure(message.to_string().into()))
    }
}

impl EncodeFailure {
    pub(super) fn of(self, argument: &'static str) -> FingerprintError {
        match self {
            Self::Said(source) => FingerprintError::Serialize { argument, source },
            Self::Unordered => FingerprintError::Unordered { argument },
            Self::TooDeep => FingerprintError::TooDeep {
                argument,
                limit: super::encode::DEEPEST,
            },
        }
    }
}
