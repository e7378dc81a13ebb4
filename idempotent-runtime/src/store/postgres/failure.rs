//! The meaning of an error of sqlx or Postgres for a caller.

use sqlx::{
    Error,
    error::DatabaseError,
    postgres::{PgDatabaseError, PgSeverity},
};

use crate::store::{
    StoreError, StoreErrorKind,
    sql::{self, kind_on_the_way},
};

/// Gives an error its kind, and keeps it as the source.
pub(crate) fn of(error: Error, doing: &'static str) -> StoreError {
    let (kind, doing) = (kind(&error), sql::doing(&error, doing));
    StoreError::new(kind, doing).with_source(error)
}

/// Tells whether another transaction was let through in place of this statement, which was undone:
/// a deadlock, or a failure to serialize.
pub(super) fn gave_way(error: &Error) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    code.is_some_and(|code| code.starts_with("40"))
}

/// Tells whether a statement was undone because the server's queue of notifications is full, as
/// behind a client that listens in a transaction that goes on and on.
pub(super) fn has_no_room_to_tell(error: &Error) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    code.is_some_and(|code| code == "54000")
}

/// Tells whether the server ended a transaction because it and another one waited for each other.
pub(super) fn is_deadlock(error: &StoreError) -> bool {
    let said = cause(error).and_then(Error::as_database_error);
    said.is_some_and(|said| said.code().as_deref() == Some("40P01"))
}

/// The same as [`is_undone`], of an error that has its kind.
pub(super) fn was_undone(error: &StoreError) -> bool {
    cause(error).is_some_and(is_undone)
}

fn cause(error: &StoreError) -> Option<&Error> {
    std::error::Error::source(error)?.downcast_ref()
}

/// Tells whether the server itself refused a statement, which was undone so.
pub(super) fn is_undone(error: &Error) -> bool {
    let said = error.as_database_error();
    said.is_some_and(|said| !ends_the_connection(said))
}

fn kind(error: &Error) -> StoreErrorKind {
    match error {
        Error::Database(error) => match kind_of_code(&**error) {
            StoreErrorKind::Schema if is_of_a_function(&**error) => StoreErrorKind::Other,
            StoreErrorKind::Other if ends_the_connection(&**error) => StoreErrorKind::Unavailable,
            kind => kind,
        },
        error => kind_on_the_way(error),
    }
}

/// Tells whether the server, or a proxy, ended the connection with this word, whatever it is, as
/// for the age of a transaction.
fn ends_the_connection(error: &dyn DatabaseError) -> bool {
    let said = error.try_downcast_ref::<PgDatabaseError>();
    said.is_some_and(|said| matches!(said.severity(), PgSeverity::Fatal | PgSeverity::Panic))
}

/// Tells whether the error comes from a function of the application's, such as that of a trigger.
/// Its code is then that of the function. In every language of messages, the place of the error
/// names the procedural language.
fn is_of_a_function(error: &dyn DatabaseError) -> bool {
    let said = error.try_downcast_ref::<PgDatabaseError>();
    let place = said.and_then(PgDatabaseError::r#where);
    place.is_some_and(|place| place.contains("PL/"))
}

/// The classes and codes of appendix A of the manual, "PostgreSQL Error Codes".
fn kind_of_code(error: &dyn DatabaseError) -> StoreErrorKind {
    let code = error.code();
    let code = code.as_deref().unwrap_or_default();
    match (code.get(..2).unwrap_or_default(), code) {
        // Too many connections; a server that starts or shuts down; one that ended our connection,
        // which lay idle or was in a transaction for too long.
        (_, "53300" | "57P01" | "57P02" | "57P03" | "57P05" | "25P03" | "25P04") | ("08", _) => {
            StoreErrorKind::Unavailable
        }
        // A lock that was not to be had, a deadlock, a serialization failure, a statement that took
        // too long.
        (_, "55P03" | "57014" | "55006") | ("40", _) => StoreErrorKind::Busy,
        (_, "42501" | "25006") => StoreErrorKind::Denied,
        ("53" | "54", _) => StoreErrorKind::Full,
        // The last four: a proxy that pools transactions, and that the store was not told of, lost
        // a prepared statement or has another client's; a database whose encoding has not every
        // character; a setting that a policy of row-level security reads, and that the session has
        // not.
        ("28", _) | (_, "3D000" | "42601" | "26000" | "42P05" | "22P05" | "42704") => {
            StoreErrorKind::Configuration
        }
        // Our statements are fixed texts: Postgres rejects one only where a table or a column is
        // missing or is another than ours.
        ("42" | "23" | "3F", _) => StoreErrorKind::Schema,
        (_, "XX001" | "XX002") => StoreErrorKind::Corrupt,
        _ => StoreErrorKind::Other,
    }
}
