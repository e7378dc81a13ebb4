//! A4: several kinds of caller, who must not be taken for each other.

use axum::{Router, routing::any};
use http::request::Parts;
use idempotent_runtime::{
    Error, Idempotency,
    http::{IdempotencyLayer, Rules},
};

use crate::harness::{Shop, charge};

fn number(request: &Parts) -> Option<u64> {
    request.headers.get("number")?.to_str().ok()?.parse().ok()
}

/// A layer of the usual name, for callers of this kind, around a handler that says whose it is.
fn of_kind(shop: &Shop, kind: &'static str, handler: &'static str) -> Shop {
    let layer = IdempotencyLayer::builder(shop.idem.clone()).scope(kind, number);
    let layer = layer.build().expect("the settings are sound");
    let router = Router::new().route("/charges", any(move || async move { handler }));
    shop.clone().routed_by(router.layer(layer))
}

#[tokio::test]
async fn s_51_callers_of_two_kinds_never_meet_and_those_of_one_kind_do() {
    let shop = Shop::new(Rules::ietf());
    let customers = of_kind(&shop, "customer", "customers");
    let merchants = of_kind(&shop, "merchant", "merchants");
    let other_customers = of_kind(&shop, "customer", "other customers");

    let ask = || charge().header("number", "7");
    let first = customers.send(ask()).await;
    assert_eq!(first.body, "customers");
    assert_eq!(merchants.send(ask()).await.body, "merchants");
    other_customers.send(ask()).await.replays(&first);
}

#[test]
fn s_51_a_kind_that_says_nothing_is_a_mistake() {
    let builder = IdempotencyLayer::builder(Idempotency::memory());
    let built = builder.scope(" ", number).build();
    assert!(matches!(built, Err(Error::InvalidPolicy(_))), "{built:?}");
}
