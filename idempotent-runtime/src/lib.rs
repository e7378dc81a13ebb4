//! stub

mod framing;

pub mod fingerprint;
pub mod identity;
pub mod key;
