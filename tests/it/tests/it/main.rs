//! The integration tests: one binary, so that two cores link once.

mod conformance;
mod sqlite;
