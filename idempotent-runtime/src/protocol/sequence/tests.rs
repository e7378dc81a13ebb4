use super::*;

const LEASE: Duration = Duration::from_secs(30);
const NOW: Time = Time::from_micros(1_000_000);
const SECOND: Version = Version::from_u128(2);

fn claim(number: u64, attempt_id: u128) -> StreamClaim {
    StreamClaim {
        number,
        fingerprint: Fingerprint::from_bytes([0; 32]),
        attempt_id: AttemptId::from_u128(attempt_id),
        gaps: Gaps::Refuse(1),
        on_crash: OnCrash::Rerun,
        lease: LEASE,
        expires_after: None,
        max_takeovers: 5,
    }
}

fn with(gaps: Gaps, claim: StreamClaim) -> StreamClaim {
    StreamClaim { gaps, ..claim }
}

fn other_arguments(claim: StreamClaim) -> StreamClaim {
    StreamClaim {
        fingerprint: Fingerprint::from_bytes([1; 32]),
        ..claim
    }
}

fn at_most_once(claim: StreamClaim) -> StreamClaim {
    StreamClaim {
        on_crash: OnCrash::Uncertain,
        ..claim
    }
}

fn decided(claim: &StreamClaim, stream: &Stream, now: Time) -> StreamDecision {
    decide(claim, Some(stream), now, SECOND)
}

/// Writes what `claim` decides over `stream` at `now`, and tells what it meant.
fn written(claim: &StreamClaim, stream: Option<&Stream>, now: Time) -> (Stream, StreamMeaning) {
    let decision = decide(claim, stream, now, SECOND);
    let StreamDecision::Write {
        seen,
        draft,
        meaning,
    } = decision
    else {
        panic!("{decision:?} writes nothing");
    };
    assert_eq!(seen, stream.map(|stream| stream.version));
    (draft.apply(stream, now), meaning)
}

fn begun(claim: &StreamClaim, stream: Option<&Stream>, now: Time) -> Stream {
    written(claim, stream, now).0
}

fn ended_by(claim: &StreamClaim, stream: &Stream, ending: StreamEnding, now: Time) -> Stream {
    let holding = StreamHolding::standing(claim, stream).expect("it stands for this claim");
    holding.end(&ending, SECOND).apply(Some(stream), now)
}

const VALUE: StreamEnding = StreamEnding::Done(OutcomeKind::Value);

/// A stream whose last number is 1.
fn after_one() -> Stream {
    let first = claim(1, 1);
    ended_by(&first, &begun(&first, None, NOW), VALUE, NOW)
}

/// The same, where number 2 is held until a lease after now.
fn while_two() -> Stream {
    begun(&claim(2, 2), Some(&after_one()), NOW)
}

#[test]
fn numbers_up_to_the_last_are_answered_at_once_while_the_next_is_held() {
    for stream in [after_one(), while_two()] {
        assert_eq!(
            decided(&claim(1, 9), &stream, NOW),
            StreamDecision::Replay(OutcomeKind::Value)
        );
        let other = other_arguments(claim(1, 9));
        assert_eq!(decided(&other, &stream, NOW), StreamDecision::KeyReused);
        let smaller = other_arguments(claim(0, 9));
        assert_eq!(
            decided(&smaller, &stream, NOW),
            StreamDecision::Past { last: 1 }
        );
    }
}

#[test]
fn a_recorded_error_moves_the_number_as_a_value_does() {
    let first = claim(1, 1);
    for kind in [OutcomeKind::Error, OutcomeKind::NotReplayable] {
        let stream = ended_by(
            &first,
            &begun(&first, None, NOW),
            StreamEnding::Done(kind),
            NOW,
        );
        assert_eq!(decided(&first, &stream, NOW), StreamDecision::Replay(kind));
    }
}

#[test]
fn the_next_number_and_larger_ones_wait_while_it_is_held() {
    for number in [2, 3, 9] {
        assert_eq!(
            decided(&claim(number, 9), &while_two(), NOW),
            StreamDecision::InProgress(2, LEASE)
        );
    }
    let other = other_arguments(claim(2, 9));
    assert_eq!(
        decided(&other, &while_two(), NOW),
        StreamDecision::KeyReused
    );
    assert_eq!(
        decided(&claim(2, 2), &while_two(), NOW),
        StreamDecision::Mine
    );
}

