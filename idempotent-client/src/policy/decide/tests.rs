use super::*;

#[path = "tests/open.rs"]
mod open;
#[path = "tests/running.rs"]
mod running;

fn progress() -> Progress {
    Progress {
        attempts: 1,
        waits: 0,
        elapsed: Duration::ZERO,
        key_age: Duration::ZERO,
        keyed: true,
        protection: Protection::Key,
        deletes: false,
        may_have_happened: false,
        led_on: false,
        was_early: false,
        repeatable: true,
        budget_left: true,
    }
}

fn answer(status: u16) -> Answered {
    Answered {
        status: StatusCode::from_u16(status).expect("a status"),
        ..Answered::default()
    }
}

fn problem(status: u16, kind: Kind) -> Answered {
    Answered {
        problem: Problem {
            kind: Some(kind),
            ..Problem::default()
        },
        ..answer(status)
    }
}

fn after(status: u16, seconds: u64) -> Answered {
    Answered {
        retry_after: Some(Duration::from_secs(seconds)),
        ..answer(status)
    }
}

fn replayed(status: u16) -> Answered {
    Answered {
        replayed: true,
        ..answer(status)
    }
}

fn stripe(status: u16, kind: &str, code: &str) -> Answered {
    let mut answer = answer(status);
    answer.problem.stripe = Some(crate::problem::StripeError {
        kind: Some(kind.into()),
        code: Some(code.into()),
    });
    answer
}

fn ietf(progress: &Progress, observed: &Observed) -> Next {
    decide(
        &Profile::ietf(),
        &Limits::default(),
        progress,
        observed,
        0.0,
    )
}

fn answered(progress: &Progress, answer: Answered) -> Next {
    ietf(progress, &Observed::Answer(answer))
}

fn protected(protection: Protection) -> Progress {
    Progress {
        protection,
        ..progress()
    }
}

/// A call of which an attempt may have come through.
fn sent(keyed: bool, protection: Protection) -> Progress {
    Progress {
        may_have_happened: true,
        keyed,
        ..protected(protection)
    }
}

const HALF_A_SECOND: Next = Next::RetryAfter(Duration::from_millis(500));

const GIVEN_UP: Next = Next::GiveUp(Happened::Perhaps);

const fn unknown(why: StopReason) -> Next {
    Next::Stop(Stopped::Unknown(why))
}

/// The decision table of the default profile, row by row.
#[test]
fn the_table_row_by_row() {
    let statuses = [
        (201, Next::Return),
        (302, unknown(StopReason::Moved)),
        (303, Next::Return),
        (402, Next::Return),
        (409, Next::Return),
        (422, Next::Return),
        (429, Next::Return),
        (501, Next::Stop(Stopped::Unsupported)),
    ];
    let again = [408, 425, 500, 502, 503, 504, 524].map(|status| (status, HALF_A_SECOND));
    for (status, expected) in statuses.into_iter().chain(again) {
        let observed = Observed::Answer(answer(status));
        assert_eq!(ietf(&progress(), &observed), expected, "{status}");
    }
    for (status, expected) in [
        (201, Next::Return),
        (302, Next::Return),
        (404, Next::Return),
        (500, unknown(StopReason::Recorded)),
    ] {
        let observed = Observed::Answer(replayed(status));
        assert_eq!(ietf(&progress(), &observed), expected, "{status}, replayed");
    }
    let seconds = |seconds| Next::RetryAfter(Duration::from_secs(seconds));
    let in_progress = Answered {
        retry_after: Some(Duration::from_secs(2)),
        ..problem(409, Kind::RequestInProgress)
    };
    for (observed, expected) in [
        (Observed::NotSent, HALF_A_SECOND),
        (Observed::Lost, HALF_A_SECOND),
        (Observed::Hopeless, Next::Return),
        (Observed::Answer(in_progress), seconds(2)),
        (Observed::Answer(after(429, 3)), seconds(3)),
        (Observed::Answer(after(503, 3)), seconds(3)),
    ] {
        assert_eq!(ietf(&progress(), &observed), expected, "{observed:?}");
    }
    problems_row_by_row();
}

fn problems_row_by_row() {
    for (status, kind, expected) in [
        (422, Kind::KeyReused, Next::Stop(Stopped::KeyReused)),
        (409, Kind::OutcomeUnknown, unknown(StopReason::Server)),
        (409, Kind::ResultExpired, Next::Stop(Stopped::ResultGone)),
        (
            409,
            Kind::ResultUnavailable,
            Next::Stop(Stopped::ResultGone),
        ),
        (400, Kind::KeyMissing, Next::Return),
        (400, Kind::KeyInvalid, Next::Return),
        (401, Kind::ScopeUnresolved, Next::Return),
        (413, Kind::BodyTooLarge, Next::Return),
        (400, Kind::BodyUnreadable, HALF_A_SECOND),
        (503, Kind::StoreUnavailable, HALF_A_SECOND),
        (503, Kind::Overloaded, HALF_A_SECOND),
        (425, Kind::TooEarly, HALF_A_SECOND),
        (429, Kind::TooManyKeys, HALF_A_SECOND),
        (500, Kind::HandlerFailed, unknown(StopReason::Server)),
        (500, Kind::Misconfigured, Next::Return),
        (501, Kind::NotSupported, Next::Stop(Stopped::Unsupported)),
    ] {
        let observed = Observed::Answer(problem(status, kind));
        assert_eq!(ietf(&progress(), &observed), expected, "{kind:?}");
    }
}

