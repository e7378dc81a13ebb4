//! Which calls get a key, and what it looks like on the wire.

use std::time::Duration;

use http::Extensions;
use idempotent_client::{ClientCall, ClientError, ClientKey, Intent, InvalidClientKey, Profile};
use reqwest_middleware::ClientBuilder;
use reqwest_retry::{RetryTransientMiddleware, policies::ExponentialBackoff};

use crate::kit::{
    Client, Ending, Pauses, Server, Step, answer, builder, client, client_at, client_with, outcome,
    patient, wish,
};

mod secrets;

const NO_STEPS: [Step; 0] = [];

#[tokio::test]
async fn cl01_one_key_is_made_before_the_first_attempt() {
    for method in [http::Method::POST, http::Method::PATCH] {
        let server = Server::doing([Step::Cut, answer(500).into(), answer(201).into()]).await;
        let client = client();
        let call = client.http.request(method, server.url("/pay")).body("pay");

        let response = call.send().await.expect("an answer");

        assert_eq!(response.status(), 201);
        let keys = server.keys();
        assert_eq!(keys.len(), 3);
        assert!(keys[0].is_some());
        assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
        let bodies = server.seen().into_iter().map(|seen| seen.body);
        assert!(
            bodies
                .into_iter()
                .all(|body| body.as_deref() == Some(b"pay"))
        );
    }
}

#[tokio::test]
async fn cl01_two_calls_have_two_keys() {
    let server = Server::doing(NO_STEPS).await;
    let client = client();
    for _ in 0..2 {
        client.pay(&server).await;
    }
    let keys = server.keys();
    assert_ne!(keys[0], keys[1]);
}

fn retries() -> RetryTransientMiddleware<ExponentialBackoff> {
    let backoff = ExponentialBackoff::builder().retry_bounds(Duration::ZERO, Duration::ZERO);
    RetryTransientMiddleware::new_with_policy(backoff.build_with_max_retries(3))
}

/// The retry middleware wraps an error of ours, and shows only the cause behind it.
#[tokio::test]
async fn cl21_the_key_of_an_unknown_outcome_is_found_in_the_error_of_a_middleware() {
    let server = Server::doing([Step::Cut, Step::Cut]).await;
    let limits = patient().attempts(2);
    let (http, keys) = builder(&Pauses::default())
        .limits(limits)
        .build(reqwest::Client::builder())
        .expect("a client");
    let client = ClientBuilder::new(http).with(retries()).with(keys).build();

    let call = client.post(server.url("/pay")).body("pay").send().await;

    let error = call.expect_err("nobody knows");
    let error = ClientError::from_error(&error).expect("an error of ours");
    assert!(matches!(error, ClientError::Unknown { .. }), "{error:?}");
    assert!(error.key().is_some());
}

/// The retry middleware stands inside, where it repeats what it is given, or outside, where it
/// calls ours again.
#[tokio::test]
async fn cl02_another_middleware_that_retries_repeats_the_key() {
    for inside in ["inside", "outside"] {
        let server = Server::doing([answer(503), answer(503), answer(503)]).await;
        let pauses = Pauses::default();
        let (http, keys) = builder(&pauses)
            .limits(patient().attempts(1))
            .build(reqwest::Client::builder())
            .expect("a client");
        let retry = retries();
        let client = match inside {
            "inside" => ClientBuilder::new(http).with(keys).with(retry).build(),
            // Out there, only a response that is handed on is tried again.
            _ => {
                let plain = builder(&pauses).limits(patient().attempts(1));
                let url = server.url("/").parse().expect("a URL");
                let undeclared = plain.server(&url, Profile::undeclared());
                let (http, keys) = undeclared.build(reqwest::Client::builder()).expect("one");
                ClientBuilder::new(http).with(retry).with(keys).build()
            }
        };

        let call = client.post(server.url("/pay")).body("pay");
        let response = call.send().await.expect("an answer");

        assert_eq!(response.status(), 200, "{inside}");
        let keys = server.keys();
        assert_eq!(keys.len(), 4, "{inside}");
        assert!(keys[0].is_some(), "{inside}");
        assert!(keys.iter().all(|key| *key == keys[0]), "{inside}: {keys:?}");
    }
}

