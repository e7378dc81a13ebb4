//! The meaning of an error of sqlx to a caller, if it holds no words of a server.

use sqlx::Error;

#[cfg(any(feature = "mysql", feature = "postgres"))]
use crate::store::handshake;
use crate::store::{StoreError, StoreErrorKind};

/// Says that a statement which always answers with a row answered with none.
pub(crate) fn no_row(doing: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Other, doing).with_source(Error::RowNotFound)
}

/// Gives a kind to an error that kept a connection from being made; `of` gives one to an error that
/// is no matter of the handshake.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) fn while_opening(
    error: Error,
    doing: &'static str,
    of: fn(Error, &'static str) -> StoreError,
) -> StoreError {
    match &error {
        Error::Io(refused) if handshake::is_refused(refused) => {
            StoreError::new(StoreErrorKind::Configuration, doing).with_source(error)
        }
        _ => of(error, doing),
    }
}

/// The kind of an error between a server and us.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) fn kind_on_the_way(error: &Error) -> StoreErrorKind {
    match error {
        // The server may have gone, or may never have been one of the kind that was expected.
        Error::Io(_) | Error::Protocol(_) => StoreErrorKind::Unavailable,
        Error::PoolTimedOut | Error::PoolClosed | Error::WorkerCrashed => {
            StoreErrorKind::Unavailable
        }
        // Encryption fails in this way only before it is set up: the server has none, or the
        // program was built without.
        Error::Configuration(_) | Error::InvalidArgument(_) | Error::Tls(_) => {
            StoreErrorKind::Configuration
        }
        Error::ColumnDecode { .. } | Error::Decode(_) | Error::ColumnNotFound(_) => {
            StoreErrorKind::Corrupt
        }
        _ => StoreErrorKind::Other,
    }
}

/// Names what was being done: a write fails with its entry in the audit, whose table, trigger or
/// function the server names then. A guard of the audit refuses it in words of its own.
#[cfg(feature = "_sql")]
pub(crate) fn doing(error: &Error, doing: &'static str) -> &'static str {
    let Some(said) = error.as_database_error() else {
        return doing;
    };
    let is_of_audit = said.message().contains("_audit");
    #[cfg(feature = "postgres")]
    let is_of_audit = {
        let said = said.try_downcast_ref::<sqlx::postgres::PgDatabaseError>();
        let place = said.and_then(sqlx::postgres::PgDatabaseError::r#where);
        is_of_audit || place.is_some_and(|place| place.contains("_audit"))
    };
    match is_of_audit && !said.message().starts_with("four eyes") {
        true => "writing the entry of the audit",
        false => doing,
    }
}
