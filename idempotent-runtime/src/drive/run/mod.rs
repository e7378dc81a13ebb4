//! The parts of one call, which the room puts in order.

mod active_call;
mod admit;
mod codec;
mod detached;
mod held;
#[cfg(feature = "_sql")]
mod open_transaction;
mod raw;
#[cfg(feature = "_sql")]
mod transaction;
pub(crate) mod typed;
mod undo;

#[cfg(feature = "_sql")]
pub use self::transaction::Joined;
pub use self::typed::reconcile;
#[cfg(feature = "_sql")]
pub(crate) use self::{
    active_call::SHUT_OUT,
    codec::ResultCodec,
    open_transaction::{OpenTransaction, RecordedIn, SentInside, sends},
    transaction::{Claimed, Finished, join},
};
pub(crate) use self::{
    active_call::{ActiveCall, Instead},
    admit::damaged,
    codec::Codec,
    raw::{Raw, run_raw_detached},
    typed::{Typed, run_detached},
};
