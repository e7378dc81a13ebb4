//! The integration tests: one binary, so that two cores link once.

#[macro_use]
mod harness;

mod charge;

mod calls;
mod cancellation;
mod crash_matrix;
mod leases;
mod takeovers;

mod conformance;
#[cfg(unix)]
mod processes;
mod sqlite;
