//! Responses that are not readable in the store.

use std::fmt::Debug;

use crate::error::BoxError;

/// Changes stored responses on their way to the store, and back for a replay: to encrypt them, say.
///
/// What is sealed is [a stored response](super::StoredResponse) in its byte format. Fingerprints are sealed by a
/// [`FingerprintKey`](crate::FingerprintKey), and readable keys are left out by
/// [`hide_keys`](crate::handle::Builder::hide_keys).
pub trait Seal: Debug + Send + Sync {
    /// Seals a response.
    ///
    /// # Errors
    ///
    /// When it cannot. The response is then not stored, and a retry is told that it cannot be repeated. A panic counts as an
    /// error.
    fn seal(&self, response: Vec<u8>) -> Result<Vec<u8>, BoxError>;

    /// Opens what [`seal`](Seal::seal) made.
    ///
    /// # Errors
    ///
    /// When it cannot. A retry is told that nobody knows the outcome, and the handler does not run for it.
    fn open(&self, sealed: &[u8]) -> Result<Vec<u8>, BoxError>;
}
