//! placeholder
#![cfg_attr(docsrs, feature(doc_cfg))]

mod framing;
mod sync;

pub mod clock;
mod error;
pub mod fingerprint;
pub mod identity;
pub mod key;
pub mod lease;
pub mod policy;
pub mod record;
pub mod store;
#[cfg(feature = "testing")]
#[cfg_attr(docsrs, doc(cfg(feature = "testing")))]
pub mod testing;

pub use error::Error;
/// a
#[derive(Debug)]
pub struct Attempt;
impl Attempt {
    /// a
    pub fn child_key(&self) {}
}
pub use key::{KeyPart, KeyWriter, text};
