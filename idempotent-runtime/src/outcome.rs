//! From what a body returns to what a store keeps, and back.

use std::{
    cell::Cell,
    future::{Future, Ready, ready},
    pin::Pin,
    task::{Context, Poll},
};

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    codec::Coder,
    error::{BoxError, Error},
    fingerprint::outline,
    policy::{Unrecorded, Verdict},
    record::{OutcomeKind, RawOutcome},
};

/// What a protected call returns: a `Result`, or an alias of one.
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
    note = "or say it for every `Err`: `on_error = release`, only if an `Err` means that nothing happened; `on_error = uncertain`, if nobody knows; \
            or write a classifier returning `Unrecorded`, which decides case by case",
    note = "for a type parameter, write `E: serde::Serialize + serde::de::DeserializeOwned`"
)]
pub trait StorableError: Serialize + DeserializeOwned {}

#[diagnostic::do_not_recommend]
impl<E: Serialize + DeserializeOwned> StorableError for E {}

/// What becomes of an `Err`, at the level of types: only what is recorded needs serde.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot decide what becomes of the error `{E}`",
    note = "`on_error` takes `replay`, `release`, `uncertain`, or a function from `&{E}` to `Verdict` (with serde on `{E}`) or to `Unrecorded` (without)"
)]
pub trait OnError<E> {
    /// Decides. `usual` is the handle's default.
    fn verdict(&self, error: &E, usual: Verdict) -> Verdict;
    /// Encodes an error that is to be recorded.
    #[doc(hidden)]
    fn encode(&self, error: &E, coder: &Encoder<'_>) -> Result<Vec<u8>, BoxError>;
    /// Decodes a recorded error.
    #[doc(hidden)]
    fn decode(&self, stored: &Stored) -> Result<E, BoxError>;
    /// Decodes a recorded error, and gives what it looks like.
    #[doc(hidden)]
    fn reads(stored: &Stored) -> Result<Outline, BoxError>;
    /// Tells whether what was decoded is the error that was encoded.
    #[doc(hidden)]
    fn is_copy(error: &E, copy: &E) -> bool;
}

/// The length of a value's encoding and the sum of its bytes; neither where it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outline(pub(crate) Option<(usize, u64)>);

impl Outline {
    /// Whether both may be of one value.
    pub(crate) fn fits(self, other: Self) -> bool {
        self.0.is_none() || other.0.is_none() || self == other
    }
}

/// What an implementation encodes with; opaque.
#[derive(Debug)]
pub struct Encoder<'a>(pub(crate) &'a Coder);

fn not_stored<E>() -> Result<E, BoxError> {
    Err("an error stands here, from whoever settled the call or from a build that recorded errors, and the `on_error` of this one reads none back: `replay` does, and a classifier that returns `Verdict`".into())
}

