//! A2: which requests keys count for.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Body, routing};
use http::{Method, Request, StatusCode};
use idempotent_runtime::{
    http::{Presence, ReplayHint, Rules, problem::Problems},
    testing::{Gate, ManualClock},
};
use tower::{Layer, ServiceExt};

use crate::harness::{Ask, Shop, charge, on_a_clock, post, respond, silent, vanished};

#[tokio::test]
async fn s_25_keys_count_for_post_and_patch() {
    for method in [Method::POST, Method::PATCH] {
        let shop = Shop::new(Rules::ietf());
        let request = Ask::new(method, "/charges").key("k");
        shop.keeps(request).await;
    }
}

/// The request runs each time, and the store does not hear of it.
async fn passes(shop: &Shop, request: Ask) {
    let (runs, round_trips) = (shop.runs(), shop.store.round_trips());
    for _ in 0..2 {
        let answer = shop.send(request.clone()).await;
        assert!(
            !answer.headers.contains_key("idempotent-replayed"),
            "{answer:?}"
        );
    }
    assert_eq!(shop.runs(), runs + 2);
    assert_eq!(shop.store.round_trips(), round_trips);
}

#[tokio::test]
async fn s_26_s_28_safe_methods_pass_with_any_key() {
    let shop = Shop::new(Rules::ietf());
    for method in [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE] {
        for key in ["k", "\"malformed", ""] {
            passes(&shop, Ask::new(method.clone(), "/charges").key(key)).await;
        }
    }
    let preflight = Ask::new(Method::OPTIONS, "/charges")
        .header("origin", "https://shop.example")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "idempotency-key");
    passes(&shop, preflight).await;
}

#[tokio::test]
async fn s_27_put_and_delete_pass_unless_they_are_named() {
    let shop = Shop::new(Rules::ietf());
    for method in [Method::PUT, Method::DELETE] {
        passes(&shop, Ask::new(method, "/charges/1").key("k")).await;
    }
    for method in [Method::PUT, Method::DELETE] {
        let shop = Shop::new(Rules::ietf().methods([Method::PUT, Method::DELETE]));
        let request = Ask::new(method, "/charges/1").key("k");
        shop.keeps(request).await;
    }
}

#[tokio::test]
async fn s_29_a_request_without_a_required_key_is_refused() {
    let shop = Shop::new(Rules::ietf());

    let refused = shop.send(post("/charges").body("amount=12")).await;

    let document = refused.is_problem(400, "key_missing");
    assert_eq!(document["key_action"], "send");
    let detail = document["detail"].as_str().expect("it has a detail");
    assert!(detail.contains("POST /charges"), "{detail}");
    assert_eq!((shop.runs(), shop.store.round_trips()), (0, 0));
}

#[tokio::test]
async fn s_30_it_links_to_the_documentation_of_the_service() {
    let problems = Problems::new()
        .base("https://api.example.com/problems/")
        .and_then(|problems| problems.documentation("https://api.example.com/docs#keys"))
        .expect("these are URIs");
    let shop = Shop::layered(|layer| layer.problems(problems), silent);

    let refused = shop.send(post("/charges")).await;

    let document = refused.is_problem(400, "key_missing");
    assert_eq!(
        refused.headers["link"],
        "<https://api.example.com/docs#keys>; rel=\"describedby\"; type=\"text/html\""
    );
    assert_eq!(
        document["type"],
        "https://api.example.com/problems/idempotency-key-missing"
    );
}

#[tokio::test]
async fn s_31_without_an_optional_key_every_request_runs() {
    let shop = Shop::new(Rules::ietf().key(Presence::Optional));
    passes(&shop, post("/charges").body("amount=12")).await;
    shop.keeps(charge()).await;
}

#[tokio::test]
async fn s_32_where_keys_do_not_count_they_are_ignored_or_refused() {
    let ignored = Shop::new(Rules::ietf().key(Presence::Ignored));
    passes(&ignored, charge()).await;

    let unsupported = Shop::new(Rules::ietf().key(Presence::Unsupported));
    let refused = unsupported.send(charge()).await;
    assert_eq!(
        refused.is_problem(501, "not_supported")["key_action"],
        "none"
    );
    assert_eq!(unsupported.runs(), 0);
    passes(&unsupported, post("/charges")).await;
}

/// A shop on a clock, where a key that is freed is remembered for a day and held for ten seconds.
fn lent_for_ten_seconds() -> (Shop, Gate, ManualClock) {
    on_a_clock(Rules::ietf().guard_fallback().ttl("24h").lease("10s"))
}

async fn records(shop: &Shop) -> usize {
    shop.records().await.len()
}

#[tokio::test]
async fn s_33_nothing_is_left_after_a_lease_where_no_handler_is() {
    let (shop, _, clock) = lent_for_ten_seconds();
    let worded = || async { (StatusCode::METHOD_NOT_ALLOWED, "it is only told") };
    let router = Router::new()
        .route("/charges", routing::get(|| async { "charges" }))
        .route(
            "/rates",
            routing::get(|| async { "rates" }).fallback(worded),
        )
        .layer(shop.layer.clone());
    let shop = shop.routed_by(router);

    for (path, status) in [("/nowhere", 404), ("/charges", 405), ("/rates", 405)] {
        for _ in 0..2 {
            let answer = shop.send(post(path).key(path)).await;
            assert_eq!(answer.status, status, "{path}");
            assert!(!answer.is_replay(), "{path}");
            assert_eq!(answer.headers["idempotency-status"], "released", "{path}");
        }
    }
    assert_eq!(records(&shop).await, 3);

    // A handler of its own has given the last answer.
    clock.advance(Duration::from_secs(11));
    assert_eq!(shop.idem.purge().await, Ok(2));
    clock.advance(Duration::from_secs(24 * 60 * 60));
    assert_eq!(shop.idem.purge().await, Ok(1));
    assert_eq!(records(&shop).await, 0);
}

