//! The HTTP front end, as its clients meet it: the items of its checklist, each by the number that it has there.

mod harness;

mod conformance;
mod items;

mod applicability;
mod bodies;
mod clients;
mod environment;
mod failures;
mod handlers;
mod header_fields;
mod identity;
mod new_keys;
mod panics;
mod readme;
mod replay;
mod shutdown;
mod statuses;
mod syntax;
