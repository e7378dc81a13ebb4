use super::*;
use crate::{
    protocol::{ClaimDecision, decide, first, sample},
    record::Time,
};

const LEASE: Duration = Duration::from_secs(30);

fn claim(attempt_id: u128, on_crash: OnCrash) -> Claim {
    Claim {
        ttl: LEASE,
        ..sample::claim(AttemptId::from_u128(attempt_id), on_crash)
    }
}

#[test]
fn an_uncertain_verdict_leaves_the_stricter_choice_of_a_caller_that_left_it_uncertain_before() {
    let start = Time::from_micros(1_000_000);
    let (lax, strict) = (claim(1, OnCrash::Rerun), claim(2, OnCrash::Uncertain));
    let begun = first(&lax, Version::from_u128(1)).apply(None, start);
    let holding = Holding::new(&lax, 1, OnCrash::Rerun, Meaning::Fresh);
    let late = Snapshot {
        now: start.plus(LEASE),
        record: Some(Arc::new(begun.clone())),
    };
    let ClaimDecision::Write { draft: left, .. } = decide(&strict, &late, || Version::from_u128(2))
    else {
        panic!("a lease that is over is not in progress")
    };
    let left = Arc::new(left.apply(Some(&begun), late.now));
    assert_eq!(
        (left.state, left.on_crash),
        (State::Uncertain, OnCrash::Uncertain)
    );

    let snapshot = Snapshot {
        now: late.now,
        record: Some(Arc::clone(&left)),
    };
    let refusal = holding.refused(&Ending::Uncertain, &snapshot);

    assert_eq!(refusal, Refusal::Stands(left));
}

#[test]
fn who_never_began_frees_what_a_stricter_caller_left_uncertain_meanwhile() {
    let holding = Holding::new(
        &claim(1, OnCrash::Uncertain),
        1,
        OnCrash::Uncertain,
        Meaning::Fresh,
    );
    let left = holding.end(&Ending::Uncertain, Version::from_u128(2));
    let begun = first(&claim(1, OnCrash::Uncertain), Version::from_u128(1));
    let now = Time::from_micros(1);
    let left = left.apply(Some(&begun.apply(None, now)), now);
    let snapshot = Snapshot {
        now,
        record: Some(Arc::new(left)),
    };

    for (ending, is_free) in [
        (Ending::Unpolled, true),
        (Ending::Release, true),
        (Ending::Stopped, false),
    ] {
        let again = Refusal::Again(Version::from_u128(2));
        let refusal = holding.refused(&ending, &snapshot);
        assert_eq!(refusal == again, is_free, "{ending:?}: {refusal:?}");
    }
}

#[test]
fn a_release_stays_for_the_ttl_where_a_body_ran_and_else_for_a_lease() {
    let claim = Claim {
        ttl: 24 * LEASE,
        ..claim(1, OnCrash::Rerun)
    };
    let begun = Holding::new(&claim, 1, OnCrash::Rerun, Meaning::Fresh);
    for (ending, stays) in [(Ending::Release, claim.ttl), (Ending::Unpolled, LEASE)] {
        let draft = begun.end(&ending, Version::from_u128(2));
        assert_eq!(
            (draft.state, draft.expires),
            (State::Released, Moment::In(stays))
        );
    }
}

#[test]
fn what_a_holder_leaves_to_the_next_one_says_how_long_its_outcome_would_have_stayed() {
    let claim = Claim {
        ttl: LEASE / 6,
        ..claim(1, OnCrash::Rerun)
    };
    let begun = first(&claim, Version::from_u128(1)).apply(None, Time::from_micros(1));
    for (meaning, ending) in [
        (Meaning::Fresh, Ending::Stopped),
        (Meaning::Takeover, Ending::Unpolled),
        (Meaning::Takeover, Ending::Release),
    ] {
        let holding = Holding::new(&claim, 2, OnCrash::Rerun, meaning);
        let left = holding.end(&ending, Version::from_u128(2));
        let left = left.apply(Some(&begun), Time::from_micros(2));
        assert_eq!(left.ttl(), claim.ttl, "{ending:?}");
    }
}
