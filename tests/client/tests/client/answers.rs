//! How the client judges answers.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use http::{Extensions, HeaderName};
use idempotent_client::{Budget, ClientError, Origin, Profile, StopReason};
use reqwest::{Request, Response};
use reqwest_middleware::{Middleware, Next};

use crate::kit::{
    Ending, Pauses, Process, Server, Step, answer, builder, client, client_at, client_with, json,
    lock, outcome, patient, problem,
};

mod retry_after;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn cl12_what_is_in_progress_is_asked_again_with_the_same_key() {
    let in_progress = problem(409, "idempotency-request-in-progress").with("retry-after", "2");
    let server = Server::doing([in_progress.clone(), in_progress, answer(201)]).await;
    let client = client();

    let response = client.pay(&server).await;

    assert_eq!(response.status(), 201);
    server.requests_with_one_key();
    let pauses = client.pauses.taken();
    assert_eq!(pauses.len(), 2);
    assert!(
        pauses.iter().all(|pause| *pause >= 2 * SECOND),
        "{pauses:?}"
    );
}

/// A handler that takes long: neither the attempts nor the retries of the origin are used up by
/// asking for it.
#[tokio::test]
async fn cl12_what_is_running_is_waited_for_however_often_it_is_asked_for() {
    let in_progress = problem(409, "idempotency-request-in-progress").with("retry-after", "1");
    let steps = [Step::Cut].into_iter();
    let steps = steps.chain([(); 20].map(|()| in_progress.clone().into()));
    let server = Server::doing(steps.chain([Step::Cut, answer(201).into()])).await;
    let client = client_with(|keys| keys.limits(patient().budget(Budget::new(2, 0.0))));

    let response = client.post(&server.url("/pay")).send().await;

    let response = response.expect("an answer");
    assert_eq!(response.status(), 201);
    assert_eq!(outcome(&response).attempts, 23);
    server.requests_with_one_key();
}

#[tokio::test]
async fn cl12_stripe_s_words_for_it_are_understood() {
    let in_use = json(
        409,
        r#"{"error":{"type":"invalid_request_error","code":"idempotency_key_in_use"}}"#,
    );
    for conflict in [in_use, answer(409)] {
        let server = Server::doing([conflict, answer(200)]).await;
        let client = client_at(&server, Profile::stripe());
        let response = client.pay(&server).await;
        assert_eq!(outcome(&response).attempts, 2);
    }
}

#[tokio::test]
async fn cl13_the_application_s_conflict_is_the_answer() {
    let theirs = json(
        409,
        r#"{"type":"https://api.example.com/problems/sold-out","retryable":true}"#,
    );
    for conflict in [answer(409).with("retry-after", "1"), theirs] {
        let server = Server::doing([conflict]).await;
        let response = client().pay(&server).await;
        assert_eq!(response.status(), 409);
        assert_eq!(server.seen().len(), 1);
        assert_eq!(outcome(&response).attempts, 1);
    }
}

