//! A number that fails, as the note of its stream keeps it: beside the stream's own bytes, which an
//! older build must read.

use std::{sync::Arc, time::Duration};

use super::{LastChange, NumberState, Stream, StreamDraft};
use crate::record::{AttemptId, FencingToken, Moment, Note, Time, TokenRule, Version};

/// The longest name of the type of an error, in bytes.
const LONGEST_KIND: usize = 100;

/// The longest text of an error, in bytes.
const LONGEST_TEXT: usize = 1_000;

/// A number whose calls fail, so that it comes again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct FailingNumber {
    /// The number.
    pub number: u64,
    /// How many attempts have failed in a row. The count begins again at 1 after an operator wrote
    /// a note, after an older build wrote the stream, and after another number of it was begun.
    pub attempts: u32,
    /// The type of the last error, in at most 100 bytes.
    pub kind: Arc<str>,
    /// The last error as it displays itself, in at most 1,000 bytes; `None` unless the sequence
    /// says [`keep_error_text`](crate::sequence::Sequence::keep_error_text).
    pub last_error: Option<Arc<str>>,
}

impl FailingNumber {
    /// The failure of an attempt; `stands` is that of the attempts before it.
    #[must_use]
    pub fn again(number: u64, kind: &str, text: Option<&str>, stands: Option<&Self>) -> Self {
        let before = stands.filter(|stands| stands.number == number);
        Self {
            number,
            attempts: before.map_or(1, |before| before.attempts.saturating_add(1)),
            kind: shortened(kind, LONGEST_KIND).into(),
            last_error: text.map(|text| shortened(text, LONGEST_TEXT).into()),
        }
    }

    /// Reads it from the note of a program; `None` for any other note.
    #[must_use]
    pub fn read(note: &Note) -> Option<Self> {
        if note.by.is_some() {
            return None;
        }
        let (facts, text) = match note.text.split_once('\n') {
            Some((facts, text)) => (facts, Some(text)),
            None => (&*note.text, None),
        };
        let (number, facts) = facts
            .strip_prefix("number ")?
            .split_once(" failed, attempts ")?;
        let (attempts, kind) = facts.split_once(", last with ")?;
        Some(Self {
            number: number.parse().ok()?,
            attempts: attempts.parse().ok()?,
            kind: kind.into(),
            last_error: text.map(Arc::from),
        })
    }

    /// The note that keeps it.
    #[must_use]
    pub fn note(&self) -> Note {
        let Self {
            number,
            attempts,
            kind,
            last_error,
        } = self;
        let mut text = format!("number {number} failed, attempts {attempts}, last with {kind}");
        if let Some(error) = last_error {
            text.push('\n');
            text.push_str(error);
        }
        Note {
            by: None,
            text: text.into(),
        }
    }
}

/// The draft that keeps a failure of `number`, which changes nothing else. `None` where the stream
/// has gone on, or a call holds it: that call writes what is known then.
#[must_use]
pub fn note_failure(
    stream: Option<&Stream>,
    number: u64,
    expires_after: Option<Duration>,
    now: Time,
    version: Version,
) -> Option<StreamDraft> {
    let counted = stream.filter(|stream| !stream.is_expired(now));
    let Some(stream) = counted else {
        // Its transaction left no record, or the one of a stream that has expired.
        let token = stream.map_or(FencingToken::from_u64(0), |old| old.token);
        return Some(StreamDraft {
            version,
            token: TokenRule::Above(token),
            last: LastChange::Forget,
            running: None,
            attempt_id: AttemptId::NOBODY,
            lease: Moment::In(Duration::ZERO),
            expires: expires_after.map(Moment::In),
        });
    };
    let is_left = stream.running.is_none_or(|running| {
        running.number == number
            && running.state == NumberState::Running
            && stream.lease_is_over(now)
    });
    let comes_again = is_left && stream.last.is_none_or(|last| last.number < number);
    comes_again.then(|| stream.touched(version))
}

fn shortened(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_read_back_from_its_note() {
        for text in [None, Some(""), Some("no such\nrow, last with x")] {
            let once = FailingNumber::again(7, "shop::Error", text, None);
            let twice = FailingNumber::again(7, "shop::Error", text, Some(&once));
            assert_eq!((once.attempts, twice.attempts), (1, 2));
            assert_eq!(FailingNumber::read(&twice.note()), Some(twice));
        }
    }

    #[test]
    fn a_failure_of_another_number_begins_anew() {
        let before = FailingNumber::again(7, "shop::Error", None, None);
        let next = FailingNumber::again(8, "shop::Error", None, Some(&before));
        assert_eq!((next.number, next.attempts), (8, 1));
    }

    #[test]
    fn a_failure_is_short_whatever_its_error_says() {
        let long = "ü".repeat(2_000);
        let failing = FailingNumber::again(u64::MAX, &long, Some(&long), None);
        assert_eq!(failing.kind.len(), LONGEST_KIND);
        assert_eq!(
            failing.last_error.map(|text| text.len()),
            Some(LONGEST_TEXT)
        );
    }

    #[test]
    fn no_other_note_is_read_as_a_failure() {
        let by_somebody = Note {
            by: Some("anna".into()),
            ..FailingNumber::again(7, "shop::Error", None, None).note()
        };
        assert_eq!(FailingNumber::read(&by_somebody), None);
        for text in [
            "",
            "number 7",
            "number x failed, attempts 1, last with y",
            "number 7 failed, attempts -1, last with y",
        ] {
            let (by, text) = (None, text.into());
            assert_eq!(FailingNumber::read(&Note { by, text }), None);
        }
    }
}
