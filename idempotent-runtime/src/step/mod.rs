//! Steps: a long body goes on where it stopped. The guide's page [Steps](crate::guide::steps) shows
//! how.

mod call;
mod context;
mod described;
pub(crate) mod name;
mod permit;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod permit_in;
mod registration;
#[cfg(feature = "testing")]
mod replay;
mod scope;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod transaction;
mod undo;
mod undos;
mod version;
mod writer;

#[cfg(feature = "testing")]
pub(crate) use self::replay::Replay;
#[cfg(feature = "testing")]
pub use self::replay::StepDifference;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
#[cfg_attr(
    docsrs,
    doc(cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite")))
)]
pub use self::transaction::{StepIn, in_transaction, step_in};
pub use self::{
    call::{StepCall, step},
    context::StepContext,
    name::StepLabel,
    undo::{AnyUndo, MayUndo, NoUndo, Undo, Undoable},
    version::step_version,
};
pub(crate) use self::{
    permit::INSIDE,
    scope::StepScope,
    undos::Registered,
    writer::{Writer, Wrote},
};