/// The facts that a retry would go by must not turn the next call into a repetition.
#[tokio::test]
async fn cl02_extensions_that_are_used_again_make_no_repetition() {
    let server = Server::doing(NO_STEPS).await;
    let client = client();
    let mut extensions = Extensions::new();
    for _ in 0..2 {
        let request = client.post(&server.url("/pay")).build().expect("a request");
        let call = client
            .http
            .execute_with_extensions(request, &mut extensions);
        call.await.expect("an answer");
    }
    let keys = server.keys();
    assert_ne!(keys[0], keys[1]);
}

/// The call that a middleware outside sends, and the ending of one that fails.
async fn sends(
    client: &Client,
    url: &str,
    body: &'static str,
    own: &mut Extensions,
) -> Option<Told> {
    let request = client.post(url).body(body).build().expect("a request");
    let call = client.http.execute_with_extensions(request, own);
    call.await
        .err()
        .map(|error| match ClientError::from_error(&error) {
            Some(ClientError::AnotherCallOpen { call, .. }) => Told::Refused(call.key.clone()),
            other => Told::Failed(other.and_then(ClientError::key).cloned()),
        })
}

#[derive(Debug, PartialEq)]
enum Told {
    Refused(ClientKey),
    Failed(Option<ClientKey>),
}

/// The first one may have been carried out. With the key of another request, it would be sent twice
/// under two keys.
#[tokio::test]
async fn cl02_another_request_is_refused_while_the_first_one_is_open() {
    let server = Server::doing([Step::Cut]).await;
    let client = client_with(|keys| keys.limits(patient().attempts(1)));
    let url = server.url("/pay");
    let mut own = Extensions::new();
    let Some(Told::Failed(Some(key))) = sends(&client, &url, "pay", &mut own).await else {
        panic!("its answer was cut off");
    };

    for _ in 0..2 {
        let other = sends(&client, &url, "token", &mut own).await;
        assert_eq!(other, Some(Told::Refused(key.clone())));
    }
    assert_eq!(sends(&client, &url, "pay", &mut own).await, None);

    assert_eq!(sends(&client, &url, "token", &mut own).await, None);
    let keys = server.keys();
    assert_eq!(keys.len(), 3);
    assert_eq!(keys[0], keys[1]);
    assert_ne!(keys[1], keys[2]);
}

#[tokio::test]
async fn cl03_a_key_of_the_caller_s_is_sent_as_it_is() {
    for written in ["\"mine\"", "mine", "mine; p=1"] {
        let server = Server::doing([answer(500), answer(201)]).await;
        let client = client();
        let call = client
            .post(&server.url("/pay"))
            .header("Idempotency-Key", written);

        let response = call.send().await.expect("an answer");

        assert_eq!(outcome(&response).attempts, 2);
        assert_eq!(
            server.keys(),
            [Some(written.to_owned()), Some(written.to_owned())]
        );
    }
}

