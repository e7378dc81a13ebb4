//! Finds the key of a request.

use http::{HeaderMap, HeaderName};

use super::{IDEMPOTENCY_KEY, IdempotencyKey, InvalidHeader, KeyPolicy, Reason};

/// How the value of the field is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Syntax {
    /// A value that begins with a quotation mark must be a structured-field string; any other is
    /// the key as it stands, so that `"k"` and `k` are one key.
    ///
    /// Most clients send a bare UUID, which is no string and, depending on its first digit, no
    /// structured field at all. Taking it as a token where it happens to be one would accept three
    /// of eight. A number, a date or a boolean is taken as it stands as well. A value that looks
    /// like another string, a list or a byte sequence is refused: it holds a quotation mark or a
    /// comma, or begins with `'`, `(` or `:`.
    #[default]
    Compatible,
    /// The value must be a structured-field string (draft-07, section 2.1; RFC 9651, section
    /// 3.3.3).
    Strict,
}

/// Finds the key in the header fields of a request.
///
/// By default it reads `Idempotency-Key` under [`Syntax::Compatible`], and any sound key will do.
///
/// # Examples
///
/// ```
/// use http::HeaderMap;
/// use idempotent_runtime::http::{IDEMPOTENCY_KEY, KeyPolicy, KeyReader, Reason};
///
/// let reader = KeyReader::new().policy(KeyPolicy::new().uuid());
/// let mut headers = HeaderMap::new();
/// assert_eq!(reader.read(&headers), Ok(None));
///
/// headers.append(IDEMPOTENCY_KEY, "order-42".parse()?);
/// assert_eq!(reader.read(&headers).unwrap_err().reason(), Reason::Policy);
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[derive(Clone, Debug)]
pub struct KeyReader {
    /// Never empty.
    names: Vec<HeaderName>,
    syntax: Syntax,
    policy: KeyPolicy,
}

impl KeyReader {
    /// Reads `Idempotency-Key`.
    #[must_use]
    pub fn new() -> Self {
        Self {
            names: vec![IDEMPOTENCY_KEY],
            syntax: Syntax::default(),
            policy: KeyPolicy::new(),
        }
    }

    /// Sets how the value is read.
    #[must_use]
    pub fn syntax(mut self, syntax: Syntax) -> Self {
        self.syntax = syntax;
        self
    }

    /// Sets what a key must be like beyond being sound.
    #[must_use]
    pub fn policy(mut self, policy: KeyPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Also reads the key from the field `name`, such as `X-Idempotency-Key`. A request may carry
    /// both if they hold the same key.
    #[must_use]
    pub fn also(mut self, name: HeaderName) -> Self {
        if !self.names.contains(&name) {
            self.names.push(name);
        }
        self
    }

    /// Finds the key; `None` where no field carries one. A field that is there and empty carries a
    /// malformed key.
    ///
    /// # Errors
    ///
    /// When the value is no key, is there twice, even if equal, or breaks the policy. A request
    /// with such a field must be refused, also where a key is optional (draft-07, section 5): its
    /// client believes that it is protected.
    pub fn read(&self, headers: &HeaderMap) -> Result<Option<IdempotencyKey>, InvalidHeader> {
        let mut found: Option<IdempotencyKey> = None;
        for name in &self.names {
            let mut lines = headers.get_all(name).iter();
            let Some(line) = lines.next() else { continue };
            let others = lines.count();
            if others > 0 {
                return Err(InvalidHeader::new(
                    Reason::MultipleFieldLines,
                    format!("expected exactly one key, found {} field lines", others + 1),
                ));
            }
            let key = IdempotencyKey::parse(line.as_bytes(), self.syntax)?;
            if found.as_ref().is_some_and(|other| *other != key) {
                return Err(InvalidHeader::new(
                    Reason::MultipleFieldLines,
                    "two header fields carry different keys: send one of them",
                ));
            }
            found = Some(key);
        }
        if let Some(key) = &found {
            self.policy.check(key)?;
        }
        Ok(found)
    }

    /// The header field to name in an answer: the usual one, even where others are read, too.
    #[must_use]
    pub fn name(&self) -> &HeaderName {
        &self.names[0]
    }

    /// The header fields that are read, the usual one first.
    #[must_use]
    pub fn names(&self) -> &[HeaderName] {
        &self.names
    }

    /// How the value is read.
    #[must_use]
    pub fn reads(&self) -> Syntax {
        self.syntax
    }

    /// The rules for a key.
    #[must_use]
    pub fn takes(&self) -> &KeyPolicy {
        &self.policy
    }

    /// The form that a client must send, for problem documents and documentation, such as *a quoted
    /// string (RFC 9651 section 3.3.3) of 1 to 255 characters, for example
    /// "8e03978e-40d5-43e8-bc93-6894a57f9324"*.
    #[must_use]
    pub fn expects(&self) -> String {
        let quotes = match self.syntax {
            Syntax::Compatible => "whose quotation marks may be left out, ",
            Syntax::Strict => "",
        };
        let mut text = format!(
            "a quoted string (RFC 9651 section 3.3.3), {quotes}of {}",
            self.policy
        );
        if let Some(example) = self.policy.example() {
            text.push_str(&format!(", for example \"{example}\""));
        }
        text
    }
}

impl Default for KeyReader {
    fn default() -> Self {
        Self::new()
    }
}
