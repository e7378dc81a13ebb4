//! The transaction that [`transaction`](crate::transaction::transaction) has open in this task, and
//! the record by which its commit can be found out.

use std::{
    any::Any,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{handle::Idempotency, identity::RecordId, record::Draft};

tokio::task_local! {
    static OPEN: Arc<OpenTransaction>;
}

/// A transaction, and the first outcome that was recorded in it.
#[derive(Debug)]
pub(crate) struct OpenTransaction {
    /// Where the connection is. Calls on another one are no part of the transaction.
    address: usize,
    first: Mutex<Option<RecordedIn>>,
}

/// An outcome that was recorded in a transaction.
#[derive(Debug)]
pub(crate) struct RecordedIn {
    pub(crate) handle: Idempotency,
    pub(crate) operation: Arc<str>,
    pub(crate) id: RecordId,
    /// As it was written, with all that a first claim needs.
    pub(crate) draft: Draft,
}

fn address(connection: &dyn Any) -> usize {
    std::ptr::from_ref(connection).addr()
}

impl OpenTransaction {
    pub(crate) fn on(connection: &dyn Any) -> Arc<Self> {
        Arc::new(Self {
            address: address(connection),
            first: Mutex::default(),
        })
    }

    /// Runs what happens in the transaction.
    pub(crate) fn enter<F: Future>(
        self: &Arc<Self>,
        inside: F,
    ) -> impl Future<Output = F::Output> + use<F> {
        OPEN.scope(Arc::clone(self), inside)
    }

    /// The first outcome that was recorded in it.
    pub(crate) fn first(&self) -> Option<RecordedIn> {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        first.take()
    }
}

/// Takes note of an outcome that was recorded on this connection.
pub(super) fn note(connection: &dyn Any, recorded: impl FnOnce() -> RecordedIn) {
    let _no_transaction_of_ours = OPEN.try_with(|open| {
        let mut first = open.first.lock().unwrap_or_else(PoisonError::into_inner);
        if first.is_none() && open.address == address(connection) {
            *first = Some(recorded());
        }
    });
}
