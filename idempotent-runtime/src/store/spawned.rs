//! Work in a task of its own, on a connection that others wait for.

use std::{future::Future, panic::resume_unwind};

use tokio::task::JoinHandle;
use tracing::Instrument;

use crate::store::{StoreError, StoreErrorKind};

/// Does `work` in a task of its own. A call may be polled no more for a while, as in a stream that
/// buffers, or behind a `select!`. If the call itself held the connection, the connection would
/// wait for it, and all other calls for the connection.
///
/// # Cancel safety
///
/// If the call is dropped before the work is done, the work is dropped as soon as it gives way.
pub async fn spawned<T: Send + 'static>(
    doing: &'static str,
    work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> Result<T, StoreError> {
    let mut task = Task(tokio::spawn(work.in_current_span()));
    match (&mut task.0).await {
        Ok(answer) => answer,
        Err(stopped) => match stopped.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime shuts down.
            Err(stopped) => {
                Err(StoreError::new(StoreErrorKind::Unavailable, doing).with_source(stopped))
            }
        },
    }
}

struct Task<T>(JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
