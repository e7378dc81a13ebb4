//! An outcome, as bytes.

use std::fmt;

use bytes::Bytes;

use super::codes::codes;

/// An outcome as a store keeps it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RawOutcome {
    /// The kind of the bytes.
    pub kind: OutcomeKind,
    /// The schema version of the bytes, chosen by the caller.
    pub schema: u32,
    /// The encoded value or error; empty when not replayable.
    pub bytes: Bytes,
}

impl RawOutcome {
    /// Makes the outcome of a call that ended well.
    #[must_use]
    pub fn value(bytes: impl Into<Bytes>) -> Self {
        Self {
            kind: OutcomeKind::Value,
            schema: 0,
            bytes: bytes.into(),
        }
    }

    /// Makes the outcome of a call that failed for good.
    #[must_use]
    pub fn error(bytes: impl Into<Bytes>) -> Self {
        Self {
            kind: OutcomeKind::Error,
            schema: 0,
            bytes: bytes.into(),
        }
    }

    /// Makes the mark of a call that happened, with an outcome that could not be kept.
    #[must_use]
    pub fn not_replayable() -> Self {
        Self {
            kind: OutcomeKind::NotReplayable,
            schema: 0,
            bytes: Bytes::new(),
        }
    }

    /// Whether it is the outcome of a call that failed for good.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.kind == OutcomeKind::Error
    }

    /// Whether it says only that the call happened: its value or error could not be kept.
    #[must_use]
    pub fn is_not_replayable(&self) -> bool {
        self.kind == OutcomeKind::NotReplayable
    }

    /// Sets the schema version of the bytes.
    #[must_use]
    pub fn with_schema(mut self, schema: u32) -> Self {
        self.schema = schema;
        self
    }
}

impl fmt::Debug for RawOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawOutcome")
            .field("kind", &self.kind)
            .field("schema", &self.schema)
            .field("bytes", &format_args!("{} bytes", self.bytes.len()))
            .finish()
    }
}

/// The kind of the bytes of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OutcomeKind {
    /// The value of an `Ok`.
    Value,
    /// The error of an `Err`.
    Error,
    /// Nothing: the call happened, and its outcome could not be kept.
    NotReplayable,
    /// How a stream of numbered calls stands, in every state. An older build cannot read it.
    Stream,
}

codes! { OutcomeKind, "kind": Value = 1, Error = 2, NotReplayable = 3, Stream = 4 }
