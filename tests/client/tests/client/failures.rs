//! What the client makes of connections that fail, and where it stops.

use std::{io, net::SocketAddr, pin::Pin, sync::Arc, time::Duration};

use idempotent_client::{
    Budget, ClientCall, ClientError, IdempotencyKeys, Limits, MemoryJournal, Profile, StopReason,
};
use idempotent_runtime::{
    clock::Timer,
    testing::{Disconnect, Gate, Proxy},
};
use reqwest::dns::{Name, Resolve, Resolving};
use reqwest_middleware::ClientBuilder;
use tokio::net::TcpListener;

use crate::kit::{
    Ending, Pauses, Server, Step, Timeout, answer, builder, client, client_with, json, outcome,
    patient, problem, unfinished,
};

/// An address at which nobody listens.
async fn nobody() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    listener.local_addr().expect("an address")
}

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

/// The name is not found, or a connection shows a certificate that is not taken, as encryption reports it.
#[tokio::test]
async fn cl20_a_name_that_is_not_found_is_tried_again_and_a_bad_certificate_is_not() {
    for (kind, pauses) in [
        (io::ErrorKind::NotFound, 3),
        (io::ErrorKind::InvalidData, 0),
    ] {
        let taken = Pauses::default();
        let http = reqwest::Client::builder().dns_resolver(Arc::new(Resolves(kind)));
        let client = builder(&taken).client(http).expect("a client");
        let ended = client
            .post("http://api.example.com/pay")
            .body("pay")
            .send()
            .await;
        assert!(ended.is_err());
        assert_eq!(taken.taken().len(), pauses, "{kind:?}");
    }
}

#[tokio::test]
async fn cl20_a_bad_scheme_and_an_endless_redirect_are_not_tried_again() {
    let taken = Pauses::default();
    let client = client_with(|keys| keys.timer(taken.clone()));
    assert!(
        client
            .post("ftp://api.example.com/pay")
            .send()
            .await
            .is_err()
    );

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
    let response = client()
        .post(&server.url("/pay"))
        .send()
        .await
        .expect("an answer");
    assert_eq!(response.text().await.expect("a body"), "whole");
    let keys = server.keys();
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], keys[1]);
}

#[tokio::test]
async fn cl21_an_attempt_that_takes_too_long_is_sent_again() {
    const MOST: Duration = Duration::from_secs(30);
    let server = Server::doing([Step::Hang, answer(201).into()]).await;
    let gate = Gate::new();
    let keys = IdempotencyKeys::builder(Profile::ietf())
        .limits(patient().attempt_timeout(MOST))
        .timer(Timeout::of(MOST, 1, &gate));
    let client = keys.client(reqwest::Client::builder()).expect("a client");
    let call = tokio::spawn(client.post(server.url("/pay")).body("pay").send());
    server.await_requests(1).await;

    gate.open();

    let response = call.await.expect("it ends").expect("an answer");
    assert_eq!(outcome(&response).attempts, 2);
    let keys = server.keys();
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], keys[1]);
}

