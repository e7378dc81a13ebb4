//! The protocol: a pure state machine over what a store answers.
//!
//! A call asks [`decide()`] what to do about a snapshot. A holder asks its [`Holding`] what to
//! write, and [`Holding::refused`] what a refused write means. An operator who found out what
//! happened asks [`settle()`]. Nothing here waits, reads a clock or touches a store, so the model
//! checker runs this very code.

mod decide;
mod holding;
mod numbered;
#[cfg(test)]
pub(crate) mod sample;
pub mod sequence;
mod settle;
mod steps;

pub(crate) use self::numbered::read;
pub use self::{
    decide::{Claim, ClaimDecision, Meaning, decide, first, replays},
    holding::{Beat, Ending, Holding, Refusal},
    numbered::{CallNumber, Next},
    settle::{Settlement, settle},
    steps::{StepDecision, TAKING_STEPS, decide_step, takes_steps},
};