macro_rules! on_error {
    ($(#[$doc:meta])* $name:ident, $verdict:expr, stored) => {
        on_error!(@marker $(#[$doc])* $name);
        impl<E: StorableError> OnError<E> for $name {
            fn verdict(&self, _: &E, usual: Verdict) -> Verdict {
                let verdict: fn(Verdict) -> Verdict = $verdict;
                verdict(usual)
            }
            fn encode(&self, error: &E, coder: &Encoder<'_>) -> Result<Vec<u8>, BoxError> {
                coder.0.encode(error)
            }
            fn decode(&self, stored: &Stored) -> Result<E, BoxError> {
                stored.decode()
            }
            fn reads(stored: &Stored) -> Result<Outline, BoxError> {
                stored.decode::<E>().map(|error| outline(&error))
            }
            fn is_copy(error: &E, copy: &E) -> bool {
                outline(error).fits(outline(copy))
            }
        }
    };
    ($(#[$doc:meta])* $name:ident, $verdict:expr, forgotten) => {
        on_error!(@marker $(#[$doc])* $name);
        impl<E> OnError<E> for $name {
            fn verdict(&self, _: &E, _: Verdict) -> Verdict {
                $verdict
            }
            fn encode(&self, _: &E, _: &Encoder<'_>) -> Result<Vec<u8>, BoxError> {
                Err("this error is not recorded".into())
            }
            fn decode(&self, _: &Stored) -> Result<E, BoxError> {
                not_stored()
            }
            fn reads(_: &Stored) -> Result<Outline, BoxError> {
                not_stored()
            }
            fn is_copy(_: &E, _: &E) -> bool {
                true
            }
        }
    };
    (@marker $(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;
    };
}

on_error!(
    /// The handle's default decides, which is to replay; the error type needs serde.
    Recorded, |usual| usual, stored
);
on_error!(
    /// An error is the outcome.
    Replayed, |_| Verdict::Replay, stored
);
on_error!(
    /// An error says that nothing happened.
    Released, Verdict::Release, forgotten
);
on_error!(
    /// An error says that nobody knows.
    LeftUncertain, Verdict::Uncertain, forgotten
);

/// A function decides, error by error.
#[derive(Clone, Copy, Debug)]
pub struct Classified<F>(pub F);

/// What a classifier may return: [`Verdict`], or [`Unrecorded`] for errors without serde.
#[diagnostic::on_unimplemented(
    message = "a classifier of `{E}` cannot return `{Self}`",
    note = "it returns `Verdict`, which needs `serde::Serialize` and `serde::Deserialize` on `{E}`, or `Unrecorded`, which never replays and needs nothing"
)]
pub trait Classification<E>: Into<Verdict> {
    #[doc(hidden)]
    fn encode(error: &E, coder: &Encoder<'_>) -> Result<Vec<u8>, BoxError>;
    #[doc(hidden)]
    fn decode(stored: &Stored) -> Result<E, BoxError>;
    #[doc(hidden)]
    fn reads(stored: &Stored) -> Result<Outline, BoxError>;
    #[doc(hidden)]
    fn is_copy(error: &E, copy: &E) -> bool;
}

impl<E: StorableError> Classification<E> for Verdict {
    fn encode(error: &E, coder: &Encoder<'_>) -> Result<Vec<u8>, BoxError> {
        coder.0.encode(error)
    }
    fn decode(stored: &Stored) -> Result<E, BoxError> {
        stored.decode()
    }
    fn reads(stored: &Stored) -> Result<Outline, BoxError> {
        stored.decode::<E>().map(|error| outline(&error))
    }
    fn is_copy(error: &E, copy: &E) -> bool {
        outline(error).fits(outline(copy))
    }
}

impl<E> Classification<E> for Unrecorded {
    fn encode(_: &E, _: &Encoder<'_>) -> Result<Vec<u8>, BoxError> {
        Err("this error is not recorded".into())
    }
    fn decode(_: &Stored) -> Result<E, BoxError> {
        not_stored()
    }
    fn reads(_: &Stored) -> Result<Outline, BoxError> {
        not_stored()
    }
    fn is_copy(_: &E, _: &E) -> bool {
        true
    }
}

impl<E, V: Classification<E>, F: Fn(&E) -> V> OnError<E> for Classified<F> {
    fn verdict(&self, error: &E, _: Verdict) -> Verdict {
        (self.0)(error).into()
    }
    fn encode(&self, error: &E, coder: &Encoder<'_>) -> Result<Vec<u8>, BoxError> {
        V::encode(error, coder)
    }
    fn decode(&self, stored: &Stored) -> Result<E, BoxError> {
        V::decode(stored)
    }
    fn reads(stored: &Stored) -> Result<Outline, BoxError> {
        V::reads(stored)
    }
    fn is_copy(error: &E, copy: &E) -> bool {
        V::is_copy(error, copy)
    }
}

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
    /// Where they are no encoding of that type.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, BoxError> {
        self.coder.decode(&self.outcome.bytes)
    }
}

/// How much of a value is kept, and how it is read back.
pub trait Keep<T> {
    #[doc(hidden)]
    fn encode(&self, value: &T, coder: &Encoder<'_>) -> Result<Vec<u8>, BoxError>;
    /// Reads what was stored by a build whose schema version was `current`, or an older one.
    #[doc(hidden)]
    fn read(self, stored: Stored, current: u32) -> Self::Reading;

    /// Whether what is read back comes from elsewhere, which takes its time.
    #[doc(hidden)]
    const LOADS: bool = false;

    /// Decodes what is stored, the value or what leads to it, and gives what it looks like.
    #[doc(hidden)]
    fn reads(stored: &Stored) -> Result<Outline, BoxError>;

    /// Tells whether what was decoded is the value that was encoded.
    #[doc(hidden)]
    fn is_copy(value: &T, copy: &T) -> bool;

    /// What [`read`](Keep::read) returns.
    #[doc(hidden)]
    type Reading: Future<Output = Result<T, Unread>>;
}

/// Why a value could not be read back.
#[derive(Debug)]
pub enum Unread {
    /// What is stored is no encoding of it, and will be none.
    Undecodable(BoxError),
    /// What is stored is a reference, and the value was not found through it this time.
    NotLoaded(BoxError),
}

/// The whole value is kept.
#[derive(Clone, Copy, Debug)]
pub struct Whole;

fn other_version(stored: &Stored, current: u32) -> BoxError {
    let hint = match stored.version() < current {
        true => ", give `upgrade`",
        false => "",
    };
    format!("{}{hint}", versions(stored, current)).into()
}

fn versions(stored: &Stored, current: u32) -> String {
    let stored = stored.version();
    format!("it was stored with schema version {stored}, and this build has {current}")
}

impl<T: Storable> Keep<T> for Whole {
    fn encode(&self, value: &T, coder: &Encoder<'_>) -> Result<Vec<u8>, BoxError> {
        coder.0.encode(value)
    }
    fn read(self, stored: Stored, current: u32) -> Self::Reading {
        let read = if stored.version() == current {
            stored.decode()
        } else {
            Err(other_version(&stored, current))
        };
        ready(read.map_err(Unread::Undecodable))
    }
    fn reads(stored: &Stored) -> Result<Outline, BoxError> {
        stored.decode::<T>().map(|value| outline(&value))
    }
    fn is_copy(value: &T, copy: &T) -> bool {
        outline(value).fits(outline(copy))
    }
    type Reading = Ready<Result<T, Unread>>;
}

/// The whole value is kept, and a function reads what older versions of the program stored.
#[derive(Clone, Copy, Debug)]
pub struct Upgraded<F>(pub F);

impl<T, F> Keep<T> for Upgraded<F>
where
    T: Storable,
    F: FnOnce(Stored) -> Result<T, BoxError>,
{
    fn encode(&self, value: &T, coder: &Encoder<'_>) -> Result<Vec<u8>, BoxError> {
        coder.0.encode(value)
    }
    fn read(self, stored: Stored, current: u32) -> Self::Reading {
        let read = match stored.version() {
            version if version == current => stored.decode(),
            version if version < current => (self.0)(stored),
            _ => Err(other_version(&stored, current)),
        };
        ready(read.map_err(Unread::Undecodable))
    }
    fn reads(stored: &Stored) -> Result<Outline, BoxError> {
        stored.decode::<T>().map(|value| outline(&value))
    }
    fn is_copy(value: &T, copy: &T) -> bool {
        outline(value).fits(outline(copy))
    }
    type Reading = Ready<Result<T, Unread>>;
}

/// Only a reference to the value is kept, and the value is read back: on a replay, and once on the first run, so that
/// the first caller gets what every later one gets.
#[derive(Clone, Copy, Debug)]
pub struct Reference<S, L>(pub S, pub L);

impl<T, R, S, L, F, E> Keep<T> for Reference<S, L>
where
    R: Storable,
    S: Fn(&T) -> R,
    L: FnOnce(R) -> F,
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
{
    fn encode(&self, value: &T, coder: &Encoder<'_>) -> Result<Vec<u8>, BoxError> {
        coder.0.encode(&(self.0)(value))
    }
    fn read(self, stored: Stored, current: u32) -> Self::Reading {
        // What was a value once, or a reference to something else, may lead to what is another call's.
        if stored.version() != current {
            return ReadBack::Failed(Some(versions(&stored, current).into()));
        }
        match stored.decode() {
            Ok(reference) => ReadBack::Loading(Box::pin((self.1)(reference))),
            Err(error) => ReadBack::Failed(Some(error)),
        }
    }
    const LOADS: bool = true;
    fn reads(stored: &Stored) -> Result<Outline, BoxError> {
        stored.decode::<R>().map(|reference| outline(&reference))
    }
    fn is_copy(_: &T, _: &T) -> bool {
        true
    }
    type Reading = ReadBack<F>;
}

/// A value that is being read back through its reference.
#[derive(Debug)]
pub enum ReadBack<F> {
    /// The `load` function runs.
    Loading(Pin<Box<F>>),
    /// The reference itself could not be read.
    Failed(Option<BoxError>),
}

impl<T, E, F> Future for ReadBack<F>
where
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
{
    type Output = Result<T, Unread>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            ReadBack::Loading(loading) => {
                let loaded = loading.as_mut().poll(cx);
                loaded.map_err(|error| Unread::NotLoaded(error.into()))
            }
            ReadBack::Failed(error) => match error.take() {
                Some(error) => Poll::Ready(Err(Unread::Undecodable(error))),
                None => Poll::Pending,
            },
        }
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
