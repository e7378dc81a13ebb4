//! The body of a detached call and everything after it, which outlive their caller.

use std::{future::Future, panic::resume_unwind, pin::Pin, sync::Arc};

use tracing::Instrument;

use crate::{attempt, error::Error, handle};

/// Runs the rest of a call, from its body on, in a task of its own, as a part of the attempt and
/// under the handle that count here. If this future is dropped, the task runs on. It is boxed
/// before it becomes a part of other futures, each of which would hold it twice.
///
/// [`Error::Stopped`] where the runtime ends, and takes the task along. A caller that waits on a
/// thread of its own, by `Handle::block_on`, does not end with it, and the runtime may be waiting
/// for that thread.
pub(crate) async fn outlive<T: Send + 'static>(
    operation: Arc<str>,
    rest: Pin<Box<dyn Future<Output = T> + Send>>,
) -> Result<T, Error> {
    let rest = handle::enter_again(attempt::enter_again(rest)).in_current_span();
    tokio::spawn(rest)
        .await
        .map_err(|stopped| match stopped.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(_) => Error::Stopped { operation },
        })
}
