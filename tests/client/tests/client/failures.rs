//! How the client judges connections that fail, and where it stops.

use std::{io, sync::Arc, time::Duration};

use idempotent_client::{
    ClientCall, ClientError, IdempotencyKeys, MemoryJournal, Profile, StopReason,
};
use idempotent_runtime::testing::{Disconnect, Gate, Proxy};
use reqwest::dns::{Name, Resolve, Resolving};

use crate::kit::{
    Ending, Pauses, Process, Server, Step, Timeout, answer, builder, client, client_at,
    client_with, json, nobody, outcome, patient, problem,
};

mod bounds;

#[tokio::test]
async fn cl20_who_cannot_be_reached_has_seen_nothing() {
    let client = client();
    let url = format!("http://{}/pay", nobody().await);
    let ended = client.post(&url).send().await;
    let ClientError::Exhausted {
        why: StopReason::Attempts,
        call,
        ..
    } = ended.ending()
    else {
        panic!("{ended:?}")
    };
    assert_eq!(call.attempts, 4);
    assert!(call.failure.is_some());
    assert_eq!(client.pauses.taken().len(), 3);
}

#[tokio::test]
async fn cl20_a_server_that_comes_back_is_found() {
    let address = nobody().await;
    let gate = Gate::new();
    let keys = builder(&Pauses::behind(&gate));
    let client = keys.client(reqwest::Client::builder()).expect("a client");
    let call = client.post(format!("http://{address}/pay")).body("pay");
    let call = tokio::spawn(call.send());
    gate.arrived(1).await;

    let server = Server::at(address, [answer(201)]).await;
    gate.open();

    let response = call.await.expect("it ends").expect("an answer");
    assert_eq!(outcome(&response).attempts, 2);
    assert!(server.keys()[0].is_some());
}

struct Resolves(io::ErrorKind);

impl Resolve for Resolves {
    fn resolve(&self, _: Name) -> Resolving {
        let kind = self.0;
        Box::pin(async move { Err(io::Error::from(kind).into()) })
    }
}

/// The name is not found, or a connection shows a certificate that is not taken, as encryption
/// reports it.
#[tokio::test]
async fn cl20_a_name_that_is_not_found_is_tried_again_and_a_bad_certificate_is_not() {
    for (kind, pauses) in [
        (io::ErrorKind::NotFound, 3),
        (io::ErrorKind::InvalidData, 0),
    ] {
        let taken = Pauses::default();
        let http = reqwest::Client::builder().dns_resolver(Arc::new(Resolves(kind)));
        let client = builder(&taken).client(http).expect("a client");
        let call = client.post("http://api.example.com/pay").body("pay");
        let ended = call.send().await;
        assert!(ended.is_err());
        assert_eq!(taken.taken().len(), pauses, "{kind:?}");
    }
}

#[tokio::test]
async fn cl20_a_bad_scheme_and_an_endless_redirect_are_not_tried_again() {
    let taken = Pauses::default();
    let client = client_with(|keys| keys.timer(taken.clone()));
    let call = client.post("ftp://api.example.com/pay");
    assert!(call.send().await.is_err());

    let server = Server::doing(vec![answer(307).with("location", "/pay"); 50]).await;
    assert!(client.post(&server.url("/pay")).send().await.is_err());
    assert_eq!(server.seen().len(), 11);
    assert!(taken.taken().is_empty());
}

#[tokio::test]
async fn cl21_what_was_cut_off_after_sending_is_sent_again_because_it_has_a_key() {
    for cut in [Disconnect::BeforeRequest, Disconnect::BeforeAnswer] {
        let server = Server::doing([answer(201)]).await;
        let proxy = Proxy::to(server.address).await.expect("a proxy");
        let url = format!("http://{}/pay", proxy.address());
        proxy.cut_next(cut);
        let client = client();
        let response = client.post(&url).send().await.expect("an answer");
        assert_eq!(outcome(&response).attempts, 2, "{cut:?}");
        let keys = server.keys();
        assert!(keys.iter().all(|key| key.is_some() && *key == keys[0]));

        proxy.cut_next(cut);
        let call = client
            .post(&url)
            .with_extension(ClientCall::new().without_key());
        let reached = usize::from(cut == Disconnect::BeforeAnswer);
        let before = server.seen().len();
        assert!(call.send().await.is_err(), "{cut:?}");
        assert_eq!(server.seen().len(), before + reached, "{cut:?}");
    }
}

#[tokio::test]
async fn cl21_a_response_that_is_cut_off_is_asked_for_again() {
    let server = Server::doing([Step::CutBody, answer(201).body("whole").into()]).await;
    let response = client().pay(&server).await;
    assert_eq!(response.text().await.expect("a body"), "whole");
    assert_eq!(server.requests_with_one_key(), 2);
}

