//! Keys: what may be one, where they come from, and how they are written into a header.

use std::{fmt, sync::Arc};

use http::HeaderValue;

use super::profile::KeyStyle;
use crate::{attempt::ChildId, framing::write_framed, sha256::sha256};

/// The longest key in bytes, quotes and backslashes that escape others left aside.
pub const LONGEST_KEY: usize = 255;

/// An idempotency key: 1 to 255 printable ASCII characters. It can be a handle to a stored response, so `Debug` does not
/// show it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(Arc<str>);

/// Says why a text cannot be a key. Nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidKey {
    /// There is nothing in it, or nothing but blanks.
    #[error("the idempotency key is empty or blank")]
    Empty,
    /// It is longer than 255 bytes.
    #[error("the idempotency key has {0} bytes, take at most {LONGEST_KEY}")]
    TooLong(usize),
    /// It holds something else than printable ASCII.
    #[error(
        "the idempotency key holds a character that is not printable ASCII, hash it or encode it"
    )]
    NotAscii,
    /// The header stands there twice.
    #[error("the request has {0} idempotency keys, give one")]
    Doubled(usize),
    /// A header that begins with a quote is no string of RFC 9651.
    #[error("the idempotency key begins with a quote, but is no structured-field string")]
    Malformed,
    /// The server takes keys without quotes, and would read this one as another.
    #[error(
        "the idempotency key begins or ends with a blank or a quote, which a server of bare keys would not keep"
    )]
    NotBare,
}

