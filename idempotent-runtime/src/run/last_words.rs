//! Spans and log lines of destructors.
//!
//! A destructor may run among the last things of a thread. There a subscriber may have lost what it
//! keeps for the thread. Then it panics, and a panic there would end the process.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tracing::Span;

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