#[tokio::test]
async fn cl21_an_attempt_that_takes_too_long_is_sent_again() {
    const MOST: Duration = Duration::from_secs(30);
    let server = Server::doing([Step::Hang, answer(201).into()]).await;
    let gate = Gate::new();
    let keys = IdempotencyKeys::builder(Profile::ietf())
        .limits(patient().attempt_timeout(MOST))
        .timer(Timeout::of(MOST, 1, &gate));
    let call = tokio::spawn(Process::of(keys).post(&server).send());
    server.await_requests(1).await;

    gate.open();

    let response = call.await.expect("it ends").expect("an answer");
    assert_eq!(outcome(&response).attempts, 2);
    assert_eq!(server.requests_with_one_key(), 2);
}

#[tokio::test]
async fn cl22_where_nobody_knows_of_keys_nothing_is_sent_twice() {
    let server = Server::doing([Step::Cut, answer(500).into()]).await;
    let client = client_at(&server, Profile::undeclared());
    let ended = client.post(&server.url("/pay")).send().await;
    let (why, call) = ended.unknown();
    assert_eq!(why, StopReason::Undeclared);
    assert_eq!(call.attempts, 1);
    assert!(server.keys()[0].is_some(), "it may be honoured");

    let response = client.pay(&server).await;
    assert_eq!(response.status(), 500);
    assert_eq!(server.seen().len(), 2);
}

/// Each of these says that asking again is fine. None of them says what protects a call that is
/// repeated.
#[tokio::test]
async fn cl22_a_server_s_word_does_not_repeat_what_has_no_protection() {
    let words = [
        answer(500).with("stripe-should-retry", "true"),
        json(502, r#"{"retryable":true,"key_action":"keep"}"#),
        problem(409, "idempotency-request-in-progress"),
        problem(503, "idempotency-store-unavailable"),
    ];
    for word in words {
        let server = Server::doing([word.clone(), answer(200)]).await;
        let client = client_at(&server, Profile::stripe());
        let call = client.post(&server.url("/pay"));
        let call = call.with_extension(ClientCall::new().without_key());
        let answered = call.send().await.expect("the last answer");
        assert!(answered.status().as_u16() >= 400);
        assert_eq!(server.keys(), [None], "once");

        let ignored = word.with("idempotency-status", "ignored");
        let server = Server::doing([ignored, answer(200)]).await;
        let client = client_at(&server, Profile::undeclared());
        let answered = client.post(&server.url("/pay")).send().await;
        assert!(answered.is_err() || answered.is_ok_and(|last| last.status() != 200));
        assert_eq!(server.seen().len(), 1);
    }
}

/// The answer was lost, and then something before the server did not let the call through.
#[tokio::test]
async fn cl21_a_refusal_after_a_lost_answer_is_no_outcome() {
    for status in [401, 403, 405, 413, 421, 429, 431, 501] {
        let server = Server::doing([Step::Cut, answer(status).into()]).await;
        let ended = client().post(&server.url("/pay")).send().await;
        let (why, call) = ended.unknown();
        assert_eq!(why, StopReason::Refused, "{status}");
        assert_eq!(call.attempts, 2);
        assert_eq!(call.answer.as_ref().expect("the refusal").status, status);
    }
}

/// An earlier attempt may have done the call, and the server's store did not tell.
#[tokio::test]
async fn cl21_an_outcome_that_cannot_be_loaded_is_not_taken_for_nothing() {
    let server = Server::doing(vec![problem(503, "idempotency-store-unavailable"); 4]).await;
    let ended = client().post(&server.url("/pay")).send().await;
    ended.unknown();
    assert_eq!(server.seen().len(), 4);
}

/// These say in so many words whether anything ran.
#[tokio::test]
async fn cl18_a_failed_handler_is_unknown_and_a_bad_set_up_did_nothing() {
    let failed = problem(500, "idempotency-handler-failed");
    let server = Server::doing([failed]).await;
    let ended = client().post(&server.url("/pay")).send().await;
    assert_eq!(ended.unknown().0, StopReason::Server);

    let process = Process::of(builder(&Pauses::default()).journal(MemoryJournal::new()));
    for (status, slug) in [
        (500, "misconfigured"),
        (429, "too-many-keys"),
        (425, "too-early"),
    ] {
        let refused = problem(status, &format!("idempotency-{slug}"));
        let server = Server::doing(vec![refused; 4]).await;
        let _ = process.post(&server).send().await;
        assert_eq!(process.open().await, 0, "{slug} did nothing");
    }
}

#[tokio::test]
async fn cl39_who_gives_up_hands_over_the_key_and_the_last_answer() {
    let last = answer(503).with("x-request-id", "7").body("down");
    let server = Server::doing([answer(500), answer(500), answer(500), last]).await;
    let client = client();
    let ended = client.post(&server.url("/pay")).send().await;
    let (why, call) = ended.unknown();
    assert_eq!(why, StopReason::Attempts);
    let answer = call.answer.as_ref().expect("the last answer");
    assert_eq!(answer.status, 503);
    assert_eq!(answer.headers["x-request-id"], "7");
    assert_eq!(answer.body.as_deref(), Some(&b"down"[..]));

    let again = ClientCall::new().key(call.key.clone());
    let call = client.post(&server.url("/pay")).with_extension(again);
    let response = call.send().await;
    assert_eq!(response.expect("an answer").status(), 200);
    assert_eq!(server.requests_with_one_key(), 5);
}