#[tokio::test]
async fn cl22_where_nobody_knows_of_keys_nothing_is_sent_twice() {
    let server = Server::doing([Step::Cut, answer(500).into()]).await;
    let url = server.url("/").parse().expect("a URL");
    let client = client_with(|keys| keys.server(&url, Profile::undeclared()));
    let ended = client.post(&server.url("/pay")).send().await;
    let ClientError::Unknown {
        why: StopReason::Undeclared,
        call,
        ..
    } = ended.ending()
    else {
        panic!("{ended:?}")
    };
    assert_eq!(call.attempts, 1);
    assert!(server.keys()[0].is_some(), "it may be honoured");

    let response = client
        .post(&server.url("/pay"))
        .send()
        .await
        .expect("an answer");
    assert_eq!(response.status(), 500);
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn cl28_pauses_grow_and_differ() {
    let mut first = Vec::new();
    for _ in 0..8 {
        let server = Server::doing(vec![answer(500); 3]).await;
        let client = client();
        client
            .post(&server.url("/pay"))
            .send()
            .await
            .expect("an answer");
        let pauses = client.pauses.taken();
        for (pause, full) in pauses.iter().zip([500, 1_000, 2_000]) {
            let full = Duration::from_millis(full);
            assert!(*pause >= full / 2 && *pause <= full, "{pauses:?}");
        }
        first.push(pauses[0]);
    }
    first.dedup();
    assert!(first.len() > 1, "every pause is the same: {first:?}");
}

/// Without a socket, so that tokio's own clock stands still between pauses.
#[tokio::test(start_paused = true)]
async fn cl28_pauses_go_by_tokio_s_time() {
    let keys = IdempotencyKeys::builder(Profile::ietf());
    let (http, keys) = keys.build(reqwest::Client::builder()).expect("a client");
    let client = ClientBuilder::new(http).with(keys).with(Busy).build();
    let before = tokio::time::Instant::now();

    let ended = client
        .post("http://api.example.com/pay")
        .body("pay")
        .send()
        .await;

    assert!(matches!(
        ended.ending(),
        ClientError::Unknown {
            why: StopReason::Attempts,
            ..
        }
    ));
    let took = before.elapsed();
    assert!(
        took >= Duration::from_millis(1_750) && took <= Duration::from_millis(3_510),
        "{took:?}"
    );
}

struct Busy;

#[async_trait::async_trait]
impl reqwest_middleware::Middleware for Busy {
    async fn handle(
        &self,
        _: reqwest::Request,
        _: &mut http::Extensions,
        _: reqwest_middleware::Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        let response = http::Response::builder().status(500).body("");
        Ok(response.expect("a response").into())
    }
}

#[tokio::test]
async fn cl29_attempts_and_the_budget_of_an_origin_are_bounds() {
    let server = Server::doing(vec![answer(500); 99]).await;
    let limits = patient().attempts(3).budget(Budget::new(3, 0.0));
    let client = client_with(|keys| keys.limits(limits));
    let mut reasons = Vec::new();
    for _ in 0..3 {
        let ended = client.post(&server.url("/pay")).send().await;
        let ClientError::Unknown { why, call, .. } = ended.ending() else {
            panic!("{ended:?}")
        };
        reasons.push((*why, call.attempts));
    }
    assert_eq!(
        reasons,
        [
            (StopReason::Attempts, 3),
            (StopReason::Budget, 2),
            (StopReason::Budget, 1)
        ]
    );

    // Another origin has a budget of its own.
    let other = Server::doing([answer(500), answer(201)]).await;
    client
        .post(&other.url("/pay"))
        .send()
        .await
        .expect("an answer");
}

#[tokio::test]
async fn cl29_calls_that_go_well_pay_for_the_retries_of_others() {
    let script = [500, 201, 500, 201, 500, 201].map(answer);
    let server = Server::doing(script).await;
    let limits = patient().budget(Budget::new(1, 0.5));
    let client = client_with(|keys| keys.limits(limits));
    let attempts = async || {
        let response = client.post(&server.url("/pay")).send().await;
        response.map(|response| outcome(&response).attempts)
    };
    assert_eq!(attempts().await.expect("an answer"), 2);
    let half = attempts().await.expect_err("half a retry is none");
    let half = ClientError::from_error(&half).expect("an error of ours");
    let why = StopReason::Budget;
    assert!(matches!(half, ClientError::Unknown { why: told, .. } if *told == why));
    assert_eq!(attempts().await.expect("an answer"), 1);
    assert_eq!(attempts().await.expect("an answer"), 2);
}

#[tokio::test]
async fn cl29_the_deadline_ends_an_attempt_that_is_under_way() {
    const DEADLINE: Duration = Duration::from_secs(10);
    let server = Server::doing([answer(500).into(), Step::Hang]).await;
    let gate = Gate::new();
    let timeout = Timeout::of(DEADLINE, 2, &gate);
    let keys = IdempotencyKeys::builder(Profile::ietf()).timer(timeout.clone());
    let client = keys.client(reqwest::Client::builder()).expect("a client");
    let call = client.post(server.url("/pay")).body("pay");
    let call = tokio::spawn(
        call.with_extension(ClientCall::new().deadline(DEADLINE))
            .send(),
    );
    server.await_requests(2).await;

    gate.open();

    let ended = call.await.expect("it ends");
    let ClientError::Unknown {
        why: StopReason::Deadline,
        call,
        ..
    } = ended.ending()
    else {
        panic!("{ended:?}")
    };
    assert_eq!(call.attempts, 2);
    assert_eq!(timeout.given(), [DEADLINE, DEADLINE]);
}

/// An attempt may take as long as it is given, and no longer than the call.
#[tokio::test]
async fn cl29_the_deadline_ends_an_attempt_that_may_take_longer_by_itself() {
    const DEADLINE: Duration = Duration::from_secs(10);
    let server = Server::doing([Step::Hang]).await;
    let gate = Gate::new();
    let timeout = Timeout::of(DEADLINE, 1, &gate);
    let limits = Limits::default()
        .deadline(DEADLINE)
        .attempt_timeout(2 * DEADLINE);
    let keys = IdempotencyKeys::builder(Profile::ietf())
        .limits(limits)
        .timer(timeout.clone());
    let client = keys.client(reqwest::Client::builder()).expect("a client");
    let call = tokio::spawn(client.post(server.url("/pay")).body("pay").send());
    server.await_requests(1).await;

    gate.open();

    let ended = call.await.expect("it ends");
    assert!(
        matches!(
            ended.ending(),
            ClientError::Unknown {
                why: StopReason::Deadline,
                ..
            }
        ),
        "{ended:?}"
    );
    assert_eq!(timeout.given(), [DEADLINE]);
}

/// Each of these says that asking again is fine, and none of them what protects a call that is repeated.
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
        let url = server.url("/").parse().expect("a URL");
        let client = client_with(|keys| keys.server(&url, Profile::stripe()));
        let call = client.post(&server.url("/pay"));
        let call = call.with_extension(ClientCall::new().without_key());
        let answered = call.send().await.expect("the last answer");
        assert!(answered.status().as_u16() >= 400);
        assert_eq!(server.keys(), [None], "once");

        let ignored = word.with("idempotency-status", "ignored");
        let server = Server::doing([ignored, answer(200)]).await;
        let url = server.url("/").parse().expect("a URL");
        let client = client_with(|keys| keys.server(&url, Profile::undeclared()));
        let answered = client.post(&server.url("/pay")).send().await;
        assert!(answered.is_err() || answered.is_ok_and(|last| last.status() != 200));
        assert_eq!(server.seen().len(), 1);
    }
}

