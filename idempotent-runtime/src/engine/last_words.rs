//! Spans and log lines of destructors.
//!
//! A destructor may run among the last things of a thread. There a subscriber may have lost what it
//! keeps for the thread. Then it panics, and a panic there would end the process.

use std::{
    future::{Future, poll_fn},
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    thread,
};

use tracing::Span;

use crate::attempt::Attempt;

/// Does `work` inside the span, if the subscriber can still be told.
pub(crate) fn inside(span: &Span, work: impl FnOnce()) {
    let entered = tell(|| span.enter());
    work();
    tell(|| drop(entered));
}

/// Tells a subscriber or an observer something, if it can still be told; `None` if it panics.
pub fn tell<T>(what: impl FnOnce() -> T) -> Option<T> {
    // What it panics with may itself panic when it is dropped.
    let told = catch_unwind(AssertUnwindSafe(what)).map_err(mem::forget);
    told.ok()
}

/// Polls `work` inside `span`, where it is: `Instrument` would move it.
pub fn within<F: Future>(span: &Span, mut work: Pin<&mut F>) -> impl Future<Output = F::Output> {
    poll_fn(move |cx| {
        let _inside = span.enter();
        work.as_mut().poll(cx)
    })
}

/// Warns that a body stopped half-way, and that it runs again.
pub(crate) fn warn_of_a_stopped_body(attempt: &Attempt) {
    let why = match thread::panicking() {
        true => "a panic stopped a body half-way, which will be run again by the next call",
        false => {
            "a body was dropped half-way and will be run again by the next call; `on_cancel = detach` lets it finish, unless its runtime ends"
        }
    };
    let (operation, id) = (attempt.operation(), attempt.id().to_hex());
    tell(|| tracing::warn!(operation, id, "{why}"));
}
