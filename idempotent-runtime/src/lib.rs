//! stub

mod framing;
mod sha256;

pub mod fingerprint;
pub mod identity;
pub mod key;
