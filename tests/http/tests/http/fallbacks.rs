//! A2: requests that no route matches, under each way to put the layer into a router.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{
    Router,
    routing::{get, post as posted},
};
use idempotent_runtime::http::{IdempotencyLayer, Rules};
use tower::Layer;

use crate::harness::{Answer, Ask, Shop, layer_over, post};

fn layer_of(shop: &Shop, rules: Rules) -> IdempotencyLayer {
    layer_over(&shop.idem, |layer| layer.rules(rules))
}

/// Puts the layer into a router, or around one.
type Put = fn(Router, IdempotencyLayer) -> Router;

async fn answered(rules: Rules, put: Put, request: Ask) -> (Answer, usize) {
    let shop = Shop::new(Rules::ietf());
    let layer = layer_of(&shop, rules);
    let routes = Router::new()
        .route("/rates", get(|| async { "rates" }))
        .route("/charges", posted(|| async { "charged" }));
    let shop = shop.routed_by(put(routes, layer));
    let answer = shop.send(request).await;
    let records = shop.records().await.len();
    (answer, records)
}

#[tokio::test]
async fn first_hour_12_s_33_what_no_route_matches_passes_untouched() {
    let within: [Put; 3] = [
        |routes, layer| routes.layer(layer),
        |routes, layer| routes.route_layer(layer),
        |routes, layer| Router::new().nest("/shop", routes).layer(layer),
    ];
    for put in within {
        for request in [
            post("/nowhere"),
            post("/nowhere").key("k"),
            post("/nowhere").key("\""),
        ] {
            let (answer, records) = answered(Rules::ietf(), put, request).await;
            assert_eq!((answer.status.as_u16(), records), (404, 0), "{answer:?}");
            assert!(answer.body.is_empty(), "{answer:?}");
            assert!(!answer.headers.contains_key("idempotency-status"));
        }
    }
}

/// From there, it cannot be seen what the service inside matches.
#[tokio::test]
async fn first_hour_12_s_33_a_service_that_is_nested_or_has_the_layer_around_it_stays_guarded() {
    let around: [(Put, &str); 3] = [
        (
            |routes, layer| Router::new().nest_service("/shop", routes).layer(layer),
            "/shop/charges",
        ),
        (
            |routes, layer| Router::new().nest_service("/shop", layer.layer(routes)),
            "/shop/charges",
        ),
        (
            |routes, layer| Router::new().nest_service("/{shop}", layer.layer(routes)),
            "/a/nowhere",
        ),
    ];
    for (put, path) in around {
        let (answer, records) = answered(Rules::ietf(), put, post(path)).await;
        answer.is_problem(400, "key_missing");
        assert_eq!(records, 0);
        let (_, records) = answered(Rules::ietf(), put, post(path).key("k")).await;
        assert_eq!(records, 1, "{path}");
    }
}

#[tokio::test]
async fn first_hour_12_a_keyless_post_to_what_is_only_read_is_405_under_a_methods_route_layer() {
    let shop = Shop::new(Rules::ietf());
    let layer = layer_of(&shop, Rules::ietf());
    let rates = get(|| async { "rates" });
    let router = Router::new().route("/rates", rates.route_layer(layer));
    let shop = shop.routed_by(router);

    let answer = shop.send(post("/rates")).await;

    assert_eq!(answer.status, 405);
    assert_eq!(answer.headers["allow"], "GET,HEAD");

    // Around the whole route the layer comes before the question of the method.
    for put in [
        (|routes, layer| routes.layer(layer)) as Put,
        |routes, layer| routes.route_layer(layer),
    ] {
        let (answer, _) = answered(Rules::ietf(), put, post("/rates")).await;
        answer.is_problem(400, "key_missing");
    }
}

#[tokio::test]
async fn first_hour_12_a_fallback_with_an_effect_is_protected_where_the_rules_say_so() {
    for (rules, keyless, runs) in [
        (Rules::ietf(), 200, 3),
        (Rules::ietf().guard_fallback(), 400, 1),
    ] {
        let shop = Shop::new(Rules::ietf());
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let fallback = posted(move || async move {
            counted.fetch_add(1, Ordering::SeqCst);
            "written down"
        });
        let router = Router::new()
            .fallback(fallback)
            .layer(layer_of(&shop, rules));
        let shop = shop.routed_by(router);

        assert_eq!(shop.send(post("/letters")).await.status, keyless);
        for _ in 0..2 {
            assert_eq!(shop.send(post("/letters").key("k")).await.status, 200);
        }
        assert_eq!(count.load(Ordering::SeqCst), runs);
    }
}
