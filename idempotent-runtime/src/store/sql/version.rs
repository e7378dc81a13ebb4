//! The version of the schema that stands, and the one that this build needs: the number of steps
//! that were ever released.
//!
//! A deploy may be rolled back, and a rolling one starts builds of both releases. So a step says
//! from which version on builds can use the tables once it is taken, and the database keeps that.
//! An older build goes on if a newer release left it room.

use std::sync::{Arc, Mutex};

use crate::{
    store::{StoreError, StoreErrorKind, sql::TablePrefix},
    value::lock,
};

/// A step as it was released.
#[derive(Clone, Debug)]
pub struct SchemaStep {
    /// The statements.
    pub text: String,
    /// The oldest version whose builds can use the tables after this step.
    pub usable_from: i64,
}

impl SchemaStep {
    /// A step that leaves room for every build there was.
    #[must_use]
    pub fn first(text: String) -> Self {
        let usable_from = 1;
        Self { text, usable_from }
    }
}

/// The versions in a database; zeros if there is no schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The number of the last step.
    pub version: i64,
    /// The oldest build that may use the tables.
    pub usable_from: i64,
}

impl From<[i64; 2]> for Found {
    fn from([version, usable_from]: [i64; 2]) -> Self {
        Self {
            version,
            usable_from,
        }
    }
}

/// Both numbers of what stands, over the rows of the table of the versions.
const FOUND: &str = "coalesce(max(version), 0), coalesce(max(usable_from), 0)";

/// Tells both numbers of what stands.
pub(crate) fn look(prefix: &TablePrefix) -> String {
    format!("SELECT {FOUND} FROM {prefix}schema")
}

/// Whether this build can use the schema: `false` for an older one, an error for a newer one that
/// leaves it no room.
pub fn is_usable(found: Found, known: usize, doing: &'static str) -> Result<bool, StoreError> {
    let known = i64::try_from(known).unwrap_or(i64::MAX);
    let Found {
        version,
        usable_from,
    } = found;
    if version > known && usable_from > known {
        let source = format!(
            "the schema has version {version}, this build knows {known}: a newer release wrote it, for builds that know {usable_from} or more"
        );
        return Err(StoreError::new(StoreErrorKind::Schema, doing).with_source(source));
    }
    Ok(version >= known)
}

/// Refuses every schema that this build cannot use as it is.
pub(crate) fn check(found: Found, known: usize, doing: &'static str) -> Result<(), StoreError> {
    if is_usable(found, known, doing)? {
        return Ok(());
    }
    let version = found.version;
    let source =
        format!("the schema has version {version}, this build needs {known}: run `migrate()`");
    Err(StoreError::new(StoreErrorKind::Schema, doing).with_source(source))
}

/// Tells the id of the store, which the first step drew: by it a claim inside a transaction of the
/// application's knows whether it is in the right database.
pub(crate) fn id(prefix: &TablePrefix) -> String {
    format!("SELECT store FROM {prefix}schema WHERE version = 1")
}

/// The statements for transactions of the application's, once the id of the store is known.
///
/// The id is another one after all tables were emptied and migrated again.
#[derive(Debug)]
pub(crate) struct Inside<S>(Mutex<Option<Arc<S>>>);

impl<S> Default for Inside<S> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<S> Inside<S> {
    pub(crate) fn get(&self) -> Option<Arc<S>> {
        lock(&self.0).clone()
    }

    pub(crate) fn set(&self, statements: S) {
        *lock(&self.0) = Some(Arc::new(statements));
    }
}

/// Gives a row in the database of the store with this id, and nothing elsewhere.
pub(crate) fn here(prefix: &TablePrefix, id: &str) -> String {
    let digits: String = id.chars().filter(char::is_ascii_hexdigit).collect();
    format!("{} AND store = '{digits}'", self::id(prefix))
}

/// The transaction would commit the record where other calls do not look for it.
pub(crate) fn is_elsewhere(doing: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Configuration, doing).with_source(
        "the transaction is open in another database than the one in which the store keeps its records, or the store's tables were emptied: begin it over a pool on that database, or run `migrate()` of this store, as a start does",
    )
}

/// The statement that notes what was reached, at the time that `now` stands for, without its end.
pub(crate) fn note(prefix: &TablePrefix, reached: Found, now: &str) -> String {
    let Found {
        version,
        usable_from,
    } = reached;
    format!(
        "INSERT INTO {prefix}schema (version, applied, usable_from) VALUES ({version}, {now}, {usable_from})"
    )
}

/// The steps that a schema still lacks, with what is found once each one is taken.
pub fn missing(steps: &[SchemaStep], found: Found) -> impl Iterator<Item = (Found, &SchemaStep)> {
    let done = usize::try_from(found.version).unwrap_or(0);
    (1..).zip(steps).skip(done).map(|(version, step)| {
        let found = Found {
            version,
            usable_from: step.usable_from,
        };
        (found, step)
    })
}
