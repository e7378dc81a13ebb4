//! Values that know nothing of stores and calls: keys and what identifies a record, arguments and
//! what they come down to, bytes and their framing, the time, the choices of the attribute, and the
//! words of HTTP that the client shares.
//!
//! All of it is pure but the clock, the only place that reads the time. Bytes that are stored or
//! compared come from here, and have golden values: a change of one is a breaking change.

mod awaited;
pub mod clock;
pub(crate) mod codec;
pub mod fingerprint;
pub(crate) mod framing;
pub mod identity;
pub mod key;
mod lock;
mod opaque;
pub mod policy;
pub(crate) mod race;
mod scratch;
mod setters;
pub(crate) mod sha256;
pub(crate) mod sync;
mod time;
mod unreadable;
#[cfg(feature = "wire")]
pub mod wire;

#[doc(hidden)]
pub use self::setters::setters;
pub(crate) use self::{awaited::awaited, lock::lock, opaque::opaque, scratch::with_scratch};
pub use self::{
    time::{Time, micros},
    unreadable::{BoxError, Unreadable},
};
