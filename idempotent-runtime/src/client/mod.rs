#![doc = include_str!("client.md")]

mod decide;
mod key;
mod limits;
mod problem;
mod profile;
mod retry_after;

pub use self::{
    decide::{Answered, Next, Observed, Progress, Protection, Stopped, Why, decide},
    key::{InvalidKey, Key, LONGEST_KEY},
    limits::{Budget, Limits},
    problem::{KeyAction, Problem, Slug, StripeError},
    profile::{Conflict, KeyStyle, Profile, Support},
};
