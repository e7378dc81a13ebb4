//! Calls of which an attempt may have come through: what leaves them open, and what is their
//! outcome.

use super::*;

/// A request that its method protects may be sent again, and its last answer is no outcome.
#[test]
fn cl11_the_server_s_problems_are_no_outcome_of_what_only_the_method_protects() {
    let last = Progress {
        attempts: 4,
        elapsed: Duration::from_secs(120),
        protection: Protection::Method,
        ..progress()
    };
    let open = [
        problem(409, Kind::RequestInProgress),
        problem(409, Kind::OutcomeUnknown),
        problem(409, Kind::ResultExpired),
        problem(422, Kind::KeyReused),
        problem(503, Kind::StoreUnavailable),
        stripe(409, "invalid_request_error", "idempotency_key_in_use"),
    ];
    for answer in open {
        assert_eq!(answered(&last, answer.clone()), GIVEN_UP, "{answer:?}");
    }
    let unreadable = Observed::Answer(problem(400, Kind::BodyUnreadable));
    assert_eq!(ietf(&last, &unreadable), Next::GiveUp(Happened::No));
    for outcome in [answer(404), answer(409), answer(200)] {
        assert_eq!(answered(&last, outcome), Next::Return);
    }
}

/// The attempt before may have changed what the condition asks for: then it was carried out, and so
/// is refused.
#[test]
fn cl21_a_condition_that_fails_at_a_later_attempt_tells_nothing_where_only_the_method_protects() {
    let unknown = unknown(StopReason::Refused);
    for (keyed, protection, may_have_happened, answer, expected) in [
        (true, Protection::Method, true, answer(412), unknown),
        (false, Protection::Method, true, answer(412), GIVEN_UP),
        (true, Protection::Method, false, answer(412), Next::Return),
        (true, Protection::Method, true, replayed(412), Next::Return),
        // A server that honours keys answers with what the first attempt came to.
        (true, Protection::Key, true, answer(412), Next::Return),
    ] {
        let progress = Progress {
            may_have_happened,
            ..sent(keyed, protection)
        };
        let next = answered(&progress, answer);
        assert_eq!(next, expected, "{progress:?}");
    }
}

/// The attempt before may have deleted it.
#[test]
fn cl21_nothing_to_delete_at_a_later_attempt_tells_nothing_where_only_the_method_protects() {
    let (method, key) = (Protection::Method, Protection::Key);
    for status in [404, 410] {
        let ends = |deletes, protection, may_have_happened, answer| {
            let progress = Progress {
                deletes,
                protection,
                may_have_happened,
                ..progress()
            };
            answered(&progress, answer)
        };
        let unknown = unknown(StopReason::Refused);
        assert_eq!(ends(true, method, true, answer(status)), unknown);
        assert_eq!(ends(false, method, true, answer(status)), Next::Return);
        assert_eq!(ends(true, method, false, answer(status)), Next::Return);
        assert_eq!(ends(true, method, true, replayed(status)), Next::Return);
        assert_eq!(ends(true, key, true, answer(status)), Next::Return);
    }
}

#[test]
fn cl34_a_failure_of_what_a_call_was_led_on_to_leaves_it_open() {
    let ends = |keyed, protection, answer: Answered| {
        let led_on = Progress {
            led_on: true,
            ..sent(keyed, protection)
        };
        answered(&led_on, answer)
    };
    let unknown = unknown(StopReason::Refused);
    let failures = [
        answer(400),
        answer(404),
        answer(410),
        problem(422, Kind::KeyReused),
        problem(409, Kind::ResultExpired),
    ];
    for failure in failures {
        for protection in [Protection::Key, Protection::KeyOnTrial, Protection::Method] {
            let ended = ends(true, protection, failure.clone());
            assert_eq!(ended, unknown, "{failure:?}");
        }
        let ended = ends(false, Protection::Method, failure);
        assert_eq!(ended, GIVEN_UP, "there is no key to resume by");
    }
    for outcome in [answer(200), answer(304)] {
        assert_eq!(ends(true, Protection::Key, outcome), Next::Return);
    }
    assert_eq!(ends(true, Protection::Key, answer(500)), HALF_A_SECOND);
}

#[test]
fn cl13_a_bare_conflict_is_the_answer_only_while_nothing_else_may_be_running() {
    let sent = sent(true, Protection::Key);
    assert_eq!(answered(&progress(), answer(409)), Next::Return);
    for protection in [Protection::Key, Protection::Method] {
        let sent = Progress { protection, ..sent };
        assert_eq!(answered(&sent, answer(409)), HALF_A_SECOND);
        let recorded = Observed::Answer(replayed(409));
        assert_eq!(ietf(&sent, &recorded), Next::Return);
    }
    let unkeyed = Progress {
        keyed: false,
        protection: Protection::Method,
        ..sent
    };
    assert_eq!(answered(&unkeyed, answer(409)), Next::Return);
    let last = Progress {
        attempts: 4,
        ..sent
    };
    let unknown = unknown(StopReason::Attempts);
    assert_eq!(answered(&last, answer(409)), unknown);
}

