//! The meaning of an error of sqlx or SQLite to a caller.

use sqlx::{Error, error::DatabaseError};

use crate::store::{StoreError, StoreErrorKind, sql};

/// Gives an error its kind, and keeps it as the source.
pub fn of(error: Error, doing: &'static str) -> StoreError {
    let (kind, doing) = (kind(&error), sql::doing(&error, doing));
    StoreError::new(kind, doing).with_source(error)
}

pub(super) fn kind(error: &Error) -> StoreErrorKind {
    match error {
        Error::Database(error) => kind_of_code(&**error),
        Error::Configuration(_) | Error::Io(_) | Error::InvalidArgument(_) => {
            StoreErrorKind::Configuration
        }
        Error::PoolTimedOut | Error::PoolClosed | Error::WorkerCrashed => {
            StoreErrorKind::Unavailable
        }
        Error::ColumnDecode { .. } | Error::Decode(_) | Error::ColumnNotFound(_) => {
            StoreErrorKind::Corrupt
        }
        _ => StoreErrorKind::Other,
    }
}

/// Tells whether a change of a table was refused because the column is there. SQLite has no code of
/// its own for it.
pub(super) fn is_there_already(error: &Error) -> bool {
    let said = error.as_database_error().map(DatabaseError::message);
    said.is_some_and(|said| said.starts_with("duplicate column name"))
}

/// The primary result codes of SQLite: the low byte of the extended ones.
fn kind_of_code(error: &dyn DatabaseError) -> StoreErrorKind {
    const ERROR: i32 = 1;
    const PERM: i32 = 3;
    const BUSY: i32 = 5;
    const LOCKED: i32 = 6;
    const NOMEM: i32 = 7;
    const READONLY: i32 = 8;
    const CORRUPT: i32 = 11;
    const FULL: i32 = 13;
    const CANTOPEN: i32 = 14;
    const SCHEMA: i32 = 17;
    const TOOBIG: i32 = 18;
    const CONSTRAINT: i32 = 19;
    const AUTH: i32 = 23;
    const NOTADB: i32 = 26;
    const CONSTRAINT_TRIGGER: i32 = CONSTRAINT | 7 << 8;
    let code = error.code().and_then(|code| code.parse::<i32>().ok());
    match code.map(|code| code & 0xff) {
        // A trigger of the application's refused it.
        _ if code == Some(CONSTRAINT_TRIGGER) => StoreErrorKind::Other,
        Some(BUSY | LOCKED) => StoreErrorKind::Busy,
        Some(READONLY | PERM | AUTH) => StoreErrorKind::Denied,
        // A value too big for the file's limits finds no room, even on an empty disk.
        Some(FULL | TOOBIG | NOMEM) => StoreErrorKind::Full,
        Some(CORRUPT | NOTADB) => StoreErrorKind::Corrupt,
        Some(CANTOPEN) => StoreErrorKind::Configuration,
        // Our statements are fixed texts: SQLite objects to one only if a table or a column is
        // missing or is another than ours.
        Some(ERROR | SCHEMA | CONSTRAINT) => StoreErrorKind::Schema,
        _ => StoreErrorKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use sqlx::{Connection, Executor, SqliteConnection};

    use super::*;

    #[tokio::test]
    async fn f15_a_value_beyond_the_limit_of_sqlite_finds_no_room() {
        let mut memory = SqliteConnection::connect("sqlite::memory:")
            .await
            .expect("memory opens");
        let error = memory
            .fetch_all("SELECT zeroblob(2000000000)")
            .await
            .map(drop);
        assert_eq!(
            kind(&error.expect_err("it is too big")),
            StoreErrorKind::Full
        );
    }
}
