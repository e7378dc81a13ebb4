//! Which handle a call uses: its own, else the task's, else the installed one.

use std::{
    future::Future,
    sync::{Arc, LazyLock, OnceLock},
};

use crate::{error::Error, handle::Idempotency};

static INSTALLED: OnceLock<Idempotency> = OnceLock::new();

tokio::task_local! {
    static ENTERED: Idempotency;
}

impl Idempotency {
    /// Makes this the handle of every call that names no other, for the whole process.
    ///
    /// # Errors
    ///
    /// [`Error::AlreadyInstalled`] when there is one already, which stays.
    pub fn install(&self) -> Result<(), Error> {
        INSTALLED
            .set(self.clone())
            .map_err(|_| Error::AlreadyInstalled)
    }

    /// Runs `future` with this handle in force, in place of the installed one: for tests and
    /// tenants. A task that is spawned inside does not inherit it.
    pub fn enter<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        ENTERED.scope(self.clone(), future)
    }
}

/// The handle that counts if a call names none.
pub(crate) fn in_force() -> Option<Idempotency> {
    ENTERED
        .try_with(Clone::clone)
        .ok()
        .or_else(|| INSTALLED.get().cloned())
}

/// Carries the task's handle, if it has one, into a future for another task.
pub(crate) fn enter_again<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let here = ENTERED.try_with(Clone::clone).ok();
    async move {
        match here {
            Some(handle) => handle.enter(future).await,
            None => future.await,
        }
    }
}

/// A value that `handle = …` may be given: a handle, or a reference to one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handle",
    label = "expected an `Idempotency`",
    note = "wrap a store in a handle: `Idempotency::new(store)`, once, and give that"
)]
pub trait AsHandle {
    /// The handle.
    fn as_handle(&self) -> &Idempotency;
}

impl AsHandle for Idempotency {
    fn as_handle(&self) -> &Idempotency {
        self
    }
}

impl<H: AsHandle + ?Sized> AsHandle for &H {
    fn as_handle(&self) -> &Idempotency {
        (**self).as_handle()
    }
}

impl<H: AsHandle, F: FnOnce() -> H> AsHandle for LazyLock<H, F> {
    fn as_handle(&self) -> &Idempotency {
        (**self).as_handle()
    }
}

impl<H: AsHandle + ?Sized> AsHandle for Arc<H> {
    fn as_handle(&self) -> &Idempotency {
        (**self).as_handle()
    }
}
