//! A8: requests whose outcome an operator found out.

use std::time::Duration;

use axum::body::Body;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use idempotent_runtime::{
    Idempotency, OnCrash, Status,
    http::{KeyScope, LayerBuilder, ReplayHint, Rules, Scope, StoredResponse},
};

use crate::{
    harness::{Shop, charge, layer_over, marked, on_a_clock, vanished},
    statuses::Mask,
};

fn receipt() -> Response<&'static str> {
    Response::builder()
        .status(StatusCode::CREATED)
        .header("location", "/receipts/99")
        .header("set-cookie", "session=operator")
        .body("receipt 99")
        .expect("it is a response")
}

#[tokio::test]
async fn s_104_a_crash_is_settled_with_the_response_that_retries_get() {
    let rules = Rules::ietf().on_crash(OnCrash::Uncertain).lease("5s");
    let (shop, gate, clock) = on_a_clock(rules);
    let vanished = vanished(&shop, &gate, charge()).await;
    clock.advance(Duration::from_secs(6));
    shop.send(charge()).await.is_problem(409, "outcome_unknown");

    let settle = || shop.layer.settle(Some("A"), "k").expect("these are keys");
    let settled = settle().with_response(receipt()).await;

    assert!(settled.is_ok(), "{settled:?}");
    let again = shop.send(charge()).await;
    assert!(again.is_replay());
    assert_eq!(
        (again.status.as_u16(), &again.body[..]),
        (201, &b"receipt 99"[..])
    );
    assert_eq!(again.headers["location"], "/receipts/99");
    assert!(!again.headers.contains_key("set-cookie"));
    assert_eq!(shop.runs(), 1);
    // A settled outcome stays. Another word does not change it, and the handler, which was only
    // slow, does not either.
    let other = settle().with_response(Response::new("another")).await;
    assert!(other.is_err_and(|error| error.to_string().contains("it has an outcome already")));
    gate.open();
    assert_eq!(vanished.await.expect("it is answered").body, "receipt 99");
}

#[tokio::test]
async fn s_65_a_settled_response_is_sealed_where_the_layer_seals() {
    let unsealed = Shop::new(Rules::ietf());
    for key_scope in [KeyScope::Caller, KeyScope::Route] {
        let set_up = |layer: LayerBuilder<Scope>| {
            let rules = Rules::ietf().key_scope(key_scope);
            layer.rules(rules).seal(Mask(0x55))
        };
        let shop = unsealed.beside(set_up, nobody_knows);
        let ask = || charge().caller(&format!("{key_scope:?}"));
        let caller = format!("{key_scope:?}");
        shop.send(ask()).await.is_fresh();
        let settle = match key_scope {
            KeyScope::Route => shop.layer.settle(Some(&caller), &("POST", "/charges", "k")),
            _ => shop.layer.settle(Some(&caller), "k"),
        };

        // A stored response is kept as it is, whatever its fields.
        let (head, body) = receipt().into_parts();
        let stored = StoredResponse::new(head.status, head.headers, body, HeaderMap::new());
        let settled = settle.expect("these are keys").with_response(stored).await;

        assert!(settled.is_ok(), "{settled:?}");
        let again = shop.send(ask()).await;
        assert!(again.is_replay());
        assert_eq!(again.body, "receipt 99");
        assert_eq!(again.headers["set-cookie"], "session=operator");
    }
    for (_, record) in unsealed.records().await {
        let bytes = &record.outcome.as_ref().expect("it is settled").bytes;
        assert!(!bytes.windows(7).any(|piece| piece == b"receipt"));
    }
}

async fn nobody_knows(_: usize, _: Request<Body>) -> Response<Body> {
    marked(Response::default(), ReplayHint::Uncertain)
}

/// A shop at which it is unknown what came of a request.
fn uncertain() -> Shop {
    Shop::with(Rules::ietf(), nobody_knows)
}

/// An operator copies the fields from a log, of a response that was longer.
#[tokio::test]
async fn s_75_a_settled_response_has_the_length_of_its_body_whatever_is_said() {
    for (name, said) in [("content-length", "3"), ("transfer-encoding", "chunked")] {
        let shop = uncertain();
        shop.send(charge()).await.is_fresh();
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_static(said));
        let stored = StoredResponse::new(StatusCode::OK, headers, "receipt 99", HeaderMap::new());
        let settle = shop.layer.settle(Some("A"), "k").expect("these are keys");
        let settled = settle.with_response(stored).await;
        assert!(settled.is_ok(), "{settled:?}");

        let again = shop.send(charge()).await;

        assert!(again.is_replay());
        assert_eq!(again.body, "receipt 99");
        assert_eq!(again.headers["content-length"], "10");
        assert!(!again.headers.contains_key("transfer-encoding"));
    }
}

#[tokio::test]
async fn a_response_that_cannot_be_stored_settles_nothing() {
    let shop = uncertain();
    let small = Idempotency::builder(shop.store.clone())
        .max_outcome(16)
        .build();
    let small = small.expect("the settings are sound");
    let layer = |seal| layer_over(&small, |layer| layer.seal(Mask(seal)));
    shop.send(charge()).await.is_fresh();
    for layer in [layer(0), layer(1)] {
        let settle = layer.settle(Some("A"), "k").expect("these are keys");
        assert!(settle.with_response(receipt()).await.is_err());
    }
    let status = shop.idem.lookup("http", Some(&("caller", "A")), "k").await;
    assert!(matches!(status, Ok(Status::Uncertain)), "{status:?}");
    let settle = shop.layer.settle(Some("A"), "k").expect("these are keys");
    assert_eq!(settle.as_done().await, Ok(()));
    shop.refuses(charge(), 409, "result_unavailable").await;
}
