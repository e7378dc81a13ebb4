//! Calls with steps, checked exhaustively. Workers run a body of two steps under one key, over a
//! store that keeps a record and the steps of its life. Meanwhile answers get lost, requests
//! straggle, steps and calls are dropped, workers crash or stall at any moment, leases end and
//! records expire. The runtime's own state machine decides: `protocol::decide`, `decide_step`,
//! `takes_steps` and `Holding`. The driver around it (`driver`, `worker`, `body`) and the store
//! (`store`) are modelled.
//!
//! `watch` holds the promises. `sights` holds what must be seen, so that they are not kept by doing
//! nothing. `faults` holds the mistakes that must break a promise.
//!
//! # What is bounded
//!
//! * How many claims are applied, how many requests straggle, and how often a step is dropped.
//! * A lease and a retention are one move of the clock each.
//!
//! # What is not
//!
//! * How often an answer is lost, and how long a worker stalls. A version of the record is only
//!   known as the one that stands or not, so that the worlds are finite in number.
//!
//! # What is left out
//!
//! Undo, reconciliations, operators, heartbeats, purges, other arguments, steps that run side by
//! side, and errors that a step records as its outcome.

mod body;
mod canonical;
mod driver;
mod pack;
mod sights;
mod store;
mod watch;
mod worker;
mod world;

mod exhaustive;
mod faults;