#[test]
fn the_row_of_the_retention() {
    let old = Progress {
        key_age: Duration::from_secs(24 * 60 * 60 - 300),
        ..progress()
    };
    for observed in [Observed::Lost, Observed::Answer(answer(500))] {
        assert_eq!(ietf(&old, &observed), unknown(StopReason::Age));
    }
    let unsent = Next::Stop(Stopped::Exhausted(StopReason::Age));
    assert_eq!(ietf(&old, &Observed::NotSent), unsent);
}

#[test]
fn stripe_s_errors_and_bare_conflicts() {
    let decide = |answer| {
        decide(
            &Profile::stripe(),
            &Limits::default(),
            &progress(),
            &Observed::Answer(answer),
            0.0,
        )
    };
    assert_eq!(decide(answer(409)), HALF_A_SECOND);
    let in_use = stripe(409, "invalid_request_error", "idempotency_key_in_use");
    assert_eq!(decide(in_use), HALF_A_SECOND);
    let lock = stripe(429, "invalid_request_error", "lock_timeout");
    assert_eq!(decide(lock), HALF_A_SECOND);
    let reused = stripe(400, "idempotency_error", "");
    assert_eq!(decide(reused), Next::Stop(Stopped::KeyReused));
    assert_eq!(decide(answer(402)), Next::Return);
}

#[test]
fn cl24_the_vendor_s_word_counts_for_more_than_the_status() {
    let says = |status, verdict| {
        Observed::Answer(Answered {
            verdict: Some(verdict),
            ..answer(status)
        })
    };
    assert_eq!(ietf(&progress(), &says(409, true)), HALF_A_SECOND);
    assert_eq!(ietf(&progress(), &says(400, true)), HALF_A_SECOND);
    let told = unknown(StopReason::Server);
    assert_eq!(ietf(&progress(), &says(503, false)), told);
    assert_eq!(ietf(&progress(), &says(429, false)), Next::Return);
    assert_eq!(ietf(&progress(), &says(200, true)), Next::Return);
    // The answer of a server that may know nothing of keys is handed on.
    let on_trial = protected(Protection::KeyOnTrial);
    assert_eq!(ietf(&on_trial, &says(503, false)), Next::Return);
}

#[test]
fn cl24_the_vendor_s_word_counts_for_more_than_the_members() {
    let says = |verdict, retryable| {
        let mut answer = answer(409);
        answer.verdict = Some(verdict);
        answer.problem.retryable = Some(retryable);
        answer.problem.has_key_action = true;
        Observed::Answer(answer)
    };
    assert_eq!(ietf(&progress(), &says(true, false)), HALF_A_SECOND);
    assert_eq!(ietf(&progress(), &says(false, true)), Next::Return);
}

#[test]
fn cl25_members_count_only_where_the_body_speaks_of_keys() {
    let says = |status, retryable, has_key_action| {
        let mut answer = answer(status);
        answer.problem.retryable = Some(retryable);
        answer.problem.has_key_action = has_key_action;
        Observed::Answer(answer)
    };
    assert_eq!(ietf(&progress(), &says(409, true, true)), HALF_A_SECOND);
    assert_eq!(ietf(&progress(), &says(409, true, false)), Next::Return);
    let told = unknown(StopReason::Server);
    assert_eq!(ietf(&progress(), &says(500, false, true)), told);
    assert_eq!(ietf(&progress(), &says(500, false, false)), HALF_A_SECOND);
}

#[test]
fn mend_24_a_store_that_has_to_be_mended_is_not_asked_again() {
    let says = |retryable| {
        let body = format!(
            r#"{{"type":"urn:p:{}","retryable":{retryable}}}"#,
            Kind::StoreUnavailable.slug()
        );
        Observed::Answer(Answered {
            problem: Problem::read(body.as_bytes()),
            ..answer(503)
        })
    };
    assert_eq!(ietf(&progress(), &says(true)), HALF_A_SECOND);
    let told = unknown(StopReason::Server);
    assert_eq!(ietf(&progress(), &says(false)), told);
}

#[test]
fn cl15_a_retry_after_of_nothing_is_no_hot_loop() {
    let quarter = Next::RetryAfter(Duration::from_millis(250));
    assert_eq!(answered(&progress(), after(503, 0)), quarter);
}

