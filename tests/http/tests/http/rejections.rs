//! A5: requests that are rejected before their handler begins.

use axum::{
    Json, Router,
    extract::{FromRequestParts, Path},
    response::{IntoResponse, Response},
    routing::post as on_post,
};
use http::{Request, StatusCode, request::Parts};
use idempotent_runtime::{
    Error, Idempotency,
    http::{IdempotencyLayer, ReleaseOnReject, ReplayHint, Rules},
};
use serde::Deserialize;

use crate::harness::{Ask, Shop, by_caller, charge, layer_over, marked, post};

#[derive(Deserialize)]
struct Order {
    amount: u32,
}

/// An order for nothing cannot be sold. The handler says so itself, with the status that extractors
/// have, too.
async fn place(Json(order): Json<Order>) -> Response {
    match order.amount {
        0 => (StatusCode::UNPROCESSABLE_ENTITY, "nothing").into_response(),
        amount => (StatusCode::CREATED, format!("{amount}")).into_response(),
    }
}

async fn place_checked(ReleaseOnReject(order): ReleaseOnReject<Json<Order>>) -> Response {
    place(order).await
}

async fn quote(ReleaseOnReject(Path(amount)): ReleaseOnReject<Path<u32>>) -> String {
    format!("{amount}")
}

fn shop(rules: Rules) -> Shop {
    let layer = layer_over(&Idempotency::memory(), |layer| layer.rules(rules));
    let router = Router::new()
        .route("/plain", on_post(place))
        .route("/checked", on_post(place_checked))
        .route("/quotes/{amount}", on_post(quote))
        .layer(layer);
    Shop::new(Rules::ietf()).routed_by(router)
}

fn order(path: &str, json: &'static str) -> Ask {
    post(path).key("k").json(json)
}

#[tokio::test]
async fn s_63_a_checked_extractor_that_rejects_frees_the_key() {
    for (rejected, status) in [("{", 400), ("{\"amount\":\"much\"}", 422)] {
        let shop = shop(Rules::ietf());
        for path in ["/plain", "/checked"] {
            let first = shop.send(order(path, rejected).caller(path)).await;
            assert_eq!(first.status, status);
            let says_released = first.headers.contains_key("idempotency-status");
            assert_eq!(says_released, path == "/checked");
        }

        // The request that was put right, with the key that it had.
        let right = |path| order(path, "{\"amount\":3}").caller(path);
        let checked = shop.send(right("/checked")).await;

        assert_eq!(
            (checked.status.as_u16(), &checked.body[..]),
            (201, &b"3"[..])
        );
        shop.send(right("/checked")).await.replays(&checked);
        shop.refuses(right("/plain"), 422, "key_reused").await;
    }
}

#[tokio::test]
async fn s_63_a_checked_extractor_may_stand_before_the_body() {
    let shop = shop(Rules::ietf());
    let rejected = shop.send(post("/quotes/much").key("k")).await;
    assert_eq!(rejected.status, 400);

    let quoted = shop.send(post("/quotes/3").key("k")).await;

    assert_eq!(quoted.body, "3");
}

#[tokio::test]
async fn s_63_a_refusal_of_a_checked_handler_is_its_own() {
    let shop = shop(Rules::ietf());
    let first = shop.keeps(order("/checked", "{\"amount\":0}")).await;
    assert_eq!(first.status, 422);
}

/// Rejects every request, with this hint.
struct Refuses;

impl<S: Sync> FromRequestParts<S> for Refuses {
    type Rejection = Response;

    async fn from_request_parts(head: &mut Parts, _: &S) -> Result<Self, Response> {
        let hint = head.extensions.get::<ReplayHint>().copied();
        Err(marked(Response::default(), hint))
    }
}

#[tokio::test]
async fn s_63_what_a_rejection_says_of_itself_stays() {
    for (own, said) in [
        (None, ReplayHint::Retryable),
        (Some(ReplayHint::Uncertain), ReplayHint::Uncertain),
    ] {
        let (mut head, ()) = Request::new(()).into_parts();
        if let Some(own) = own {
            head.extensions.insert(own);
        }
        let checked = ReleaseOnReject::<Refuses>::from_request_parts(&mut head, &()).await;
        let rejection = checked.err().expect("it rejects all");
        assert_eq!(rejection.extensions().get(), Some(&said));
    }
}

#[tokio::test]
async fn s_63_a_service_names_the_statuses_of_its_rejections() {
    let rules = || Rules::ietf().rejections([StatusCode::UNPROCESSABLE_ENTITY]);
    let shop = shop(rules());
    for (rejected, again_is) in [("{\"amount\":\"much\"}", 201), ("{", 422)] {
        let ask = |json| order("/plain", json).caller(rejected);
        shop.send(ask(rejected)).await;
        let again = shop.send(ask("{\"amount\":3}")).await;
        assert_eq!(again.status, again_is, "{rejected}");
    }
    let marked = Shop::with(rules(), |_, _| async {
        (StatusCode::UNPROCESSABLE_ENTITY, ReplayHint::Final, "no").into_response()
    });
    marked.keeps(charge()).await;
    let contract = marked.layer.contract().to_markdown();
    assert!(
        contract.contains("a retry after responses: 422 | is processed again"),
        "{contract}"
    );
}

#[test]
fn s_63_a_failure_is_no_rejection() {
    let layer = IdempotencyLayer::builder(Idempotency::memory())
        .scope("caller", by_caller)
        .rules(Rules::ietf().rejections([StatusCode::INTERNAL_SERVER_ERROR]))
        .build();
    assert!(matches!(layer, Err(Error::InvalidPolicy(_))), "{layer:?}");
}
