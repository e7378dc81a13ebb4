//! The steps of an attempt, and the undos that it knows of them.

mod context;
#[cfg(feature = "testing")]
mod replay;
mod scope;
mod undo;
mod undos;
mod writer;

#[cfg(feature = "testing")]
pub(crate) use self::replay::Replay;
#[cfg(feature = "testing")]
pub use self::replay::StepDifference;
pub use self::{
    context::StepContext,
    undo::{AnyUndo, MayUndo, NoUndo, Undo, Undoable},
};
pub(crate) use self::{
    scope::StepScope,
    undos::Registered,
    writer::{Writer, Wrote},
};
