//! A2: which paths the rules of a route are for. They are those that a router of axum hands to the
//! route: a rule that matched fewer would leave a handler to the rules of all others.

use std::convert::Infallible;

use axum::{Router, body::Body, routing::any};
use http::{Request, Response, StatusCode};
use idempotent_runtime::{
    Idempotency,
    http::{IdempotencyLayer, Presence, Rules, Storage},
};
use tower::ServiceExt;

use crate::harness::{Shop, layer_over, post};

/// A layer that has rules of its own for the paths of this pattern, and tells them by the contract.
fn layer_with(pattern: &str) -> IdempotencyLayer {
    IdempotencyLayer::builder(Idempotency::memory())
        .shared_by_all_callers()
        .route(pattern, |rules| rules.key(Presence::Optional))
        .build()
        .expect("it is a pattern")
}

fn has_rules_of_its_own(layer: &IdempotencyLayer, path: &str) -> bool {
    layer
        .contract_for(path)
        .to_markdown()
        .contains("| a request without it | is processed each time it arrives |")
}

async fn is_routed(router: &Router, path: &str) -> bool {
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = path.parse().expect("it is a path");
    let response: Result<Response<Body>, Infallible> = router.clone().oneshot(request).await;
    response.expect("a router does not fail").status() == StatusCode::OK
}

/// Asks both about each path, and gives how many of them they take.
async fn agree(pattern: &str, paths: impl IntoIterator<Item = impl AsRef<str>>) -> usize {
    let layer = layer_with(pattern);
    let router = Router::new().route(pattern, any(|| async {}));
    let mut taken = 0;
    for path in paths {
        let path = path.as_ref();
        let routed = is_routed(&router, path).await;
        let ruled = has_rules_of_its_own(&layer, path);
        assert_eq!(ruled, routed, "{pattern} and {path}");
        taken += usize::from(routed);
    }
    taken
}

#[tokio::test]
async fn a_route_takes_what_axum_takes() {
    for (pattern, taken, others) in [
        ("/", &["/"][..], &["//", "/a"][..]),
        ("//", &["//"], &["/", "///"]),
        (
            "/orders",
            &["/orders"],
            &["/orders/", "//orders", "/Orders"],
        ),
        ("/orders/", &["/orders/"], &["/orders", "/orders//"]),
        (
            "/orders/{id}",
            &[
                "/orders/1",
                "/orders/%2F",
                "/orders/%31",
                "/orders/caf%C3%A9",
            ],
            &[
                "/orders",
                "/orders/",
                "/orders//",
                "/orders/1/",
                "/%6frders/1",
            ],
        ),
        (
            "/orders/{id}/",
            &["/orders/1/", "/orders//"],
            &["/orders/", "/orders/1"],
        ),
        (
            "/users/{name}/tokens",
            &["/users/a/tokens", "/users//tokens", "/users/%2F/tokens"],
            &[
                "/users/tokens",
                "/users///tokens",
                "/users//tokens/",
                "//users/a/tokens",
            ],
        ),
        (
            "/{shop}/{id}",
            &["/a/b", "//b"],
            &["/a/", "//", "///", "/a/b/"],
        ),
        (
            "/admin/{*rest}",
            &[
                "/admin/a",
                "/admin//a",
                "/admin//",
                "/admin/a/b/",
                "/admin/%2e%2e",
            ],
            &["/admin", "/admin/", "//admin/a"],
        ),
        (
            "/{shop}/{*rest}",
            &["/a/b", "//b", "///"],
            &["/a/", "//", "/"],
        ),
        ("/{*rest}", &["/a", "//", "//a"], &["/"]),
    ] {
        assert_eq!(agree(pattern, taken).await, taken.len(), "{pattern}");
        assert_eq!(agree(pattern, others).await, 0, "{pattern}");
    }
}

/// All paths of up to so many of these segments.
fn paths(segments: &[&str], at_most: usize) -> Vec<String> {
    let mut all = Vec::new();
    let mut of_this_length = vec![String::new()];
    for _ in 0..at_most {
        let longer = of_this_length.iter();
        let longer =
            longer.flat_map(|path| segments.iter().map(move |next| format!("{path}/{next}")));
        of_this_length = longer.collect();
        all.extend_from_slice(&of_this_length);
    }
    all
}

#[tokio::test]
async fn a_route_takes_what_axum_takes_of_every_small_path() {
    let asked = paths(&["", "a", "b", "%61"], 4);
    let begins = paths(&["", "a", "{p}"], 3);
    let rests = begins.iter().filter(|begin| begin.matches('/').count() < 3);
    let rests = rests.map(|begin| format!("{begin}/{{*rest}}"));
    let patterns: Vec<_> = rests
        .chain(["/{*rest}".to_owned()])
        .chain(begins.clone())
        .collect();

    let mut taken = 0;
    for pattern in &patterns {
        taken += agree(pattern, &asked).await;
    }

    assert_eq!((patterns.len(), asked.len()), (52, 340));
    assert!(taken > 1_000, "{taken}");
}

/// The same where a router is nested in another one.
#[tokio::test]
async fn a_route_takes_what_axum_takes_where_routers_are_nested() {
    let layer = layer_with("/shop/{name}/tokens/{*rest}");
    let inner = Router::new().route("/tokens/{*rest}", any(|| async {}));
    let nested = Router::new().nest("/shop/{name}", inner);
    for path in paths(&["", "shop", "tokens", "a"], 4) {
        let path = format!("/shop{path}");
        let ruled = has_rules_of_its_own(&layer, &path);
        assert_eq!(ruled, is_routed(&nested, &path).await, "{path}");
    }
}

/// So the manual says `nest`: the target does not show to which path inside of the service it
/// leads.
#[tokio::test]
async fn axum_drops_a_second_slash_behind_a_service_that_is_nested() {
    let layer = layer_with("/shop/tokens");
    let inner = || Router::new().route("/tokens", any(|| async {}));
    let service = Router::new().nest_service("/shop", inner());
    let nested = Router::new().nest("/shop", inner());
    assert!(is_routed(&service, "/shop//tokens").await);
    assert!(!is_routed(&nested, "/shop//tokens").await);
    assert!(!has_rules_of_its_own(&layer, "/shop//tokens"));
}

#[tokio::test]
async fn s_71_no_second_slash_has_a_secret_stored() {
    for (pattern, path) in [
        ("/tokens/{*rest}", "/tokens//x"),
        ("/users/{name}/tokens", "/users//tokens"),
    ] {
        let shop = Shop::new(Rules::ietf());
        let layer = layer_over(&shop.idem, |layer| {
            layer.route(pattern, |rules| rules.storage(Storage::Nothing))
        });
        let router = Router::new()
            .route(pattern, any(|| async { "secret" }))
            .layer(layer);
        let shop = shop.routed_by(router);
        let request = post(path).key("k");
        assert_eq!(shop.send(request.clone()).await.body, "secret");

        let again = shop.send(request).await;

        again.is_problem(409, "result_unavailable");
        for (_, record) in shop.records().await {
            let outcome = record.outcome.as_ref().expect("it is done");
            assert!(outcome.bytes.is_empty(), "{path}");
        }
    }
}
