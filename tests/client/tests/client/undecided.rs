//! Answers that do not tell what a call came to. The caller gets them, and they are not remembered
//! as the outcome.

use http::Method;
use idempotent_client::{
    ClientCall, ClientKey, Conflict, IdempotencyKeys, Limits, MemoryJournal, Origin, Profile,
    StopReason,
};
use idempotent_runtime::testing::ManualClock;
use reqwest_middleware::ClientBuilder;

use crate::kit::{
    Answer, Ending, OnceMore, Pauses, Process, Server, Step, answer, json, outcome, patient,
    problem, wish,
};

mod inside;

fn process(profile: Profile, limits: Limits) -> Process {
    let keys = IdempotencyKeys::builder(profile)
        .timer(Pauses::default())
        .limits(limits)
        .journal(MemoryJournal::new())
        .clock(ManualClock::new());
    Process::of(keys)
}

/// Answers to a call whose outcome may come later, or has come and is not told.
fn undecided() -> [Answer; 4] {
    [
        problem(409, "idempotency-request-in-progress"),
        problem(409, "idempotency-outcome-unknown"),
        json(
            409,
            r#"{"error":{"type":"invalid_request_error","code":"idempotency_key_in_use"}}"#,
        ),
        json(409, r#"{"retryable":true,"key_action":"keep"}"#),
    ]
}

/// The method may be repeated and was, for as long as it is allowed to. The last answer is all
/// there is to tell.
#[tokio::test]
async fn cl11_the_last_answer_of_a_call_that_gives_up_is_not_its_outcome() {
    for method in [Method::PUT, Method::DELETE] {
        for call in [
            wish(),
            ClientCall::new().key(ClientKey::new("1").expect("a key")),
        ] {
            for last in undecided() {
                let server = Server::doing([last.clone()]).await;
                let process = process(Profile::undeclared(), patient().attempts(1));
                let ask = || {
                    let url = server.url("/order");
                    let request = process.client.request(method.clone(), url).body("order");
                    request.with_extension(call.clone()).send()
                };

                let first = ask().await.expect("the last answer");
                assert_eq!(first.status(), 409);
                assert_eq!(process.open().await, 1, "{last:?} leaves it open");

                let again = ask().await.expect("an answer");
                assert_eq!(again.status(), 200, "{last:?}");
                assert_eq!(outcome(&again).origin, Origin::Server, "{last:?}");
                assert_eq!(process.open().await, 0);
            }
        }
    }
}

/// A caller that was told that nothing happened may have done something else since.
#[tokio::test]
async fn cl39_a_call_that_gives_up_and_did_nothing_is_neither_open_nor_over() {
    for last in [
        problem(400, "idempotency-body-unreadable"),
        problem(503, "idempotency-overloaded"),
    ] {
        let server = Server::doing([last.clone()]).await;
        let process = process(Profile::undeclared(), patient().attempts(1));
        let ask = || {
            let call = process.client.put(server.url("/order")).body("order");
            call.with_extension(wish()).send()
        };
        ask().await.expect("the last answer");
        assert_eq!(process.open().await, 0, "{last:?}");
        let again = ask().await.expect("an answer");
        assert_eq!(outcome(&again).origin, Origin::Server, "{last:?}");
    }
}

/// A caller that looks for what is open asks for a few at a time.
#[tokio::test]
async fn cl08_calls_that_are_being_made_keep_no_other_from_the_list() {
    let server = Server::doing([Step::Hang, Step::Cut]).await;
    let process = process(Profile::ietf(), patient().attempts(1));
    let pay = |key| {
        let call = ClientCall::new().key(ClientKey::new(key).expect("a key"));
        process.post(&server).with_extension(call).send()
    };
    let first = tokio::spawn(pay("1"));
    server.await_requests(1).await;
    assert!(pay("2").await.is_err());

    let open = process.keys.unfinished(1).await.expect("a list");

    assert_eq!(open.len(), 1, "one is being made, and the other is open");
    first.abort();
}

#[tokio::test]
async fn cl02_a_call_that_gave_up_keeps_its_key_for_who_retries_outside() {
    for (last, same) in [
        (problem(409, "idempotency-request-in-progress"), true),
        (answer(409), false),
    ] {
        let server = Server::doing([last]).await;
        let keys = IdempotencyKeys::builder(Profile::undeclared())
            .timer(Pauses::default())
            .limits(patient().attempts(1));
        let (http, keys) = keys.build(reqwest::Client::builder()).expect("a client");
        let client = ClientBuilder::new(http)
            .with(OnceMore(Result::is_ok))
            .with(keys)
            .build();
        let call = client.put(server.url("/order")).body("order");
        let response = call.with_extension(ClientCall::new().keyed()).send().await;
        assert_eq!(response.expect("an answer").status(), 200);
        let keys = server.keys();
        assert_eq!(keys[0] == keys[1], same, "what has an outcome is over");
    }
}

/// The draft lets a server answer 409 while the first request is still running, and a lost one may
/// be.
#[tokio::test]
async fn cl13_a_bare_conflict_after_a_lost_answer_is_asked_again() {
    let server = Server::doing([Step::Cut, answer(409).into(), answer(201).into()]).await;
    let process = process(Profile::ietf(), patient());
    let response = process.charge(&server).send().await.expect("an answer");
    assert_eq!(response.status(), 201);
    assert_eq!(outcome(&response).attempts, 3);
}

#[tokio::test]
async fn cl13_a_bare_conflict_after_a_lost_answer_is_no_outcome() {
    for profile in [Profile::ietf(), Profile::stripe()] {
        let server = Server::doing([Step::Cut, answer(409).into()]).await;
        let process = process(profile, patient().attempts(2));
        let ask = || process.charge(&server).send();
        let ended = ask().await;
        let (why, call) = ended.unknown();
        assert_eq!(why, StopReason::Attempts);
        assert_eq!(call.answer.as_ref().expect("the conflict").status, 409);
        let again = ask().await.expect("an answer");
        assert_eq!(outcome(&again).origin, Origin::Server);
        assert_eq!(server.seen().len(), 3);
    }
}

#[tokio::test]
async fn cl13_a_conflict_that_was_recorded_is_the_answer_also_after_a_lost_one() {
    let recorded = answer(409).with("idempotent-replayed", "true");
    let server = Server::doing([Step::Cut, recorded.into()]).await;
    let process = process(Profile::ietf(), patient());
    let ask = || process.charge(&server).send();
    assert_eq!(ask().await.expect("the conflict").status(), 409);
    let again = ask().await.expect("the conflict");
    assert_eq!(outcome(&again).origin, Origin::Journal);
    assert_eq!(server.seen().len(), 2);
}

/// It may be this call that deleted it.
#[tokio::test]
async fn cl21_nothing_to_delete_is_no_outcome_of_a_lost_attempt() {
    for status in [404, 410] {
        let server = Server::doing([Step::Cut, answer(status).into()]).await;
        let process = process(Profile::undeclared(), patient());
        let call = process.client.delete(server.url("/order"));
        let ended = call.with_extension(wish()).send().await;
        let (why, call) = ended.unknown();
        assert_eq!(why, StopReason::Refused);
        assert!(call.answer.is_some(), "what it found");
        assert_eq!(process.open().await, 1);
    }
}

/// It is unknown whether this server honours keys, but its 409 is said to be about them.
#[tokio::test]
async fn cl13_a_conflict_that_the_profile_takes_for_running_is_never_an_outcome() {
    let profile = || Profile::undeclared().conflict(Conflict::InProgress);
    for method in [Method::POST, Method::PUT] {
        let server = Server::doing([answer(409)]).await;
        let process = process(profile(), patient().attempts(1));
        let call = process.client.request(method, server.url("/order"));
        let _ = call.body("order").with_extension(wish()).send().await;
        assert_eq!(process.open().await, 1);
    }
}

/// An answer that says that asking again is no use says nothing of the attempt before, which may
/// still be running.
#[tokio::test]
async fn cl13_c24_a_conflict_that_is_not_to_be_asked_again_is_no_outcome_of_a_lost_attempt() {
    let word = || answer(409).with("stripe-should-retry", "false");
    let members = r#"{"type":"about:blank","retryable":false,"key_action":"keep"}"#;
    for (profile, conflict) in [
        (Profile::stripe(), word()),
        (Profile::stripe().conflict(Conflict::Application), word()),
        (Profile::ietf(), json(409, members)),
    ] {
        let server = Server::doing([Step::Cut, conflict.clone().into()]).await;
        let process = process(profile.clone(), patient());
        let ask = || {
            let call = process.client.post(server.url("/order")).body("order");
            call.with_extension(wish()).send()
        };
        let ended = ask().await;
        assert_eq!(ended.unknown().0, StopReason::Server);
        assert_eq!(server.seen().len(), 2);
        assert_eq!(process.open().await, 1);
        let again = ask().await.expect("an answer");
        assert_eq!(outcome(&again).origin, Origin::Server);

        let recorded = conflict.with("idempotent-replayed", "true");
        let server = Server::doing([Step::Cut, recorded.into()]).await;
        let process = self::process(profile, patient());
        let call = process.client.post(server.url("/order")).body("order");
        let ended = call.with_extension(wish()).send().await;
        assert_eq!(ended.expect("the outcome").status(), 409);
        assert_eq!(process.open().await, 0);
    }
}