#[test]
fn a_gap_is_refused_awaited_or_accepted() {
    let (refuses, waits, accepts) = (Gaps::Refuse(1), Gaps::Wait(1), Gaps::Accept);
    let (one, rest) = (claim(5, 9), after_one());
    let gap = StreamDecision::Gap { expected: 2 };
    assert_eq!(decided(&with(refuses, one), &rest, NOW), gap);
    let waiting = StreamDecision::AwaitGap { expected: 2 };
    assert_eq!(decided(&with(waits, one), &rest, NOW), waiting);
    let stream = begun(&with(accepts, one), Some(&rest), NOW);
    assert_eq!(stream.running.map(|running| running.number), Some(5));
    assert_eq!(stream.last.map(|last| last.number), Some(1));
}

#[test]
fn a_stream_begins_with_its_first_number() {
    let decision = |number| decide(&with(Gaps::Refuse(7), claim(number, 1)), None, NOW, SECOND);
    assert_eq!(decision(6), StreamDecision::Past { last: 6 });
    assert!(matches!(
        decision(7),
        StreamDecision::Write { seen: None, .. }
    ));
    assert_eq!(decision(8), StreamDecision::Gap { expected: 7 });
}

#[test]
fn what_did_nothing_puts_back_the_last_number_and_its_arguments_bind_no_more() {
    for ending in [StreamEnding::Release, StreamEnding::Unpolled] {
        let stream = ended_by(&claim(2, 2), &while_two(), ending, NOW);
        assert_eq!((stream.last, stream.running), (after_one().last, None));
        let (_, meaning) = written(&other_arguments(claim(2, 9)), Some(&stream), NOW);
        assert_eq!(meaning, StreamMeaning::Fresh);
    }
}

#[test]
fn a_takeover_that_did_nothing_puts_back_what_the_holder_before_it_left() {
    let late = NOW.plus(LEASE);
    let next = claim(2, 3);
    let (taken, meaning) = written(&next, Some(&while_two()), late);
    assert_eq!(meaning, StreamMeaning::Takeover);
    for ending in [StreamEnding::Release, StreamEnding::Unpolled] {
        let stream = ended_by(&next, &taken, ending, late);
        let running = stream.running.expect("the number stays begun");
        assert_eq!((running.number, running.takeovers), (2, 0));
        let other = other_arguments(claim(2, 9));
        assert_eq!(decided(&other, &stream, late), StreamDecision::KeyReused);
        let (_, meaning) = written(&claim(2, 9), Some(&stream), late);
        assert_eq!(meaning, StreamMeaning::Takeover);
        let holding = StreamHolding::standing(&next, &taken).expect("it stands");
        assert_eq!(
            holding.refused(&ending, Some(&stream)),
            StreamRefusal::Stands
        );
    }
}

#[test]
fn a_body_that_stopped_leaves_its_number_running_with_its_lease_over() {
    let stream = ended_by(&claim(2, 2), &while_two(), StreamEnding::Stopped, NOW);
    assert!(stream.lease_is_over(NOW));
    assert_eq!(
        decided(&claim(3, 9), &stream, NOW),
        StreamDecision::Gap { expected: 2 }
    );
    let (taken, meaning) = written(&claim(2, 9), Some(&stream), NOW);
    assert_eq!(meaning, StreamMeaning::Takeover);
    assert!(taken.token > stream.token);
}

#[test]
fn an_abandoned_number_at_most_once_stops_the_stream_until_it_is_settled() {
    let strict = at_most_once(claim(2, 2));
    let held = begun(&strict, Some(&after_one()), NOW);
    let late = NOW.plus(LEASE);
    for gaps in [Gaps::Refuse(1), Gaps::Wait(1), Gaps::Accept] {
        let larger = with(gaps, claim(3, 9));
        let (left, meaning) = written(&larger, Some(&held), late);
        assert_eq!(meaning, StreamMeaning::LeaveUncertain);
        assert_eq!(decided(&larger, &left, late), StreamDecision::Uncertain(2));
        let replay = StreamDecision::Replay(OutcomeKind::Value);
        assert_eq!(decided(&claim(1, 9), &left, late), replay);
        let done = StreamSettlement::Done(OutcomeKind::Value);
        assert_eq!(settle(&left, 3, &done, late, SECOND), None);
        for (settlement, last) in [(done, 2), (StreamSettlement::Released, 1)] {
            let draft = settle(&left, 2, &settlement, late, SECOND).expect("it is uncertain");
            let settled = draft.apply(Some(&left), late);
            assert_eq!(settled.last.map(|last| last.number), Some(last));
            let holding = StreamHolding::standing(&strict, &held).expect("it was held");
            assert_eq!(holding.refused(&VALUE, Some(&settled)), StreamRefusal::Lost);
        }
    }
}

