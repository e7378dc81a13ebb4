//! A9: stores that fail, and calls inside of a handler that are refused.

use std::time::Duration;

use axum::response::IntoResponse as _;
use http::{Request, Response, StatusCode};
use idempotent_runtime::{
    Error, Idempotency, InFlight, MemoryStore,
    http::Rules,
    store::StoreErrorKind,
    testing::{Fault, FaultyStore, On, StoreOperation},
};
use serde_json::Value;

use crate::{
    harness::{Ask, Shop, by_one_clock, charge, layer_over, post, silent},
    said::said_during,
};

/// A shop of this name whose store fails so, on a clock of the test's own.
fn failing(name: &str, kind: StoreErrorKind) -> (Shop, idempotent_runtime::testing::ManualClock) {
    let (store, idem, clock) = by_one_clock(|handle| handle);
    store.outage(kind);
    let layer = layer_over(&idem, |layer| layer.name(name));
    (Shop::behind(layer, store, idem, silent), clock)
}

/// The lines of this level about the store that name this operation.
fn told<'a>(said: &'a str, level: &str, name: &str) -> Vec<&'a str> {
    let of_ours = |line: &&str| {
        line.contains(&format!("{level} "))
            && line.contains(name)
            && line.contains("the store failed")
    };
    said.lines().filter(of_ours).collect()
}

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn mend_24_a_store_that_has_to_be_mended_is_an_error_once_a_route_a_minute() {
    const NAME: &str = "mend24.denied";
    let (shop, clock) = failing(NAME, StoreErrorKind::Denied);
    let (document, said) = said_during(async {
        for target in ["/charges", "/orders", "/"] {
            for _ in 0..3 {
                shop.send(post(target).key("k")).await;
            }
        }
        clock.advance(MINUTE);
        let answer = shop.send(charge()).await;
        assert!(!answer.headers.contains_key("retry-after"));
        answer.is_problem(503, "store_unavailable")
    })
    .await;

    assert_eq!(
        (&document["retryable"], &document["key_action"]),
        (&false.into(), &"keep".into())
    );
    let told = told(&said, "ERROR", NAME);
    let of_the_others = told.iter().filter(|line| line.contains("/{*path}"));
    assert_eq!((told.len(), of_the_others.count()), (3, 2), "{told:#?}");
    for line in told {
        assert!(line.contains("may not be written while"), "{line}");
    }
}

#[tokio::test]
async fn mend_24_each_kind_of_failure_is_told_by_itself() {
    use StoreErrorKind::{Configuration, Denied};
    const NAME: &str = "mend24.kinds";
    let (shop, _clock) = failing(NAME, Denied);
    let ((), said) = said_during(async {
        for kind in [Denied, Configuration, Denied, Configuration] {
            shop.store.heal();
            shop.store.outage(kind);
            shop.send(charge()).await;
        }
    })
    .await;

    assert_eq!(told(&said, "ERROR", NAME).len(), 2, "{said}");
}

#[tokio::test]
async fn mend_24_a_store_that_does_not_answer_is_a_warning() {
    const NAME: &str = "mend24.unavailable";
    let store = FaultyStore::new(MemoryStore::new());
    let idem = Idempotency::new(store.clone());
    let layer = layer_over(&idem, |layer| layer.name(NAME));
    let shop = Shop::behind(layer, store, idem, silent);
    shop.store.outage(StoreErrorKind::Unavailable);
    let (document, said) = said_during(async {
        shop.send(charge()).await;
        shop.send(charge())
            .await
            .is_problem(503, "store_unavailable")
    })
    .await;

    assert_eq!(document["retryable"], true);
    assert_eq!(told(&said, "WARN", NAME).len(), 1, "{said}");
    assert_eq!(told(&said, "ERROR", NAME).len(), 0);
}

#[tokio::test]
async fn mend_24_a_store_that_fails_a_handler_s_own_call_is_told_too() {
    const NAME: &str = "mend24.inner";
    let inner = FaultyStore::new(MemoryStore::new());
    inner.fault(
        StoreOperation::Claim,
        On::Every,
        Fault::Fail(StoreErrorKind::Denied),
    );
    let inner = Idempotency::new(inner);
    let (store, idem, _) = by_one_clock(|handle| handle);
    let layer = layer_over(&idem, |layer| layer.name(NAME));
    let shop = Shop::behind(layer, store, idem, move |_, _: Request<_>| {
        let call = inner.call("mail").key("1");
        async move {
            match call.run(async |_| Ok::<_, Error>(1)).await {
                Ok(_) => Response::default(),
                Err(error) => error.into_response(),
            }
        }
    });
    let (document, said) = said_during(async {
        shop.send(charge()).await;
        shop.send(charge())
            .await
            .is_problem(503, "store_unavailable")
    })
    .await;

    assert_eq!(document["retryable"], false);
    assert_eq!(told(&said, "ERROR", NAME).len(), 1, "{said}");
}

/// A shop that charges an order, once, by the number and the amount that the request names.
fn of_orders() -> Shop {
    let inner = Idempotency::memory();
    Shop::with(Rules::ietf(), move |_, request: Request<_>| {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let call = inner.call("charge").in_flight(InFlight::Reject);
        async move {
            let (order, amount) = query.split_once('=').expect("both are named");
            let call = call.key(order).arguments(amount);
            match call.run(async |_| Ok::<_, Error>(1)).await {
                Ok(_) => StatusCode::CREATED.into_response(),
                Err(error) => error.into_response(),
            }
        }
    })
}

#[tokio::test]
async fn mend_24_the_key_of_a_call_inside_is_not_the_client_s() {
    let shop = of_orders();
    let sent = |target: &'static str, key: &str| -> Ask { post(target).key(key) };
    assert_eq!(shop.send(sent("/?42=10", "a")).await.status, 201);

    for key in ["b", "b", "c"] {
        let clash: Value = shop
            .send(sent("/?42=11", key))
            .await
            .is_problem(409, "inner_call_refused");
        assert_eq!(
            (&clash["retryable"], &clash["key_action"]),
            (&false.into(), &"none".into())
        );
    }
    let no_key = shop.send(sent("/?=11", "d")).await;
    let no_key = no_key.is_problem(400, "inner_call_refused");
    assert_eq!(no_key["key_action"], "none");
    // A request that was put right goes through with the key that it has.
    assert_eq!(shop.send(sent("/?43=11", "b")).await.status, 201);
}
