//! The integration tests: one binary, so that two cores link once.

#[macro_use]
mod harness;

mod charge;

mod bad_input;
mod calls;
mod cancellation;
mod crash_matrix;
mod failures;
mod invariants;
mod leases;
mod outages;
mod takeovers;

mod conformance;
mod sqlite;
