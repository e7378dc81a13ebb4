//! The longest wait for something.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

use idempotent_runtime::clock::Timer;

/// The result of `future` before `end`, as the timer counts; `None` if it is not done then.
pub(crate) async fn before<T>(
    timer: &dyn Timer,
    end: Duration,
    future: impl Future<Output = T>,
) -> Option<T> {
    let mut future = pin!(future);
    let mut timeout = None;
    poll_fn(|context| {
        if let Poll::Ready(done) = future.as_mut().poll(context) {
            return Poll::Ready(Some(done));
        }
        // A future that is done at once needs no timeout.
        let timeout = timeout.get_or_insert_with(|| timer.sleep_until(end));
        timeout.as_mut().poll(context).map(|()| None)
    })
    .await
}
