//! How outcomes become bytes.

use std::{fmt::Debug, sync::Arc};

use serde::{Serialize, de::DeserializeOwned};

use crate::error::BoxError;

/// Turns outcomes into bytes and back, where JSON will not do: it has no NaN, and takes
/// `Some(None)` for `None`.
///
/// The codec belongs to the stored data: a handle with another one cannot read what is there.
pub trait Codec: Debug + Send + Sync {
    /// Encodes a value or an error.
    ///
    /// # Errors
    ///
    /// Where the value has no encoding; the record then says *done, not replayable*.
    fn encode(&self, value: &dyn erased_serde::Serialize) -> Result<Vec<u8>, BoxError>;

    /// Gives `read` a deserializer over the bytes.
    ///
    /// # Errors
    ///
    /// Where the bytes are not an encoding, or `read` says so.
    fn decode(&self, bytes: &[u8], read: &mut Read<'_>) -> Result<(), BoxError>;
}

/// What [`Codec::decode`] calls once, with a deserializer over the bytes.
pub type Read<'a> =
    dyn FnMut(&mut dyn erased_serde::Deserializer<'_>) -> Result<(), erased_serde::Error> + 'a;

/// The codec of a handle: JSON without a detour, or the one that was given.
#[derive(Clone, Debug, Default)]
pub(crate) enum Coder {
    #[default]
    Json,
    Other(Arc<dyn Codec>),
}

impl Coder {
    pub(crate) fn encode<T: Serialize>(&self, value: &T) -> Result<Vec<u8>, BoxError> {
        match self {
            Coder::Json => Ok(serde_json::to_vec(value)?),
            Coder::Other(codec) => codec.encode(value),
        }
    }

    pub(crate) fn decode<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T, BoxError> {
        match self {
            Coder::Json => Ok(serde_json::from_slice(bytes)?),
            Coder::Other(codec) => {
                let mut value = None;
                codec.decode(bytes, &mut |deserializer| {
                    value = Some(erased_serde::deserialize(deserializer)?);
                    Ok(())
                })?;
                value.ok_or_else(|| "the codec did not read anything".into())
            }
        }
    }
}
