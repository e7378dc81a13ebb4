//! The rules that a policy is made of.

use std::{borrow::Cow, fmt, sync::Arc};

/// One thing that a key must be beyond having the right length.
#[derive(Clone)]
pub(super) enum Rule {
    Uuid,
    Ulid,
    NotSequential,
    Custom {
        what: Cow<'static, str>,
        holds: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    },
}

impl Rule {
    pub(super) fn allows(&self, key: &str) -> bool {
        match self {
            Rule::Uuid => is_uuid(key),
            Rule::Ulid => is_ulid(key),
            Rule::NotSequential => !is_sequential(key),
            Rule::Custom { holds, .. } => holds(key),
        }
    }

    pub(super) fn pattern(&self) -> Option<&'static str> {
        match self {
            Rule::Uuid => {
                Some("[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
            }
            Rule::Ulid => Some("[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}"),
            Rule::NotSequential | Rule::Custom { .. } => None,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Rule::Uuid => "a UUID that is neither nil nor max",
            Rule::Ulid => "a ULID that is not nil",
            Rule::NotSequential => "not sequential",
            Rule::Custom { what, .. } => what,
        })
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Rule({self})")
    }
}

fn is_uuid(key: &str) -> bool {
    let in_place = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    let of_one_digit = |digit: u8| {
        key.bytes()
            .all(|byte| byte == b'-' || byte.eq_ignore_ascii_case(&digit))
    };
    key.len() == 36
        && key.bytes().enumerate().all(in_place)
        && !of_one_digit(b'0')
        && !of_one_digit(b'f')
}

/// Crockford's digits leave out I, L, O and U; the first one holds three bits of the 128.
fn is_ulid(key: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() && !b"ILOUilou".contains(&byte);
    key.len() == 26
        && key.bytes().all(is_digit)
        && matches!(key.as_bytes()[0], b'0'..=b'7')
        && key.bytes().any(|byte| byte != b'0')
}

fn is_sequential(key: &str) -> bool {
    let bytes = key.as_bytes();
    let different = bytes
        .iter()
        .enumerate()
        .filter(|(at, byte)| !bytes[..*at].contains(byte))
        .take(4)
        .count();
    let in_a_row = |step: fn(u8) -> u8| bytes.windows(2).all(|pair| step(pair[0]) == pair[1]);
    different < 4
        || in_a_row(|byte| byte.wrapping_add(1))
        || in_a_row(|byte| byte.wrapping_sub(1))
        || is_counted(key)
}

/// Whether it is a number that 64 bits hold, by itself or after a word and a separator.
///
/// A word is of one case: in a random key of mixed case, one separator followed by digits alone is
/// no rarity.
fn is_counted(key: &str) -> bool {
    const MOST_DIGITS: usize = 19;
    let word = key.trim_end_matches(|character: char| character.is_ascii_digit());
    let digits = key.len() - word.len();
    let is_separator = |byte: u8| byte.is_ascii_punctuation() || byte == b' ';
    let of_case =
        |case: fn(&u8) -> bool| word.bytes().all(|byte| case(&byte) || is_separator(byte));
    (1..=MOST_DIGITS).contains(&digits)
        && word.bytes().last().is_none_or(is_separator)
        && (of_case(u8::is_ascii_lowercase) || of_case(u8::is_ascii_uppercase))
}
