//! The integration tests: one binary, so that two cores link once.

#[macro_use]
mod harness;

mod bursts;
mod calls;
mod fingerprints;
mod in_flight;
mod keys;
mod kit;
mod observed;
mod shapes;
mod switches;
mod values;

mod conformance;
mod sqlite;
