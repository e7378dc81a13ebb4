//! Keys: which texts may be one, where they come from, and how they are written into a header.

use std::fmt;

use http::HeaderValue;

use idempotent_runtime::{
    __client::{sha256, write_framed},
    ChildId,
    wire::{IdempotencyKey, InvalidHeader, Syntax},
};

/// The longest key in bytes, quotes and backslashes that escape others left aside.
pub const LONGEST_KEY: usize = 255;

/// An idempotency key: 1 to 255 printable ASCII characters. It can be a handle to a stored
/// response, so `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientKey(IdempotencyKey);

/// Says why a text cannot be a key. Nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidClientKey {
    /// It is none, by the rules that servers have, too.
    #[error(transparent)]
    Header(#[from] InvalidHeader),
    /// The header stands there twice.
    #[error("the request has {0} idempotency keys, give one")]
    Doubled(usize),
    /// The server takes keys without quotes, and would read this one as another.
    #[error(
        "the idempotency key begins or ends with a blank or a quote, which a server of bare keys would not keep"
    )]
    NotBare,
}

/// How a key is written into the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyStyle {
    /// As a string of RFC 9651, in quotes: `"8e03978e-40d5-43e8-bc93-6894a57f9324"`.
    Quoted,
    /// As it is: `8e03978e-40d5-43e8-bc93-6894a57f9324`.
    Bare,
}

impl ClientKey {
    /// Makes a key of a text.
    ///
    /// # Errors
    ///
    /// If the text is empty or blank, longer than 255 bytes, or holds anything except printable
    /// ASCII.
    pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidClientKey> {
        Ok(Self(IdempotencyKey::new(text.as_ref())?))
    }

    /// Draws a random UUID (version 4).
    #[must_use]
    pub fn random() -> Self {
        Self::uuid(rand::random(), 4)
    }

    /// Derives the key of an intent: the same for the same words in every process and every
    /// release.
    pub(crate) fn derived(namespace: &str, account: &str, operation: &str, intent: &str) -> Self {
        let mut buffer = Vec::new();
        let parts = ["idempotent-client-key-1", namespace, operation, intent];
        // Without an account, keys are the same as if there were no accounts.
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
        let text = ChildId::from_bytes(bytes).to_string();
        Self(IdempotencyKey::new(&text).expect("a UUID is a key"))
    }

    /// The key itself, without quotes.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The header, marked as sensitive, so that clients do not log it.
    pub(crate) fn to_header(&self, style: KeyStyle) -> Result<HeaderValue, InvalidClientKey> {
        let text = self.as_str();
        match style {
            KeyStyle::Quoted => Ok(self.0.to_header_value()),
            KeyStyle::Bare if text.starts_with([' ', '"']) || text.ends_with(' ') => {
                Err(InvalidClientKey::NotBare)
            }
            KeyStyle::Bare => {
                let header = HeaderValue::try_from(text);
                let mut header = header.expect("printable ASCII is the value of a header field");
                header.set_sensitive(true);
                Ok(header)
            }
        }
    }

    /// Reads a header that the caller wrote, as a server reads it.
    pub(crate) fn from_header(header: &HeaderValue) -> Result<Self, InvalidClientKey> {
        let key = IdempotencyKey::parse(header.as_bytes(), Syntax::Compatible)?;
        Ok(Self(key))
    }
}

impl fmt::Debug for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use idempotent_runtime::wire::Reason;

    use super::*;

    #[test]
    fn cl06_a_random_key_is_a_uuid_of_version_4_in_quotes() {
        let key = ClientKey::random();
        let text = key.as_str();
        assert_eq!(text.len(), 36);
        assert_eq!(&text[14..15], "4");
        assert!(matches!(&text[19..20], "8" | "9" | "a" | "b"));
        assert_ne!(key, ClientKey::random());

        let quoted = key.to_header(KeyStyle::Quoted).expect("a header");
        assert_eq!(quoted, format!("\"{text}\"").as_str());
        assert!(quoted.is_sensitive());
        let bare = key.to_header(KeyStyle::Bare).expect("a header");
        assert_eq!(bare, text);
    }

    #[test]
    fn cl07_quotes_and_backslashes_are_escaped_and_come_back() {
        let key = ClientKey::new(r#"a"b\c"#).expect("a key");
        let header = key.to_header(KeyStyle::Quoted).expect("a header");
        assert_eq!(header, r#""a\"b\\c""#);
        assert_eq!(ClientKey::from_header(&header), Ok(key));
    }

    #[test]
    fn cl07_what_cannot_be_a_key_is_refused() {
        let long = "x".repeat(256);
        for (text, reason) in [
            ("", Reason::Empty),
            ("  ", Reason::Empty),
            ("é", Reason::NonAscii),
            ("a\nb", Reason::NonAscii),
            (&long, Reason::TooLong),
        ] {
            let refused = ClientKey::new(text).expect_err("it is no key");
            assert_eq!(reason_of(&refused), Some(reason), "{text:?}");
        }
        assert!(ClientKey::new("x".repeat(255)).is_ok());
        for blank in [" a", "a ", "\"a\""] {
            let key = ClientKey::new(blank).expect("a key");
            assert_eq!(
                key.to_header(KeyStyle::Bare),
                Err(InvalidClientKey::NotBare)
            );
        }
    }

    fn reason_of(refused: &InvalidClientKey) -> Option<Reason> {
        match refused {
            InvalidClientKey::Header(header) => Some(header.reason()),
            _ => None,
        }
    }

    #[test]
    fn cl03_headers_of_the_caller_are_read_as_servers_read_them() {
        let read = |text: &'static str| ClientKey::from_header(&HeaderValue::from_static(text));
        for text in ["\"k\"", "k", "\"k\";v=1"] {
            assert_eq!(read(text).expect("a key").as_str(), "k", "{text}");
        }
        for (text, reason) in [
            ("\"k", Reason::Unterminated),
            ("\"k\\x\"", Reason::BadEscape),
            ("\"k\"x", Reason::TrailingData),
            ("\"k\\", Reason::Unterminated),
            ("\"\"", Reason::Empty),
        ] {
            let refused = read(text).expect_err("it is no key");
            assert_eq!(reason_of(&refused), Some(reason), "{text}");
        }
    }

    #[test]
    fn cl42_derived_keys_are_frozen() {
        let key = ClientKey::derived("shop", "", "payments.charge", "order-42");
        assert_eq!(key.as_str(), "5066a9c3-cfcb-8be9-8175-655951a23f1e");
        assert_ne!(
            key,
            ClientKey::derived("shop", "", "payments.charge", "order-43")
        );
        assert_ne!(
            key,
            ClientKey::derived("shop", "", "payments.refund", "order-42")
        );
        assert_ne!(
            key,
            ClientKey::derived("", "", "shoppayments.charge", "order-42")
        );
        assert_ne!(
            key,
            ClientKey::derived("shop", "acct_1", "payments.charge", "order-42")
        );
    }

    #[test]
    fn cl41_a_key_is_not_shown() {
        assert_eq!(
            format!("{:?}", ClientKey::new("secret")),
            "Ok(ClientKey(…))"
        );
    }
}