#[tokio::test]
async fn cl17_a_reused_key_is_the_end_and_no_new_one_is_made_up() {
    let stripe = json(400, r#"{"error":{"type":"idempotency_error"}}"#);
    for reused in [problem(422, "idempotency-key-reused"), stripe] {
        let server = Server::doing([reused]).await;
        let client = client();
        let send = || client.charge(&server).send();

        let ended = send().await;
        assert!(matches!(ended.ending(), ClientError::KeyReused { .. }));
        let status = ended.ending().call().and_then(|call| call.answer.as_ref());
        assert!(status.is_some());

        // The key is burned: the same wish is not sent again, with this key or another one.
        assert!(matches!(
            send().await.ending(),
            ClientError::KeyReused { .. }
        ));
        assert_eq!(server.seen().len(), 1);
    }
}

#[tokio::test]
async fn cl18_a_missing_or_invalid_key_is_the_answer() {
    for slug in ["idempotency-key-missing", "idempotency-key-invalid"] {
        let server = Server::doing([problem(400, slug)]).await;
        let response = client().pay(&server).await;
        assert_eq!(response.status(), 400);
        assert_eq!(server.seen().len(), 1);
    }
}

#[tokio::test]
async fn cl19_the_form_of_a_key_never_changes_by_itself() {
    let quoted = problem(400, "idempotency-key-invalid");
    let server = Server::doing([quoted, answer(500), answer(201)]).await;
    let client = client();
    let send = || client.charge(&server).send();

    assert_eq!(send().await.expect("an answer").status(), 400);
    assert_eq!(send().await.expect("an answer").status(), 201);

    let keys = server.keys();
    assert_eq!(keys.len(), 3);
    assert!(
        keys.iter()
            .all(|key| *key == keys[0] && key.as_ref().is_some_and(|key| key.starts_with('"')))
    );
}

#[tokio::test]
async fn cl23_server_errors_are_tried_again_and_recorded_ones_are_not() {
    // A status that is not known counts as 500, and so does one that cannot be (RFC 9110, section
    // 15).
    for status in [500, 502, 503, 504, 507, 520, 524, 599, 600] {
        let recorded = answer(status).with("idempotent-replayed", "true");
        let server = Server::doing([answer(status), recorded]).await;
        let ended = client().post(&server.url("/pay")).send().await;
        let (why, call) = ended.unknown();
        assert_eq!(why, StopReason::Recorded);
        assert_eq!(call.attempts, 2);
        assert_eq!(server.seen().len(), 2);
    }
}

#[tokio::test]
async fn cl24_the_vendor_s_word_wins() {
    let client = client_with(|_| {
        let profile = Profile::stripe().verdict_header(HeaderName::from_static("transient-error"));
        idempotent_client::IdempotencyKeys::builder(profile)
            .limits(patient())
            .timer(Pauses::default())
    });
    for header in ["stripe-should-retry", "transient-error"] {
        let server = Server::doing([answer(400).with(header, "true"), answer(200)]).await;
        let response = client.pay(&server).await;
        assert_eq!(outcome(&response).attempts, 2, "{header}");

        for status in [409, 503] {
            let server = Server::doing([answer(status).with(header, "false")]).await;
            let ended = client.post(&server.url("/pay")).send().await;
            assert_eq!(server.seen().len(), 1, "{header}");
            assert_eq!(
                ended.is_ok(),
                status == 409,
                "a server error leaves open what happened"
            );
        }
    }
}

#[tokio::test]
async fn cl25_the_server_s_own_members_win() {
    let body = |retryable| {
        format!(r#"{{"type":"about:blank","retryable":{retryable},"key_action":"keep"}}"#)
    };
    let server = Server::doing([json(409, &body(true)), json(500, &body(false))]).await;
    let ended = client().post(&server.url("/pay")).send().await;
    assert_eq!(ended.unknown().0, StopReason::Server);
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn cl26_timeouts_early_data_and_rate_limits() {
    let rows: [(Vec<Step>, u16, usize); 5] = [
        (vec![answer(408).into(), answer(201).into()], 201, 2),
        (vec![answer(425).into(), answer(201).into()], 201, 2),
        (vec![answer(425).into(), answer(425).into()], 425, 2),
        (vec![answer(429).into()], 429, 1),
        (
            vec![
                answer(429).with("retry-after", "1").into(),
                answer(201).into(),
            ],
            201,
            2,
        ),
    ];
    for (steps, status, requests) in rows {
        let told = format!("{steps:?}");
        let server = Server::doing(steps).await;
        let response = client().pay(&server).await;
        assert_eq!(response.status(), status, "{told}");
        assert_eq!(server.seen().len(), requests, "{told}");
        server.requests_with_one_key();
    }
    let lock = json(
        429,
        r#"{"error":{"type":"invalid_request_error","code":"lock_timeout"}}"#,
    );
    let server = Server::doing([lock, answer(200)]).await;
    let response = client().pay(&server).await;
    assert_eq!(outcome(&response).attempts, 2);
}

/// Signs every attempt anew, and refreshes its token when it is refused.
#[derive(Default)]
struct Signs(Arc<Mutex<u32>>);

#[async_trait]
impl Middleware for Signs {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        let token = || {
            let mut count = lock(&self.0);
            *count += 1;
            format!("token-{count}").parse().expect("a header")
        };
        let mut first = request.try_clone().expect("it is in memory");
        first.headers_mut().insert("authorization", token());
        let response = next.clone().run(first, extensions).await?;
        if response.status() != 401 {
            return Ok(response);
        }
        let mut second = request;
        second.headers_mut().insert("authorization", token());
        next.run(second, extensions).await
    }
}

#[tokio::test]
async fn cl27_authorisation_is_new_at_every_attempt_and_the_key_is_not() {
    let server = Server::doing([answer(500), answer(401), answer(201)]).await;
    let process = Process::around(builder(&Pauses::default()), Signs::default());

    let response = process.post(&server).send().await.expect("an answer");

    assert_eq!(response.status(), 201);
    server.requests_with_one_key();
    let seen = server.seen();
    let tokens = seen.iter().map(|seen| &seen.headers["authorization"]);
    let tokens: Vec<_> = tokens.collect();
    assert_eq!(tokens, ["token-1", "token-2", "token-3"]);
}

#[tokio::test]
async fn cl27_a_refused_call_is_sent_again_by_its_intent() {
    let server = Server::doing([answer(401), answer(201)]).await;
    let client = client();
    for (token, status) in [("old", 401), ("new", 201)] {
        let call = client.charge(&server).bearer_auth(token);
        let response = call.send().await.expect("an answer");
        assert_eq!(response.status(), status);
    }
    let keys = server.keys();
    assert_eq!(keys[0], keys[1]);
}

/// Nothing ran, so there is nothing that the intent came to, and nothing that its next request
/// would contradict.
#[tokio::test]
async fn cl11_a_request_that_was_refused_for_its_form_is_put_right_under_the_same_intent() {
    for refusal in [405, 411, 413, 414, 415, 417, 421, 426, 428, 431] {
        let server = Server::doing([answer(refusal), answer(201)]).await;
        let client = client();
        for (form, status) in [("text/plain", refusal), ("application/json", 201)] {
            let call = client.charge(&server).header("content-type", form);
            let response = call.send().await.expect("an answer");
            assert_eq!(response.status(), status);
        }
        let keys = server.keys();
        assert_eq!(keys[0], keys[1]);
    }
}

/// The answer was lost, and it was a refusal of the handler's own, which the server has recorded.
#[tokio::test]
async fn cl23_a_refusal_that_was_recorded_is_the_answer_and_stays_it() {
    let recorded = answer(403).with("idempotent-replayed", "true");
    let server = Server::doing([Step::Cut, recorded.into()]).await;
    let client = client();
    for origin in [Origin::Server, Origin::Journal] {
        let response = client.charge(&server).send().await;
        let response = response.expect("the recorded answer");
        assert_eq!(response.status(), 403);
        assert_eq!(outcome(&response).origin, origin);
    }
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn cl37_what_the_server_does_not_know_or_keep_is_told_with_its_handle() {
    for slug in [
        "idempotency-outcome-unknown",
        "idempotency-result-expired",
        "idempotency-result-unavailable",
    ] {
        let body = format!(
            r#"{{"type":"https://api.example.com/problems/{slug}","operation_ref":"op_1"}}"#
        );
        let server = Server::doing([json(409, &body)]).await;
        let ended = client().post(&server.url("/pay")).send().await;
        let call = match ended.ending() {
            ClientError::Unknown {
                why: StopReason::Server,
                call,
                ..
            } if slug.ends_with("unknown") => call,
            ClientError::ResultGone { call, .. } if !slug.ends_with("unknown") => call,
            other => panic!("{slug}: {other:?}"),
        };
        assert_eq!(call.operation_ref.as_deref(), Some("op_1"));
        assert_eq!(server.seen().len(), 1);
    }
}

#[tokio::test]
async fn cl38_a_response_tells_how_it_came_about() {
    let replayed = answer(201)
        .with("idempotent-replayed", "true")
        .body("receipt");
    let server = Server::doing([answer(503), replayed, answer(201)]).await;
    let client = client();

    let response = client.pay(&server).await;
    let told = outcome(&response).clone();
    assert!(told.replayed);
    assert_eq!(told.attempts, 2);
    let sent = server.keys()[0].clone();
    assert_eq!(told.key.map(|key| format!("\"{}\"", key.as_str())), sent);
    assert_eq!(response.url().path(), "/pay");
    assert_eq!(response.text().await.expect("a body"), "receipt");

    let response = client.pay(&server).await;
    assert!(!outcome(&response).replayed);
    assert_eq!(outcome(&response).attempts, 1);
}