#[test]
fn cl34_a_target_that_is_elsewhere_is_no_outcome() {
    let unknown = unknown(StopReason::Moved);
    for may_have_happened in [false, true] {
        let ends = |keyed, protection, answer: Answered| {
            let sent = Progress {
                may_have_happened,
                ..sent(keyed, protection)
            };
            answered(&sent, answer)
        };
        for status in [301, 302] {
            for protection in [Protection::Key, Protection::KeyOnTrial] {
                assert_eq!(ends(true, protection, answer(status)), unknown);
            }
            let by_method = ends(true, Protection::Method, answer(status));
            assert_eq!(by_method, GIVEN_UP, "it is handed on, and is no outcome");
            let unkeyed = ends(false, Protection::None, answer(status));
            assert_eq!(unkeyed, Next::Return);
            let of_another = Answered {
                led_here: true,
                ..answer(status)
            };
            assert_eq!(ends(true, Protection::Key, of_another), Next::Return);
            let recorded = ends(true, Protection::Key, replayed(status));
            assert_eq!(recorded, Next::Return);
        }
        assert_eq!(ends(true, Protection::Key, answer(303)), Next::Return);
    }
}

/// A refusal is about one attempt, and says nothing about another one that came through.
#[test]
fn cl21_a_refusal_does_not_tell_what_an_earlier_attempt_did() {
    let ends = |keyed, protection, answer| answered(&sent(keyed, protection), answer);
    let statuses = [
        401, 403, 405, 407, 411, 413, 414, 415, 417, 421, 426, 428, 429, 431, 308, 501,
    ];
    let problems = [
        problem(501, Kind::NotSupported),
        problem(400, Kind::NotSupported),
        problem(400, Kind::KeyMissing),
        problem(400, Kind::ScopeUnresolved),
        problem(413, Kind::BodyTooLarge),
        problem(500, Kind::Misconfigured),
    ];
    let unknown = unknown(StopReason::Refused);
    for refusal in statuses.map(answer).into_iter().chain(problems) {
        for protection in [Protection::Key, Protection::KeyOnTrial, Protection::Method] {
            let ended = ends(true, protection, refusal.clone());
            assert_eq!(ended, unknown, "{refusal:?}");
        }
        let ended = ends(false, Protection::Method, refusal);
        assert_eq!(ended, GIVEN_UP, "there is no key to resume by");
    }
    for outcome in [answer(201), answer(402), answer(404)] {
        assert_eq!(ends(true, Protection::Key, outcome), Next::Return);
    }
}

/// A handler may have a refusal of its own recorded, and then it is what the earlier attempt came
/// to.
#[test]
fn cl23_a_refusal_that_was_recorded_is_the_outcome() {
    for may_have_happened in [false, true] {
        let sent = Progress {
            may_have_happened,
            ..progress()
        };
        for status in [307, 401, 403, 415, 429] {
            let recorded = Observed::Answer(replayed(status));
            assert_eq!(ietf(&sent, &recorded), Next::Return, "{status}");
        }
        let recorded = Observed::Answer(replayed(501));
        let frozen = unknown(StopReason::Recorded);
        assert_eq!(ietf(&sent, &recorded), frozen);
    }
}

#[test]
fn cl20_what_is_hopeless_is_unknown_once_something_was_sent() {
    let sent = sent(true, Protection::Key);
    let unknown = unknown(StopReason::Hopeless);
    assert_eq!(ietf(&sent, &Observed::Hopeless), unknown);
}

/// It was carried out: who gives up asking for the result is not told that nothing happened.
#[test]
fn cl37_a_result_that_is_out_of_reach_is_no_refusal() {
    let out_of_reach = Observed::Answer(problem(503, Kind::ResultOutOfReach));
    let last = Progress {
        attempts: 4,
        ..progress()
    };
    let next = ietf(&last, &out_of_reach);
    assert_eq!(next, unknown(StopReason::Attempts));
    let on_trial = protected(Protection::KeyOnTrial);
    let next = ietf(&on_trial, &out_of_reach);
    assert_eq!(next, unknown(StopReason::Undeclared));
}

#[test]
fn cl22_what_an_earlier_attempt_may_have_done_is_not_sent_again_unprotected() {
    let limited = Observed::Answer(after(429, 0));
    let ends = |protection| {
        let progress = sent(true, protection);
        ietf(&progress, &limited)
    };
    let unknown = unknown(StopReason::Undeclared);
    assert_eq!(ends(Protection::KeyOnTrial), unknown);
    assert_eq!(ends(Protection::None), GIVEN_UP);
}
