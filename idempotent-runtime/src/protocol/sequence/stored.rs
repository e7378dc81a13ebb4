//! A stream, as a store keeps it: the outcome of a record holds what a record has no field for.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;

use super::{
    Applied, BegunNumber, CopyAnswer, FailingNumber, LastChange, NumberState, Passed, Stream,
    StreamDraft,
};
use crate::{
    fingerprint::Fingerprint,
    policy::OnCrash,
    record::{
        Draft as RecordDraft, Holder, Moment, OutcomeKind, RawOutcome, Record, State, Subject, Time,
    },
};

/// The version of the layout. It is the schema of the outcome.
const LAYOUT: u32 = 1;

/// Which parts follow.
const HAS_LAST: u8 = 1;
const HAS_RUNNING: u8 = 2;
const HAS_PASSED: u8 = 4;

/// The code of a number that an operator used up. It is none of an outcome.
const SKIPPED: u8 = 0;

/// A stream that does not expire stands for a hundred years after each write.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// A stream, with the outcome of its last number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StoredStream {
    /// The stream.
    pub stream: Stream,
    /// The outcome of the last number; empty where there is none.
    pub value: LastValue,
    /// The number that fails each time it comes, where the note of the record names one.
    pub failing: Option<Arc<FailingNumber>>,
}

/// The bytes of an outcome. Its kind stands in the stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LastValue {
    /// The schema version of the bytes.
    pub schema: u32,
    /// The encoded value or error.
    pub bytes: Bytes,
}

/// A record that is no stream, or one that this build cannot read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Damaged;

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the record is no stream that this build can read")
    }
}

impl std::error::Error for Damaged {}

impl Record {
    /// Tells whether it is that of a stream in which a number passed a smaller one, whose holder
    /// vanished.
    pub(crate) fn passes(&self) -> bool {
        self.is_stream() && StoredStream::read(self).is_ok_and(|it| it.passes())
    }
}

impl StoredStream {
    /// Reads the stream of a record.
    ///
    /// # Errors
    ///
    /// When the record is that of a plain call, or of a later build, or damaged.
    pub fn read(record: &Record) -> Result<Self, Damaged> {
        let outcome = record.outcome.as_ref().filter(|it| it.schema == LAYOUT);
        let outcome = outcome.filter(|it| it.kind == OutcomeKind::Stream);
        let mut bytes = outcome.ok_or(Damaged)?.bytes.clone();
        let [parts] = take(&mut bytes)?;
        let has = |part: u8| parts & part != 0;
        if parts & !(HAS_LAST | HAS_RUNNING | HAS_PASSED) != 0 {
            return Err(Damaged);
        }
        let (last, value) = match has(HAS_LAST) {
            true => read_last(&mut bytes)?,
            false => (None, LastValue::default()),
        };
        let running = match (has(HAS_RUNNING), standing(record.state)) {
            (true, Some(state)) => Some(BegunNumber {
                number: u64::from_be_bytes(take(&mut bytes)?),
                fingerprint: Fingerprint::from_bytes(take(&mut bytes)?),
                state,
                on_crash: record.on_crash,
                takeovers: record.attempt.saturating_sub(1),
                passed: match has(HAS_PASSED) {
                    true => Some(read_passed(&mut bytes)?),
                    false => None,
                },
            }),
            (false, None) if !has(HAS_PASSED) => None,
            _ => return Err(Damaged),
        };
        if !bytes.is_empty() {
            return Err(Damaged);
        }
        let stream = Stream {
            version: record.version,
            token: record.token,
            last,
            running,
            attempt_id: record.attempt_id,
            lease_end: record.lease_end,
            expires: stands_at_all(record),
        };
        let failing = record
            .note
            .as_deref()
            .and_then(FailingNumber::read)
            .map(Arc::new);
        Ok(Self {
            stream,
            value,
            failing,
        })
    }

    /// Whether the number that runs passed a smaller one, whose holder vanished.
    #[must_use]
    pub fn passes(&self) -> bool {
        let running = self.stream.running;
        running.is_some_and(|running| running.passed.is_some())
    }

    /// The stream that stands once `draft` is written, with the parts that a holder asks for.
    #[must_use]
    pub fn written(draft: &RecordDraft) -> Option<Self> {
        draft.outcome.as_ref()?;
        Self::read(&draft.apply(None, Time::from_micros(0))).ok()
    }

