//! The protocol, checked exhaustively. Three workers call with one id, over a store that is a
//! versioned cell with a clock. Meanwhile answers get lost, requests straggle, workers crash and
//! are cancelled at any moment, leases end and records expire and are purged. The runtime's own
//! state machine decides: `idempotent_runtime::lease`. The driver around it (`caller`, `holder`,
//! `operator`) and the store (`store`) are modelled.
//!
//! `watch` holds the promises. `sights` holds what must be seen, so that they are not kept by doing
//! nothing. `faults` holds the mistakes that must break a promise: each is made in the driver or
//! the store, and is gone in a second run that must find nothing.
//!
//! # What is bounded
//!
//! * Three workers, in every mode and in all modes at once, make six calls together, or three calls
//!   while one request straggles. That request arrives at any later moment, after its sender has
//!   taken it for lost. Faults are looked for among two workers that make three calls.
//! * An operator, if there is one, acts a single time: it settles or resumes what stands, among
//!   three workers that make four calls.
//! * One takeover is within the budget, and no record sees more than four claims.
//! * A lease is two ticks of the clock long and an outcome is kept for one. In a tick there is room
//!   for eight tokens.
//!
//! # What is not
//!
//! * Time, the depth of a history, and how often an answer is lost, a request is sent again or a
//!   heartbeat is sent. Time is relative: the store's clock always shows [`pack::NOW`], and when it
//!   moves on everything else moves back. Versions and attempt ids are renamed, workers are sorted,
//!   and whatever no step can depend on any more is forgotten (`canonical`), so that the worlds are
//!   finite in number.
//!
//! # What is left out
//!
//! Clocks that step back, stores that lose what they acknowledged, and bodies that call each other.
//! A write whose answer comes late is one whose answer is lost, and that is then sent again.

mod caller;
mod canonical;
mod driver;
mod holder;
mod operator;
mod pack;
mod sights;
mod store;
mod watch;
mod world;

mod exhaustive;
mod faults;
