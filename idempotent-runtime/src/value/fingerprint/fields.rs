//! The fields of arguments that are structs: their names, and where they lie in an encoding.

use super::encode::tag;
use crate::framing::read_framed;

/// How many levels of fields are told apart: `order.amount` and `order.amount.currency`.
const LEVELS: usize = 2;

/// How many fields are remembered of one call. A difference in another field is told of the struct
/// that holds it.
const MOST: usize = 64;

/// The place of a field: the argument, its field, and the field of that. Empty names are not there.
type Path = [&'static str; 1 + LEVELS];

/// The struct fields in a call's arguments.
///
/// Only they are ever shown, because the keys of a map look the same in the encoding, and are
/// values.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownFields(Vec<Path>);

/// Notes the struct fields while the arguments are encoded.
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub(super) known: KnownFields,
    /// The argument that is being encoded, and the fields around the value at hand.
    here: Path,
    level: usize,
    /// How many lists, maps and variants are around it. A field inside of one has no path.
    inside: usize,
}

impl Fields {
    /// Notes none.
    pub(super) fn unknown() -> Self {
        Self {
            inside: 1,
            ..Self::default()
        }
    }

    pub(super) fn begin(&mut self, argument: &'static str) {
        self.here = [argument, "", ""];
        (self.level, self.inside) = (0, 0);
    }

    /// Notes a field before its value is encoded, and tells whether it is one to
    /// [leave](Self::leave).
    #[inline]
    pub(super) fn enter(&mut self, name: &'static str) -> bool {
        let has_path = self.inside == 0 && self.level < LEVELS && !name.contains('.');
        if has_path {
            self.level += 1;
            self.here[self.level] = name;
            if self.known.0.len() < MOST {
                self.known.0.push(self.here);
            }
        } else {
            self.inside += 1;
        }
        has_path
    }

    #[inline]
    pub(super) fn leave(&mut self, had_path: bool) {
        if had_path {
            self.here[self.level] = "";
            self.level -= 1;
        } else {
            self.inside -= 1;
        }
    }

    /// Notes that what follows is in a list, a map or a variant.
    #[inline]
    pub(super) fn go_inside(&mut self) {
        self.inside += 1;
    }

    #[inline]
    pub(super) fn go_outside(&mut self) {
        self.inside -= 1;
    }
}

impl KnownFields {
    /// Calls `tell` with the name and the encoded value of each field in the encoded value of an
    /// argument. A struct of which not all fields are known is told as a whole.
    pub(super) fn each(&self, argument: &str, value: &[u8], tell: &mut impl FnMut(&str, &[u8])) {
        self.each_below(&[argument.as_bytes()], argument, value, tell);
    }

    fn each_below(
        &self,
        path: &[&[u8]],
        name: &str,
        value: &[u8],
        tell: &mut impl FnMut(&str, &[u8]),
    ) {
        if path.len() > LEVELS {
            return;
        }
        let Some(fields) = self.fields(path, value) else {
            return;
        };
        for (field, value) in fields {
            let name = format!("{name}.{field}");
            tell(&name, value);
            let path = [path, &[field.as_bytes()]].concat();
            self.each_below(&path, &name, value, tell);
        }
    }

    /// The fields of a struct; nothing if the value is no struct, or not all of them are known.
    fn fields<'a>(&self, path: &[&[u8]], value: &'a [u8]) -> Option<Vec<(&'static str, &'a [u8])>> {
        let (&tag::MAP, mut rest) = value.split_first()? else {
            return None;
        };
        let mut fields = Vec::new();
        while *rest.first()? != tag::MAP_END {
            let (key, value) = entry(&mut rest)?;
            let is_it = |known: &&Path| {
                let parts = path.iter().copied().chain([key]);
                parts.eq(known
                    .iter()
                    .map(|part| part.as_bytes())
                    .take(path.len() + 1))
            };
            let known = self.0.iter().find(is_it)?;
            fields.push((known[path.len()], value));
        }
        Some(fields)
    }
}

/// Takes an entry off the front: the text that is its key, and its encoded value.
fn entry<'a>(bytes: &mut &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let (&tag::TEXT, mut framed) = take_value(bytes)?.split_first()? else {
        return None;
    };
    Some((read_framed(&mut framed)?, take_value(bytes)?))
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
