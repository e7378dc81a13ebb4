//! One call, from its description to its answer: claim, body, record.
//!
//! A front describes the call (`request`). `run` sends the claim, does as the protocol decides,
//! runs the body, and records how it ended; then it undoes the steps of a call that has failed for
//! good. `transaction` does the same in a transaction, which stands or falls with the record.
//!
//! A call is refused, answered by a record, or holds the lease while its body runs. A body never
//! runs without a claim that stands, and its outcome is told only after the write, or after the
//! store has failed to take it: then a job of the engine goes on trying.

pub(crate) mod request;
pub(crate) mod run;
#[cfg(feature = "_sql")]
pub mod transaction;
