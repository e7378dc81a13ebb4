//! The words of HTTP that a service and its clients share: the field that carries a key, and the
//! kinds of problems.

mod key;
mod kind;

pub use self::{
    key::{IDEMPOTENCY_KEY, IdempotencyKey, InvalidHeader, KeyPolicy, KeyReader, Reason, Syntax},
    kind::{KeyAction, Kind, Mismatch},
};
