//! Streams of numbered calls, checked exhaustively: workers apply the numbers 1 to 3, and copies of
//! them, over a store that is a versioned cell with a clock, while answers get lost, requests
//! straggle, workers crash and are cancelled at any moment, and leases end. An operator settles,
//! releases, resumes and skips. The runtime's own state machine decides,
//! `idempotent_runtime::protocol::sequence`; the driver around it (`driver`, `worker`, `operator`)
//! and the store (`store`) are modelled.
//!
//! `watch` holds the promises, `sights` what must be seen so that they are not kept by doing
//! nothing, and `faults` the mistakes that must break a promise.
//!
//! # What is bounded
//!
//! * Three workers refuse gaps. Two wait for them, accept them, or see one request straggle.
//! * One takeover of a number is within the budget. A lease ends when the clock moves on.
//!
//! # What is not
//!
//! * Time, how often a number is called, an answer is lost, an operator speaks or a heartbeat is
//!   sent. Tokens are counted through, workers are sorted, and a version is only known as the one
//!   that stands or not, so that the worlds are finite in number.
//!
//! # What is left out
//!
//! A stream that expires, other arguments under one number, and callers that choose differently:
//! the unit tests of the state machine have them.

mod driver;
mod operator;
mod pack;
mod sights;
mod store;
mod watch;
mod worker;
mod world;

mod exhaustive;
mod faults;
