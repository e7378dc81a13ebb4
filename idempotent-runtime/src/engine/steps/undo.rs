//! The undo of a step: the function that the application gives, and what it is told.

use std::{fmt, future::Future, marker::PhantomData, pin::Pin, sync::Arc};

use super::StepContext;
use crate::{
    error::BoxError,
    outcome::{Keep, Stored, Unread},
    record::FencingToken,
};

/// The step that an undo is to undo.
///
/// It runs at least once, as every step does: the effect under [`step_key`](Self::step_key) may
/// never have happened, may be undone already, and may even arrive later. A gateway that remembers
/// a cancelled key prevents the last of these.
#[derive(Clone, Debug)]
pub struct Undo<T> {
    context: StepContext,
    value: Option<T>,
}

impl<T> Undo<T> {
    /// A key for the downstream call that undoes the step: the same on every try.
    #[must_use]
    pub fn key(&self) -> String {
        self.context.child_key("undo")
    }

    /// The key that the step handed downstream: its [`StepContext::key`].
    #[must_use]
    pub fn step_key(&self) -> String {
        self.context.key()
    }

    /// The step itself, for its other keys and the fencing token.
    #[must_use]
    pub fn step(&self) -> &StepContext {
        &self.context
    }

    /// A number that grows with every claim of the call's key.
    #[must_use]
    pub fn token(&self) -> Option<FencingToken> {
        self.context.token()
    }

    /// The value that the step gave; `None` where it is unknown whether it happened, or where its
    /// value could not be kept.
    #[must_use]
    pub fn value(&self) -> Option<&T> {
        self.value.as_ref()
    }

    /// The same value, taken out of this.
    #[must_use]
    pub fn into_value(self) -> Option<T> {
        self.value
    }
}

type Undoing = Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send>>;

/// An undo, without the type of its step's value.
#[derive(Clone)]
pub struct AnyUndo(Arc<dyn Fn(StepContext, Option<Stored>) -> Undoing + Send + Sync>);

impl AnyUndo {
    pub(crate) fn run(&self, context: StepContext, value: Option<Stored>) -> Undoing {
        (self.0)(context, value)
    }
}

impl fmt::Debug for AnyUndo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyUndo")
    }
}

/// Whether a step has an undo.
#[diagnostic::on_unimplemented(
    message = "this undo does not fit a step that gives `{T}`",
    note = "an undo is a `Fn(Undo<T>)` that is `Send`, `Sync` and `'static`, and so are the value and what reads it back"
)]
pub trait MayUndo<T, K> {
    #[doc(hidden)]
    fn any(self, keep: &K, schema: u32) -> Option<AnyUndo>;
}

/// A step without an undo.
#[derive(Clone, Copy, Debug)]
pub struct NoUndo;

impl<T, K> MayUndo<T, K> for NoUndo {
    fn any(self, _: &K, _: u32) -> Option<AnyUndo> {
        None
    }
}

/// A step with one.
pub struct Undoable<T, G>(pub(crate) G, pub(crate) PhantomData<fn(T)>);

impl<T, G> fmt::Debug for Undoable<T, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Undoable")
    }
}

impl<T, K, G, Fut, X> MayUndo<T, K> for Undoable<T, G>
where
    T: Send + 'static,
    K: Keep<T, Reading: Send> + Clone + Send + Sync + 'static,
    G: Fn(Undo<T>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), X>> + Send + 'static,
    X: Into<BoxError>,
{
    fn any(self, keep: &K, schema: u32) -> Option<AnyUndo> {
        let (undo, keep) = (Arc::new(self.0), keep.clone());
        Some(AnyUndo(Arc::new(move |context, stored| {
            let (undo, keep) = (Arc::clone(&undo), keep.clone());
            Box::pin(async move {
                let value = match stored {
                    None => None,
                    Some(stored) => Some(keep.read(stored, schema).await.map_err(unread)?),
                };
                undo(Undo { context, value }).await.map_err(Into::into)
            })
        })))
    }
}

fn unread(why: Unread) -> BoxError {
    match why {
        Unread::Undecodable(error) | Unread::NotLoaded(error) => error,
    }
}
