//! The entries of a map while it is encoded, and their order.

use std::ops::Range;

use serde::Serialize;

use super::encode::{Encoder, tag};
use super::failure::EncodeFailure;

/// How many entries are remembered without an allocation.
const INLINE: usize = 8;

/// The places where the entries of one map start in the buffer: they lie side by side, each a key
/// and its value.
#[derive(Clone)]
pub(super) struct Entries {
    first: [usize; INLINE],
    /// All of them, once there are too many for `first`.
    all: Vec<usize>,
    count: usize,
    /// Whether those beyond the first few came in order; the first few are always put in order.
    in_order: bool,
}

impl Entries {
    #[inline]
    pub(super) fn new() -> Self {
        Self {
            first: [0; INLINE],
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
        encoder.value(value)?;
        // A `None` is left out, so that an optional field can be added without changing old
        // fingerprints.
        if matches!(encoder.buffer[after_name..], [tag::NONE]) {
            encoder.buffer.truncate(start);
        } else {
            self.add(&mut encoder.buffer, start);
        }
        Ok(())
    }

    /// Notes that an entry reaches from `start` to the end of the buffer.
    #[inline]
    pub(super) fn add(&mut self, buffer: &mut [u8], start: usize) {
        if self.count < INLINE {
            self.insert(buffer, start);
        } else {
            if self.count == INLINE {
                self.all.extend_from_slice(&self.first);
            }
            let previous = self.all[self.count - 1];
            self.in_order = self.in_order && buffer[previous..start] <= buffer[start..];
            self.all.push(start);
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

    /// Moves the last entry to its place among the first few, which costs nothing if it is there
    /// already.
    #[inline]
    fn insert(&mut self, buffer: &mut [u8], start: usize) {
        let (mut place, mut end) = (self.count, start);
        while place > 0 && buffer[self.first[place - 1]..end] > buffer[start..] {
            place -= 1;
            end = self.first[place];
        }
        if place < self.count {
            let length = buffer.len() - start;
            buffer[end..].rotate_right(length);
            for moved in (place..self.count).rev() {
                self.first[moved + 1] = self.first[moved] + length;
            }
        }
        self.first[place] = end;
    }

    /// The place of each entry in a buffer in which the last one reaches to `end`.
    pub(super) fn ranges(&self, end: usize) -> impl Iterator<Item = Range<usize>> {
        let starts = self.starts();
        let ends = starts.iter().skip(1).copied().chain([end]);
        starts.iter().zip(ends).map(|(&start, end)| start..end)
    }

    fn rearrange(&mut self, buffer: &mut Vec<u8>) {
        let end = buffer.len();
        let start = self.all[0];
        let mut ranges: Vec<_> = self.ranges(end).collect();
        ranges.sort_unstable_by(|a, b| buffer[a.clone()].cmp(&buffer[b.clone()]));
        buffer.reserve(end - start);
        for (range, moved) in ranges.into_iter().zip(&mut self.all) {
            *moved = start + buffer.len() - end;
            buffer.extend_from_within(range);
        }
        buffer.copy_within(end.., start);
        buffer.truncate(end);
        self.in_order = true;
    }

    #[inline]
    fn starts(&self) -> &[usize] {
        if self.count > INLINE {
            &self.all
        } else {
            &self.first[..self.count]
        }
    }
}
