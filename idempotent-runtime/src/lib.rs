//! placeholder
pub mod policy;
pub mod record;
pub mod lease;
pub mod store;
pub mod fingerprint;
pub mod identity;
pub mod clock;
mod error;
pub use error::Error;
/// a
#[derive(Debug)]
pub struct Attempt;
impl Attempt { /// a
 pub fn child_key(&self) {} }
