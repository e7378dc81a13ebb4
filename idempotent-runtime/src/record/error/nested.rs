//! An error of a nested call is no outcome of the call around it: it cannot be stored, and an
//! attempt to encode it leaves a mark.

use std::cell::Cell;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

use super::Error;

thread_local! {
    static WAS_ENCODED: Cell<bool> = const { Cell::new(false) };
}

/// Says that the value at hand cannot be an outcome, as an [`Error`] does.
pub(crate) fn mark() {
    WAS_ENCODED.set(true);
}

/// Tells whether an [`Error`] was met by an encoder on this thread since the last question.
pub(crate) fn take_mark() -> bool {
    WAS_ENCODED.replace(false)
}

impl Error {
    /// Whether it answers the question for good: asked again, it is the same. Any other refusal may
    /// be gone the next time, so an `Err` that comes of it is no outcome.
    pub(crate) fn is_answer(&self) -> bool {
        match self {
            Self::KeyReused { .. } | Self::InvalidKey { .. } | Self::InvalidArguments { .. } => {
                true
            }
            #[cfg(feature = "_sql")]
            Self::InvalidMessage { .. } | Self::MessageChanged { .. } => true,
            _ => false,
        }
    }
}

impl Serialize for Error {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        WAS_ENCODED.set(true);
        Err(ser::Error::custom(
            "an `idempotent_runtime::Error` cannot be serialised, because the failure to get an answer is no outcome: look at it first, or write its `Display`",
        ))
    }
}

impl<'de> Deserialize<'de> for Error {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(de::Error::custom(
            "the failure of a nested call is never stored",
        ))
    }
}
