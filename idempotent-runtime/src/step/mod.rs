//! Steps: a long body goes on where it stopped. The guide's page [Steps](crate::guide::steps) shows
//! how.
//!
//! A name within a call is taken once in an attempt. The record under it decides: a recorded
//! outcome answers, and the body does not run. A step that began without an outcome runs again,
//! asks the reconciling function, or is in doubt, as its policy says. Each write is fenced by the
//! attempt, so a holder that lost its lease records no step. A step of another life of the record
//! is never seen.

mod call;
mod described;
mod permit;
#[cfg(feature = "_sql")]
mod permit_in;
mod registration;
#[cfg(feature = "_sql")]
mod transaction;
mod version;

#[cfg(feature = "_sql")]
#[cfg_attr(
    docsrs,
    doc(cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite")))
)]
pub use self::transaction::{StepIn, in_transaction, step_in};
pub use self::{
    call::{StepCall, step},
    version::step_version,
};
#[cfg(feature = "testing")]
pub use crate::engine::steps::StepDifference;
pub use crate::{
    engine::steps::{AnyUndo, MayUndo, NoUndo, StepContext, Undo, Undoable},
    record::label::StepLabel,
};
