//! Calls whose steps have undos, checked exhaustively: two workers run a body of two steps under
//! one key, and it fails for good at any moment. Answers get lost, requests straggle, heartbeats
//! come in between, callers and workers vanish at any moment, leases end, records expire and are
//! purged, and an operator resumes what is parked. The runtime's own state machine decides:
//! `protocol::decide`, `decide_step`, `takes_steps`, `settle` and `Holding`. The driver around it
//! (`driver`, `claim`, `body`, `ending`, `undoing`) and the store (`store`) are modelled.
//!
//! `watch` holds the promises. `sights` holds what must be seen, so that they are not kept by doing
//! nothing. `faults` holds the mistakes that must break a promise.
//!
//! # What is bounded
//!
//! * How many claims one record sees before it is purged, how often an operator says something,
//!   and how many requests straggle.
//! * A lease and a retention are one move of the clock each. A record that stays while undos are
//!   open stays for ever.
//!
//! # What is not
//!
//! * How often an answer is lost, how often a heartbeat is sent, and how long a worker stalls. A
//!   version of the record is only known as the one that stands or not, so that the worlds are
//!   finite in number.
//!
//! # What is left out
//!
//! * An effect of a holder after another claim stands, or after an operator has settled its record.
//!   It stalled for longer than its lease, and no store can stop it.
//! * A step in another task that runs for longer than `step_grace` after the body has returned.
//! * Steps that run at most once, that record an error, or whose body says that nothing happened.
//!   A step that was dropped does not run again in the same attempt. `steps` has these.
//! * Reconciliations, records that are left uncertain, other arguments, and outcomes by the word of
//!   an operator. `protocol` has these.
//! * The search for undos takes one moment and finds all of them, because only the holder writes a
//!   step once its claim stands. An undo that is not found is one that fails.

mod body;
mod canonical;
mod claim;
mod driver;
mod ending;
mod pack;
mod sights;
mod store;
mod undoing;
mod watch;
mod world;

mod exhaustive;
mod faults;
