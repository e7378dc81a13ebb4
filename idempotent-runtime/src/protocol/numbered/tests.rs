//! Numbers as records: the facts that a claim writes down, and that a holder reads back.

use super::*;
use crate::{
    fingerprint::Arguments,
    protocol::sample,
    record::{AttemptId, RawOutcome},
};

const NOW: Time = Time::from_micros(1_000_000);

/// A claim of `number`, by the call `attempt_id`.
fn claim(number: u64, attempt_id: u128, (amount, order): (u32, &str)) -> Claim {
    let mut arguments = Arguments::new();
    arguments.argument("amount", &amount);
    arguments.argument("order", order);
    let claim = sample::claim(AttemptId::from_u128(attempt_id), OnCrash::Rerun);
    Claim {
        subject: Arc::new(Subject {
            fingerprint: arguments.finish(None).expect("both have an encoding"),
            ..(*claim.subject).clone()
        }),
        numbered: Some(CallNumber {
            number,
            gaps: Gaps::Accept,
            patience: Duration::ZERO,
            expires_after: None,
        }),
        ..claim
    }
}

fn decided(claim: &Claim, record: Option<&Arc<Record>>, now: Time) -> Next {
    let record = record.map(Arc::clone);
    claim.next(&Snapshot { now, record }, || Version::from_u128(2))
}

/// The record that stands after `claim`, and how its caller holds it.
fn held(claim: &Claim, record: Option<&Arc<Record>>, now: Time) -> (Arc<Record>, Holding) {
    let decided = decided(claim, record, now);
    let Next::Decided(ClaimDecision::Write { draft, meaning, .. }) = decided else {
        panic!("{decided:?} writes nothing");
    };
    let stands = Arc::new(draft.apply(record.map(|record| &**record), now));
    let stored = StoredStream::read(&stands).expect("it is a stream");
    let holding = claim.hold(stands.attempt, stands.on_crash, meaning, Some(&stored));
    (stands, holding)
}

fn recorded((record, holding): &(Arc<Record>, Holding), value: &'static str) -> Arc<Record> {
    let done = Ending::Done(RawOutcome::value(value));
    let draft = holding.end(&done, Version::from_u128(3));
    Arc::new(draft.apply(Some(record), NOW))
}

/// A stream whose last number is 1.
fn after_one() -> Arc<Record> {
    recorded(&held(&claim(1, 1, (100, "a")), None, NOW), "first")
}

#[test]
fn mend_41_the_arguments_of_a_number_that_runs_are_named_where_they_differ() {
    let (running, _) = held(&claim(2, 2, (200, "b")), Some(&after_one()), NOW);
    for (arguments, differing) in [
        ((200, "c"), &["order"][..]),
        ((100, "b"), &["amount"]),
        ((100, "a"), &["amount", "order"]),
    ] {
        let other = claim(2, 3, arguments);
        let decided = decided(&other, Some(&running), NOW);
        let Next::Decided(ClaimDecision::KeyReused(stands)) = decided else {
            panic!("{decided:?} for {arguments:?}");
        };
        let theirs = stands.subject.fingerprint.digests();
        assert_eq!(other.subject.fingerprint.differing(&theirs), differing);
    }
}

#[test]
fn mend_41_a_first_attempt_of_a_number_is_no_takeover_and_a_takeover_is_told() {
    let told = |(_, holding): &(Arc<Record>, Holding)| {
        (holding.meaning(), holding.attempt(), holding.passes())
    };
    let first = held(&claim(1, 1, (100, "a")), None, NOW);
    assert_eq!(told(&first), (Meaning::Fresh, 1, false));
    let second = held(&claim(2, 2, (200, "b")), Some(&after_one()), NOW);
    assert_eq!(told(&second), (Meaning::Fresh, 1, false));

    let late = second.0.lease_end;
    let taken = held(&claim(2, 3, (200, "b")), Some(&second.0), late);
    assert_eq!(told(&taken), (Meaning::Takeover, 2, false));
    let passing = held(&claim(3, 4, (300, "c")), Some(&second.0), late);
    assert_eq!(told(&passing), (Meaning::Takeover, 1, true));
}

#[test]
fn mend_41_a_holder_whose_number_was_recorded_meanwhile_answers_with_that_outcome() {
    let arguments = (200, "b");
    let stale = held(&claim(2, 2, arguments), Some(&after_one()), NOW);
    let late = stale.0.lease_end;
    let taken = held(&claim(2, 3, arguments), Some(&stale.0), late);
    let record = recorded(&taken, "theirs");

    let (_, holding) = &stale;
    let answer = holding.answer(&record).expect("its number has an outcome");

    assert_eq!(answer.state, State::Done);
    assert_eq!(answer.outcome, Some(RawOutcome::value("theirs")));
    assert_eq!(holding.answer(&after_one()), None);
    let others = held(&claim(2, 4, (200, "c")), Some(&after_one()), NOW);
    assert_eq!(holding.answer(&recorded(&others, "of others")), None);
}