#[test]
fn a_paused_holder_completes_what_somebody_left_uncertain_and_beats_no_more() {
    let strict = at_most_once(claim(2, 2));
    let held = begun(&strict, Some(&after_one()), NOW);
    let left = begun(&claim(3, 9), Some(&held), NOW.plus(LEASE));
    let holding = StreamHolding::standing(&strict, &held).expect("it was held");
    assert!(holding.may_beat(&held) && !holding.may_beat(&left));
    for ending in [VALUE, StreamEnding::Release, StreamEnding::Unpolled] {
        let again = StreamRefusal::Again(left.version);
        assert_eq!(holding.refused(&ending, Some(&left)), again, "{ending:?}");
    }
    let uncertain = holding.refused(&StreamEnding::Uncertain, Some(&left));
    assert_eq!(uncertain, StreamRefusal::Stands);
}

#[test]
fn each_number_has_a_budget_of_its_own_and_a_parked_one_is_skipped_or_resumed() {
    let spent = |number, attempt_id| StreamClaim {
        max_takeovers: 0,
        ..claim(number, attempt_id)
    };
    let late = NOW.plus(LEASE);
    let (parked, meaning) = written(&spent(2, 9), Some(&while_two()), late);
    assert_eq!(meaning, StreamMeaning::Park);
    assert_eq!(
        decided(&claim(3, 9), &parked, late),
        StreamDecision::Parked(2)
    );
    assert_eq!(skip(&while_two(), 2, NOW, SECOND), None);
    assert_eq!(skip(&parked, 3, late, SECOND), None);

    let draft = skip(&parked, 2, late, SECOND).expect("it is parked");
    let skipped = draft.apply(Some(&parked), late);
    let past = StreamDecision::Past { last: 2 };
    assert_eq!(decided(&claim(2, 9), &skipped, late), past);
    let (third, _) = written(&spent(3, 9), Some(&skipped), late);
    assert_eq!(third.running.map(|running| running.takeovers), Some(0));

    let resume = StreamSettlement::Resumed { max_takeovers: 0 };
    let draft = settle(&parked, 2, &resume, late, SECOND).expect("it is parked");
    let resumed = draft.apply(Some(&parked), late);
    let (_, meaning) = written(&spent(2, 9), Some(&resumed), late);
    assert_eq!(meaning, StreamMeaning::Takeover);
}

#[test]
fn a_larger_number_passes_an_abandoned_one_under_accept_and_rerun_only() {
    let late = NOW.plus(LEASE);
    let accepting = |number, attempt_id| with(Gaps::Accept, claim(number, attempt_id));
    let held = begun(&accepting(5, 2), Some(&after_one()), NOW);
    assert_eq!(
        decided(&accepting(4, 9), &held, late),
        StreamDecision::Overtaken(5)
    );
    let (passed, meaning) = written(&accepting(7, 9), Some(&held), late);
    assert_eq!(meaning, StreamMeaning::Takeover);
    assert_eq!(passed.running.map(|running| running.number), Some(7));
    // The one that was passed may come after all, and goes before what is smaller.
    for ending in [StreamEnding::Release, StreamEnding::Unpolled] {
        let released = ended_by(&accepting(7, 9), &passed, ending, late);
        assert_eq!(released.running, held.running);
        let decision = decided(&accepting(4, 9), &released, late);
        assert_eq!(decision, StreamDecision::Overtaken(5));
        let (_, meaning) = written(&accepting(5, 8), Some(&released), late);
        assert_eq!(meaning, StreamMeaning::Takeover);
    }
}

#[test]
fn a_completion_whose_answer_was_lost_is_recognised_until_the_next_claim() {
    let second = claim(2, 2);
    let holding = StreamHolding::standing(&second, &while_two()).expect("it is held");
    let done = ended_by(&second, &while_two(), VALUE, NOW);
    assert_eq!(holding.refused(&VALUE, Some(&done)), StreamRefusal::Stands);
    assert_eq!(
        holding.refused(&StreamEnding::Release, Some(&done)),
        StreamRefusal::Lost
    );
    let next = begun(&claim(3, 3), Some(&done), NOW);
    assert_eq!(holding.refused(&VALUE, Some(&next)), StreamRefusal::Lost);
}

