//! The method form of a call, and what its parameters can be. The expansion of the attribute ends
//! here, too.
//!
//! A builder collects the description, and `run` and its kin hand it over with the body. They
//! differ in where the body runs: in the caller's task, in a task of its own, on bytes, in the
//! application's transaction, or in one of ours. Nothing happens before the future is polled, and a
//! setting that is wrong is an error before anything is written.

#![allow(
    clippy::manual_async_fn,
    reason = "compiler errors show these signatures, and the bounds read better there on the future"
)]

mod builder;
mod raw;
#[cfg(feature = "_sql")]
mod transact;
#[cfg(feature = "_sql")]
mod transaction;

use std::{future::Future, pin::Pin};

pub use self::builder::CallBuilder;
pub use crate::outcome::{
    Classified, LeftUncertain, Recorded, Reference, Released, Upgraded, Whole,
};
pub use crate::record::RawEnding;
use crate::{
    drive::run_pinned,
    handle::Idempotency,
    outcome::{FromRefusal, Keep, OnError, Outcome},
    request::Call,
    run::{Typed, run_detached},
};

impl Idempotency {
    /// Begins a call of the operation called `name`: the method form of the attribute.
    pub fn call(&self, name: &str) -> CallBuilder<Recorded, Whole> {
        CallBuilder::new(self, name.into())
    }
}

/// The bounds name the value and the error, and the body comes first, for the sake of what the
/// compiler reports: a return type that is no `Result` is one mistake, not one for each bound on
/// its error, and where a classifier takes another error, it is the classifier that is wrong.
impl Call {
    /// Runs an annotated function. Its body stays where it is, because moving it may cost more than
    /// anything else here.
    pub fn run<R, T, E, P, K, B>(
        self,
        body: Pin<&mut Option<B>>,
        on_error: P,
        keep: K,
    ) -> impl Future<Output = R>
    where
        B: Future<Output = R>,
        R: Outcome<Value = T, Error = E>,
        E: FromRefusal,
        P: OnError<E>,
        K: Keep<T> + Clone,
    {
        self.reads::<R>(|it| K::reads(it).ok(), |it| P::reads(it).ok());
        let typed = Typed { on_error, keep };
        run_pinned(self.describe(), typed, body, |(answer, _)| answer)
    }

    /// Runs an annotated function in a task of its own.
    pub fn run_detached<R, T, E, P, K, B>(
        self,
        body: B,
        on_error: P,
        keep: K,
    ) -> impl Future<Output = R>
    where
        B: Future<Output = R> + Send + 'static,
        R: Outcome<Value = T, Error = E> + Send + 'static,
        T: Send,
        E: FromRefusal + Send,
        P: OnError<E> + Send + Sync + 'static,
        K: Keep<T, Reading: Send> + Clone + Send + Sync + 'static,
    {
        self.reads::<R>(|it| K::reads(it).ok(), |it| P::reads(it).ok());
        let described = self.describe();
        // Boxed, so that the future of an annotated function is small, whatever its body holds.
        let body = Box::pin(body);
        async move {
            let typed = Typed { on_error, keep };
            run_detached(described, typed, |_| body).await.0
        }
    }
}
