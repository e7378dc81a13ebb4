//! How our keys begin.

use std::fmt;

use crate::{framing::Hex, identity::RecordId, store::listening};

/// Letters, digits and a few separators: no braces, which would put every key of a cluster into one slot, and nothing that
/// `SCAN … MATCH` reads as a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyPrefix(Box<str>);

const LONGEST: usize = 64;

/// Says why a text cannot begin a key.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "`{0}` cannot begin our keys: take 1 to {LONGEST} ASCII letters, digits, and `:`, `.`, `_`, `-`, `/`"
)]
pub(super) struct UnusablePrefix(String);

impl KeyPrefix {
    pub(super) fn new(prefix: &str) -> Result<Self, UnusablePrefix> {
        let usable = |byte: u8| byte.is_ascii_alphanumeric() || b":._-/".contains(&byte);
        if prefix.bytes().all(usable) && (1..=LONGEST).contains(&prefix.len()) {
            Ok(Self(prefix.into()))
        } else {
            Err(UnusablePrefix(prefix.chars().take(2 * LONGEST).collect()))
        }
    }

    /// The key under which a record stands.
    pub(super) fn key(&self, id: &RecordId) -> String {
        format!("{self}{}", Hex(id.as_bytes()))
    }

    /// The key under which a copy of a finished record stands.
    pub(super) fn outcome_key(&self, id: &RecordId) -> String {
        format!("{self}outcome:{}", Hex(id.as_bytes()))
    }

    /// The record that stands under a key; `None` where the key is another's, perhaps of a prefix that begins with this one.
    pub(super) fn id(&self, key: &[u8]) -> Option<RecordId> {
        let hex = key.strip_prefix(self.0.as_bytes())?;
        listening::read_id(std::str::from_utf8(hex).ok()?)
    }

    /// What `SCAN` looks for.
    pub(super) fn pattern(&self) -> String {
        format!("{self}*")
    }

    /// Where moved records are told, as the scripts know it.
    pub(super) fn channel(&self) -> String {
        format!("{self}moved")
    }
}

impl Default for KeyPrefix {
    fn default() -> Self {
        Self("idempotent:".into())
    }
}

impl fmt::Display for KeyPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f23_a_prefix_is_no_pattern_and_no_slot() {
        for usable in ["idempotent:", "a.b/c-d_E9:", "1", &"x".repeat(LONGEST)] {
            assert!(KeyPrefix::new(usable).is_ok(), "{usable}");
        }
        let long = "x".repeat(LONGEST + 1);
        for bad in [
            "", "{a}", "a{", "a*", "a?", "[a]", "a\\", "a b", "ä", "a\0", "a\n", &long,
        ] {
            assert!(KeyPrefix::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_key_names_its_record_and_no_other_prefix() {
        let prefix = KeyPrefix::new("a:").expect("a usable prefix");
        let longer = KeyPrefix::new("a:b:").expect("a usable prefix");
        let id = RecordId::from_bytes([0xa7; 32]);
        assert_eq!(prefix.id(prefix.key(&id).as_bytes()), Some(id));
        assert_eq!(prefix.id(longer.key(&id).as_bytes()), None);
        assert_eq!(prefix.id(b"a:moved"), None);
        assert_eq!(prefix.id(prefix.outcome_key(&id).as_bytes()), None);
    }
}