/// The answer was lost, and then somebody before the server did not let the call through.
#[tokio::test]
async fn cl21_a_refusal_after_a_lost_answer_is_no_outcome() {
    for status in [401, 403, 405, 413, 421, 429, 431, 501] {
        let server = Server::doing([Step::Cut, answer(status).into()]).await;
        let ended = client().post(&server.url("/pay")).send().await;
        let ClientError::Unknown {
            why: StopReason::Refused,
            call,
            ..
        } = ended.ending()
        else {
            panic!("{status}: {ended:?}")
        };
        assert_eq!(call.attempts, 2);
        assert_eq!(call.answer.as_ref().expect("the refusal").status, status);
    }
}

/// What the server's store did not tell may have been done by an earlier attempt.
#[tokio::test]
async fn cl21_an_outcome_that_cannot_be_loaded_is_not_taken_for_nothing() {
    let server = Server::doing(vec![problem(503, "idempotency-store-unavailable"); 4]).await;
    let ended = client().post(&server.url("/pay")).send().await;
    assert!(matches!(ended.ending(), ClientError::Unknown { .. }));
    assert_eq!(server.seen().len(), 4);
}

/// These say in so many words whether anything ran.
#[tokio::test]
async fn cl18_a_failed_handler_is_unknown_and_a_bad_set_up_did_nothing() {
    let failed = problem(500, "idempotency-handler-failed");
    let server = Server::doing([failed]).await;
    let ended = client().post(&server.url("/pay")).send().await;
    assert!(matches!(
        ended.ending(),
        ClientError::Unknown {
            why: StopReason::Server,
            ..
        }
    ));

    let (http, keys) = builder(&Pauses::default())
        .journal(MemoryJournal::new())
        .build(reqwest::Client::builder())
        .expect("a client");
    let client = ClientBuilder::new(http).with(keys.clone()).build();
    for slug in ["misconfigured", "too-many-keys", "too-early"] {
        let status = match slug {
            "misconfigured" => 500,
            "too-many-keys" => 429,
            _ => 425,
        };
        let refused = problem(status, &format!("idempotency-{slug}"));
        let server = Server::doing(vec![refused; 4]).await;
        let _ = client.post(server.url("/pay")).body("pay").send().await;
        let open = unfinished(&keys).await;
        assert!(open.is_empty(), "{slug} did nothing");
    }
}

