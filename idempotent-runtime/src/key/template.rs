//! Keys written as text with holes.

use super::{KeyPart, KeyWriter};

/// A key made of literal text and parts, such as `"{cart}:{line}"`.
///
/// Its identity keeps each part apart from the text around it: `"{a}:{b}"` of `("x:y", "z")` is another key than of
/// `("x", "y:z")`, although both read the same. A template of nothing but one part is that part: `"{order}"` is `order`, also
/// where that is a tuple.
///
/// # Examples
///
/// ```
/// use idempotent_runtime::key::{Key, Template};
///
/// let key = Key::from_part(&Template::new().part("cart-7").literal(":").part(&3))?;
/// assert_eq!(key.into_readable(), b"cart-7:3");
/// # Ok::<(), idempotent_runtime::key::KeyError>(())
/// ```
pub struct Template(KeyWriter);

impl Template {
    /// Starts an empty template.
    #[must_use]
    pub fn new() -> Self {
        Self(KeyWriter::new())
    }

    /// Adds a part.
    #[must_use]
    pub fn part<K: KeyPart + ?Sized>(mut self, part: &K) -> Self {
        self.0.part(part);
        self
    }

    /// Adds text that is the same in every key.
    #[must_use]
    pub fn literal(mut self, text: &str) -> Self {
        self.0.literal(text);
        self
    }
}

impl Default for Template {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Template {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Template").field(&self.0).finish()
    }
}

impl KeyPart for Template {
    fn write(&self, key: &mut KeyWriter) {
        key.append(&self.0);
    }
}
