//! Steps: a long body goes on where it stopped. The guide's page [Steps](crate::guide::steps) shows
//! how.

mod call;
mod context;
mod described;
mod name;
mod permit;
mod scope;
mod version;

#[cfg(feature = "tower")]
pub(crate) use self::name::STEP_NAME;
pub(crate) use self::scope::StepScope;
pub use self::{
    call::{StepCall, step},
    context::StepContext,
    name::StepLabel,
    version::step_version,
};
