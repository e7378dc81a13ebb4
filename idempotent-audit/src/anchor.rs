//! Anchors: what a chain was, kept where the owner of the database cannot change it.

use std::{fmt, str::FromStr};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use idempotent_runtime::Time;

use crate::merkle::Hash;

/// The size and the hash of a chain at a time: one line, for a file, a log or an object lock.
///
/// Its fields are those of a [checkpoint](https://c2sp.org/tlog-checkpoint) of a transparency log:
/// origin, size, root, time, with a blank between them. The size is the number of batches, and the
/// root the hash of the seal of the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    origin: String,
    size: i64,
    root: Hash,
    time: String,
}

impl Anchor {
    pub(crate) fn new(store: &str, size: i64, root: Hash, sealed: i64) -> Self {
        Self {
            origin: format!("idempotent-audit/{store}"),
            size,
            root,
            time: Time::from_micros(sealed).to_string(),
        }
    }

    /// Returns whose chain it is: that of a store, by its id.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Returns the number of batches.
    #[must_use]
    pub fn size(&self) -> i64 {
        self.size
    }

    /// Whether it is that of this store.
    pub(crate) fn is_of(&self, store: &str) -> bool {
        self.origin.strip_prefix("idempotent-audit/") == Some(store)
    }

    pub(crate) fn root(&self) -> &Hash {
        &self.root
    }
}

impl fmt::Display for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            origin,
            size,
            root,
            time,
        } = self;
        write!(f, "{origin} {size} {} {time}", STANDARD.encode(root))
    }
}

/// A line that is no anchor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no anchor: a line has origin, size, root and time, with a blank between them")]
pub struct NoAnchor(String);

impl FromStr for Anchor {
    type Err = NoAnchor;

    fn from_str(line: &str) -> Result<Self, NoAnchor> {
        let read = || {
            let mut words = line.split_whitespace();
            let anchor = Self {
                origin: words.next()?.to_owned(),
                size: words.next()?.parse().ok().filter(|size| *size >= 0)?,
                root: STANDARD.decode(words.next()?).ok()?.try_into().ok()?,
                time: words.next()?.to_owned(),
            };
            words.next().is_none().then_some(anchor)
        };
        read().ok_or_else(|| NoAnchor(line.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_anchor_is_read_as_it_was_written() {
        let anchor = Anchor::new("5f", 12, [7; 32], 1_764_000_000_000_000);
        let line = anchor.to_string();
        assert_eq!(
            line,
            "idempotent-audit/5f 12 BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc= 2025-11-24T16:00:00.000000Z"
        );
        assert_eq!(line.parse(), Ok(anchor));
        for bad in ["", "a 1 BwcH t", "a -1 x t", &format!("{line} more")] {
            assert!(bad.parse::<Anchor>().is_err(), "{bad}");
        }
    }
}
