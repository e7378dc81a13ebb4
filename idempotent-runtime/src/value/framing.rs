//! Length framing, shared by fingerprints, keys and record ids: what is framed never runs into its
//! neighbour.

use std::fmt::{self, Write as _};

/// The longest a number of 128 bits gets in groups of seven bits.
const LONGEST_NUMBER: usize = 19;

/// Appends `number` in groups of seven bits, lowest first, each but the last with its top bit set
/// (unsigned LEB128).
#[inline]
pub(crate) fn write_number(buffer: &mut Vec<u8>, mut number: u64) {
    if number < 0x80 {
        buffer.push(number as u8);
        return;
    }
    let mut groups = [0; 16];
    let mut used = 0;
    while number >= 0x80 {
        groups[used] = number as u8 | 0x80;
        number >>= 7;
        used += 1;
    }
    groups[used] = number as u8;
    // A copy of a fixed size is two instructions, one of a size that is not known is a call.
    let end = buffer.len() + used + 1;
    buffer.extend_from_slice(&groups);
    buffer.truncate(end);
}

/// Appends a number of up to 128 bits, in the same form as [`write_number`].
pub(crate) fn write_wide_number(buffer: &mut Vec<u8>, mut number: u128) {
    while number >= 0x80 {
        buffer.push(number as u8 | 0x80);
        number >>= 7;
    }
    buffer.push(number as u8);
}

/// Appends the length of `bytes`, then `bytes`.
#[inline]
pub fn write_framed(buffer: &mut Vec<u8>, bytes: &[u8]) {
    buffer.reserve(bytes.len() + LONGEST_NUMBER);
    write_number(buffer, bytes.len() as u64);
    buffer.extend_from_slice(bytes);
}

/// Appends what `value` displays as, framed, and tells its length in bytes.
///
/// Text beyond `room` bytes is counted, not kept, so that an endless `Display` cannot fill the
/// memory.
///
/// # Errors
///
/// When the `Display` itself fails.
pub(crate) fn write_framed_display(
    buffer: &mut Vec<u8>,
    value: &(impl fmt::Display + ?Sized),
    room: usize,
) -> Result<usize, fmt::Error> {
    let start = buffer.len();
    buffer.push(0);
    let mut sink = Sink {
        buffer,
        room,
        total: 0,
    };
    write!(sink, "{value}")?;
    let total = sink.total;
    let kept = buffer.len() - start - 1;
    if kept < 0x80 {
        buffer[start] = kept as u8;
    } else {
        let mut length = Vec::with_capacity(LONGEST_NUMBER);
        write_number(&mut length, kept as u64);
        buffer.splice(start..=start, length);
    }
    Ok(total)
}

struct Sink<'a> {
    buffer: &'a mut Vec<u8>,
    room: usize,
    total: usize,
}

impl fmt::Write for Sink<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.total = self.total.saturating_add(text.len());
        if self.total <= self.room {
            self.buffer.extend_from_slice(text.as_bytes());
        }
        Ok(())
    }
}

/// Takes a number off the front; `None` when it is cut short, too large, or not in its shortest
/// form.
pub(crate) fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..u64::BITS).step_by(7) {
        let (&group, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(group & 0x7f);
        if bits << shift >> shift != bits || (group == 0 && shift > 0) {
            return None;
        }
        number |= bits << shift;
        if group < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Takes a framed run of bytes off the front; `None` when it is cut short.
pub fn read_framed<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(read_number(bytes)?).ok()?;
    let (framed, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(framed)
}

/// Shows bytes as lower-case hexadecimal digits.
#[derive(Debug)]
pub struct Hex<'a>(pub &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_only_from_their_shortest_form() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), 1 << 63, u64::MAX] {
            let mut buffer = Vec::new();
            write_number(&mut buffer, number);
            let mut wide = Vec::new();
            write_wide_number(&mut wide, u128::from(number));
            assert_eq!(buffer, wide);
            let mut rest = &buffer[..];
            assert_eq!(read_number(&mut rest), Some(number));
            assert!(rest.is_empty());
        }
        for garbage in [&[][..], &[0x80], &[0x80, 0], &[0xff; 10], &[0xff; 30]] {
            assert_eq!(read_number(&mut &*garbage), None, "{garbage:?}");
        }
    }

    #[test]
    fn a_display_is_framed_like_the_text_it_shows() {
        for length in [0, 1, 127, 128, 5000] {
            let text = "x".repeat(length);
            let (mut shown, mut written) = (vec![7], vec![7]);
            assert_eq!(
                write_framed_display(&mut shown, &text, usize::MAX),
                Ok(length)
            );
            write_framed(&mut written, text.as_bytes());
            assert_eq!(shown, written);
        }
    }

    #[test]
    fn a_display_without_end_is_counted_and_not_kept() {
        let mut buffer = Vec::new();
        let total = write_framed_display(&mut buffer, &"x".repeat(1 << 20), 100);
        assert_eq!(total, Ok(1 << 20));
        assert_eq!(buffer, [0]);
    }
}
