//! The writer of key parts.

use std::fmt;

use super::{DisplaysAsKey, KeyError, KeyPart, LONGEST};
use crate::framing::{read_framed, write_framed, write_framed_display};

/// The bytes that framed parts start with.
mod tag {
    pub(super) const TEXT: u8 = b'"';
    pub(super) const BYTES: u8 = b'b';
    pub(super) const LITERAL: u8 = b'=';
    pub(super) const GROUP: u8 = b'(';
    pub(super) const GROUP_END: u8 = b')';
}

/// Takes the parts of a key, and frames each so that they never run into each other.
pub struct KeyWriter {
    framed: Vec<u8>,
    /// How many bytes the parts have together, kept or not.
    bytes: usize,
    /// How many frames were written since the group they stand in began; above one, the exact
    /// number does not matter.
    frames: usize,
    values: Values,
    /// Whether a part has no value.
    incomplete: bool,
    unwritable: bool,
}

/// The values seen so far.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Values {
    None,
    Empty,
    Present,
}

impl KeyWriter {
    pub(super) fn new() -> Self {
        Self {
            framed: Vec::with_capacity(64),
            bytes: 0,
            frames: 0,
            values: Values::None,
            incomplete: false,
            unwritable: false,
        }
    }

    /// Writes a part that is text.
    pub fn text(&mut self, text: &str) {
        self.value(tag::TEXT, text.as_bytes());
    }

    /// Writes a part that is bytes, which need not be text.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.value(tag::BYTES, bytes);
    }

    /// Writes a part as the text that it displays as. A float is none.
    pub fn display<A>(&mut self, value: impl DisplaysAsKey<A>) {
        self.displayed(value);
    }

    pub(super) fn displayed(&mut self, value: impl fmt::Display) {
        self.framed.push(tag::TEXT);
        self.frames += 1;
        match write_framed_display(&mut self.framed, &value, LONGEST.saturating_sub(self.bytes)) {
            Ok(bytes) => self.count(bytes),
            Err(fmt::Error) => self.unwritable = true,
        }
    }

    /// Says that a part has no value, which is not the same as empty text. The whole key is missing
    /// then, whatever its other parts are: without the part that tells them apart, calls that are
    /// not the same would share one key.
    pub fn missing(&mut self) {
        self.incomplete = true;
    }

    /// Writes a part of a part; whatever it writes stays together.
    pub fn part<K: KeyPart + ?Sized>(&mut self, part: &K) {
        let start = self.framed.len();
        let before = std::mem::take(&mut self.frames);
        part.write(self);
        self.group(start);
        self.frames += before;
    }

    /// Makes one frame of those that were written from `start` on, which are the ones that are
    /// counted.
    pub(super) fn group(&mut self, start: usize) {
        if self.frames != 1 {
            self.framed.insert(start, tag::GROUP);
            self.framed.push(tag::GROUP_END);
        }
        self.frames = 1;
    }

    /// Writes a part in the frame that it has already.
    #[cfg(feature = "wire")]
    pub(crate) fn framed(&mut self, part: &[u8]) {
        self.frames += 1;
        self.bytes = self.bytes.saturating_add(part.len());
        if self.bytes <= LONGEST {
            self.framed.extend_from_slice(part);
        }
        self.saw(part.len());
    }

    /// Writes text that is the same in every key, and so counts as no value.
    pub(super) fn literal(&mut self, text: &str) {
        self.framed.push(tag::LITERAL);
        self.frames += 1;
        self.keep(text.as_bytes());
    }

    /// Writes an integer in decimal, without the machinery of `Display`.
    pub(super) fn integer(&mut self, negative: bool, mut magnitude: u64) {
        let mut digits = [0; 20];
        let mut first = digits.len();
        loop {
            first -= 1;
            digits[first] = b'0' + (magnitude % 10) as u8;
            magnitude /= 10;
            if magnitude == 0 {
                break;
            }
        }
        if negative {
            first -= 1;
            digits[first] = b'-';
        }
        self.value(tag::TEXT, &digits[first..]);
    }

    /// Writes everything that was written to `other`.
    pub(super) fn append(&mut self, other: &Self) {
        self.frames += other.frames;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.values = self.values.max(other.values);
        self.incomplete |= other.incomplete;
        self.unwritable |= other.unwritable;
        if self.bytes <= LONGEST {
            self.framed.extend_from_slice(&other.framed);
        }
    }

    pub(super) fn finish(self) -> Result<Vec<u8>, KeyError> {
        match self.values {
            _ if self.unwritable => Err(KeyError::Unwritable),
            _ if self.incomplete => Err(KeyError::Missing),
            _ if self.bytes > LONGEST => Err(KeyError::TooLong {
                bytes: self.bytes,
                limit: LONGEST,
            }),
            Values::None => Err(KeyError::Missing),
            Values::Empty => Err(KeyError::Empty),
            Values::Present => Ok(self.framed),
        }
    }

    /// How many bytes are kept.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.framed.len()
    }

    fn value(&mut self, tag: u8, bytes: &[u8]) {
        self.framed.push(tag);
        self.frames += 1;
        self.keep(bytes);
        self.saw(bytes.len());
    }

    fn count(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.saw(bytes);
    }

    fn saw(&mut self, bytes: usize) {
        self.values = self.values.max(if bytes == 0 {
            Values::Empty
        } else {
            Values::Present
        });
    }

    /// A key that is too long is refused in the end, so what goes beyond the limit is only counted.
    fn keep(&mut self, bytes: &[u8]) {
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes <= LONGEST {
            write_framed(&mut self.framed, bytes);
        }
    }
}

impl fmt::Debug for KeyWriter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "KeyWriter({} bytes)", self.bytes)
    }
}

/// Takes the frames away. A key of one part stays in its allocation.
pub(super) fn readable(mut framed: Vec<u8>) -> Vec<u8> {
    let mut rest = framed.get(1..).unwrap_or_default();
    if let Some(&(tag::TEXT | tag::BYTES)) = framed.first()
        && let Some(only) = read_framed(&mut rest)
        && rest.is_empty()
    {
        let header = framed.len() - only.len();
        framed.drain(..header);
        return framed;
    }
    joined(&framed)
}

fn joined(mut framed: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(framed.len());
    let mut apart = false;
    while let Some((&tag, rest)) = framed.split_first() {
        framed = rest;
        let is_value = !matches!(tag, tag::LITERAL | tag::GROUP_END);
        if apart && is_value {
            text.extend_from_slice(b", ");
        }
        match tag {
            tag::GROUP => text.push(b'('),
            tag::GROUP_END => text.push(b')'),
            _ => text.extend_from_slice(read_framed(&mut framed).unwrap_or_default()),
        }
        apart = !matches!(tag, tag::LITERAL | tag::GROUP);
    }
    text
}
