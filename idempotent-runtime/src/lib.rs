//! placeholder
#![cfg_attr(docsrs, feature(doc_cfg))]
pub mod policy;
pub mod record;
pub mod lease;
pub mod store;
pub mod fingerprint;
pub mod identity;
pub mod clock;
#[cfg(feature = "testing")]
#[cfg_attr(docsrs, doc(cfg(feature = "testing")))]
pub mod testing;
mod error;
pub use error::Error;
/// a
#[derive(Debug)]
pub struct Attempt;
impl Attempt { /// a
 pub fn child_key(&self) {} }
