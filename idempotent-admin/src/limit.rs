//! A limit for reading: a store that does not answer keeps no page waiting.

use std::time::Duration;

use idempotent_runtime::{BoxError, Error, StoreError, StoreErrorKind};
use tokio::time::timeout;

/// How long a page waits for the store.
const LIMIT: Duration = Duration::from_secs(5);

/// An error of a read that took too long.
pub(crate) trait Late {
    fn late() -> Self;
}

impl Late for Error {
    fn late() -> Self {
        Self::Store(StoreError::new(
            StoreErrorKind::Unavailable,
            "reading for a page, for longer than 5 seconds",
        ))
    }
}

impl Late for BoxError {
    fn late() -> Self {
        Error::late().into()
    }
}

/// Reads for a page, for five seconds at most.
pub(crate) async fn in_time<T, E: Late>(read: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    timeout(LIMIT, read)
        .await
        .unwrap_or_else(|_| Err(E::late()))
}
