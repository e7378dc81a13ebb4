//! Which arguments differ, without their values.

use std::collections::BTreeSet;
use std::fmt;

use super::encode::tag;
use super::fields::KnownFields;
use super::{FingerprintKey, hash};
use crate::framing::{Hex, read_framed, write_framed};

/// Keeps the digest of an argument apart from every other hash.
const DOMAIN: &[u8] = b"idem-arg/1";

/// The version of the format, which a record names here for its fingerprint, too. A release that
/// changes how one of them is computed takes another number, and goes on to compare older records
/// by theirs.
const FORM: u8 = 1;

const DIGEST: usize = 8;

/// The names of a call's arguments with a digest of eight bytes each, and of the fields of those
/// that are structs, as `order.amount`. They are enough to say *which* of them differ from those of
/// an earlier call. Only one byte of a field's digest is kept, so that a small field cannot be
/// guessed alone.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct ArgumentDigests(Vec<(String, [u8; DIGEST])>);

impl ArgumentDigests {
    /// Takes encoded entries, each a name and a value.
    pub(super) fn of_entries<'a>(
        entries: impl Iterator<Item = &'a [u8]>,
        fields: &KnownFields,
        key: Option<&FingerprintKey>,
    ) -> Self {
        let mut hashed = DOMAIN.to_vec();
        let mut digest = |name: &str, value: &[u8]| {
            hashed.truncate(DOMAIN.len());
            hashed.push(tag::TEXT);
            write_framed(&mut hashed, name.as_bytes());
            hashed.extend_from_slice(value);
            let hash = hash(key, &mut hashed);
            std::array::from_fn::<u8, DIGEST, _>(|index| hash[index])
        };
        let mut digests = Vec::new();
        for mut entry in entries {
            let name = entry
                .split_off_first()
                .and_then(|_| read_framed(&mut entry));
            let Some(name) = name.and_then(|name| std::str::from_utf8(name).ok()) else {
                continue;
            };
            digests.push((name.to_owned(), digest(name, entry)));
            fields.each(name, entry, &mut |name, value| {
                // One byte tells most fields apart, and leaves each as hard to guess as many
                // others.
                let [first, ..] = digest(name, value);
                let mut short = [0; DIGEST];
                short[0] = first;
                digests.push((name.to_owned(), short));
            });
        }
        digests.sort_unstable();
        Self(digests)
    }

    /// The names of the arguments that differ, and of those that only one side has, in the order of
    /// the alphabet.
    ///
    /// Fields that differ are named in place of their argument, if both sides know fields of it.
    #[must_use]
    pub fn differing(&self, other: &Self) -> Vec<String> {
        let (ours, theirs): (BTreeSet<_>, BTreeSet<_>) =
            (self.0.iter().collect(), other.0.iter().collect());
        let names: BTreeSet<&str> = ours
            .symmetric_difference(&theirs)
            .map(|(name, _)| name.as_str())
            .collect();
        let holds = |holder: &str, name: &str| {
            let rest = name.strip_prefix(holder);
            rest.is_some_and(|rest| rest.starts_with('.'))
        };
        let knows_fields =
            |side: &Self, holder: &str| side.0.iter().any(|(name, _)| holds(holder, name));
        let is_told_by_fields = |holder: &str| {
            let differs = names.iter().any(|name| holds(holder, name));
            differs && knows_fields(self, holder) && knows_fields(other, holder)
        };
        // A field counts if all that hold it are told by their fields.
        let is_reached = |name: &str| {
            let dots = name.match_indices('.').map(|(dot, _)| &name[..dot]);
            let mut holders = dots.filter(|holder| names.contains(holder));
            holders.all(is_told_by_fields)
        };
        let named = names
            .iter()
            .filter(|name| is_reached(name) && !is_told_by_fields(name));
        named.map(|name| (*name).to_owned()).collect()
    }

    /// The form in which a store keeps them: a version byte, then each name, framed by its length,
    /// with its digest.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![FORM];
        for (name, digest) in &self.0 {
            write_framed(&mut bytes, name.as_bytes());
            bytes.extend_from_slice(digest);
        }
        bytes
    }

    /// Reads what [`ArgumentDigests::to_bytes`] wrote; takes no more memory than `bytes` has, give
    /// or take a factor.
    ///
    /// # Errors
    ///
    /// When `bytes` is not that: it is of another version, cut short, out of order, or has names
    /// that are no text.
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
