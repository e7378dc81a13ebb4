//! The entries of a map while it is encoded, and their order.

use std::ops::Range;

use serde::Serialize;

use super::encode::{Encoder, tag};
use super::failure::EncodeFailure;

/// How many entries are remembered without an allocation.
const INLINE: usize = 8;

/// Where the entries of one map lie in the buffer: side by side, each a key and its value.
#[derive(Clone)]
pub(super) struct Entries {
    first: [(usize, usize); INLINE],
    /// All of them, once there are too many for `first`.
    all: Vec<(usize, usize)>,
    count: usize,
    in_order: bool,
}

impl Entries {
    #[inline]
    pub(super) fn new() -> Self {
        Self {
            first: [(0, 0); INLINE],
            all: Vec::new(),
            count: 0,
            in_order: true,
        }
    }

    /// Appends a named entry, unless its value is `None`.
    #[inline]
    pub(super) fn field<T: Serialize + ?Sized>(
        &mut self,
        encoder: &mut Encoder,
        name: &str,
        value: &T,
    ) -> Result<(), EncodeFailure> {
        let start = encoder.buffer.len();
        encoder.text(name);
        let after_name = encoder.buffer.len();
        value.serialize(&mut *encoder)?;
        // A `None` is left out, so that an optional field can be added without changing old fingerprints.
        if encoder.buffer[after_name..] == [tag::NONE] {
            encoder.buffer.truncate(start);
        } else {
            self.add(&encoder.buffer, start);
        }
        Ok(())
    }

    /// Notes that an entry reaches from `start` to the end of the buffer.
    #[inline]
    pub(super) fn add(&mut self, buffer: &[u8], start: usize) {
        if self.in_order
            && let Some(&(from, to)) = self.ranges().last()
        {
            self.in_order = buffer[from..to] <= buffer[start..];
        }
        let range = (start, buffer.len());
        if self.count < INLINE {
            self.first[self.count] = range;
        } else {
            if self.count == INLINE {
                self.all.extend_from_slice(&self.first);
            }
            self.all.push(range);
        }
        self.count += 1;
    }

    /// Puts the entries, which reach to the end of the buffer, in the order of their bytes.
    ///
    /// No encoded key is the beginning of another, so this is the order of the keys.
    #[inline]
    pub(super) fn sort(&mut self, buffer: &mut Vec<u8>) {
        if !self.in_order {
            self.rearrange(buffer);
        }
    }

    /// Where each entry lies, in the order of the buffer once they are sorted.
    pub(super) fn iter(&self) -> impl Iterator<Item = Range<usize>> {
        self.ranges().iter().map(|&(from, to)| from..to)
    }

    fn rearrange(&mut self, buffer: &mut Vec<u8>) {
        let ranges = if self.count > INLINE {
            &mut self.all[..]
        } else {
            &mut self.first[..self.count]
        };
        let (Some(&(start, _)), Some(&(_, end))) = (ranges.first(), ranges.last()) else {
            return;
        };
        ranges.sort_unstable_by(|&(a, a_end), &(b, b_end)| buffer[a..a_end].cmp(&buffer[b..b_end]));
        buffer.reserve(end - start);
        for range in ranges {
            let moved = start + buffer.len() - end;
            buffer.extend_from_within(range.0..range.1);
            *range = (moved, moved + range.1 - range.0);
        }
        buffer.copy_within(end.., start);
        buffer.truncate(end);
        self.in_order = true;
    }

    #[inline]
    fn ranges(&self) -> &[(usize, usize)] {
        if self.count > INLINE {
            &self.all
        } else {
            &self.first[..self.count]
        }
    }
}