impl Key {
    /// Makes a key of a text.
    ///
    /// # Errors
    ///
    /// Where the text is empty or blank, longer than 255 bytes, or holds anything but printable ASCII.
    pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidKey> {
        let text = text.as_ref();
        if text.trim_ascii().is_empty() {
            return Err(InvalidKey::Empty);
        }
        if text.len() > LONGEST_KEY {
            return Err(InvalidKey::TooLong(text.len()));
        }
        if !text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return Err(InvalidKey::NotAscii);
        }
        Ok(Self(text.into()))
    }

    /// Draws a random UUID (version 4).
    #[must_use]
    pub fn random() -> Self {
        Self::uuid(rand::random(), 4)
    }

    /// Derives the key of an intent: the same for the same words in every process and every release.
    pub(super) fn derived(namespace: &str, account: &str, operation: &str, intent: &str) -> Self {
        let mut buffer = Vec::new();
        let parts = ["idempotent-client-key-1", namespace, operation, intent];
        // Without an account, keys are what they would be if there was no such thing.
        let account = Some(account).filter(|account| !account.is_empty());
        for part in parts.into_iter().chain(account) {
            write_framed(&mut buffer, part.as_bytes());
        }
        let [first, ..] = *sha256(&mut buffer).as_chunks::<16>().0 else {
            unreachable!("a digest has 32 bytes")
        };
        Self::uuid(first, 8)
    }

    fn uuid(mut bytes: [u8; 16], version: u8) -> Self {
        bytes[6] = bytes[6] & 0x0f | version << 4;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Self(ChildId::from_bytes(bytes).to_string().into())
    }

    /// The key itself, without quotes.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The header, marked as sensitive, so that clients do not log it.
    pub(super) fn to_header(&self, style: KeyStyle) -> Result<HeaderValue, InvalidKey> {
        let text = match style {
            KeyStyle::Quoted => {
                let mut quoted = String::with_capacity(self.0.len() + 2);
                quoted.push('"');
                for letter in self.0.chars() {
                    if matches!(letter, '"' | '\\') {
                        quoted.push('\\');
                    }
                    quoted.push(letter);
                }
                quoted.push('"');
                quoted
            }
            KeyStyle::Bare => {
                if self.0.starts_with([' ', '"']) || self.0.ends_with(' ') {
                    return Err(InvalidKey::NotBare);
                }
                self.0.to_string()
            }
        };
        let mut header = HeaderValue::try_from(text).map_err(|_| InvalidKey::NotAscii)?;
        header.set_sensitive(true);
        Ok(header)
    }

    /// Reads a header that the caller wrote: a structured-field string where it begins with a quote, else as it is.
    pub(super) fn from_header(header: &HeaderValue) -> Result<Self, InvalidKey> {
        let text = header.to_str().map_err(|_| InvalidKey::NotAscii)?;
        let Some(quoted) = text.strip_prefix('"') else {
            return Self::new(text);
        };
        let mut key = String::with_capacity(quoted.len());
        let mut letters = quoted.chars();
        loop {
            match letters.next().ok_or(InvalidKey::Malformed)? {
                '"' => break,
                '\\' => match letters.next() {
                    Some(escaped @ ('"' | '\\')) => key.push(escaped),
                    _ => return Err(InvalidKey::Malformed),
                },
                letter => key.push(letter),
            }
        }
        if letters.next().is_some() {
            return Err(InvalidKey::Malformed);
        }
        Self::new(key)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cl06_a_random_key_is_a_uuid_of_version_4_in_quotes() {
        let key = Key::random();
        let text = key.as_str();
        assert_eq!(text.len(), 36);
        assert_eq!(&text[14..15], "4");
        assert!(matches!(&text[19..20], "8" | "9" | "a" | "b"));
        assert_ne!(key, Key::random());

        let quoted = key.to_header(KeyStyle::Quoted).expect("a header");
        assert_eq!(quoted, format!("\"{text}\"").as_str());
        assert!(quoted.is_sensitive());
        let bare = key.to_header(KeyStyle::Bare).expect("a header");
        assert_eq!(bare, text);
    }

    #[test]
    fn cl07_quotes_and_backslashes_are_escaped_and_come_back() {
        let key = Key::new(r#"a"b\c"#).expect("a key");
        let header = key.to_header(KeyStyle::Quoted).expect("a header");
        assert_eq!(header, r#""a\"b\\c""#);
        assert_eq!(Key::from_header(&header), Ok(key));
    }

    #[test]
    fn cl07_what_cannot_be_a_key_is_refused() {
        assert_eq!(Key::new(""), Err(InvalidKey::Empty));
        assert_eq!(Key::new("  "), Err(InvalidKey::Empty));
        assert_eq!(Key::new("é"), Err(InvalidKey::NotAscii));
        assert_eq!(Key::new("a\nb"), Err(InvalidKey::NotAscii));
        assert!(Key::new("x".repeat(255)).is_ok());
        assert_eq!(Key::new("x".repeat(256)), Err(InvalidKey::TooLong(256)));
        for blank in [" a", "a ", "\"a\""] {
            let key = Key::new(blank).expect("a key");
            assert_eq!(key.to_header(KeyStyle::Bare), Err(InvalidKey::NotBare));
        }
    }

    #[test]
    fn cl03_headers_of_the_caller_are_read() {
        let read = |text: &'static str| Key::from_header(&HeaderValue::from_static(text));
        assert_eq!(read("\"k\"").expect("a key").as_str(), "k");
        assert_eq!(read("k").expect("a key").as_str(), "k");
        for malformed in ["\"k", "\"k\\x\"", "\"k\"x", "\"k\\"] {
            assert_eq!(read(malformed), Err(InvalidKey::Malformed), "{malformed}");
        }
        assert_eq!(read("\"\""), Err(InvalidKey::Empty));
    }

    #[test]
    fn cl42_derived_keys_are_frozen() {
        let key = Key::derived("shop", "", "payments.charge", "order-42");
        assert_eq!(key.as_str(), "5066a9c3-cfcb-8be9-8175-655951a23f1e");
        assert_ne!(key, Key::derived("shop", "", "payments.charge", "order-43"));
        assert_ne!(key, Key::derived("shop", "", "payments.refund", "order-42"));
        assert_ne!(key, Key::derived("", "", "shoppayments.charge", "order-42"));
        assert_ne!(
            key,
            Key::derived("shop", "acct_1", "payments.charge", "order-42")
        );
    }

    #[test]
    fn cl41_a_key_is_not_shown() {
        assert_eq!(format!("{:?}", Key::new("secret")), "Ok(Key(…))");
    }
}
