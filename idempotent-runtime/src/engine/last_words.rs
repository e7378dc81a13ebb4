//! Spans and log lines of destructors.
//!
//! A destructor may run among the last things of a thread. There a subscriber may have lost what it
//! keeps for the thread. Then it panics, and a panic there would end the process.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
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

/// Tells a subscriber something, if it can still be told.
pub(crate) fn tell<T>(what: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(what)).ok()
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
