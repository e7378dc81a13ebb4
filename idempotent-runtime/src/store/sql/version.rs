//! Which version of the schema stands, and which this build needs: the number of steps that were ever released.

use crate::store::{StoreError, StoreErrorKind, sql::TablePrefix};

/// `false` for an older schema; an error for a newer one, whose meaning this build cannot know.
pub(crate) fn is_current(
    found: i64,
    known: usize,
    doing: &'static str,
) -> Result<bool, StoreError> {
    let known = i64::try_from(known).unwrap_or(i64::MAX);
    if found > known {
        let source = format!(
            "the schema has version {found}, this build knows {known}: a newer release wrote it"
        );
        return Err(StoreError::new(StoreErrorKind::Schema, doing).with_source(source));
    }
    Ok(found == known)
}

/// Refuses every schema but that of this build.
pub(crate) fn check(found: i64, known: usize, doing: &'static str) -> Result<(), StoreError> {
    if is_current(found, known, doing)? {
        return Ok(());
    }
    Err(
        StoreError::new(StoreErrorKind::Schema, doing).with_source(format!(
            "the schema has version {found}, this build needs {known}"
        )),
    )
}

/// The table of the records is gone, and that of the versions says that it was made. Nobody makes it again: whoever lost records
/// has to know.
pub(crate) fn records_are_missing(prefix: &TablePrefix, doing: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Schema, doing).with_source(format!(
        "the table `{prefix}records` is missing, although `{prefix}schema` says that it was made: restore it, or drop `{prefix}schema` for `migrate()` to make both"
    ))
}

/// The text that makes the tables: that of the versions, and then each step, with what notes that it was applied.
pub(crate) fn ddl(mut text: String, steps: &[String], applied: impl Fn(i64) -> String) -> String {
    for (version, step) in missing(steps, 0) {
        text.push_str(step);
        text.push_str(&applied(version));
    }
    text
}

/// The steps that a schema of version `found` still lacks, with the version that each one leads to.
pub(crate) fn missing(steps: &[String], found: i64) -> impl Iterator<Item = (i64, &String)> {
    let done = usize::try_from(found).unwrap_or(0);
    (1..).zip(steps).skip(done)
}
