//! Keys, which tell one call from another: parts, framed so that they never run into each other.

mod external;
mod parts;
mod template;
mod writer;

#[doc(hidden)]
pub use parts::{AFloatIsNoKey, AsItDisplays, DisplaysAsKey, part};
pub use parts::{Text, text};
pub use template::Template;
pub use writer::KeyWriter;

/// The longest key, in bytes of text: 64 KiB.
pub const LONGEST: usize = 64 * 1024;

/// A value that can stand in `key` and `scope`.
///
/// Integers, `bool`, `char`, text, bytes, IP addresses, options and tuples of these are key parts;
/// other types by `#[derive(KeyPart)]`, by [`text`], or by a Cargo feature of this crate. Floats,
/// maps and clocks are none, because equal values of theirs need not look equal, or because a retry
/// cannot bring the same one again.
///
/// The type is no part of a key: `1_u8`, `1_i64` and `"1"` are one key, so that a key may change
/// its type while calls are under way. Bytes are not text: `b"1"` is another key than `"1"`.
///
/// A `None` anywhere in it, in a tuple, in a template, or in a field of a struct that derives this
/// trait, makes the whole key missing. If `None` is a value like any other, say which:
/// `part.unwrap_or("none")`.
///
/// # Examples
///
/// ```
/// use idempotent_runtime::key::{KeyPart, KeyWriter};
///
/// struct Order { shop: u32, number: String }
///
/// impl KeyPart for Order {
///     fn write(&self, key: &mut KeyWriter) {
///         key.part(&self.shop);
///         key.part(&self.number);
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an idempotency key",
    label = "this cannot be part of a key",
    note = "a key must be the same in every retry: floats, maps, `Instant` and `SystemTime` are none; take the field that identifies the call",
    note = "for a type that implements `Display`, write `text(&value)`; for one of your own, `#[derive(KeyPart)]`",
    note = "types of other crates come with the features `uuid`, `ulid`, `chrono`, `time`, `jiff` and `rust_decimal` of `idempotent-runtime`"
)]
pub trait KeyPart {
    /// Writes the value to the key.
    ///
    /// A value that writes several parts is one part inside another: `((a, b), c)` is not
    /// `(a, (b, c))`.
    fn write(&self, key: &mut KeyWriter);
}

/// A key: between 1 byte and 64 KiB of text, framed part by part.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key(Vec<u8>);

impl Key {
    /// Makes a key of one part, or of the parts of a tuple or template.
    ///
    /// # Errors
    ///
    /// When a part of it is missing, when all its values are empty, or when it is longer than
    /// [`LONGEST`].
    pub fn from_part<K: KeyPart + ?Sized>(part: &K) -> Result<Self, KeyError> {
        let mut writer = KeyWriter::new();
        part.write(&mut writer);
        writer.finish().map(Self)
    }

    /// The bytes that identify the call: each part framed by its length, so that unequal keys are
    /// unequal here.
    #[must_use]
    pub fn framed(&self) -> &[u8] {
        &self.0
    }

    /// The key for people to read: a single part as it is, several joined by `, `, a template as it
    /// reads.
    #[must_use]
    pub fn into_readable(self) -> Vec<u8> {
        writer::readable(self.0)
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Keys name customers and orders, and debug output ends up in logs.
        write!(formatter, "Key({} bytes)", self.0.len())
    }
}

/// A value cannot be a key, or a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// It is `None`, or a part of it is, or it has no part at all.
    #[error(
        "it is missing, because it or a part of it is `None`: have the caller send one, or use a part that is always there; with `on_missing_key = run`, a call without a key runs unprotected, and one without a scope cannot"
    )]
    Missing,
    /// All its values are empty text.
    #[error(
        "it is empty: it would be the same for every call; have the caller send one of at least 1 byte"
    )]
    Empty,
    /// It is longer than [`LONGEST`].
    #[error(
        "it is {bytes} bytes long, and at most {limit} are allowed; use a shorter field that identifies the same, or a hash"
    )]
    TooLong {
        /// How long it is, in bytes of text.
        bytes: usize,
        /// How long it may be.
        limit: usize,
    },
    /// The `Display` of a part returned an error.
    #[error(
        "a part of it cannot be written as text because its `Display` failed; mend that, or use another field"
    )]
    Unwritable,
}

#[cfg(test)]
mod tests;
