//! From what a body returns to what a store keeps, and back.

mod errors;
mod values;

use std::cell::Cell;

use serde::{Serialize, de::DeserializeOwned};

pub use self::{errors::*, values::*};
pub use crate::fingerprint::Outline;
use crate::{
    codec::Coder,
    error::{BoxError, Error},
    record::{OutcomeKind, RawOutcome},
};

/// The return type of a protected call: a `Result`, or an alias of one.
#[diagnostic::on_unimplemented(
    message = "an idempotent function must return a `Result`, and `{Self}` is none",
    label = "not a `Result`",
    note = "a duplicate may get no answer, and then it gets an error: return `Result<{Self}, E>`, where `E: From<idempotent_runtime::Error>`"
)]
pub trait Outcome: Sized {
    /// The type of the value.
    type Value;
    /// The type of the error.
    type Error;
    /// Takes it apart.
    fn into_result(self) -> Result<Self::Value, Self::Error>;
    /// Puts it together.
    fn from_result(result: Result<Self::Value, Self::Error>) -> Self;
}

impl<T, E> Outcome for Result<T, E> {
    type Value = T;
    type Error = E;
    fn into_result(self) -> Result<T, E> {
        self
    }
    fn from_result(result: Result<T, E>) -> Self {
        result
    }
}

/// The answer to a number that is not the next one of its stream. No error of an application's is
/// made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutOfOrder {
    /// A larger number has been applied: the last one is this.
    Past {
        /// The last number.
        last: u64,
    },
    /// A number is missing before it.
    Gap {
        /// The number that comes next.
        expected: u64,
        /// The number of this call.
        got: u64,
    },
}

impl OutOfOrder {
    /// Refuses a call without a number, which never gets this answer.
    pub(crate) const NO_NUMBER: Error =
        Error::InvalidPolicy("the record of this key is a stream of numbers: call its `Sequence`");
}

/// An error type that can say that a call got no answer.
#[diagnostic::on_unimplemented(
    message = "the error type `{Self}` cannot say that a call got no answer",
    label = "needs `From<idempotent_runtime::Error>`",
    note = "add a variant for it, with thiserror: `#[error(transparent)] Idempotency(#[from] idempotent_runtime::Error)`"
)]
pub trait FromRefusal: Sized {
    /// Makes one of ours into one of theirs.
    fn from_refusal(error: Error) -> Self;
}

#[diagnostic::do_not_recommend]
impl<E: From<Error>> FromRefusal for E {
    fn from_refusal(error: Error) -> Self {
        error.into()
    }
}

/// A value that can be stored and read back.
#[diagnostic::on_unimplemented(
    message = "the outcome `{Self}` cannot be stored for replay",
    label = "needs `serde::Serialize` and `serde::Deserialize`",
    note = "derive both, or keep only a reference to it with `outcome = reference(save, load)`",
    note = "for axum's `Json`, return `http::Json` of `idempotent-runtime` (feature `axum`); for a status such as 201, return the value alone, \
            and let the handler that calls this write `(StatusCode::CREATED, Json(value))`, or protect the route by `http::IdempotencyLayer`, \
            which stores whole responses; for another foreign type, a type of your own; for a type parameter, write `T: serde::Serialize + serde::de::DeserializeOwned`"
)]
pub trait Storable: Serialize + DeserializeOwned {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned> Storable for T {}

/// An error that can be stored and replayed.
#[diagnostic::on_unimplemented(
    message = "the error type `{Self}` cannot be stored for replay",
    label = "needs `serde::Serialize` and `serde::Deserialize`",
    note = "say what becomes of each variant: derive `ErrorVerdict`, `serde::Serialize` and `serde::Deserialize`, write `on_error = ErrorVerdict::verdict`, \
            and `#[serde(skip)]` on a variant that holds a foreign error",
    note = "or say it for every `Err`: `on_error = release`, only if an `Err` means that nothing happened; `on_error = uncertain`, if that is unknown; \
            or write a classifier returning `Unrecorded`, which decides case by case",
    note = "for a type parameter, write `E: serde::Serialize + serde::de::DeserializeOwned`"
)]
pub trait StorableError: Serialize + DeserializeOwned {}

#[diagnostic::do_not_recommend]
impl<E: Serialize + DeserializeOwned> StorableError for E {}

/// The encoder that an implementation uses; opaque.
#[derive(Debug)]
pub struct Encoder<'a>(pub(crate) &'a Coder);

/// Bytes of an outcome, with the schema version that they were written with: what an `upgrade`
/// function reads, and [`StoredOutcome::stored`](crate::StoredOutcome::stored) shows.
#[derive(Clone, Debug)]
pub struct Stored {
    outcome: RawOutcome,
    coder: Coder,
}

impl Stored {
    pub(crate) fn new(outcome: RawOutcome, coder: Coder) -> Self {
        Self { outcome, coder }
    }

    pub(crate) fn kind(&self) -> OutcomeKind {
        self.outcome.kind
    }

    /// The schema version that was current when they were written.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.outcome.schema
    }

    /// The bytes as they stand in the store.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.outcome.bytes
    }

    /// Decodes them as the type that they were written from.
    ///
    /// # Errors
    ///
    /// When they are no encoding of that type.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, BoxError> {
        self.coder.decode(&self.outcome.bytes)
    }
}

thread_local! {
    static IS_OWN: Cell<bool> = const { Cell::new(false) };
}

/// Reads back what the caller's own body has returned, which is no replay, though it is read as
/// one.
pub(crate) fn as_own<T>(read: impl FnOnce() -> T) -> T {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            IS_OWN.set(self.0);
        }
    }
    let _before = Before(IS_OWN.replace(true));
    read()
}

/// Tells whether what is being read is the caller's own.
#[must_use]
pub fn is_own() -> bool {
    IS_OWN.get()
}