#[test]
fn a_claim_that_was_given_up_puts_back_what_stood_or_keeps_it_from_changing() {
    let second = claim(2, 2);
    let rest = after_one();
    let apply = |seen, stream: &Stream| {
        let given_up = second.give_up(seen, Some(stream), SECOND);
        given_up.map(|(_, draft)| draft.apply(Some(stream), NOW))
    };
    let put_back = apply(Some(rest.version), &while_two()).expect("it stands");
    assert_eq!((put_back.last, put_back.running), (rest.last, None));
    let touched = apply(Some(rest.version), &rest).expect("it may stand later");
    assert_eq!(
        touched,
        Stream {
            version: SECOND,
            ..rest
        }
    );
    assert_eq!(apply(Some(Version::from_u128(7)), &rest), None);
    let (seen, draft) = second.give_up(None, None, SECOND).expect("it may stand");
    let released = draft.apply(None, NOW);
    assert_eq!((seen, released.last, released.running), (None, None, None));
}

#[test]
fn a_stream_that_has_expired_begins_anew_and_its_tokens_grow() {
    let day = LEASE * 2880;
    let passing = |number| StreamClaim {
        expires_after: Some(day),
        ..claim(number, 1)
    };
    let stream = ended_by(&passing(1), &begun(&passing(1), None, NOW), VALUE, NOW);
    assert_eq!(
        decided(&claim(1, 9), &after_one(), NOW.plus(day)),
        StreamDecision::Replay(OutcomeKind::Value)
    );
    let anew = begun(&passing(1), Some(&stream), NOW.plus(day));
    assert_eq!(anew.last, None);
    assert!(anew.token > stream.token);
}

#[test]
fn the_largest_number_is_followed_by_none() {
    let largest = with(Gaps::Accept, claim(u64::MAX, 1));
    let stream = ended_by(&largest, &begun(&largest, None, NOW), VALUE, NOW);
    assert_eq!(
        decided(&claim(u64::MAX, 9), &stream, NOW),
        StreamDecision::Replay(OutcomeKind::Value)
    );
}

#[test]
fn mend_21_a_number_that_fails_after_a_takeover_is_skipped_where_it_may_run_again() {
    let late = NOW.plus(LEASE);
    let next = claim(2, 3);
    let taken = begun(&next, Some(&while_two()), late);
    assert_eq!(skip(&taken, 2, late, SECOND), None);
    let failed = ended_by(&next, &taken, StreamEnding::Release, late);
    let draft = skip(&failed, 2, late, SECOND).expect("its holder vanished");
    let skipped = draft.apply(Some(&failed), late);
    let past = StreamDecision::Past { last: 2 };
    assert_eq!(decided(&claim(2, 9), &skipped, late), past);

    let held = begun(&at_most_once(claim(2, 2)), Some(&after_one()), NOW);
    assert_eq!(skip(&held, 2, late, SECOND), None);
}

fn next(number: u64, first: Option<u64>, has_failed: bool) -> NextNumber {
    NextNumber {
        number,
        fingerprint: Fingerprint::from_bytes([0; 32]),
        first,
        has_failed,
        expires_after: None,
    }
}

#[test]
fn mend_33_only_the_next_number_is_ended_at_rest() {
    let ends = |stream: Option<&Stream>, next: NextNumber| {
        end_next(stream, &next, CopyAnswer::Skipped, NOW, SECOND).map(|it| it.apply(stream, NOW))
    };
    for has_failed in [false, true] {
        let begins = ends(None, next(7, Some(7), has_failed)).expect("it begins so");
        assert_eq!(begins.last.map(|last| last.number), Some(7));
        assert!(begins.token > FencingToken::from_u64(0));
        let rest = after_one();
        let second = ends(Some(&rest), next(2, Some(1), has_failed)).expect("it is the next");
        let past = StreamDecision::Past { last: 2 };
        assert_eq!(decided(&claim(2, 9), &second, NOW), past);
        for other in [0, 1, 3] {
            assert_eq!(ends(Some(&rest), next(other, Some(1), has_failed)), None);
        }
        assert_eq!(ends(Some(&while_two()), next(3, Some(1), has_failed)), None);
        assert_eq!(ends(Some(&while_two()), next(2, Some(1), has_failed)), None);
        let larger = ends(Some(&rest), next(9, None, has_failed));
        assert_eq!(larger.is_some(), has_failed);
        assert_eq!(ends(Some(&rest), next(1, None, has_failed)), None);
    }
}
