//! The integration tests: one binary, so that two cores link once.

#[macro_use]
mod harness;

mod answers;
mod booking;
mod charge;
mod panics;
mod scripts;
mod tally;
mod told;

mod after_an_outage;
mod after_the_body;
mod background;
mod bad_input;
mod bursts;
mod calls;
mod cancellation;
mod changes;
mod chaos;
mod crash_matrix;
mod crash_points;
mod failures;
mod fingerprints;
mod first_hour;
mod guide;
mod in_flight;
mod invariants;
mod keeping;
mod keys;
mod kit;
mod late_claims;
mod leases;
mod manuals;
mod notes;
mod observed;
mod operators;
mod outages;
mod records;
mod references;
mod refusals;
mod shapes;
mod sim;
mod stragglers;
mod stubborn;
mod switches;
mod takeovers;
mod tiered;
#[macro_use]
mod transactions;
mod values;

mod audited;
mod conformance;
mod consumers;
mod metrics;
mod outbox;
#[cfg(unix)]
mod processes;
mod sequences;
mod servers;
mod settings;
mod sizes;
mod sqlite;
mod steps;
