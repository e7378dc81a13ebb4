//! A stream, as a store keeps it: the outcome of a record holds what a record has no field for.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;

use super::{Answer, Applied, Draft, Last, Passed, Running, Standing, Stream};
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The stream.
    pub stream: Stream,
    /// The outcome of the last number; empty where there is none.
    pub value: Value,
}

/// The bytes of an outcome. Its kind stands in the stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Value {
    /// The schema version of the bytes.
    pub schema: u32,
    /// The encoded value or error.
    pub bytes: Bytes,
}

/// A record that is no stream, or one that this build cannot read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the record is no stream that this build can read")
    }
}

impl std::error::Error for Damaged {}

impl Stored {
    /// Reads the stream of a record.
    ///
    /// # Errors
    ///
    /// Where the record is that of a plain call, or of a later build, or damaged.
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
            false => (None, Value::default()),
        };
        let running = match (has(HAS_RUNNING), standing(record.state)) {
            (true, Some(state)) => Some(Running {
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
        Ok(Self { stream, value })
    }

    /// The draft of the record, as a holder asks a store to write it over this stream. `subject` is
    /// that of a number which begins; `moved` is the outcome of a number that ends.
    #[must_use]
    pub fn draft(
        before: Option<&Self>,
        draft: &Draft,
        subject: Option<Arc<Subject>>,
        holder: Holder,
        moved: Value,
    ) -> RecordDraft {
        let none = Value::default();
        let (last, value) = match &draft.last {
            Last::Keep => before.map_or((None, &none), |it| (it.stream.last, &it.value)),
            Last::Moves(applied) => (Some(*applied), &moved),
            Last::Forget => (None, &none),
        };
        let running = draft.running.as_ref();
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
        }
    }
}

/// A hundred years are for ever: they begin anew at each write.
fn stands_at_all(record: &Record) -> Option<Time> {
    let far = record.lease_end.plus(FOR_EVER / 2);
    (record.expires < far).then_some(record.expires)
}

fn standing(state: State) -> Option<Standing> {
    match state {
        State::Running => Some(Standing::Running),
        State::Uncertain => Some(Standing::Uncertain),
        State::Parked => Some(Standing::Parked),
        State::Done | State::Released => None,
    }
}

fn state(last: Option<Applied>, running: Option<&Running>) -> State {
    match (running.map(|running| running.state), last) {
        (Some(Standing::Running), _) => State::Running,
        (Some(Standing::Uncertain), _) => State::Uncertain,
        (Some(Standing::Parked), _) => State::Parked,
        (None, Some(_)) => State::Done,
        (None, None) => State::Released,
    }
}