#[tokio::test]
async fn cl39_who_gives_up_hands_over_the_key_and_the_last_answer() {
    let last = answer(503).with("x-request-id", "7").body("down");
    let server = Server::doing([answer(500), answer(500), answer(500), last]).await;
    let client = client();
    let ended = client.post(&server.url("/pay")).send().await;
    let ClientError::Unknown {
        why: StopReason::Attempts,
        call,
        ..
    } = ended.ending()
    else {
        panic!("{ended:?}")
    };
    let answer = call.answer.as_ref().expect("the last answer");
    assert_eq!(answer.status, 503);
    assert_eq!(answer.headers["x-request-id"], "7");
    assert_eq!(answer.body.as_deref(), Some(&b"down"[..]));

    let again = ClientCall::new().key(call.key.clone());
    let response = client
        .post(&server.url("/pay"))
        .with_extension(again)
        .send()
        .await;
    assert_eq!(response.expect("an answer").status(), 200);
    let keys = server.keys();
    assert_eq!(keys.len(), 5);
    assert!(keys.iter().all(|key| *key == keys[0]));
}

/// Where there is no timer of tokio's, one of the application's will do: nothing else is asked how much time has passed.
#[tokio::test]
async fn cl46_pauses_and_timeouts_go_by_a_timer_of_one_s_own() {
    let attempt = Duration::from_secs(30);
    let (timeout, pause) = (Gate::new(), Gate::new());
    let server = Server::doing([Step::Hang, answer(201).into()]).await;
    let timer = OneOfEach {
        attempt,
        timeout: timeout.clone(),
        pause: pause.clone(),
    };
    let keys = IdempotencyKeys::builder(Profile::ietf()).timer(timer);
    let keys = keys.limits(patient().attempt_timeout(attempt));
    let client = keys.client(reqwest::Client::builder()).expect("a client");
    let call = tokio::spawn(client.post(server.url("/pay")).body("pay").send());
    server.await_requests(1).await;
    timeout.arrived(1).await;
    timeout.open();
    pause.arrived(1).await;
    assert_eq!(server.seen().len(), 1, "it pauses");
    timeout.close();
    pause.open();

    let response = call.await.expect("it ends").expect("an answer");

    assert_eq!(outcome(&response).attempts, 2);
}

/// A timer that a test moves on by its gates.
#[derive(Debug)]
struct OneOfEach {
    attempt: Duration,
    timeout: Gate,
    pause: Gate,
}

impl Timer for OneOfEach {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let is_timeout = duration == self.attempt;
        let gate = if is_timeout {
            &self.timeout
        } else {
            &self.pause
        };
        let gate = gate.clone();
        Box::pin(async move { gate.pass().await })
    }
}
