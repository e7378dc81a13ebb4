//! How our keys begin, and the other parts of them.

use std::fmt;

use crate::{framing::Hex, identity::RecordId, store::notifications};

/// Letters, digits and a few separators: no braces, which would put every key of a cluster into one
/// slot, and nothing that `SCAN … MATCH` reads as a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyPrefix(Box<str>);

const LONGEST: usize = 64;

/// How the key of a set of what needs somebody goes on behind the prefix.
pub(super) const SET: &str = "attention@";

/// How many of these sets a cluster has, spread over its slots.
const SETS: u8 = 16;

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

    /// The key under which a copy of a finished record of this primary store stands. No prefix has
    /// an `@`, so it is never the key of a record. No name has an `@` or a `:`, so the key tells
    /// prefix and name apart.
    pub(super) fn outcome_key(&self, primary: &PrimaryName, id: &RecordId) -> String {
        format!("{self}outcome@{}:{}", primary.0, Hex(id.as_bytes()))
    }

    /// The key of the set that has the record while it needs somebody. One server has one such set.
    pub(super) fn set_key(&self, id: &RecordId, in_cluster: bool) -> String {
        match in_cluster {
            true => self.part_key(id.as_bytes()[0] % SETS),
            false => format!("{self}{SET}"),
        }
    }

    /// The keys of all these sets.
    pub(super) fn set_keys(&self, in_cluster: bool) -> Vec<String> {
        match in_cluster {
            true => (0..SETS).map(|part| self.part_key(part)).collect(),
            false => vec![format!("{self}{SET}")],
        }
    }

    fn part_key(&self, part: u8) -> String {
        format!("{self}{SET}{part}")
    }

    /// The record that stands under a key; `None` if the key is another's, perhaps of a prefix that
    /// begins with this one.
    pub(super) fn id(&self, key: &[u8]) -> Option<RecordId> {
        let hex = key.strip_prefix(self.0.as_bytes())?;
        notifications::read_id(std::str::from_utf8(hex).ok()?)
    }

    /// The pattern that `SCAN` looks for.
    pub(super) fn pattern(&self) -> String {
        format!("{self}*")
    }

    /// The channel on which moved records are told, as the scripts know it.
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

/// The name of the store whose records are copied: letters, digits, and nothing that keys are put
/// together with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PrimaryName(Box<str>);

/// Says why a text cannot name a primary store.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "`{0}` cannot name the store that decides: take 1 to {LONGEST} ASCII letters, digits, and `.`, `_`, `-`"
)]
pub(super) struct UnusableName(String);

impl PrimaryName {
    pub(super) fn new(name: &str) -> Result<Self, UnusableName> {
        let usable = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if name.bytes().all(usable) && (1..=LONGEST).contains(&name.len()) {
            Ok(Self(name.into()))
        } else {
            Err(UnusableName(name.chars().take(2 * LONGEST).collect()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> PrimaryName {
        PrimaryName::new(name).expect("a usable name")
    }

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
        let copy = prefix.outcome_key(&name("ledger"), &id);
        assert_eq!(prefix.id(copy.as_bytes()), None);
        for in_cluster in [false, true] {
            let sets = prefix.set_keys(in_cluster);
            assert!(sets.contains(&prefix.set_key(&id, in_cluster)));
            assert!(sets.iter().all(|set| prefix.id(set.as_bytes()).is_none()));
        }
    }

    #[test]
    fn f23_a_primary_store_s_name_ends_where_it_ends() {
        for usable in ["ledger", "eu-1.ledger_2", "1", &"x".repeat(LONGEST)] {
            assert!(PrimaryName::new(usable).is_ok(), "{usable}");
        }
        let long = "x".repeat(LONGEST + 1);
        for bad in [
            "", "a:b", "a/b", "a@b", "{a}", "a*", "a b", "ä", "a\0", &long,
        ] {
            assert!(PrimaryName::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_copy_s_key_is_no_other_primary_store_s_and_no_record_s() {
        let id = RecordId::from_bytes([0xa7; 32]);
        let mut keys = std::collections::BTreeSet::new();
        for prefix in ["a", "a:", "a:outcome:", "a:outcome:b:", "a:outcome-b:"] {
            let prefix = KeyPrefix::new(prefix).expect("a usable prefix");
            assert!(keys.insert(prefix.key(&id)));
            for primary in ["b", "bb", "outcome", "b.outcome"] {
                assert!(keys.insert(prefix.outcome_key(&name(primary), &id)));
            }
        }
    }
}
