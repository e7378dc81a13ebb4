//! Futures that end early: by a limit, or by a panic.

use std::{
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    task::Poll,
};

/// Awaits `work`; `None` where it panics, so that a store which does so takes nothing else along.
pub async fn survive<F: Future>(work: F) -> Option<F::Output> {
    survive_in_place(pin!(work)).await
}

/// The same without moving `work`: a future that takes another one by value has twice its size.
pub(crate) fn survive_in_place<F: Future>(
    mut work: Pin<&mut F>,
) -> impl Future<Output = Option<F::Output>> {
    poll_fn(move |cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx)));
        polled.map_or(Poll::Ready(None), |poll| poll.map(Some))
    })
}

/// Awaits `work`, but no longer than `limit`; `None` where that ended first.
pub(crate) async fn race<F: Future>(work: F, limit: impl Future<Output = ()>) -> Option<F::Output> {
    let (mut work, mut limit) = (pin!(work), pin!(limit));
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => limit.as_mut().poll(cx).map(|()| None),
    })
    .await
}
