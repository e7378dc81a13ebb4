//! The verdict on an `Err`: recorded, released, or left uncertain.

use super::{Encoder, OutOfOrder, Outline, StorableError, Stored};
use crate::{
    error::BoxError,
    fingerprint::outline,
    policy::{Unrecorded, Verdict},
};

/// The verdict on an `Err`, at the level of types: only a recorded error needs serde.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot decide what becomes of the error `{E}`",
    note = "`on_error` takes `replay`, `release`, `uncertain`, or a function from `&{E}` to `Verdict` (with serde on `{E}`) or to `Unrecorded` (without)"
)]
pub trait OnError<E> {
    /// Whether no error is ever recorded.
    #[doc(hidden)]
    const RELEASES: bool = false;
    /// Whether an error may be recorded; `usual` is the handle's default.
    #[doc(hidden)]
    fn can_end(usual: Verdict) -> bool {
        let _ = usual;
        true
    }
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
    /// Makes an error of a number that is not the next one, if it judges calls with numbers.
    #[doc(hidden)]
    fn out_of_order(why: OutOfOrder) -> Option<E> {
        let _ = why;
        None
    }
    /// Notes what became of an error that could not be recorded, whatever the verdict was.
    #[doc(hidden)]
    fn carried_out(&self, verdict: Verdict) {
        let _ = verdict;
    }
}

fn not_stored<E>() -> Result<E, BoxError> {
    Err("an error stands here, from an operator who settled the call or from a build that recorded errors, and the `on_error` of this one reads none back: `replay` does, and a classifier that returns `Verdict`".into())
}

macro_rules! on_error {
    ($(#[$doc:meta])* $name:ident as $stored:ty $(where $bound:ident)?, $verdict:expr $(, $releases:literal)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl<E $(: $bound)?> OnError<E> for $name {
            $(const RELEASES: bool = $releases;)?
            fn can_end(usual: Verdict) -> bool {
                let verdict: fn(Verdict) -> Verdict = $verdict;
                verdict(usual) == Verdict::Replay
            }
            fn verdict(&self, _: &E, usual: Verdict) -> Verdict {
                let verdict: fn(Verdict) -> Verdict = $verdict;
                verdict(usual)
            }
            fn encode(&self, error: &E, coder: &Encoder<'_>) -> Result<Vec<u8>, BoxError> {
                <$stored>::encode(error, coder)
            }
            fn decode(&self, stored: &Stored) -> Result<E, BoxError> {
                <$stored>::decode(stored)
            }
            fn reads(stored: &Stored) -> Result<Outline, BoxError> {
                <$stored as Classification<E>>::reads(stored)
            }
            fn is_copy(error: &E, copy: &E) -> bool {
                <$stored>::is_copy(error, copy)
            }
        }
    };
}

on_error!(
    /// The handle's default decides, which is to replay; the error type needs serde.
    Recorded as Verdict where StorableError, |usual| usual
);
on_error!(
    /// An error is the outcome.
    Replayed as Verdict where StorableError, |_| Verdict::Replay
);
on_error!(
    /// An error says that nothing happened.
    Released as Unrecorded, |_| Verdict::Release, true
);
on_error!(
    /// An error says that it is unknown whether the call happened.
    LeftUncertain as Unrecorded, |_| Verdict::Uncertain
);

/// A function decides, error by error.
#[derive(Clone, Copy, Debug)]
pub struct Classified<F>(pub F);

/// The return type of a classifier: [`Verdict`], or [`Unrecorded`] for errors without serde.
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
