//! The id of a call's record, and the keys and ids that are derived from it.

use std::{fmt, str::FromStr};

use crate::framing::{Hex, write_framed};
use crate::sha256::sha256;
use crate::value::with_scratch;

/// Which record belongs to a call: a hash of its operation, scope and key.
///
/// It has one size and one alphabet for every key, so that no store's collation, length limit or
/// delimiter matters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordId([u8; 32]);

impl RecordId {
    /// Hashes an operation's name with a scope and a key that are framed already, as
    /// [`Key::framed`] gives them.
    ///
    /// No scope is another record than any scope.
    ///
    /// [`Key::framed`]: crate::key::Key::framed
    #[must_use]
    pub fn new(operation: &str, scope: Option<&[u8]>, key: &[u8]) -> Self {
        const DOMAIN: &[u8] = b"idempotent-runtime/id/1";
        with_scratch(|bytes| {
            bytes.extend_from_slice(DOMAIN);
            write_framed(bytes, operation.as_bytes());
            match scope {
                None => bytes.push(0),
                Some(scope) => {
                    bytes.push(1);
                    write_framed(bytes, scope);
                }
            }
            write_framed(bytes, key);
            Self(sha256(bytes))
        })
    }

    /// Takes an id as a store gave it back.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes, for a store to look for.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// All of it, as 64 lower-case hexadecimal digits.
    #[must_use]
    pub fn to_hex(&self) -> String {
        Hex(&self.0).to_string()
    }

    /// The first 8 hexadecimal digits, for logs and spans; the same as its `Display`.
    #[must_use]
    pub fn short(&self) -> String {
        self.to_string()
    }

    /// A key for a downstream API: 32 lower-case hexadecimal digits, the same on every attempt of
    /// the call, another for every `name` and every record.
    ///
    /// # Panics
    ///
    /// When `name` is empty, because two steps without a name would send one key, and the second
    /// would be swallowed.
    #[must_use]
    pub fn child_key(&self, name: &str) -> String {
        assert!(
            !name.is_empty(),
            "a child key needs a name; write what it is for, such as `child_key(\"gateway.charge\")`"
        );
        let digest = self.derive(b"idempotent-runtime/child-key/1", name);
        Hex(&digest).to_string()
    }

    /// An id for the resource that the call creates: a UUID of version 8, the same on every
    /// attempt.
    #[must_use]
    pub fn child_id(&self) -> [u8; 16] {
        let mut id = self.derive(b"idempotent-runtime/child-id/1", "");
        id[6] = id[6] & 0x0f | 0x80;
        id[8] = id[8] & 0x3f | 0x80;
        id
    }

    /// Names a number of the stream whose record this is: what it hands downstream is its own.
    pub(crate) fn of_number(&self, number: u64) -> Self {
        let domain = b"idempotent-runtime/number/1".as_slice();
        Self(sha256(
            &mut [domain, &self.0, &number.to_be_bytes()].concat(),
        ))
    }

    fn derive(&self, domain: &[u8], name: &str) -> [u8; 16] {
        let mut bytes = [domain, &self.0].concat();
        write_framed(&mut bytes, name.as_bytes());
        let digest = sha256(&mut bytes);
        let (half, _) = digest.split_at(16);
        std::array::from_fn(|index| half[index])
    }
}

/// Reads what [`RecordId::to_hex`] gives, as it stands in an error or a log.
impl FromStr for RecordId {
    type Err = MalformedRecordId;

    fn from_str(text: &str) -> Result<Self, MalformedRecordId> {
        let digits = text.as_bytes();
        let is_hex = digits.len() == 64 && digits.iter().all(u8::is_ascii_hexdigit);
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            let pair = std::str::from_utf8(pair).ok();
            let read = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok());
            *byte = read.filter(|_| is_hex).ok_or(MalformedRecordId)?;
        }
        match is_hex {
            true => Ok(Self(bytes)),
            false => Err(MalformedRecordId),
        }
    }
}

/// A text is no record id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a record id is 64 hexadecimal digits, as errors and `RecordId::to_hex` show it")]
pub struct MalformedRecordId;

impl fmt::Display for RecordId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.0[..4]).fmt(formatter)
    }
}

impl fmt::Debug for RecordId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RecordId({self}…)")
    }
}

#[cfg(test)]
mod tests;