#[test]
fn cl16_a_retry_after_beyond_the_cap_or_the_deadline_is_told() {
    let stop = |seconds| Next::Stop(Stopped::RetryLater(Duration::from_secs(seconds)));
    assert_eq!(answered(&progress(), after(503, 61)), stop(61));
    assert_eq!(answered(&progress(), after(503, u64::MAX)), stop(u64::MAX));
    let late = Progress {
        elapsed: Duration::from_secs(100),
        ..progress()
    };
    assert_eq!(answered(&late, after(503, 20)), stop(20));
    let wait = Next::RetryAfter(Duration::from_secs(19));
    assert_eq!(answered(&late, after(503, 19)), wait);
}

#[test]
fn cl22_where_keys_may_mean_nothing_only_what_did_not_happen_is_sent_again() {
    let on_trial = protected(Protection::KeyOnTrial);
    let told = unknown(StopReason::Undeclared);
    assert_eq!(ietf(&on_trial, &Observed::Lost), told);
    assert_eq!(ietf(&on_trial, &Observed::NotSent), HALF_A_SECOND);
    assert_eq!(answered(&on_trial, answer(500)), Next::Return);
}

/// Neither a vendor's header nor a problem makes a server honour keys, or gives a call the key that
/// it lacks.
#[test]
fn cl22_no_word_of_the_server_s_protects_a_call() {
    let says_again = Answered {
        verdict: Some(true),
        ..answer(500)
    };
    let mut members = answer(502);
    members.problem.retryable = Some(true);
    members.problem.has_key_action = true;
    let in_progress = problem(409, Kind::RequestInProgress);
    let in_use = stripe(409, "invalid_request_error", "idempotency_key_in_use");
    for answer in [says_again, members, in_progress, in_use] {
        let answer = Observed::Answer(answer);
        let ends = |protection| {
            let progress = protected(protection);
            ietf(&progress, &answer)
        };
        let told = unknown(StopReason::Undeclared);
        assert_eq!(ends(Protection::KeyOnTrial), told, "{answer:?}");
        assert_eq!(ends(Protection::None), GIVEN_UP, "{answer:?}");
        assert_eq!(ends(Protection::Key), HALF_A_SECOND, "{answer:?}");
        assert_eq!(ends(Protection::Method), HALF_A_SECOND, "{answer:?}");
    }
}

#[test]
fn cl29_every_bound_ends_a_call_and_what_may_have_happened_is_not_forgotten() {
    let spent = [
        (StopReason::Attempts, 4, 0, true, true),
        (StopReason::Deadline, 1, 120, true, true),
        (StopReason::Budget, 1, 0, false, true),
        (StopReason::Body, 1, 0, true, false),
    ];
    for (why, attempts, seconds, budget_left, repeatable) in spent {
        let progress = Progress {
            attempts,
            elapsed: Duration::from_secs(seconds),
            budget_left,
            repeatable,
            ..progress()
        };
        let unknown = unknown(why);
        let exhausted = Next::Stop(Stopped::Exhausted(why));
        assert_eq!(ietf(&progress, &Observed::Lost), unknown);
        assert_eq!(ietf(&progress, &Observed::NotSent), exhausted);
        let sent_before = |progress: Progress| Progress {
            may_have_happened: true,
            ..progress
        };
        assert_eq!(ietf(&sent_before(progress), &Observed::NotSent), unknown);
        let get = Progress {
            protection: Protection::Method,
            ..progress
        };
        assert_eq!(ietf(&get, &Observed::Lost), GIVEN_UP);
        let unsent = Next::GiveUp(Happened::No);
        assert_eq!(ietf(&get, &Observed::NotSent), unsent);
        assert_eq!(ietf(&sent_before(get), &Observed::NotSent), GIVEN_UP);
    }
}

#[test]
fn cl26_too_early_is_tried_once_more() {
    let early = Progress {
        was_early: true,
        ..progress()
    };
    for answer in [answer(425), problem(425, Kind::TooEarly)] {
        assert_eq!(answered(&early, answer), Next::Return);
    }
}

#[test]
fn cl25_every_problem_of_the_server_is_known_and_done_as_it_says() {
    for kind in Kind::ALL {
        let body = format!(r#"{{"type":"https://api.example.com/{}"}}"#, kind.slug());
        let problem = Problem::read(body.as_bytes());
        assert_eq!(problem.kind, Some(*kind), "{kind:?}");

        let answered = Answered {
            problem,
            ..answer(kind.status().as_u16())
        };
        let next = ietf(&progress(), &Observed::Answer(answered));
        let sent_again = matches!(next, Next::RetryAfter(_));
        assert_eq!(sent_again, kind.is_retryable(), "{kind:?}: {next:?}");
    }
}
