//! Tools for tests of idempotent code: time that stands still, faults on command, proof that an
//! effect happened once.
//!
//! * [`assert_once`] drives duplicates of your own function, and a retry after them, and checks
//!   that its effect happened once.
//! * `assert_idempotent`, with the feature `tower`, sends equal requests to a service and compares
//!   what they leave behind.
//! * [`deliver`] delivers messages several times, shuffled and overlapping, and compares what they
//!   leave behind; [`deliver_on`] does so by a [`ManualClock`].
//! * [`CrashPoints`] lets the process that runs your function die at every point of it, and calls
//!   again. It cannot drive calls in transactions: [`Proxy`] cuts the connections of those.
//! * [`ManualClock`] stands in for the time of a memory store and for every timer of a handle.
//! * [`FaultyStore`] wraps any store and fails, delays or loses the answer of exactly the call that
//!   you name, and counts.
//! * [`Gate`] holds a body at a point until you open it; [`EffectLog`] is a log that outlives the
//!   process under test.
//! * [`Proxy`] counts round trips to a server, and cuts connections where a client cannot tell what
//!   the server did.
//! * [`conformance`] is the suite that a store of your own must pass.
//!
//! A test drives code of your own, on a store that it wraps or a clock that it holds. Nothing here
//! but [`deliver`] sleeps to wait for something: a test says what it waits for, and a wait that
//! never ends is the test's own to bound. A fault is met once or always, as it was planned, and
//! never by chance. No code outside of tests may depend on this module.

mod clock;
pub mod conformance;
mod crash;
mod deliver;
mod effects;
mod faulty;
mod gate;
#[cfg(feature = "tower")]
mod idempotent;
mod once;
mod proxy;
mod replay;

#[cfg(feature = "tower")]
#[cfg_attr(docsrs, doc(cfg(all(feature = "testing", feature = "tower"))))]
pub use self::idempotent::assert_idempotent;
pub use self::{
    clock::ManualClock,
    crash::{CrashPoint, CrashPoints},
    deliver::{deliver, deliver_on},
    effects::{Effect, EffectLog},
    faulty::{Fault, FaultyStore, On, StoreOperation},
    gate::Gate,
    once::assert_once,
    proxy::{Disconnect, Proxy},
    replay::replay_steps,
};
pub use crate::step::StepDifference;
