//! Keys written as text with holes.

use super::{KeyPart, KeyWriter};

/// A key made of literal text and parts, such as `"{cart}:{line}"`.
///
/// Its identity keeps each part apart from the text around it: `"{a}:{b}"` of `("x:y", "z")` is
/// another key than of `("x", "y:z")`, although both read the same. A template of only one part is
/// that part: `"{order}"` is `order`, also if that is a tuple.
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
pub struct Template {
    written: KeyWriter,
    pieces: Pieces,
}

/// How many pieces have been added.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pieces {
    None,
    /// One part and nothing else, written as it is where it stands alone.
    Part,
    Several,
}

impl Template {
    /// Starts an empty template.
    #[must_use]
    pub fn new() -> Self {
        Self {
            written: KeyWriter::new(),
            pieces: Pieces::None,
        }
    }

    /// Adds a part.
    #[must_use]
    pub fn part<K: KeyPart + ?Sized>(mut self, part: &K) -> Self {
        if self.pieces == Pieces::None {
            part.write(&mut self.written);
            self.pieces = Pieces::Part;
        } else {
            self.go_on();
            self.written.part(part);
        }
        self
    }

    /// Adds text that is the same in every key.
    #[must_use]
    pub fn literal(mut self, text: &str) -> Self {
        self.go_on();
        self.written.literal(text);
        self
    }

    /// A part that has stood alone until now stands beside another piece, and is kept apart from
    /// it.
    fn go_on(&mut self) {
        if self.pieces == Pieces::Part {
            self.written.group(0);
        }
        self.pieces = Pieces::Several;
    }
}

impl Default for Template {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Template {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let written = &self.written;
        formatter.debug_tuple("Template").field(written).finish()
    }
}

impl KeyPart for Template {
    fn write(&self, key: &mut KeyWriter) {
        key.append(&self.written);
    }
}
