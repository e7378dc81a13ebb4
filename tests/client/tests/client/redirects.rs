//! Redirects: the client beneath takes every header along, so a key is kept at its origin by what it may follow.

use idempotent_runtime::client::{ClientError, IdempotencyKeys, Profile};

use crate::kit::{Ending, Server, answer, client, outcome};

#[tokio::test]
async fn c34_a_repetition_at_the_same_origin_keeps_the_key() {
    for status in [307, 308] {
        let moved = answer(status).with("location", "/v2/pay");
        let server = Server::doing([moved, answer(201)]).await;
        let response = client()
            .post(&server.url("/pay"))
            .send()
            .await
            .expect("an answer");
        assert_eq!(response.status(), 201);
        assert_eq!(response.url().path(), "/v2/pay");
        assert_eq!(outcome(&response).attempts, 1);
        let keys = server.keys();
        assert!(keys[0].is_some());
        assert_eq!(keys[0], keys[1]);
        let second = &server.seen()[1];
        assert_eq!(
            (second.method.as_str(), second.path.as_str()),
            ("POST", "/v2/pay")
        );
        assert_eq!(second.body.as_deref(), Some(&b"pay"[..]));
    }
}

#[tokio::test]
async fn c34_another_origin_never_sees_the_key() {
    for status in [301, 302, 303, 307, 308] {
        let elsewhere = Server::doing([answer(201)]).await;
        let moved = answer(status).with("location", elsewhere.url("/pay"));
        let server = Server::doing([moved]).await;
        let response = client()
            .post(&server.url("/pay"))
            .send()
            .await
            .expect("an answer");
        assert_eq!(response.status(), status);
        assert_eq!(
            response.headers()["location"],
            elsewhere.url("/pay").as_str()
        );
        assert!(elsewhere.seen().is_empty());
    }
}

#[tokio::test]
async fn c34_another_origin_is_not_reached_by_detours() {
    let elsewhere = Server::doing([answer(201)]).await;
    let away = answer(307).with("location", elsewhere.url("/pay"));
    let server = Server::doing([answer(307).with("location", "/detour"), away]).await;
    let response = client()
        .post(&server.url("/pay"))
        .send()
        .await
        .expect("an answer");
    assert_eq!(response.status(), 307);
    assert_eq!(server.seen().len(), 2);
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn c34_what_becomes_a_get_has_no_key_and_no_body() {
    for status in [301, 302, 303] {
        let done = answer(status)
            .with("location", "/receipts/1")
            .with("idempotent-replayed", "true");
        let server = Server::doing([done, answer(200).body("receipt")]).await;
        let call = client()
            .post(&server.url("/pay"))
            .header("content-type", "text/plain");
        let response = call.bearer_auth("token").send().await.expect("an answer");
        assert_eq!(response.text().await.expect("a body"), "receipt");
        let seen = server.seen();
        assert_eq!(
            (seen[1].method.as_str(), seen[1].path.as_str()),
            ("GET", "/receipts/1")
        );
        assert_eq!(seen[1].keys(), [""; 0]);
        assert_eq!(seen[1].body.as_deref(), Some(&b""[..]));
        assert!(!seen[1].headers.contains_key("content-type"));
        assert_eq!(seen[1].headers["authorization"], "Bearer token");
    }
}

#[tokio::test]
async fn c34_a_replayed_redirect_is_told_as_replayed() {
    let done = answer(303)
        .with("location", "/receipts/1")
        .with("idempotent-replayed", "true");
    let server = Server::doing([done, answer(200)]).await;
    let response = client()
        .post(&server.url("/pay"))
        .send()
        .await
        .expect("an answer");
    assert!(outcome(&response).replayed);
}

/// Whoever puts the middleware on a client of another kind is told, though too late for this key.
#[tokio::test]
async fn c34_a_client_that_follows_everything_is_found_out() {
    let elsewhere = Server::doing([answer(201)]).await;
    let server = Server::doing([answer(308).with("location", elsewhere.url("/pay"))]).await;
    let keys = IdempotencyKeys::builder(Profile::ietf());
    let (_, keys) = keys.build(reqwest::Client::builder()).expect("a client");
    let careless = reqwest_middleware::ClientBuilder::new(reqwest::Client::new());
    let client = careless.with(keys).build();

    let ended = client.post(server.url("/pay")).body("pay").send().await;

    assert!(
        matches!(ended.ending(), ClientError::LeftOrigin { .. }),
        "{ended:?}"
    );
}
