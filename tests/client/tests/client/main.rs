//! The client, over real sockets: a test for each item of its checklist, named for it.

mod kit;
#[path = "../../../http/tests/http/sources.rs"]
mod sources;

mod accounts;
mod answers;
mod bodies;
mod callers;
mod changes;
mod clocks;
mod conformance;
mod deadlines;
mod elsewhere;
mod failures;
mod ignored_keys;
mod journal;
mod journals;
mod keys;
mod meanwhile;
mod observed;
mod pieces;
mod redirects;
mod remembered;
mod restarts;
mod resumed;
mod sharing;
mod streams;
mod twice;
mod undecided;
mod unkept;