/// The handler that vanished may have acted, whatever routes the service has now.
#[tokio::test]
async fn s_33_a_takeover_that_finds_no_handler_leaves_what_it_found() {
    let (shop, gate, clock) = lent_for_ten_seconds();
    let vanished = vanished(&shop, &gate, charge()).await;
    clock.advance(Duration::from_secs(11));
    let without = Router::new()
        .route("/others", routing::get(|| async { "others" }))
        .layer(shop.layer.clone());
    let without = shop.clone().routed_by(without);

    for _ in 0..2 {
        let answer = without.send(charge()).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
        assert_eq!(answer.headers["idempotency-status"], "open");
    }
    clock.advance(Duration::from_secs(11));
    assert_eq!(shop.idem.purge().await, Ok(0));
    let other = shop.send(charge().body("amount=99")).await;
    other.is_problem(422, "key_reused");
    shop.send(charge()).await.is_fresh();
    assert_eq!(shop.runs(), 2);
    vanished.abort();
}

#[tokio::test]
async fn s_33_a_handlers_own_not_found_is_kept() {
    let shop = Shop::with(Rules::ietf(), |_, _| async {
        respond(StatusCode::NOT_FOUND, "no such order")
    });
    shop.keeps(charge()).await;
}

/// A match inside of a service is not seen from outside of it.
#[tokio::test]
async fn s_33_a_service_inside_a_router_keeps_no_not_found_and_one_around_it_keeps_all() {
    let layer = Shop::new(Rules::ietf()).layer;
    let inner = || {
        let found = routing::post(|| async { StatusCode::NOT_FOUND });
        Router::new().route("/charges", found)
    };
    let guarded = layer.layer(inner());
    let nested = Router::new().nest_service("/shop", guarded.clone());
    let last = Router::new().fallback_service(guarded.clone());
    let around = Router::new().fallback_service(inner()).layer(layer);
    for (router, path) in [
        (nested, "/shop/charges"),
        (last, "/a"),
        (around, "/charges"),
    ] {
        let shop = Shop::new(Rules::ietf()).routed_by(router);
        for _ in 0..2 {
            let answer = shop.send(post(path).key(path)).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND);
            assert!(!answer.is_replay(), "{path}");
        }
    }
    for path in ["/charges", "/nowhere"] {
        for is_replay in [false, true] {
            let request = Request::<Body>::from(post(path).key(format!("around {path}")));
            let response = guarded.clone().oneshot(request).await;
            let response = response.expect("a router does not fail");
            assert_eq!(response.status(), StatusCode::NOT_FOUND);
            let marked = response.headers().contains_key("idempotent-replayed");
            assert_eq!(marked, is_replay, "{path}");
        }
    }
}

#[tokio::test]
async fn s_33_a_fallback_that_does_something_says_so() {
    for (mark, runs) in [(None, 2), (Some(ReplayHint::Final), 1)] {
        let shop = Shop::new(Rules::ietf().guard_fallback());
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let fallback = move || async move {
            counted.fetch_add(1, Ordering::SeqCst);
            (StatusCode::NOT_FOUND, mark, "its owner is told")
        };
        let router = Router::new().fallback(fallback).layer(shop.layer.clone());
        let shop = shop.routed_by(router);
        for _ in 0..2 {
            assert_eq!(shop.send(charge()).await.status, StatusCode::NOT_FOUND);
        }
        assert_eq!(count.load(Ordering::SeqCst), runs, "{mark:?}");
    }
}

#[tokio::test]
async fn s_34_a_request_for_another_protocol_passes() {
    let every = [Method::GET, Method::POST, Method::CONNECT];
    let shop = Shop::new(Rules::ietf().methods(every.clone()));
    let websocket = |method| {
        Ask::new(method, "/chat")
            .key("w")
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
    };
    passes(&shop, websocket(Method::GET)).await;
    passes(&shop, Ask::new(Method::CONNECT, "/proxy").key("k")).await;

    // Only a GET can become a WebSocket over HTTP/1.1, so the field alone does not free a POST from
    // its key.
    shop.keeps(websocket(Method::POST)).await;

    // Some clients offer HTTP/2 with every request, and it is answered as any other.
    let offering = charge()
        .header("connection", "Upgrade, HTTP2-Settings")
        .header("upgrade", "h2c");
    shop.keeps(offering).await;
}

#[tokio::test]
async fn a_route_has_rules_of_its_own() {
    let shop = Shop::layered(
        |layer| {
            layer
                .route("/quotes/{id}", |rules| rules.key(Presence::Optional))
                .route("/health/{*rest}", |rules| rules.key(Presence::Ignored))
        },
        silent,
    );

    shop.refuses(post("/charges"), 400, "key_missing").await;
    shop.send(post("/quotes/1")).await.is_fresh();
    shop.refuses(post("/quotes"), 400, "key_missing").await;
    passes(&shop, post("/health/deep/check").key("\"malformed")).await;
}

#[tokio::test]
async fn of_several_rules_for_a_path_the_first_count() {
    let shop = Shop::layered(
        |layer| {
            layer
                .route("/quotes/{id}", |rules| rules.key(Presence::Optional))
                .route("/{*rest}", |rules| rules.key(Presence::Unsupported))
        },
        silent,
    );

    let first = shop.keeps(post("/quotes/1").key("k")).await;
    first.is_fresh();
    let other = post("/quotes").key("l");
    shop.refuses(other, 501, "not_supported").await;
}
