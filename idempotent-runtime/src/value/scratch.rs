//! A buffer of each thread, for bytes that are needed for a moment.

use std::cell::Cell;

/// How many bytes a thread keeps at hand.
const KEPT: usize = 4 * 1024;

thread_local! {
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Calls `work` with an empty buffer. Inside of such a call, it is another one.
pub(crate) fn with_scratch<T>(work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    // A thread that ends has none.
    let mut buffer = BUFFER.try_with(Cell::take).unwrap_or_default();
    buffer.clear();
    let result = work(&mut buffer);
    if buffer.capacity() <= KEPT {
        let _ended = BUFFER.try_with(|place| place.set(buffer));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_empty_also_inside_of_another_one() {
        with_scratch(|outer| {
            outer.extend_from_slice(b"outer");
            with_scratch(|inner| {
                assert!(inner.is_empty());
                inner.extend_from_slice(b"inner");
            });
            assert_eq!(outer, b"outer");
        });
        with_scratch(|again| assert!(again.is_empty()));
    }

    #[test]
    fn a_large_buffer_is_not_kept() {
        with_scratch(|buffer| buffer.resize(KEPT + 1, 0));
        with_scratch(|buffer| assert!(buffer.capacity() <= KEPT));
    }
}