fn write(last: Option<Applied>, value: &Value, running: Option<&Running>) -> Vec<u8> {
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
            Answer::Recorded(kind) => kind.code(),
            Answer::Skipped => SKIPPED,
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

fn read_last(bytes: &mut Bytes) -> Result<(Option<Applied>, Value), Damaged> {
    let number = u64::from_be_bytes(take(bytes)?);
    let fingerprint = Fingerprint::from_bytes(take(bytes)?);
    let answer = match take(bytes)? {
        [SKIPPED] => Answer::Skipped,
        [code] => match OutcomeKind::from_code(code) {
            Some(OutcomeKind::Stream) | None => return Err(Damaged),
            Some(kind) => Answer::Recorded(kind),
        },
    };
    let schema = u32::from_be_bytes(take(bytes)?);
    let length = u32::from_be_bytes(take(bytes)?) as usize;
    if bytes.len() < length {
        return Err(Damaged);
    }
    let value = Value {
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
mod tests {
    use super::*;
    use crate::{
        framing::Hex,
        lease::sample,
        record::{AttemptId, FencingToken, TokenRule, Version},
    };

    const NOW: Time = Time::from_micros(1_000_000);

    fn fingerprint(byte: u8) -> Fingerprint {
        Fingerprint::from_bytes([byte; 32])
    }

    fn applied(answer: Answer) -> Option<Applied> {
        Some(Applied {
            number: 2,
            fingerprint: fingerprint(2),
            answer,
        })
    }

    fn running(state: Standing, passed: Option<Passed>) -> Option<Running> {
        Some(Running {
            number: 4,
            fingerprint: fingerprint(4),
            state,
            on_crash: OnCrash::Rerun,
            takeovers: 3,
            passed,
        })
    }

    fn passed() -> Option<Passed> {
        Some(Passed {
            number: 3,
            fingerprint: fingerprint(3),
            takeovers: 1,
        })
    }

    fn value() -> Value {
        Value {
            schema: 7,
            bytes: Bytes::from_static(b"receipt"),
        }
    }

    /// A stream that holds this, with and without an end.
    fn stored(last: Option<Applied>, running: Option<Running>, expires: Option<Time>) -> Stored {
        Stored {
            stream: Stream {
                version: Version::from_u128(5),
                token: FencingToken::from_u64(9),
                last,
                running,
                attempt_id: AttemptId::from_u128(6),
                lease_end: NOW.plus(Duration::from_secs(30)),
                expires,
            },
            value: last.map_or_else(Value::default, |_| value()),
        }
    }

    /// Writes all of it as a draft over itself.
    fn record(of: &Stored) -> Record {
        let stream = &of.stream;
        let claim = sample::claim(stream.attempt_id, OnCrash::Rerun);
        let draft = Draft {
            version: stream.version,
            token: TokenRule::Above(FencingToken::from_u64(8)),
            last: Last::Keep,
            running: stream.running,
            attempt_id: stream.attempt_id,
            lease: Moment::In(stream.lease_end.since(NOW)),
            expires: stream.expires.map(|expires| Moment::In(expires.since(NOW))),
        };
        let subject = Some(claim.subject);
        let draft = Stored::draft(Some(of), &draft, subject, claim.holder, Value::default());
        let mut record = draft.apply(None, NOW);
        record.token = stream.token;
        record
    }

    #[test]
    fn every_stream_is_read_as_it_was_written() {
        let kinds = [
            OutcomeKind::Value,
            OutcomeKind::Error,
            OutcomeKind::NotReplayable,
        ];
        let answers = kinds.map(Answer::Recorded);
        let lasts = answers.into_iter().chain([Answer::Skipped]).map(applied);
        let states = [Standing::Running, Standing::Uncertain, Standing::Parked];
        for last in lasts.chain([None]) {
            let runnings = states.map(|state| running(state, passed()));
            let plain = states.map(|state| running(state, None));
            for running in runnings.into_iter().chain(plain).chain([None]) {
                for expires in [None, Some(NOW.plus(Duration::from_secs(60)))] {
                    let stored = stored(last, running, expires);
                    assert_eq!(Stored::read(&record(&stored)), Ok(stored));
                }
            }
        }
    }

    #[test]
    fn the_layout_stays_as_it_is() {
        let kind = Answer::Recorded(OutcomeKind::Value);
        let stored = stored(applied(kind), running(Standing::Running, passed()), None);
        let outcome = record(&stored).outcome.expect("an outcome");
        assert_eq!((outcome.kind.code(), outcome.schema), (4, 1));
        let (two, three, four) = ("02".repeat(32), "03".repeat(32), "04".repeat(32));
        let expected = format!(
            "07\
             0000000000000002{two}0100000007000000077265636569707400\
             00000000000004{four}\
             0000000000000003{three}00000001"
        );
        assert_eq!(Hex(&outcome.bytes).to_string(), expected);
    }

    #[test]
    fn the_last_number_stays_until_it_is_moved_or_forgotten() {
        let kind = Answer::Recorded(OutcomeKind::Value);
        let before = stored(applied(kind), None, None);
        let claim = sample::claim(AttemptId::from_u128(6), OnCrash::Rerun);
        for (last, expected, bytes) in [
            (Last::Keep, before.stream.last, &b"receipt"[..]),
            (
                Last::Moves(Applied {
                    number: 3,
                    ..applied(kind).expect("one")
                }),
                Some(Applied {
                    number: 3,
                    ..applied(kind).expect("one")
                }),
                b"moved",
            ),
            (Last::Forget, None, b""),
        ] {
            let draft = Draft {
                last,
                ..before.stream.touched(Version::from_u128(8))
            };
            let moved = Value {
                schema: 1,
                bytes: Bytes::from_static(b"moved"),
            };
            let draft = Stored::draft(Some(&before), &draft, None, claim.holder.clone(), moved);
            let after = draft.apply(Some(&record(&before)), NOW);
            let after = Stored::read(&after).expect("a stream");
            assert_eq!(after.stream.last, expected);
            assert_eq!(&after.value.bytes[..], bytes);
        }
    }

    #[test]
    fn what_is_no_stream_of_this_build_is_damaged() {
        let kind = Answer::Recorded(OutcomeKind::Value);
        let whole = record(&stored(
            applied(kind),
            running(Standing::Running, passed()),
            None,
        ));
        let outcome = whole.outcome.clone().expect("an outcome");
        let with = |change: &dyn Fn(&mut Record)| {
            let mut record = whole.clone();
            change(&mut record);
            Stored::read(&record)
        };
        for length in 0..outcome.bytes.len() {
            let short = RawOutcome {
                bytes: outcome.bytes.slice(..length),
                ..outcome.clone()
            };
            assert_eq!(with(&|it| it.outcome = Some(short.clone())), Err(Damaged));
        }
        let mut long = outcome.bytes.to_vec();
        long.push(0);
        let mut unknown = outcome.bytes.to_vec();
        unknown[0] |= 8;
        for bytes in [long, unknown] {
            let other = RawOutcome {
                bytes: bytes.into(),
                ..outcome.clone()
            };
            assert_eq!(with(&|it| it.outcome = Some(other.clone())), Err(Damaged));
        }
        assert_eq!(with(&|it| it.state = State::Done), Err(Damaged));
        assert_eq!(with(&|it| it.outcome = None), Err(Damaged));
        let plain = RawOutcome::value("receipt").with_schema(LAYOUT);
        assert_eq!(with(&|it| it.outcome = Some(plain.clone())), Err(Damaged));
        let later = outcome.with_schema(LAYOUT + 1);
        assert_eq!(with(&|it| it.outcome = Some(later.clone())), Err(Damaged));
    }
}
