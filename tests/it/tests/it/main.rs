//! The integration tests: one binary, so that two cores link once.

#[macro_use]
mod harness;

mod calls;

mod conformance;
#[cfg(unix)]
mod processes;
mod sqlite;
