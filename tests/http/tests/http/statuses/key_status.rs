//! When a response says that its key is free, or that its call is open.

use std::time::Duration;

use axum::{body::Body, response::IntoResponse as _};
use http::{Response, StatusCode};
use idempotent_runtime::{
    Idempotency, MemoryStore, StoreErrorKind,
    http::{
        ReplayHint, Rules,
        problem::{Kind, Problem},
    },
    testing::{FaultyStore, Gate},
};

use super::{says_of_its_key, twice};
use crate::harness::{Shop, charge, first_gated, marked, post, receipt, vanished, with_field};

/// Clients that remember the outcome of a call ask again if the key is free, and never if it is
/// not.
#[tokio::test]
async fn s_67_only_the_layer_says_that_a_key_is_free() {
    let claims = |mark: Option<ReplayHint>| {
        Shop::with(Rules::acp(), move |_, request| async move {
            assert!(request.uri() != "/panics", "it panics");
            let claims = with_field(receipt(1), "idempotency-status", "released");
            marked(claims, mark)
        })
    };
    for mark in [
        None,
        Some(ReplayHint::NotStored),
        Some(ReplayHint::Uncertain),
    ] {
        let (first, again) = twice(&claims(mark)).await;
        assert_eq!(says_of_its_key(&first), None, "{mark:?}");
        assert_eq!(says_of_its_key(&again), None, "{mark:?}");
    }
    let other = charge().body("amount=13");
    let shop = claims(None);
    shop.send(charge()).await;
    for refused in [other, post("/charges"), post("/panics").key("p")] {
        let refused = shop.send(refused).await;
        assert!(refused.status.as_u16() >= 400, "{refused:?}");
        assert_eq!(says_of_its_key(&refused), None, "{refused:?}");
    }
}

/// A retry is to reach the handler. It does not undo what another call holds, or has done.
#[tokio::test]
async fn s_67_a_problem_about_another_call_does_not_say_that_a_key_is_free() {
    for kind in [Kind::RequestInProgress, Kind::ResultOutOfReach] {
        let shop = Shop::with(Rules::ietf(), move |_, _| async move {
            Problem::new(kind).into_response()
        });
        let (first, again) = twice(&shop).await;
        assert_eq!(shop.runs(), 2, "{kind:?}");
        for answer in [first, again] {
            assert_eq!(says_of_its_key(&answer), None, "{kind:?}");
        }
    }
}

fn sold_out() -> Response<Body> {
    (StatusCode::CONFLICT, ReplayHint::Retryable, "sold out").into_response()
}

/// Nothing happened this time. It is another question what the handler before it did, which
/// vanished.
#[tokio::test]
async fn s_67_a_takeover_does_not_say_that_a_key_is_free() {
    let gate = Gate::new();
    let rules = Rules::ietf().lease("5s");
    let (shop, clock) = Shop::timed(rules, first_gated(&gate, |_| sold_out()));
    let vanished = vanished(&shop, &gate, charge()).await;
    clock.advance(Duration::from_secs(6));

    // The second one is no less a takeover: it is still unknown what the first handler did.
    for _ in 0..2 {
        let answer = shop.send(charge()).await;
        assert_eq!(answer.body, "sold out");
        assert_eq!(says_of_its_key(&answer), Some("open"));
    }
    let other = shop.send(charge().body("amount=99")).await;
    other.is_problem(422, "key_reused");
    assert_eq!(shop.runs(), 3);
    vanished.abort();
}

/// The store does not know it yet, and a retry finds the key taken.
#[tokio::test]
async fn s_67_a_key_that_the_store_could_not_free_is_not_said_to_be_free() {
    let store = FaultyStore::new(MemoryStore::new());
    let idem = Idempotency::new(store.clone());
    let breaks = store.clone();
    let shop = Shop::over(store, idem, Rules::ietf(), move |_, _| {
        breaks.outage(StoreErrorKind::Unavailable);
        async { sold_out() }
    });
    let answer = shop.send(charge()).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.body[..]),
        (409, &b"sold out"[..])
    );
    assert_eq!(says_of_its_key(&answer), Some("open"));
}
