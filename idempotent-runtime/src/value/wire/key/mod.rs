//! The key of a request, and how it is found in the header fields.

mod field;
mod invalid;
mod policy;
mod read;

use std::{fmt, sync::Arc};

use http::{HeaderName, HeaderValue};
use serde::{Serialize, Serializer};

pub use self::{
    invalid::{InvalidHeader, Reason},
    policy::KeyPolicy,
    read::{KeyReader, Syntax},
};
#[cfg(feature = "tower")]
use crate::key::Key;
use crate::key::{KeyPart, KeyWriter};

/// The header field that carries the key (draft-07, section 2).
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The longest key, in characters, without quotation marks and escapes.
const LONGEST: usize = 255;

/// The key that a client gave its request: 1 to 255 printable ASCII characters, not all of them
/// blanks.
///
/// It is the value of the string, without quotation marks and escapes, so that `"k"` and `k` are
/// one key. It is compared character by character: `K` is another key than `k`.
///
/// As a [`KeyPart`] it stands in the `key` of an annotated handler, and so does an `Option` of it.
/// No `Debug` shows it and it has no `Display`, because a client that knows a key and its scope can
/// ask for the stored response.
///
/// # Whose key it is
///
/// A handler behind a layer that tells callers apart is given a key that belongs to its caller: as
/// a [`KeyPart`] it has the caller in front of the text. So calls by that key, and what is derived
/// from them ([`Attempt::child_key`](crate::Attempt::child_key)), are never those of another caller
/// who took the same text. Two keys are equal if text and caller are equal.
/// [`as_str`](Self::as_str) is still the text alone, as the client sent it.
///
/// The key of such a call is the pair of its caller and the client's text. A caller is its kind and
/// its name. Operators find and settle the call by that pair, as in `idem.lookup("orders.pay",
/// None::<&str>, &(("user", user.id), "the client's text"))`. It stands in the record so that
/// people can read it, unless the handle redacts keys. The identity of the calls inside changes if
/// callers begin or stop sharing one space. It also changes if a layer begins or stops guarding a
/// route.
///
/// Any other key is its text alone: one that was made here, one of a layer whose callers share one
/// space, and one that the extractor reads itself. The extractor reads it if no layer stands around
/// the handler, or if the layer only hands its request on. Name the caller beside such a key, by
/// `scope = …`.
///
/// # Examples
///
/// ```
/// use idempotent_runtime::http::{IdempotencyKey, Syntax};
///
/// let quoted = IdempotencyKey::parse(br#""8e03978e-40d5-43e8-bc93-6894a57f9324""#, Syntax::Strict)?;
/// let bare = IdempotencyKey::parse(b"8e03978e-40d5-43e8-bc93-6894a57f9324", Syntax::Compatible)?;
/// assert_eq!(quoted, bare);
/// assert_eq!(quoted.as_str().len(), 36);
/// # Ok::<(), idempotent_runtime::http::InvalidHeader>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdempotencyKey {
    text: Arc<str>,
    /// The caller to whom it belongs, framed, if a layer knows the caller.
    caller: Option<Arc<[u8]>>,
}

impl IdempotencyKey {
    /// Takes a key as it is, without quotation marks and escapes: one that was made here, or came
    /// by another way than HTTP.
    ///
    /// # Errors
    ///
    /// When it is empty or blank, longer than 255 characters, or holds a character that is not
    /// printable ASCII.
    pub fn new(text: &str) -> Result<Self, InvalidHeader> {
        if let Some(odd) = text.bytes().position(|byte| !field::is_printable(byte)) {
            return Err(InvalidHeader::not_printable(odd));
        }
        if text.bytes().all(|byte| byte == b' ') {
            return Err(InvalidHeader::empty());
        }
        if text.len() > LONGEST {
            return Err(InvalidHeader::too_long(text.len(), LONGEST));
        }
        Ok(Self {
            text: Arc::from(text),
            caller: None,
        })
    }

    /// The same as the key of this caller: as a part of a key, it is what `(caller, key)` would be.
    #[cfg(feature = "tower")]
    pub(crate) fn of_caller(&self, caller: &dyn KeyPart) -> Self {
        // A caller that is no key is refused before a handler runs.
        let framed = Key::from_part(&Part(caller)).ok();
        Self {
            text: Arc::clone(&self.text),
            caller: framed.map(|caller| caller.framed().into()),
        }
    }

    /// Parses the value of a single field line.
    ///
    /// # Errors
    ///
    /// When the value is malformed under that syntax, or its string is no key; the error says
    /// which, and never quotes the value.
    pub fn parse(value: &[u8], syntax: Syntax) -> Result<Self, InvalidHeader> {
        match field::parse(value, syntax)? {
            field::Parsed::Borrowed(text) => Self::new(text),
            field::Parsed::Unescaped(text) => Self::new(&text),
        }
    }

    /// The key as the client gave it, without quotation marks and escapes.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The key as the value of a header field: a structured-field string (RFC 9651, section 4.1.6),
    /// quoted and escaped.
    ///
    /// It is marked as sensitive, so that `Debug` does not show it and HTTP/2 keeps it out of its
    /// tables.
    #[must_use]
    pub fn to_header_value(&self) -> HeaderValue {
        let mut quoted = Vec::with_capacity(self.text.len() + 2);
        quoted.push(b'"');
        for byte in self.text.bytes() {
            if matches!(byte, b'"' | b'\\') {
                quoted.push(b'\\');
            }
            quoted.push(byte);
        }
        quoted.push(b'"');
        let mut value = HeaderValue::from_bytes(&quoted)
            .expect("printable ASCII is the value of a header field");
        value.set_sensitive(true);
        value
    }
}

impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "IdempotencyKey({} characters)", self.text.len())
    }
}

/// The first part of a key of several parts.
#[cfg(feature = "tower")]
struct Part<'a>(&'a dyn KeyPart);

#[cfg(feature = "tower")]
impl KeyPart for Part<'_> {
    fn write(&self, key: &mut KeyWriter) {
        key.part(self.0);
    }
}

impl KeyPart for IdempotencyKey {
    fn write(&self, key: &mut KeyWriter) {
        if let Some(caller) = &self.caller {
            key.framed(caller);
        }
        key.text(&self.text);
    }
}

/// As the client's own string, so that it may be an argument of an annotated function.
impl Serialize for IdempotencyKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors;
