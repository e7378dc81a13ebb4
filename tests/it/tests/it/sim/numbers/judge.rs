//! Asks every promise of sequences of what was written, done and told.

use std::collections::{BTreeMap, HashMap, HashSet};

use idempotent_runtime::{
    OnCrash,
    protocol::sequence::{BegunNumber, CopyAnswer as Kept, NumberState, StoredStream, Stream},
    record::{AttemptId, OutcomeKind},
    sequence::Decision,
};

use super::worker::{Answer, LAST, Note, Rules, Told};
use crate::{
    scripts::Say,
    sim::{LEASE, kept::Entry, stage::Unrecorded},
    tally::Tally,
};

/// All that is known of a simulation that is over.
pub(super) struct Evidence {
    pub(super) ledger: Vec<Entry>,
    pub(super) notes: Vec<Note>,
    pub(super) rules: Vec<Rules>,
    pub(super) unrecorded: Vec<Unrecorded>,
}

/// One write of a stream.
struct Write<'a> {
    entry: &'a Entry,
    stream: u32,
    before: Option<StoredStream>,
    after: StoredStream,
}

impl Write<'_> {
    fn last(stored: Option<&StoredStream>) -> u64 {
        let last = stored.and_then(|stored| stored.stream.last);
        last.map_or(0, |last| last.number)
    }

    fn claims(&self) -> bool {
        let before = self.before.as_ref().map(|before| before.stream.token);
        before != Some(self.after.stream.token) && self.after.stream.running.is_some()
    }
}

impl Evidence {
    pub(super) fn judge(&self, about: &str) {
        let writes = self.writes();
        for write in &writes {
            let about = format!("{about}: {:?}", write.entry);
            self.judge_write(write, &about);
        }
        self.judge_bodies(&writes, about);
        let mut applied = HashSet::new();
        for note in &self.notes {
            if let Note::Told(told) = note {
                self.judge_answer(&writes, told, &format!("{about}: {told:?}"));
                if let Answer::Decided(Decision::Applied(_)) = told.answer {
                    let is_first = applied.insert((told.stream, told.number));
                    assert!(is_first, "applied twice: {about}: {told:?}");
                }
            }
        }
        for stream in 0..self.rules.len() {
            let of_it = writes.iter().filter(|it| it.stream as usize == stream);
            let last = of_it.map(|it| Write::last(Some(&it.after))).next_back();
            assert_eq!(last, Some(LAST), "{about}: stream {stream} came to its end");
        }
    }

