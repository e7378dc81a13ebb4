//! The integration tests: one binary, so that two cores link once.

#[macro_use]
mod harness;

mod charge;

mod bursts;
mod calls;
mod cancellation;
mod crash_matrix;
mod fingerprints;
mod in_flight;
mod keys;
mod kit;
mod leases;
mod observed;
mod shapes;
mod switches;
mod takeovers;
mod values;

mod conformance;
#[cfg(unix)]
mod processes;
mod sqlite;