#[tokio::test]
async fn cl03_two_lines_are_refused() {
    let server = Server::doing([answer(201)]).await;
    let call = client().post(&server.url("/pay"));
    let call = call
        .header("Idempotency-Key", "a")
        .header("Idempotency-Key", "b");

    let refused = call.send().await;

    let ClientError::InvalidKey(InvalidClientKey::Doubled(2)) = refused.ending() else {
        panic!("{refused:?}")
    };
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn cl04_reads_have_no_key_and_are_sent_again() {
    for method in [http::Method::GET, http::Method::HEAD, http::Method::OPTIONS] {
        let server = Server::doing([Step::Cut, answer(503).into(), answer(200).into()]).await;
        let client = client();

        let call = client.http.request(method.clone(), server.url("/"));
        let response = call.send().await.expect("an answer");

        assert_eq!(response.status(), 200, "{method}");
        assert_eq!(server.keys(), [None, None, None], "{method}");
        assert_eq!(outcome(&response).key, None);
        assert_eq!(outcome(&response).attempts, 3);
    }
}

#[tokio::test]
async fn cl04_the_last_answer_to_a_read_is_handed_on() {
    let server = Server::doing(vec![answer(503); 9]).await;
    let response = client().http.get(server.url("/")).send().await;
    assert_eq!(response.expect("an answer").status(), 503);
    assert_eq!(server.seen().len(), 4);
}

#[tokio::test]
async fn cl05_repeatable_methods_have_a_key_on_demand() {
    for method in [http::Method::PUT, http::Method::DELETE] {
        let server = Server::doing([Step::Cut, answer(204).into(), answer(204).into()]).await;
        let client = client();
        let call = || client.http.request(method.clone(), server.url("/it"));

        call().send().await.expect("an answer");
        assert_eq!(server.keys(), [None, None], "{method}");

        let keyed = call().with_extension(ClientCall::new().keyed());
        keyed.send().await.expect("an answer");
        assert!(server.keys()[2].is_some(), "{method}");
    }
}

/// A key that may mean nothing takes nothing away from what the method promises.
#[tokio::test]
async fn cl05_a_key_on_trial_does_not_keep_a_repeatable_method_from_being_repeated() {
    let server = Server::doing([Step::Cut, answer(204).into()]).await;
    let client = client_at(&server, Profile::undeclared());
    let call = client.http.put(server.url("/it"));
    let call = call.with_extension(ClientCall::new().keyed());
    let response = call.send().await.expect("an answer");
    assert_eq!(response.status(), 204);
    let keys = server.keys();
    assert!(keys[0].is_some());
    assert_eq!(keys[0], keys[1]);
}

#[tokio::test]
async fn cl06_keys_are_quoted_uuids_and_bare_where_a_server_wants_it() {
    let ours = Server::doing([answer(201)]).await;
    let theirs = Server::doing([answer(201)]).await;
    let client = client_at(&theirs, Profile::stripe());

    client.pay(&ours).await;
    let response = client.pay(&theirs).await;

    let quoted = ours.keys()[0].clone().expect("a key");
    assert_eq!(quoted.len(), 38);
    assert!(quoted.starts_with('"') && quoted.ends_with('"'));
    let bare = theirs.keys()[0].clone().expect("a key");
    assert_eq!(bare.len(), 36);
    let key = outcome(&response).key.as_ref().expect("it is told");
    assert_eq!(bare, key.as_str());
}

#[tokio::test]
async fn cl07_a_custom_key_is_escaped_and_a_bad_one_is_refused() {
    let server = Server::doing([answer(201)]).await;
    let client = client();
    let key = ClientKey::new(r#"a"b\c"#).expect("a key");

    let call = client.post(&server.url("/pay"));
    let call = call.with_extension(ClientCall::new().key(key));
    call.send().await.expect("an answer");
    assert_eq!(server.keys(), [Some(r#""a\"b\\c""#.to_owned())]);

    for bad in ["é".to_owned(), "x".repeat(256), "\"open".to_owned()] {
        let call = client.post(&server.url("/pay"));
        let refused = call.header("Idempotency-Key", bad).send().await;
        assert!(matches!(refused.ending(), ClientError::InvalidKey(_)));
    }
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn cl42_one_intent_is_one_key_in_every_process() {
    let server = Server::doing(vec![answer(401); 4]).await;
    let send = async |client: &Client, operation, id| {
        let call = ClientCall::new().intent(Intent::new(operation, id));
        let call = client.post(&server.url("/pay")).with_extension(call);
        call.send().await.expect("an answer");
    };
    for _process in 0..2 {
        let client = client_with(|keys| keys.namespace("shop"));
        send(&client, "payments.charge", "order-42").await;
    }
    let client = client_with(|keys| keys.namespace("shop"));
    send(&client, "payments.charge", "order-43").await;
    send(&client, "payments.refund", "order-42").await;

    let keys = server.keys();
    assert_eq!(keys[0], keys[1]);
    assert_ne!(keys[0], keys[2]);
    assert_ne!(keys[0], keys[3]);
}

#[tokio::test]
async fn cl43_only_the_intent_is_in_its_key() {
    let server = Server::doing(vec![answer(401); 2]).await;
    for (body, path) in [
        ("cents=100&at=12:00", "/pay"),
        ("cents=200&at=12:01", "/v2/pay"),
    ] {
        let call = client().http.post(server.url(path)).body(body);
        call.with_extension(wish()).send().await.expect("an answer");
    }
    let keys = server.keys();
    assert_eq!(keys[0], keys[1]);
}

/// A key that several operations would share is refused where it can be seen.
#[tokio::test]
async fn cl45_every_operation_of_a_batch_has_a_key_of_its_own() {
    let server = Server::doing(vec![answer(201); 4]).await;
    let client = client();
    for item in ["a", "b", "c"] {
        let call = client.http.post(server.url("/items")).body(item);
        call.send().await.expect("an answer");
    }
    let mut keys = server.keys();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 3);

    let batch = ClientCall::new().intent(Intent::new("import", "batch-7"));
    let send = |item: &'static str| {
        let call = client.http.post(server.url("/items")).body(item);
        call.with_extension(batch.clone()).send()
    };
    send("a").await.expect("an answer");
    let second = send("b").await;
    second.is_another_request();
    assert_eq!(server.seen().len(), 4);
}
