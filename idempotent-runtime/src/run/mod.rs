//! One call, from its claim to its answer: the state machine's decisions carried out on a store.

mod active_call;
mod admit;
mod beat;
mod detached;
mod ending;
pub(crate) mod heartbeat;
mod held;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub(crate) mod in_process;
mod job;
mod last_words;
pub(crate) mod lease;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod open_transaction;
mod raw;
mod retries;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod transaction;
pub(crate) mod typed;
mod undo;

use std::{
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    task::Poll,
};

use crate::{
    identity::RecordId,
    record::{Draft, Version},
    store::{Store, StoreError, StoreErrorKind, Swap},
};

#[cfg(feature = "sqlite")]
pub(crate) use self::active_call::SHUT_OUT;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub use self::transaction::Joined;
pub use self::typed::reconcile;
pub(crate) use self::{
    active_call::ActiveCall,
    admit::damaged,
    raw::{run_raw, run_raw_detached},
    typed::{Typed, run_detached, run_pinned, run_typed},
};
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub(crate) use self::{
    active_call::Instead,
    open_transaction::{OpenTransaction, RecordedIn, SentInside, sends},
    transaction::{Claimed, join, run_in},
};

/// Puts `next` where version `seen` stands.
pub(crate) async fn swap(
    store: &dyn Store,
    id: &RecordId,
    seen: Option<Version>,
    next: &Draft,
) -> Result<Swap, StoreError> {
    answered(seen, store.swap(id, seen, next).await)
}

/// The answer of a store to a write over `seen`. If that is refused and `seen` still stands, it
/// would be refused for ever. Something in the database drops it, or a store that we did not write
/// is not what it has to be.
///
/// It is for futures that every call makes: in them, [`swap`] would take as much room again as the
/// future it waits for.
fn answered(seen: Option<Version>, answer: Result<Swap, StoreError>) -> Result<Swap, StoreError> {
    if let (Some(seen), Ok(Swap::Refused(snapshot))) = (seen, &answer)
        && let Some(record) = &snapshot.record
        && record.version == seen
    {
        let error = StoreError::new(StoreErrorKind::Denied, "writing a record");
        return Err(error.with_source(
            "nothing is written over what stands there as it was seen: row-level security has no policy by which this user updates it, or a trigger or rule drops the update",
        ));
    }
    answer
}

/// Awaits `work`; `None` where it panics, so that a store which does so takes nothing else along.
pub(crate) async fn survive<F: Future>(work: F) -> Option<F::Output> {
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
