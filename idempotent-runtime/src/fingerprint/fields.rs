//! The fields of arguments that are structs: their names, and where they lie in an encoding.

use super::encode::tag;
use crate::framing::read_framed;

/// How many levels of fields are told apart: `order.amount` and `order.amount.currency`.
const LEVELS: usize = 2;

/// How deep a field may stand to be remembered: an `Option` or a newtype around a struct is a level
/// of the encoding.
const DEEPEST: usize = 2 * LEVELS;

/// How many names are remembered of one call. A difference in another field is told of what holds
/// it.
const MOST: usize = 64;

/// The names of the struct fields in a call's arguments.
///
/// Only they are ever shown, because the keys of a map look the same in the encoding, and are
/// values.
#[derive(Clone, Debug, Default)]
pub(super) struct FieldNames(Vec<&'static str>);

impl FieldNames {
    /// Notes a field, where that of an argument stands at the depth of 1.
    #[inline]
    pub(super) fn note(&mut self, depth: usize, name: &'static str) {
        let is_known = |known: &&str| std::ptr::eq(*known, name);
        if depth <= DEEPEST && self.0.len() < MOST && !self.0.iter().any(is_known) {
            self.0.push(name);
        }
    }

    /// Calls `tell` with the path and the encoded value of each field in `value`, whose own path is
    /// `path`.
    pub(super) fn each(&self, path: &str, value: &[u8], tell: &mut impl FnMut(&str, &[u8])) {
        self.each_below(1, path, value, tell);
    }

    fn each_below(
        &self,
        level: usize,
        path: &str,
        value: &[u8],
        tell: &mut impl FnMut(&str, &[u8]),
    ) {
        let Some((&tag::MAP, mut rest)) = value.split_first() else {
            return;
        };
        while level <= LEVELS && !rest.is_empty() && rest[0] != tag::MAP_END {
            let Some((key, value)) = entry(&mut rest) else {
                return;
            };
            let is_field = |name: &&&str| name.as_bytes() == key;
            if let Some(name) = self.0.iter().find(is_field) {
                let path = format!("{path}.{name}");
                tell(&path, value);
                self.each_below(level + 1, &path, value, tell);
            }
        }
    }
}

/// Takes an entry off the front: the text that is its key, or nothing where it is another value,
/// and its encoded value.
fn entry<'a>(bytes: &mut &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let encoded_key = take_value(bytes)?;
    let key = match encoded_key.split_first()? {
        (&tag::TEXT, mut framed) => read_framed(&mut framed)?,
        _ => &[],
    };
    Some((key, take_value(bytes)?))
}

/// Takes an encoded value off the front.
fn take_value<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let whole = *bytes;
    skip_value(bytes)?;
    Some(&whole[..whole.len() - bytes.len()])
}

fn skip_value(bytes: &mut &[u8]) -> Option<()> {
    let (&first, rest) = bytes.split_first()?;
    *bytes = rest;
    match first {
        tag::NONE | tag::UNIT | tag::FALSE | tag::TRUE => {}
        tag::SOME => skip_value(bytes)?,
        tag::NATURAL | tag::NEGATIVE => {
            let end = bytes.iter().position(|group| *group < 0x80)? + 1;
            *bytes = &bytes[end..];
        }
        tag::FLOAT => *bytes = bytes.get(8..)?,
        tag::TEXT | tag::BYTES => {
            read_framed(bytes)?;
        }
        tag::VARIANT => {
            read_framed(bytes)?;
            skip_value(bytes)?;
        }
        tag::SEQUENCE | tag::MAP => {
            while !matches!(*bytes.first()?, tag::SEQUENCE_END | tag::MAP_END) {
                skip_value(bytes)?;
            }
            *bytes = &bytes[1..];
        }
        _ => return None,
    }
    Some(())
}
