//! How much of a value is kept, and how it is read back.

use std::{
    future::{Future, Ready, ready},
    pin::Pin,
    task::{Context, Poll},
};

use super::{Encoder, Outline, Storable, Stored};
use crate::{error::BoxError, fingerprint::outline};

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

    /// The future that [`read`](Keep::read) returns.
    #[doc(hidden)]
    type Reading: Future<Output = Result<T, Unread>>;
}

/// Why a value could not be read back.
#[derive(Debug)]
pub enum Unread {
    /// The stored bytes are no encoding of it, and will be none.
    Undecodable(BoxError),
    /// A reference is stored, and the value was not found through it this time.
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

/// Only a reference to the value is kept, and the value is read back on a replay. It is also read
/// back once on the first run, so that the first caller gets what every later one gets.
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
        // Bytes that were a value once, or a reference to something else, may lead to what is
        // another call's.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{codec::Coder, record::RawOutcome};

    #[tokio::test]
    async fn mend_41_an_outcome_of_another_version_is_refused_by_the_name_of_both() {
        let stored = |schema| {
            let outcome = RawOutcome {
                schema,
                ..RawOutcome::value("7")
            };
            Stored::new(outcome, Coder::default())
        };
        for (schema, message) in [
            (
                1,
                "it was stored with schema version 1, and this build has 2, give `upgrade`",
            ),
            (
                3,
                "it was stored with schema version 3, and this build has 2",
            ),
        ] {
            let read: Result<u32, _> = Whole.read(stored(schema), 2).await;
            let Err(Unread::Undecodable(error)) = read else {
                panic!("{read:?} of version {schema}");
            };
            assert_eq!(error.to_string(), message);
        }
        let read: Result<u32, _> = Whole.read(stored(2), 2).await;
        assert!(matches!(read, Ok(7)), "{read:?}");
    }
}
