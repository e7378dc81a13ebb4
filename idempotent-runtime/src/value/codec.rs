//! How outcomes become bytes.

use std::{
    fmt::{self, Debug},
    sync::Arc,
};

use serde::{
    Serialize,
    de::{DeserializeOwned, Error as _},
};

use super::{BoxError, with_scratch};

/// Turns outcomes into bytes and back, if JSON will not do: it has no NaN, and takes `Some(None)`
/// for `None`.
///
/// The codec belongs to the stored data. A handle with another one cannot read that data, or takes
/// it for something else if its format does not refuse the other's bytes. So a codec that comes
/// after another marks the data that it writes, by a first byte that the other one never writes.
/// It reads data without the mark as the other's. Every process has to read both before the first
/// one writes.
///
/// # Examples
///
/// Any format of serde will do. `erased_serde` is re-exported here, so that a codec needs no
/// dependency on it:
///
/// ```
/// use idempotent_runtime::{BoxError, Codec, Error, Idempotency, MemoryStore, Read, erased_serde};
///
/// /// JSON with indentation.
/// #[derive(Debug)]
/// struct Indented;
///
/// impl Codec for Indented {
///     fn encode(&self, value: &dyn erased_serde::Serialize) -> Result<Vec<u8>, BoxError> {
///         Ok(serde_json::to_vec_pretty(value)?)
///     }
///
///     fn decode(&self, bytes: &[u8], read: &mut Read<'_>) -> Result<(), BoxError> {
///         let mut json = serde_json::Deserializer::from_slice(bytes);
///         read(&mut <dyn erased_serde::Deserializer<'_>>::erase(&mut json))?;
///         Ok(json.end()?)
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let idem = Idempotency::builder(MemoryStore::new()).codec(Indented).build()?;
/// let call = || idem.call("numbers.list").key("k").run(|_| async { Ok::<_, Error>(vec![1, 2]) });
/// assert_eq!(call().await?, [1, 2]);
/// assert_eq!(call().await?, [1, 2]); // read back from `[\n  1,\n  2\n]`
/// # Ok(()) }
/// ```
pub trait Codec: Debug + Send + Sync {
    /// Encodes a value or an error.
    ///
    /// # Errors
    ///
    /// When the value has no encoding; the record then says *done, not replayable*.
    fn encode(&self, value: &dyn erased_serde::Serialize) -> Result<Vec<u8>, BoxError>;

    /// Gives `read` a deserializer over the bytes.
    ///
    /// # Errors
    ///
    /// When the bytes are not an encoding, or `read` says so.
    fn decode(&self, bytes: &[u8], read: &mut Read<'_>) -> Result<(), BoxError>;
}

/// The function that [`Codec::decode`] calls once, with a deserializer over the bytes.
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
        // The memory store keeps them as they are for as long as the record stands: there is no
        // more room than they take up.
        match self {
            Coder::Json => with_scratch(|bytes| {
                serde_json::to_writer(&mut *bytes, value)?;
                Ok(bytes.to_vec())
            }),
            Coder::Other(codec) => {
                let mut bytes = codec.encode(value)?;
                bytes.shrink_to_fit();
                Ok(bytes)
            }
        }
    }

    pub(crate) fn decode<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T, BoxError> {
        match self {
            Coder::Json => {
                // Checked once here, and not once more for every string.
                let text = str::from_utf8(bytes)?;
                Ok(serde_json::from_str(text).map_err(NotThatShape::from)?)
            }
            Coder::Other(codec) => {
                let mut value = None;
                codec.decode(bytes, &mut |deserializer| {
                    let read = erased_serde::deserialize(deserializer);
                    value = Some(read.map_err(|error| {
                        erased_serde::Error::custom(NotThatShape::told(&error))
                    })?);
                    Ok(())
                })?;
                value.ok_or_else(|| "the codec did not read anything".into())
            }
        }
    }
}

/// The stored value is not of the type that it is read as. The words of `serde` would quote the
/// stored value, and errors end up in logs. So this says only which field is missing, if one is,
/// and for JSON the place.
#[derive(Debug)]
struct NotThatShape {
    missing: Option<String>,
    /// The line and the column.
    place: Option<(usize, usize)>,
}

impl NotThatShape {
    fn told(error: &impl fmt::Display) -> Self {
        // The name of a missing field is that of the type, and `serde` tells it in no other way.
        let text = error.to_string();
        let missing = text
            .strip_prefix("missing field `")
            .and_then(|rest| rest.split_once('`'))
            .map(|(field, _)| field.to_owned());
        Self {
            missing,
            place: None,
        }
    }
}

impl From<serde_json::Error> for NotThatShape {
    fn from(error: serde_json::Error) -> Self {
        Self {
            place: Some((error.line(), error.column())),
            ..Self::told(&error)
        }
    }
}

impl fmt::Display for NotThatShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.missing {
            Some(field) => write!(f, "the field `{field}` is missing")?,
            None => f.write_str("it is not of the type that it is read as")?,
        }
        match self.place {
            Some((line, column)) => write!(f, ", at line {line} column {column}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for NotThatShape {}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[expect(dead_code, reason = "only its shape counts")]
    struct Receipt {
        id: u64,
        card: String,
    }

    #[test]
    fn what_cannot_be_decoded_is_not_quoted() {
        let said = |bytes: &[u8]| {
            let error = Coder::Json
                .decode::<Receipt>(bytes)
                .expect_err("another shape");
            format!("{error} {error:?}")
        };

        let other_type = said(br#"{"id":"4929-0000"}"#);
        assert!(!other_type.contains("4929"), "{other_type}");
        assert!(other_type.contains("line 1 column 17"), "{other_type}");
        let truncated = said(br#"{"id":4929"#);
        assert!(!truncated.contains("4929"), "{truncated}");
        let missing = said(br#"{"id":4929}"#);
        assert!(!missing.contains("4929"), "{missing}");
        assert!(missing.contains("`card` is missing"), "{missing}");
    }

    /// JSON, by the way that any other codec takes.
    #[derive(Debug)]
    struct Another;

    impl Codec for Another {
        fn encode(&self, value: &dyn erased_serde::Serialize) -> Result<Vec<u8>, BoxError> {
            Ok(serde_json::to_vec(value)?)
        }

        fn decode(&self, bytes: &[u8], read: &mut Read<'_>) -> Result<(), BoxError> {
            let mut json = serde_json::Deserializer::from_slice(bytes);
            read(&mut <dyn erased_serde::Deserializer<'_>>::erase(&mut json))?;
            Ok(json.end()?)
        }
    }

    #[test]
    fn what_another_codec_gave_to_decode_is_not_quoted() {
        let coder = Coder::Other(Arc::new(Another));
        let said = |bytes: &[u8]| {
            let error = coder.decode::<Receipt>(bytes).expect_err("another shape");
            format!("{error} {error:?}")
        };

        let other_type = said(br#"{"id":"4929-0000"}"#);
        assert!(!other_type.contains("4929"), "{other_type}");
        assert!(other_type.contains("not of the type"), "{other_type}");
        let missing = said(br#"{"id":4929}"#);
        assert!(!missing.contains("4929"), "{missing}");
        assert!(missing.contains("`card` is missing"), "{missing}");
    }
}
