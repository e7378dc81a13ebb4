//! Why a header field holds no key.

use std::borrow::Cow;

/// A client sent something that cannot be its key. The request must not run, not even where a key
/// is optional: its client believes that it is protected.
///
/// Its text says what is wrong and what to send instead, and never quotes the key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct InvalidHeader {
    reason: Reason,
    detail: Cow<'static, str>,
}

impl InvalidHeader {
    /// The reason why it is no key, for programs.
    #[must_use]
    pub fn reason(&self) -> Reason {
        self.reason
    }

    pub(super) fn new(reason: Reason, detail: impl Into<Cow<'static, str>>) -> Self {
        let detail = detail.into();
        Self { reason, detail }
    }

    pub(super) fn empty() -> Self {
        Self::new(
            Reason::Empty,
            "the key is empty or blank: send one of its own for each operation, such as a UUID",
        )
    }

    pub(super) fn too_long(length: usize, longest: usize) -> Self {
        Self::new(
            Reason::TooLong,
            format!("the key has {length} characters, and at most {longest} are allowed"),
        )
    }

    pub(super) fn not_printable(position: usize) -> Self {
        Self::new(
            Reason::NonAscii,
            format!(
                "the key holds something else than printable ASCII characters, at position {position}"
            ),
        )
    }
}

/// The reasons why a key is wrong, by the names that the member `reason` of a problem document
/// uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The field is there, and its value, or the string in it, is empty or blank.
    Empty,
    /// The key has more than 255 characters, or more than the [`KeyPolicy`](super::KeyPolicy)
    /// allows.
    TooLong,
    /// The key has fewer characters than the [`KeyPolicy`](super::KeyPolicy) asks for.
    TooShort,
    /// The value is not a quoted string (draft-07, section 2.1), or, under
    /// [`Syntax::Compatible`](super::Syntax::Compatible), looks like a structured field of another
    /// type.
    NotAString,
    /// A backslash stands before something else than a quotation mark or a backslash (RFC 9651,
    /// section 3.3.3).
    BadEscape,
    /// The closing quotation mark is missing.
    Unterminated,
    /// Something other than well-formed parameters follows the string.
    TrailingData,
    /// The value holds something else than printable ASCII characters: control characters count,
    /// too.
    NonAscii,
    /// The field is there more than once, or an intermediary joined several of its lines by commas.
    MultipleFieldLines,
    /// The key breaks the [`KeyPolicy`](super::KeyPolicy).
    Policy,
}

impl Reason {
    /// Every reason.
    pub const ALL: &'static [Self] = &[
        Self::Empty,
        Self::TooLong,
        Self::TooShort,
        Self::NotAString,
        Self::BadEscape,
        Self::Unterminated,
        Self::TrailingData,
        Self::NonAscii,
        Self::MultipleFieldLines,
        Self::Policy,
    ];

    /// The name in problem documents.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Empty => "empty",
            Reason::TooLong => "too_long",
            Reason::TooShort => "too_short",
            Reason::NotAString => "not_a_string",
            Reason::BadEscape => "bad_escape",
            Reason::Unterminated => "unterminated",
            Reason::TrailingData => "trailing_data",
            Reason::NonAscii => "non_ascii",
            Reason::MultipleFieldLines => "multiple_field_lines",
            Reason::Policy => "policy",
        }
    }
}
