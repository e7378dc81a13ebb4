//! Which arguments differ, without their values.

use std::collections::BTreeSet;
use std::fmt;

use super::{FingerprintKey, hash};
use crate::framing::{Hex, read_framed, write_framed};

/// Keeps the digest of an argument apart from every other hash.
const DOMAIN: &[u8] = b"idem-arg/1";

/// The version of the format, which a record names here for its fingerprint, too: whoever changes how one of them is computed
/// takes another number, and goes on to compare older records by theirs.
const FORM: u8 = 1;

const DIGEST: usize = 8;

/// The names of a call's arguments with a digest of eight bytes each: enough to say *which* arguments
/// differ from those of an earlier call, and nothing about their values.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct ArgumentDigests(Vec<(String, [u8; DIGEST])>);

impl ArgumentDigests {
    /// Takes encoded entries, each a name and a value.
    pub(super) fn of_entries<'a>(
        entries: impl Iterator<Item = &'a [u8]>,
        key: Option<&FingerprintKey>,
    ) -> Self {
        let mut hashed = DOMAIN.to_vec();
        let mut digests: Vec<_> = entries
            .filter_map(|entry| {
                hashed.truncate(DOMAIN.len());
                hashed.extend_from_slice(entry);
                let name = String::from_utf8(read_framed(&mut entry.get(1..)?)?.to_vec()).ok()?;
                let digest = hash(key, &mut hashed).first_chunk().copied()?;
                Some((name, digest))
            })
            .collect();
        digests.sort_unstable();
        Self(digests)
    }

    /// The names of the arguments that differ, and of those that only one side has, in the order of the alphabet.
    #[must_use]
    pub fn differing(&self, other: &Self) -> Vec<String> {
        let (ours, theirs): (BTreeSet<_>, BTreeSet<_>) =
            (self.0.iter().collect(), other.0.iter().collect());
        let names: BTreeSet<_> = ours
            .symmetric_difference(&theirs)
            .map(|(name, _)| name)
            .collect();
        names.into_iter().cloned().collect()
    }

    /// The form in which a store keeps them: a version byte, then each name, framed by its length, with its digest.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![FORM];
        for (name, digest) in &self.0 {
            write_framed(&mut bytes, name.as_bytes());
            bytes.extend_from_slice(digest);
        }
        bytes
    }

    /// Reads what [`ArgumentDigests::to_bytes`] wrote; takes no more memory than `bytes` has, give or take a factor.
    ///
    /// # Errors
    ///
    /// When `bytes` is anything else: of another version, cut short, out of order, or with names that are no text.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MalformedDigests> {
        let Some((&FORM, mut rest)) = bytes.split_first() else {
            return Err(MalformedDigests { offset: 0 });
        };
        let mut digests: Vec<(String, [u8; DIGEST])> = Vec::new();
        while !rest.is_empty() {
            let malformed = MalformedDigests {
                offset: bytes.len() - rest.len(),
            };
            let next = read_digest(&mut rest).ok_or(malformed)?;
            if digests.last().is_some_and(|last| *last > next) {
                return Err(malformed);
            }
            digests.push(next);
        }
        Ok(Self(digests))
    }
}

impl fmt::Debug for ArgumentDigests {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self
            .0
            .iter()
            .map(|(name, digest)| (name, format!("{}…", Hex(&digest[..4]))));
        formatter.debug_map().entries(shown).finish()
    }
}

fn read_digest(bytes: &mut &[u8]) -> Option<(String, [u8; DIGEST])> {
    let name = std::str::from_utf8(read_framed(bytes)?).ok()?;
    let (digest, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some((name.to_owned(), *digest))
}

/// Stored argument digests cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the stored argument digests are malformed at byte {offset}; they were damaged or written by a newer release"
)]
pub struct MalformedDigests {
    offset: usize,
}
