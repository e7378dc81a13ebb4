//! The entries of a map while it is encoded, and their order.

use std::ops::Range;

use serde::Serialize;

use super::encode::{Encoder, tag};
use super::failure::EncodeFailure;

/// How many entries are remembered without an allocation.
const INLINE: usize = 8;

/// The places of the entries of one map in the buffer: they lie side by side.
#[derive(Clone)]
pub(super) struct Entries {
    first: [Entry; INLINE],
    /// All of them, once there are too many for `first`.
    all: Vec<Entry>,
    count: usize,
    /// Whether those beyond the first few came in order; the first few are always put in order.
    in_order: bool,
}

/// A key and its value.
#[derive(Clone, Copy, Default)]
struct Entry {
    start: usize,
    /// How long the key is.
    key: usize,
}

impl Entry {
    #[inline]
    fn key(self, buffer: &[u8]) -> &[u8] {
        &buffer[self.start..][..self.key]
    }
}

impl Entries {
    #[inline]
    pub(super) fn new() -> Self {
        Self {
            first: [Entry::default(); INLINE],
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
            self.add(&mut encoder.buffer, start, after_name);
        }
        Ok(())
    }

    /// Notes that an entry reaches from `start` to the end of the buffer, and its key to `value`.
    #[inline]
    pub(super) fn add(&mut self, buffer: &mut [u8], start: usize, value: usize) {
        let key = value - start;
        let entry = Entry { start, key };
        if self.count < INLINE {
            self.insert(buffer, entry);
        } else {
            if self.count == INLINE {
                self.all.extend_from_slice(&self.first);
            }
            let previous = self.all[self.count - 1];
            self.in_order = self.in_order && previous.key(buffer) <= entry.key(buffer);
            self.all.push(entry);
        }
        self.count += 1;
    }

    /// Puts the entries, which reach to the end of the buffer, in the order of their keys. Those of
    /// one key stay as they came: the last one may be the one that counts.
    #[inline]
    pub(super) fn sort(&mut self, buffer: &mut Vec<u8>) {
        if !self.in_order {
            self.rearrange(buffer);
        }
    }

    /// Moves the last entry to its place among the first few, which costs nothing if it is there
    /// already.
    #[inline]
    fn insert(&mut self, buffer: &mut [u8], entry: Entry) {
        let Entry { start, key } = entry;
        let (mut place, mut end) = (self.count, start);
        while place > 0 && self.first[place - 1].key(buffer) > entry.key(buffer) {
            place -= 1;
            end = self.first[place].start;
        }
        if place < self.count {
            let length = buffer.len() - start;
            buffer[end..].rotate_right(length);
            for moved in (place..self.count).rev() {
                self.first[moved + 1] = self.first[moved];
                self.first[moved + 1].start += length;
            }
        }
        self.first[place] = Entry { start: end, key };
    }

    /// The place of each entry in a buffer in which the last one reaches to `end`.
    pub(super) fn ranges(&self, end: usize) -> impl Iterator<Item = Range<usize>> {
        let entries = self.entries();
        let ends = entries.iter().skip(1).map(|next| next.start).chain([end]);
        entries
            .iter()
            .zip(ends)
            .map(|(entry, end)| entry.start..end)
    }

    fn rearrange(&mut self, buffer: &mut Vec<u8>) {
        let end = buffer.len();
        let start = self.all[0].start;
        let mut moving: Vec<_> = self.all.iter().copied().zip(self.ranges(end)).collect();
        moving.sort_by(|(a, _), (b, _)| a.key(buffer).cmp(b.key(buffer)));
        buffer.reserve(end - start);
        for ((Entry { key, .. }, range), moved) in moving.into_iter().zip(&mut self.all) {
            let start = start + buffer.len() - end;
            *moved = Entry { start, key };
            buffer.extend_from_within(range);
        }
        buffer.copy_within(end.., start);
        buffer.truncate(end);
        self.in_order = true;
    }

    #[inline]
    fn entries(&self) -> &[Entry] {
        if self.count > INLINE {
            &self.all
        } else {
            &self.first[..self.count]
        }
    }
}
