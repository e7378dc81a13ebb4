//! A3: the first request, its replays, other requests with its key, and those that come while it runs.

use axum::body::Body;
use http::Response;
use idempotent_runtime::{http::Rules, testing::Gate};

use crate::harness::{Shop, charge, post};

#[tokio::test]
async fn s_35_the_first_request_gets_the_handlers_own_response() {
    let shop = Shop::new(Rules::ietf());

    let first = shop.send(charge()).await;

    first.is_fresh();
    assert_eq!(first.status, 201);
    assert_eq!(first.body, "receipt 1");
    assert_eq!(first.headers["location"], "/receipts/1");
    assert_eq!(shop.runs(), 1);
}

#[tokio::test]
async fn s_36_a_retry_gets_the_same_response() {
    let shop = Shop::new(Rules::ietf());
    let first = shop.send(charge()).await;

    let again = shop.send(charge()).await;

    again.replays(&first);
    assert_eq!(again.headers["location"], first.headers["location"]);
    assert_eq!(shop.runs(), 1);
}

#[tokio::test]
async fn s_39_another_body_with_the_key_is_refused_and_changes_nothing() {
    let shop = Shop::new(Rules::ietf());
    let first = shop.send(charge()).await;

    let other = shop.send(charge().body("amount=99")).await;

    other.is_problem(422, "key_reused");
    shop.send(charge()).await.replays(&first);
    assert_eq!(shop.runs(), 1);
}

/// A shop whose handler waits at a gate.
fn waiting(rules: Rules) -> (Shop, Gate) {
    let gate = Gate::new();
    let inside = gate.clone();
    let shop = Shop::with(rules, move |run, _| {
        let gate = inside.clone();
        async move {
            gate.pass().await;
            Response::new(Body::from(format!("receipt {run}")))
        }
    });
    (shop, gate)
}

#[tokio::test]
async fn s_40_a_retry_while_the_first_runs_is_told_to_come_again() {
    let (shop, gate) = waiting(Rules::ietf());
    let first = tokio::spawn({
        let shop = shop.clone();
        async move { shop.send(charge()).await }
    });
    gate.arrived(1).await;

    let meanwhile = shop.send(charge()).await;

    let document = meanwhile.is_problem(409, "request_in_progress");
    assert_eq!(meanwhile.headers["retry-after"], "1");
    assert_eq!(document["retry_after"], 1);
    assert_eq!(document["retryable"], true);
    gate.open();
    first.await.expect("it is answered").is_fresh();
    assert_eq!(shop.runs(), 1);
}

#[tokio::test]
async fn s_41_another_request_while_the_first_runs_is_another_request() {
    let (shop, gate) = waiting(Rules::ietf());
    let first = tokio::spawn({
        let shop = shop.clone();
        async move { shop.send(charge()).await }
    });
    gate.arrived(1).await;

    let other = shop.send(post("/charges").key("k").body("amount=99")).await;

    other.is_problem(422, "key_reused");
    gate.open();
    first.await.expect("it is answered").is_fresh();
}
