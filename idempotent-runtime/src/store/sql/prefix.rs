//! The beginning of the names of our tables: the only text of the application that becomes part of
//! a statement.

use std::fmt;

use crate::store::{StoreError, StoreErrorKind};

/// Letters, digits and underscores, not beginning with a digit, at most `LONGEST` of them: safe in
/// every dialect without quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablePrefix(Box<str>);

/// Leaves room for our own names in the shortest limit there is (63 bytes, Postgres).
const LONGEST: usize = 40;

/// Says why a text cannot begin a table's name.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "`{0}` cannot begin a table's name: take 1 to {LONGEST} ASCII letters, digits and underscores, not beginning with a digit or with `sqlite_` or `pg_`"
)]
pub(crate) struct UnsafePrefix(String);

impl TablePrefix {
    fn new(prefix: &str) -> Result<Self, UnsafePrefix> {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let letters = prefix.bytes().all(is_letter);
        let first = prefix.bytes().next();
        let begins = first.is_some_and(|byte| !byte.is_ascii_digit());
        let lower = prefix.to_ascii_lowercase();
        let reserved = lower.starts_with("sqlite_") || lower.starts_with("pg_");
        if letters && begins && !reserved && prefix.len() <= LONGEST {
            Ok(Self(prefix.into()))
        } else {
            Err(UnsafePrefix(prefix.chars().take(2 * LONGEST).collect()))
        }
    }
}

/// The prefix that an application chose.
pub fn chosen(prefix: &str, doing: &'static str) -> Result<TablePrefix, StoreError> {
    TablePrefix::new(prefix).map_err(|unsafe_prefix| {
        StoreError::new(StoreErrorKind::Configuration, doing).with_source(unsafe_prefix)
    })
}

impl Default for TablePrefix {
    fn default() -> Self {
        Self("idempotent_".into())
    }
}

impl fmt::Display for TablePrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f23_only_safe_identifiers_begin_a_table_name() {
        for safe in ["idempotent_", "billing_", "_", "B2_", &"x".repeat(LONGEST)] {
            assert!(TablePrefix::new(safe).is_ok(), "{safe}");
        }
        let long = "x".repeat(LONGEST + 1);
        for bad in [
            "", "2x", "a b", "a;", "a\"", "a'", "a.b", "ä", "a\0", "a-", "sqlite_x", "SQLite_",
            "pg_", &long,
        ] {
            assert!(TablePrefix::new(bad).is_err(), "{bad}");
        }
    }
}
