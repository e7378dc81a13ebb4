//! One call, from its claim to its answer: the state machine's decisions carried out on a store.
//!
//! A description comes in, as a request. The claim goes out as if nothing stood there; the refusal
//! brings what stands, and the protocol decides again. A call that holds the lease runs its body,
//! once, and writes how it ended. A call that another one answers waits for that, replays it, or is
//! refused.
//!
//! Dropped at any await, a call leaves no lease without a job that ends it.

mod active_call;
mod admit;
mod detached;
mod driver;
mod held;
#[cfg(feature = "_sql")]
mod open_transaction;
mod raw;
#[cfg(feature = "_sql")]
mod transaction;
pub(crate) mod typed;
mod undo;

#[cfg(feature = "sqlite")]
pub(crate) use self::active_call::SHUT_OUT;
#[cfg(feature = "_sql")]
pub use self::transaction::Joined;
pub use self::typed::reconcile;
pub(crate) use self::{
    active_call::ActiveCall,
    admit::damaged,
    driver::{run, run_pinned},
    raw::{Raw, run_raw_detached},
    typed::{Typed, run_detached},
};
#[cfg(feature = "_sql")]
pub(crate) use self::{
    active_call::Instead,
    open_transaction::{OpenTransaction, RecordedIn, SentInside, sends},
    transaction::{Claimed, join, run_in},
};
