//! What outlives its caller: the body of a detached call, and everything after it.

use std::{future::Future, panic::resume_unwind, pin::Pin};

use tracing::Instrument;

use crate::{attempt, handle};

/// Runs the rest of a call, from its body on, in a task of its own, as a part of the attempt and under the handle that count
/// here. Where this future is dropped, the task runs on. It is boxed before it becomes a part of other futures, each of which
/// would hold it twice.
pub(crate) async fn outlive<T: Send + 'static>(rest: Pin<Box<dyn Future<Output = T> + Send>>) -> T {
    let rest = handle::enter_again(attempt::enter_again(rest)).in_current_span();
    match tokio::spawn(rest).await {
        Ok(answer) => answer,
        Err(stopped) => match stopped.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime shuts down and has taken the task; this future goes the same way.
            Err(_) => std::future::pending().await,
        },
    }
}
