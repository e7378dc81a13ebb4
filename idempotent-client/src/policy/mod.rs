//! When a call is sent again: limits, profiles of servers, and the decision after each attempt.

pub(crate) mod decide;
pub(crate) mod limits;
pub(crate) mod profile;
pub(crate) mod redirect;
pub(crate) mod refused_stream;

pub use self::{
    decide::StopReason,
    limits::{Budget, Limits},
    profile::{Conflict, Profile, Support},
};
