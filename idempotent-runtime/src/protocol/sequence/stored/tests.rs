use super::*;
use crate::{
    framing::Hex,
    protocol::sample,
    record::{AttemptId, FencingToken, TokenRule, Version},
};

const NOW: Time = Time::from_micros(1_000_000);

fn fingerprint(byte: u8) -> Fingerprint {
    Fingerprint::from_bytes([byte; 32])
}

fn applied(answer: CopyAnswer) -> Option<Applied> {
    Some(Applied {
        number: 2,
        fingerprint: fingerprint(2),
        answer,
    })
}

fn running(state: NumberState, passed: Option<Passed>) -> Option<BegunNumber> {
    Some(BegunNumber {
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

fn value() -> LastValue {
    LastValue {
        schema: 7,
        bytes: Bytes::from_static(b"receipt"),
    }
}

/// A stream that holds this, with and without an end.
fn stored(
    last: Option<Applied>,
    running: Option<BegunNumber>,
    expires: Option<Time>,
) -> StoredStream {
    StoredStream {
        stream: Stream {
            version: Version::from_u128(5),
            token: FencingToken::from_u64(9),
            last,
            running,
            attempt_id: AttemptId::from_u128(6),
            lease_end: NOW.plus(Duration::from_secs(30)),
            expires,
        },
        value: last.map_or_else(LastValue::default, |_| value()),
        failing: None,
    }
}

/// Writes all of it as a draft over itself.
fn record(of: &StoredStream) -> Record {
    let stream = &of.stream;
    let claim = sample::claim(stream.attempt_id, OnCrash::Rerun);
    let draft = StreamDraft {
        version: stream.version,
        token: TokenRule::Above(FencingToken::from_u64(8)),
        last: LastChange::Keep,
        running: stream.running,
        attempt_id: stream.attempt_id,
        lease: Moment::In(stream.lease_end.since(NOW)),
        expires: stream.expires.map(|expires| Moment::In(expires.since(NOW))),
    };
    let subject = Some(claim.subject);
    let draft = StoredStream::draft(
        Some(of),
        &draft,
        subject,
        claim.holder,
        LastValue::default(),
    );
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
    let answers = kinds.map(CopyAnswer::Recorded);
    let lasts = answers
        .into_iter()
        .chain([CopyAnswer::Skipped])
        .map(applied);
    let states = [
        NumberState::Running,
        NumberState::Uncertain,
        NumberState::Parked,
    ];
    for last in lasts.chain([None]) {
        let runnings = states.map(|state| running(state, passed()));
        let plain = states.map(|state| running(state, None));
        for running in runnings.into_iter().chain(plain).chain([None]) {
            for expires in [None, Some(NOW.plus(Duration::from_secs(60)))] {
                let stored = stored(last, running, expires);
                assert_eq!(StoredStream::read(&record(&stored)), Ok(stored));
            }
        }
    }
}

#[test]
fn the_layout_stays_as_it_is() {
    let kind = CopyAnswer::Recorded(OutcomeKind::Value);
    let stored = stored(applied(kind), running(NumberState::Running, passed()), None);
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
    let kind = CopyAnswer::Recorded(OutcomeKind::Value);
    let before = stored(applied(kind), None, None);
    let claim = sample::claim(AttemptId::from_u128(6), OnCrash::Rerun);
    for (last, expected, bytes) in [
        (LastChange::Keep, before.stream.last, &b"receipt"[..]),
        (
            LastChange::Moves(Applied {
                number: 3,
                ..applied(kind).expect("one")
            }),
            Some(Applied {
                number: 3,
                ..applied(kind).expect("one")
            }),
            b"moved",
        ),
        (LastChange::Forget, None, b""),
    ] {
        let draft = StreamDraft {
            last,
            ..before.stream.touched(Version::from_u128(8))
        };
        let moved = LastValue {
            schema: 1,
            bytes: Bytes::from_static(b"moved"),
        };
        let draft = StoredStream::draft(Some(&before), &draft, None, claim.holder.clone(), moved);
        let after = draft.apply(Some(&record(&before)), NOW);
        let after = StoredStream::read(&after).expect("a stream");
        assert_eq!(after.stream.last, expected);
        assert_eq!(&after.value.bytes[..], bytes);
    }
}

#[test]
fn what_is_no_stream_of_this_build_is_damaged() {
    let kind = CopyAnswer::Recorded(OutcomeKind::Value);
    let whole = record(&stored(
        applied(kind),
        running(NumberState::Running, passed()),
        None,
    ));
    let outcome = whole.outcome.clone().expect("an outcome");
    let with = |change: &dyn Fn(&mut Record)| {
        let mut record = whole.clone();
        change(&mut record);
        StoredStream::read(&record)
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
