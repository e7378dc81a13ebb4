//! What an error of sqlx means to a caller, where no server speaks in it.

use sqlx::Error;

use crate::store::{StoreError, StoreErrorKind};

/// Says that a statement which always answers with a row answered with none.
pub(crate) fn no_row(doing: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Other, doing).with_source(Error::RowNotFound)
}

/// The kind of what went wrong between a server and us.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) fn kind_on_the_way(error: &Error) -> StoreErrorKind {
    match error {
        // The server may have gone, or may never have been one of the kind that was expected.
        Error::Io(_) | Error::Tls(_) | Error::Protocol(_) => StoreErrorKind::Unavailable,
        Error::PoolTimedOut | Error::PoolClosed | Error::WorkerCrashed => {
            StoreErrorKind::Unavailable
        }
        Error::Configuration(_) | Error::InvalidArgument(_) => StoreErrorKind::Configuration,
        Error::ColumnDecode { .. } | Error::Decode(_) | Error::ColumnNotFound(_) => {
            StoreErrorKind::Corrupt
        }
        _ => StoreErrorKind::Other,
    }
}
