//! Every shape of function, key and policy that the attribute takes. Most of them need only
//! compile; `behaviour` calls some.

#![allow(
    dead_code,
    missing_debug_implementations,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    clippy::pedantic,
    clippy::unwrap_used,
    reason = "a user may write them so"
)]

#[rustfmt::skip]
mod behaviour;
#[rustfmt::skip]
mod functions;
#[rustfmt::skip]
mod keys;
#[rustfmt::skip]
mod methods;
#[rustfmt::skip]
mod policies;
