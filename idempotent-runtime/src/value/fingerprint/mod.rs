//! The fingerprint of a call: what it was asked to do, in 32 bytes. The same key with another
//! fingerprint is another call.
//!
//! The encoding is written down in `FINGERPRINT.md`, for computing it in another language.

mod arguments;
mod compound;
mod digests;
mod encode;
mod entries;
mod failure;
mod fields;

#[doc(hidden)]
pub use arguments::Outline;
pub(crate) use arguments::outline;
pub use arguments::{Arguments, Fingerprinted};
pub use digests::{ArgumentDigests, MalformedDigests};
pub use failure::{FingerprintError, SerializeFailure};

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use hmac::{Hmac, KeyInit as _, Mac as _, digest::CtOutput};
use sha2::Sha256;

use crate::framing::Hex;
use crate::sha256::sha256;

/// The SHA-256, or with a [`FingerprintKey`] the HMAC-SHA-256, of a call's canonically encoded
/// arguments.
///
/// Two are compared in constant time, so that how long a refusal takes tells nothing about the
/// arguments of the call that has the key.
#[derive(Clone, Copy)]
pub struct Fingerprint([u8; 32]);

impl PartialEq for Fingerprint {
    fn eq(&self, other: &Self) -> bool {
        let secret = |bytes: [u8; 32]| CtOutput::<Sha256>::new(bytes.into());
        secret(self.0) == secret(other.0)
    }
}

impl Eq for Fingerprint {}

impl Hash for Fingerprint {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Fingerprint {
    /// Takes a fingerprint as a store gave it back.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes, for a store to keep.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// All of it, as 64 lower-case hexadecimal digits.
    #[must_use]
    pub fn to_hex(&self) -> String {
        Hex(&self.0).to_string()
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Fingerprint({}…)", Hex(&self.0[..4]))
    }
}

/// A secret that makes fingerprints and digests meaningless to a reader of the store who does not
/// have it.
///
/// Without one, a reader of the store can guess a value and check the guess: a birthday or an
/// amount has few possible values. Changing the secret changes every fingerprint, so that
/// duplicates of calls from before the change are refused as other calls until those records
/// expire. A call that has no key but its arguments has another key then, and duplicates of calls
/// from before run again.
#[derive(Clone)]
pub struct FingerprintKey(Arc<Hmac<Sha256>>);

impl FingerprintKey {
    /// The shortest secret that is accepted, in bytes; 32 random ones are best.
    pub const SHORTEST: usize = 16;

    /// Takes the secret.
    ///
    /// # Errors
    ///
    /// When it is shorter than [`FingerprintKey::SHORTEST`] bytes.
    pub fn new(secret: impl AsRef<[u8]>) -> Result<Self, WeakFingerprintKey> {
        let secret = secret.as_ref();
        let weak = WeakFingerprintKey {
            bytes: secret.len(),
        };
        if secret.len() < Self::SHORTEST {
            return Err(weak);
        }
        Hmac::new_from_slice(secret)
            .map(|hmac| Self(Arc::new(hmac)))
            .map_err(|_| weak)
    }

    /// Eight digits that are others for another secret, and do not reveal it.
    pub(crate) fn label(&self) -> String {
        let mut hmac = Hmac::clone(&self.0);
        hmac.update(b"idempotent audit");
        Hex(&hmac.finalize().into_bytes()[..4]).to_string()
    }
}

impl fmt::Debug for FingerprintKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("FingerprintKey(…)")
    }
}

/// The secret for a [`FingerprintKey`] is too short to keep anything secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a fingerprint key of {bytes} bytes can be guessed; give it at least 16, best 32 random ones"
)]
pub struct WeakFingerprintKey {
    bytes: usize,
}

/// Hashes `buffer`, and leaves it as it was.
fn hash(key: Option<&FingerprintKey>, buffer: &mut Vec<u8>) -> [u8; 32] {
    match key {
        None => sha256(buffer),
        Some(FingerprintKey(hmac)) => Hmac::clone(hmac)
            .chain_update(buffer)
            .finalize()
            .into_bytes()
            .into(),
    }
}

#[cfg(test)]
mod tests;