    /// The draft of the record, as a holder asks a store to write it over this stream. `subject` is
    /// that of a number which begins; `moved` is the outcome of a number that ends.
    #[must_use]
    pub fn draft(
        before: Option<&Self>,
        draft: &StreamDraft,
        subject: Option<Arc<Subject>>,
        holder: Holder,
        moved: LastValue,
    ) -> RecordDraft {
        let none = LastValue::default();
        let (last, value) = match &draft.last {
            LastChange::Keep => before.map_or((None, &none), |it| (it.stream.last, &it.value)),
            LastChange::Moves(applied) => (Some(*applied), &moved),
            LastChange::Forget => (None, &none),
        };
        let running = draft.running.as_ref();
        let moves_past = |failing: &FailingNumber| match &draft.last {
            LastChange::Keep => false,
            LastChange::Moves(applied) => subject.is_some() || applied.number >= failing.number,
            LastChange::Forget => true,
        };
        // Once another number is begun, the subject is not that of this one any more.
        let failing = before
            .and_then(|it| it.failing.as_ref())
            .filter(|failing| !moves_past(failing))
            .filter(|failing| running.is_none_or(|it| it.number == failing.number));
        RecordDraft {
            version: draft.version,
            subject,
            state: state(last, running),
            token: draft.token,
            attempt: running.map_or(1, |running| running.takeovers.saturating_add(1)),
            attempt_id: draft.attempt_id,
            holder,
            on_crash: running.map_or(OnCrash::Rerun, |running| running.on_crash),
            lease: draft.lease,
            expires: draft.expires.unwrap_or(Moment::In(FOR_EVER)),
            keep: Duration::ZERO,
            outcome: Some(RawOutcome {
                kind: OutcomeKind::Stream,
                schema: LAYOUT,
                bytes: write(last, value, running).into(),
            }),
            note: failing.map(|failing| Arc::new(failing.note())),
        }
    }
}

/// A hundred years are for ever: they begin anew at each write.
fn stands_at_all(record: &Record) -> Option<Time> {
    let far = record.lease_end.plus(FOR_EVER / 2);
    (record.expires < far).then_some(record.expires)
}

fn standing(state: State) -> Option<NumberState> {
    match state {
        State::Running => Some(NumberState::Running),
        State::Uncertain => Some(NumberState::Uncertain),
        State::Parked => Some(NumberState::Parked),
        State::Done | State::Released | State::Undoing => None,
    }
}

fn state(last: Option<Applied>, running: Option<&BegunNumber>) -> State {
    match (running.map(|running| running.state), last) {
        (Some(NumberState::Running), _) => State::Running,
        (Some(NumberState::Uncertain), _) => State::Uncertain,
        (Some(NumberState::Parked), _) => State::Parked,
        (None, Some(_)) => State::Done,
        (None, None) => State::Released,
    }
}

fn write(last: Option<Applied>, value: &LastValue, running: Option<&BegunNumber>) -> Vec<u8> {
    let passed = running.and_then(|running| running.passed);
    let has = |part: u8, there: bool| if there { part } else { 0 };
    let parts = has(HAS_LAST, last.is_some())
        | has(HAS_RUNNING, running.is_some())
        | has(HAS_PASSED, passed.is_some());
    let mut bytes = Vec::with_capacity(128 + value.bytes.len());
    bytes.push(parts);
    if let Some(last) = last {
        bytes.extend(last.number.to_be_bytes());
        bytes.extend(last.fingerprint.as_bytes());
        bytes.push(match last.answer {
            CopyAnswer::Recorded(kind) => kind.code(),
            CopyAnswer::Skipped => SKIPPED,
        });
        bytes.extend(value.schema.to_be_bytes());
        // Values are far shorter: a store takes 64 MiB at most.
        bytes.extend((value.bytes.len() as u32).to_be_bytes());
        bytes.extend(&value.bytes);
    }
    if let Some(running) = running {
        bytes.extend(running.number.to_be_bytes());
        bytes.extend(running.fingerprint.as_bytes());
    }
    if let Some(passed) = passed {
        bytes.extend(passed.number.to_be_bytes());
        bytes.extend(passed.fingerprint.as_bytes());
        bytes.extend(passed.takeovers.to_be_bytes());
    }
    bytes
}

fn read_last(bytes: &mut Bytes) -> Result<(Option<Applied>, LastValue), Damaged> {
    let number = u64::from_be_bytes(take(bytes)?);
    let fingerprint = Fingerprint::from_bytes(take(bytes)?);
    let answer = match take(bytes)? {
        [SKIPPED] => CopyAnswer::Skipped,
        [code] => match OutcomeKind::from_code(code) {
            Some(OutcomeKind::Stream) | None => return Err(Damaged),
            Some(kind) => CopyAnswer::Recorded(kind),
        },
    };
    let schema = u32::from_be_bytes(take(bytes)?);
    let length = u32::from_be_bytes(take(bytes)?) as usize;
    if bytes.len() < length {
        return Err(Damaged);
    }
    let value = LastValue {
        schema,
        bytes: bytes.split_to(length),
    };
    let applied = Applied {
        number,
        fingerprint,
        answer,
    };
    Ok((Some(applied), value))
}

fn read_passed(bytes: &mut Bytes) -> Result<Passed, Damaged> {
    Ok(Passed {
        number: u64::from_be_bytes(take(bytes)?),
        fingerprint: Fingerprint::from_bytes(take(bytes)?),
        takeovers: u32::from_be_bytes(take(bytes)?),
    })
}

fn take<const N: usize>(bytes: &mut Bytes) -> Result<[u8; N], Damaged> {
    if bytes.len() < N {
        return Err(Damaged);
    }
    bytes.split_to(N).as_ref().try_into().map_err(|_| Damaged)
}

#[cfg(test)]
mod tests;