    /// Every write, with those in between that are of no stream left out: there are none.
    fn writes(&self) -> Vec<Write<'_>> {
        let read = |entry| {
            let entry: &Entry = entry;
            // A purge removes a stream in which nothing ever ended, and none other.
            let after = entry.after.as_ref().or(entry.before.as_ref());
            let after = after.expect("one of them is a record");
            let stream = StoredStream::read(after).expect("a stream").stream;
            let is_empty = stream.last.is_none() && stream.running.is_none();
            assert!(entry.after.is_some() || is_empty, "forgotten: {entry:?}");
            let before = entry.before.as_deref().map(StoredStream::read);
            Write {
                entry,
                stream: entry.token(after).0,
                before: before.map(|before| before.expect("a stream")),
                after: StoredStream::read(after).expect("a stream"),
            }
        };
        self.ledger.iter().map(read).collect()
    }

    fn judge_write(&self, write: &Write<'_>, about: &str) {
        let rules = self.rules[write.stream as usize];
        let (before, after) = (write.before.as_ref(), &write.after);
        let (from, to) = (Write::last(before), Write::last(Some(after)));
        let moves = match rules.accepts_gaps {
            true => from <= to,
            false => from == to || from + 1 == to,
        };
        assert!(moves, "it moved from {from} to {to}: {about}");
        let running = before.and_then(|before| before.stream.running);
        if write.claims() {
            let number = after.stream.running.map_or(0, |it| it.number);
            let is_next = number == to + 1 || rules.accepts_gaps && number > to;
            assert!(is_next && from == to, "{number} came behind {to}: {about}");
            let is_free = running.is_none_or(|running| self.is_free(write, &running, number));
            assert!(is_free, "it was not free: {about}");
        }
        if let (true, Some(before)) = (from == to && from > 0, before) {
            let same = before.stream.last == after.stream.last && before.value == after.value;
            let was = before.stream.last.is_some_and(|last| last.lacks_outcome());
            assert!(same || was, "an outcome was changed: {about}");
        }
        if from < to {
            self.judge_move(write, about);
        } else if let (Some(running), None) = (running, after.stream.running) {
            let is_settled = running.state != NumberState::Running
                || write
                    .entry
                    .before
                    .as_deref()
                    .is_some_and(|it| it.lease_is_over(write.entry.at));
            let under = (write.stream, after.stream.token.as_u64());
            let said = self.said(under);
            let nothing = said.is_some_and(|(_, say)| say == Some(Say::Nothing));
            assert!(
                is_settled || nothing || !self.began(under),
                "released although something may have happened: {about}"
            );
        }
    }

    /// Whether this number may be claimed beside the one that stands.
    fn is_free(&self, write: &Write<'_>, running: &BegunNumber, number: u64) -> bool {
        let rules = self.rules[write.stream as usize];
        let before = write.entry.before.as_deref();
        let is_over = before.is_some_and(|it| it.lease_is_over(write.entry.at));
        let goes_on = running.number == number || rules.accepts_gaps && running.number < number;
        // The answer to a claim may have been lost, and the same attempt claimed again.
        let is_again = before.is_some_and(|before| {
            before.attempt_id == write.after.stream.attempt_id
                && !self.began((write.stream, before.token.as_u64()))
        });
        is_again
            || is_over
                && goes_on
                && running.state == NumberState::Running
                && rules.on_crash == OnCrash::Rerun
    }

    /// A number that moves the stream has had its effect, or an operator said so.
    fn judge_move(&self, write: &Write<'_>, about: &str) {
        let last = write.after.stream.last.expect("it moved");
        let under = (write.stream, write.after.stream.token.as_u64());
        match last.answer {
            Kept::Recorded(OutcomeKind::Value | OutcomeKind::Error) => {
                let is_it = self.said(under).is_some_and(|(stored, say)| {
                    stored.as_bytes() == &write.after.value.bytes[..]
                        && matches!(say, None | Some(Say::Declined))
                });
                assert!(is_it, "nobody said so: {about}");
            }
            _ => {
                // A number that was put back meanwhile is skipped as one that never comes.
                let is_it = write
                    .before
                    .as_ref()
                    .is_some_and(|before| match before.stream {
                        Stream {
                            running: Some(running),
                            ..
                        } => running.number == last.number,
                        Stream { last: earlier, .. } => {
                            earlier.is_none_or(|it| it.number < last.number)
                        }
                    });
                assert!(is_it, "an operator settled another number: {about}");
            }
        }
    }

    fn said(&self, of: (u32, u64)) -> Option<(&str, Option<Say>)> {
        self.notes.iter().find_map(|note| match note {
            Note::Ended { under, stored, say } if *under == of => Some((&**stored, *say)),
            _ => None,
        })
    }

    fn began(&self, of: (u32, u64)) -> bool {
        let is_it = |note: &Note| matches!(note, Note::Began { under, .. } if *under == of);
        self.notes.iter().any(is_it)
    }

    /// Each body has a token of its own, is that of the number which is claimed under it, and
    /// begins while its lease stands. In the order of the tokens the log is the sequence.
    fn judge_bodies(&self, writes: &[Write<'_>], about: &str) {
        let mut claims: HashMap<_, (u64, AttemptId)> = HashMap::new();
        for write in writes.iter().filter(|write| write.claims()) {
            let number = write.after.stream.running.map_or(0, |it| it.number);
            let claim = (number, write.after.stream.attempt_id);
            claims
                .entry((write.stream, write.after.stream.token.as_u64()))
                .or_insert(claim);
        }
        let mut log = BTreeMap::new();
        for note in &self.notes {
            let Note::Began {
                under,
                number,
                timer,
                writes: at,
            } = note
            else {
                continue;
            };
            let (claimed, attempt) = claims[under];
            assert_eq!(claimed, *number, "another number: {about}: {note:?}");
            let own = writes[..*at].iter();
            let own = own.filter(|write| write.after.stream.attempt_id == attempt);
            let since = own.map(|write| write.entry.since).max();
            let ends = since.unwrap_or_default() + LEASE;
            assert!(*timer < ends, "behind its lease: {about}: {note:?}");
            let before = log.insert(*under, *number);
            assert_eq!(
                before, None,
                "two bodies under one token: {about}: {note:?}"
            );
        }
        let mut last = BTreeMap::new();
        for ((stream, _), number) in log {
            let before = last.insert(stream, number).unwrap_or_default();
            // One that passed another one, and was released, leaves the other one to come again.
            let may_pass = self.rules[stream as usize].accepts_gaps;
            assert!(
                may_pass || before <= number,
                "{about}: {number} behind {before} of {stream}"
            );
        }
    }

    /// Whether a worker may have been told this.
    fn judge_answer(&self, writes: &[Write<'_>], told: &Told, about: &str) {
        let stood: Vec<_> = {
            let mut before = writes[..told.from].iter();
            let before = before.rfind(|write| write.stream == told.stream);
            let during = writes[told.from..told.to].iter();
            let during = during.filter(|write| write.stream == told.stream);
            before.into_iter().chain(during).collect()
        };
        let last = |write: &&&Write<'_>| Write::last(Some(&write.after));
        let is_kept = |stored: &str| {
            let mut of_it = stood.iter().filter(|write| last(write) == told.number);
            of_it.any(|write| write.after.value.bytes[..] == *stored.as_bytes())
        };
        let value = |value: &String| serde_json::to_string(value).expect("a text");
        match &told.answer {
            Answer::Decided(Decision::Applied(text)) => {
                let anywhere = writes[..told.to].iter().any(|write| {
                    write.stream == told.stream
                        && Write::last(Some(&write.after)) == told.number
                        && write.after.value.bytes[..] == *value(text).as_bytes()
                });
                assert!(anywhere, "it is not recorded: {about}");
            }
            Answer::Decided(Decision::Replayed(text)) => {
                assert!(is_kept(&value(text)), "it does not stand: {about}");
            }
            Answer::Decided(Decision::Past { last: said }) => {
                let is_past = *said >= told.number && stood.iter().any(|it| last(&it) == *said);
                assert!(is_past, "it is not past: {about}");
            }
            Answer::Decided(Decision::Gap { expected, got }) => {
                let mut earlier = writes[..told.from].iter();
                let is_missing = stood.iter().any(|it| last(&it) + 1 == *expected)
                    || *expected == 1 && earlier.all(|it| it.stream != told.stream);
                let accepts = self.rules[told.stream as usize].accepts_gaps;
                assert!(
                    is_missing && expected < got && *got == told.number && !accepts,
                    "nothing is missing: {about}"
                );
            }
            Answer::Declined(stored, Say::Declined) => {
                let is_known = is_kept(stored) || self.is_unrecorded(told, &stood, stored);
                assert!(is_known, "an error that does not stand: {about}");
            }
            Answer::Declined(..) | Answer::Refused(_) | Answer::Nothing => {}
        }
    }

    /// A worker is told its own error before that is recorded, if the store does not answer.
    fn is_unrecorded(&self, told: &Told, stood: &[&Write<'_>], stored: &str) -> bool {
        let is_own = |note: &Note| matches!(note, Note::Ended { stored: own, .. } if own == stored);
        let is_of_it = |it: &Unrecorded| {
            let is_meanwhile = (told.from..=told.to).contains(&it.at);
            is_meanwhile && stood.iter().any(|write| write.entry.id == it.id)
        };
        self.notes.iter().any(is_own) && self.unrecorded.iter().any(is_of_it)
    }

    pub(super) fn count(&self, tally: &mut Tally) {
        for write in self.writes() {
            let running = write.before.as_ref().and_then(|it| it.stream.running);
            let last = write.after.stream.last.map(|last| last.answer);
            let moves = Write::last(write.before.as_ref()) < Write::last(Some(&write.after));
            tally.saw(match (running, last) {
                (_, Some(Kept::Skipped)) if moves => "a number used up by an operator",
                (_, Some(Kept::Recorded(OutcomeKind::Error))) if moves => "an error recorded",
                (Some(_), _) if write.after.passes() => "a number that passed another one",
                (Some(_), _) if write.claims() => "a takeover",
                (Some(_), _) if !moves && write.after.stream.running.is_none() => {
                    "a number released"
                }
                _ => "another write",
            });
        }
        for note in &self.notes {
            tally.saw(match note {
                Note::Began { .. } => "a body",
                Note::Ended { .. } => "an end of a body",
                Note::Told(told) => match &told.answer {
                    Answer::Decided(Decision::Applied(_)) => "a number applied",
                    Answer::Decided(Decision::Replayed(_)) => "a number replayed",
                    Answer::Decided(Decision::Past { .. }) => "a number that is past",
                    Answer::Decided(Decision::Gap { .. }) => "a gap",
                    Answer::Declined(..) => "an error",
                    Answer::Refused(kind) => kind,
                    Answer::Nothing => "no answer",
                },
            });
        }
    }
}
