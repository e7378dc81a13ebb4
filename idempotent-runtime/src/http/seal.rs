//! Responses that are not readable in the store.

use std::fmt::Debug;

use crate::{error::BoxError, identity::RecordId};

/// Changes stored responses on their way to the store, and back for a replay: to encrypt them, say.
///
/// A seal changes [a stored response](super::StoredResponse) in its byte format. Fingerprints are
/// sealed by a [`FingerprintKey`](crate::FingerprintKey), and readable keys are left out by
/// [`redact_keys`](crate::handle::Builder::redact_keys).
///
/// Both methods are told the record. A writer to the store can put the sealed response of one
/// record under the id of another. The caller of that other record would then get it. So an
/// encryption that authenticates takes [`record.as_bytes()`](RecordId::as_bytes) as associated
/// data: they stand for the operation, the scope and the key, and are the same when it is opened. A
/// seal that ignores them keeps its secrets from readers of the store, and protects nothing from
/// writers to it. An older response of the same record can be put back all the same.
///
/// # Examples
///
/// ```
/// use idempotent_runtime::{BoxError, http::Seal, identity::RecordId};
/// # #[derive(Debug)]
/// # struct Cipher;
/// # impl Cipher {
/// #     fn encrypt(&self, text: Vec<u8>, associated: &[u8]) -> Result<Vec<u8>, BoxError> { Ok(text) }
/// #     fn decrypt(&self, text: &[u8], associated: &[u8]) -> Result<Vec<u8>, BoxError> { Ok(text.to_vec()) }
/// # }
///
/// /// `Cipher` is an AEAD with its key, and puts a fresh nonce before what it encrypts.
/// #[derive(Debug)]
/// struct Encrypted(Cipher);
///
/// impl Seal for Encrypted {
///     fn seal(&self, record: &RecordId, response: Vec<u8>) -> Result<Vec<u8>, BoxError> {
///         self.0.encrypt(response, record.as_bytes())
///     }
///
///     fn open(&self, record: &RecordId, sealed: &[u8]) -> Result<Vec<u8>, BoxError> {
///         self.0.decrypt(sealed, record.as_bytes())
///     }
/// }
/// ```
pub trait Seal: Debug + Send + Sync {
    /// Seals the response of this record.
    ///
    /// # Errors
    ///
    /// When it cannot. The response is then not stored, and a retry is told that it cannot be
    /// repeated. A panic counts as an error.
    fn seal(&self, record: &RecordId, response: Vec<u8>) -> Result<Vec<u8>, BoxError>;

    /// Opens what [`seal`](Seal::seal) made for this record, or what was put in its place.
    ///
    /// # Errors
    ///
    /// When it cannot. A retry is told that the outcome is unknown, and the handler does not run
    /// for it.
    fn open(&self, record: &RecordId, sealed: &[u8]) -> Result<Vec<u8>, BoxError>;
}
