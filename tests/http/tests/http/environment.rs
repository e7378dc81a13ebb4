//! A9: what stands around the layer, and what it tells of itself.

use std::task::{Context, Poll};

use axum::{Router, body::Body, middleware, middleware::Next};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use idempotent_runtime::{
    BoxError, Idempotency, MemoryStore,
    http::{
        Contract, IdempotencyLayer, KeyEcho, KeyPolicy, KeyReader, KeyScope, Presence, Rules, Seal,
        ServerErrors,
        problem::{Document, Problems, Rendered, Renderer},
    },
    identity::RecordId,
    testing::FaultyStore,
};
use tower::{Layer, Service};

use crate::harness::{Ask, Shop, by_caller, charge, held, layer_over, on_a_clock, post, silent};

mod early_data;

fn layer_of(rules: Rules) -> IdempotencyLayer {
    layer_over(&Idempotency::memory(), |layer| {
        let layer = layer.rules(rules);
        layer.route("/quotes", |rules| rules.key(Presence::Optional))
    })
}

#[test]
fn s_113_a_browser_may_send_and_read_what_it_needs() {
    let contract = layer_of(Rules::ietf()).contract();
    assert_eq!(
        contract.cors_allowed_headers(),
        ["idempotency-key", "content-type"]
    );
    assert_eq!(
        contract.cors_exposed_headers(),
        [
            "idempotent-replayed",
            "idempotency-status",
            "idempotency-key",
            "retry-after",
            "location",
            "link"
        ]
    );
}

#[test]
fn s_125_the_contract_is_that_of_the_settings() {
    let rules = Rules::acp()
        .ttl("36h")
        .key_scope(KeyScope::Route)
        .reader(KeyReader::new().policy(KeyPolicy::new().uuid()))
        .server_errors(ServerErrors::Uncertain)
        .in_flight_status(StatusCode::LOCKED);
    let layer = layer_of(rules);

    let page = layer.contract().to_markdown();

    for told in [
        "POST",
        "UUID",
        "36 hours",
        "423",
        "JSON by what it says",
        "idempotency-outcome-unknown",
    ] {
        assert!(page.contains(told), "{told} is missing in\n{page}");
    }
    assert!(!page.contains("PATCH"));
    let required = layer.contract().to_open_api().to_string();
    let optional = layer.contract_for("/quotes").to_open_api().to_string();
    assert_ne!(required, optional);
}

#[test]
fn s_125_the_contract_says_among_which_requests_a_key_is_unique() {
    let by_caller = || IdempotencyLayer::builder(Idempotency::memory()).scope("caller", by_caller);
    let shared = || IdempotencyLayer::builder(Idempotency::memory()).shared_by_all_callers();
    for (builder, key_scope, said) in [
        (
            by_caller(),
            KeyScope::Caller,
            "of one caller, whatever the route",
        ),
        (by_caller(), KeyScope::Route, "of one caller to one route"),
        (shared(), KeyScope::Caller, "of all callers together"),
        (
            shared(),
            KeyScope::Route,
            "of all callers together to one route",
        ),
    ] {
        let layer = builder
            .rules(Rules::ietf().key_scope(key_scope))
            .build()
            .expect("the settings are sound");
        let page = layer.contract().to_markdown();
        let row = format!("| a key stands for one request | {said} |\n");
        assert!(page.contains(&row), "{row} is missing in\n{page}");
    }
}

/// Puts a nonce before a response and a tag behind it, as an encryption does.
#[derive(Debug)]
struct Longer;

impl Seal for Longer {
    fn seal(&self, _: &RecordId, response: Vec<u8>) -> Result<Vec<u8>, BoxError> {
        Ok([&[0; 12][..], &response, &[0; 16]].concat())
    }

    fn open(&self, _: &RecordId, sealed: &[u8]) -> Result<Vec<u8>, BoxError> {
        Ok(sealed[12..sealed.len() - 16].to_vec())
    }
}

/// The longest body of a response that is repeated, in bytes.
fn promised(contract: &Contract) -> usize {
    let page = contract.to_markdown();
    let (_, row) = page
        .split_once("| largest body of a response that is repeated | ")
        .expect("the row is there");
    let (bytes, _) = row.split_once(" bytes").expect("it says the unit");
    bytes.parse().expect("a number")
}

#[tokio::test]
async fn s_125_the_longest_response_that_the_contract_promises_is_stored() {
    const TWO_MIB: usize = 2 * 1024 * 1024;
    for (max_outcome, max_response) in [
        (1_000, TWO_MIB),
        (1_000, 10),
        (20_000, TWO_MIB),
        (TWO_MIB, TWO_MIB),
        (TWO_MIB + 100, TWO_MIB),
        (8 * TWO_MIB, TWO_MIB),
    ] {
        let store = FaultyStore::new(MemoryStore::new());
        let idem = Idempotency::builder(store.clone()).max_outcome(max_outcome);
        let idem = idem.build().expect("the settings are sound");
        let rules = Rules::ietf().max_response(max_response);
        let layer = layer_over(&idem, |layer| layer.rules(rules).seal(Longer));
        let longest = promised(&layer.contract());
        let shop = Shop::behind(layer, store, idem, move |_, _| async move {
            Response::builder()
                .header("content-type", "application/json; charset=utf-8")
                .header("location", "/receipts/8e03978e-40d5-43e8-bc93-6894a57f9324")
                .header("etag", "\"8e03978e40d543e8bc936894a57f9324\"")
                .header("cache-control", "private, no-store")
                .body(Body::from(vec![b'x'; longest]))
                .expect("it is a response")
        });

        let first = shop.keeps(charge()).await;

        assert_eq!(first.body.len(), longest);
        assert!(longest >= max_response.min(max_outcome / 2), "{longest}");
    }
}

#[tokio::test]
async fn s_120_a_problem_holds_neither_key_nor_caller() {
    let shop = Shop::new(Rules::ietf());
    let keyed = || post("/charges").key("secret-key").caller("secret-caller");
    shop.send(keyed()).await.is_fresh();
    let refused = shop.send(keyed().body("other")).await;
    refused.is_problem(422, "key_reused");
    let text = String::from_utf8(refused.body.to_vec()).expect("it is text");
    assert!(!text.contains("secret"), "{text}");
    assert_eq!(refused.headers["content-language"], "en");

    let head = Shop::new(Rules::ietf().methods([Method::HEAD]));
    let refused = head.send(Ask::new(Method::HEAD, "/charges")).await;
    assert_eq!((refused.status.as_u16(), refused.body.len()), (400, 0));
}

/// Pages for browsers.
#[derive(Debug)]
struct Html;

impl Renderer for Html {
    fn render(&self, document: &Document<'_>, request: &HeaderMap) -> Rendered {
        assert_eq!(request["accept"], "text/html");
        Rendered {
            content_type: HeaderValue::from_static("text/html"),
            content_language: None,
            body: format!("<h1>{}</h1>", document.problem().status()).into(),
        }
    }
}

#[tokio::test]
async fn s_121_a_renderer_changes_the_body_and_nothing_else() {
    let problems = Problems::new().renderer(Html);
    let shop = Shop::layered(|layer| layer.problems(problems), silent);
    let html = |ask: Ask| ask.header("accept", "text/html");
    shop.send(html(charge())).await.is_fresh();
    let malformed = post("/").key("\"k");
    for refused in [charge().body("other"), malformed] {
        let refused = shop.send(html(refused)).await;
        assert_eq!(refused.headers["content-type"], "text/html");
        assert_eq!(refused.headers["cache-control"], "no-store");
        assert_eq!(refused.body, format!("<h1>{}</h1>", refused.status));
    }
}

#[tokio::test]
async fn s_122_a_layer_inside_a_layer_lets_pass_what_is_guarded() {
    let inner = Shop::new(Rules::ietf());
    let outer = layer_of(Rules::ietf().guard_fallback().echo(KeyEcho::Key));
    let router = Router::new()
        .fallback_service(inner.router.clone())
        .layer(outer);
    let shop = inner.routed_by(router);

    let first = shop.send(charge()).await;

    first.is_fresh();
    assert_eq!(
        first.headers["idempotency-key"], "k",
        "the outer one counts"
    );
    let again = shop.send(charge()).await;
    // The router inside computes the length, and is not asked again.
    again.replays_but_for(&["content-length"], &first);
    assert_eq!((shop.runs(), shop.store.round_trips()), (1, 0));
}

/// A service that answers only where it was ready before, as tower's limits do.
#[derive(Debug, Default)]
struct Strict {
    is_ready: bool,
}

impl Clone for Strict {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<B> Service<Request<B>> for Strict {
    type Response = Response<Body>;
    type Error = std::convert::Infallible;
    type Future = std::future::Ready<Result<Response<Body>, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.is_ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        assert!(
            std::mem::take(&mut self.is_ready),
            "it was not asked whether it is ready"
        );
        std::future::ready(Ok(Response::new(Body::from("ready"))))
    }
}

#[tokio::test]
async fn s_123_the_service_that_is_ready_is_the_one_that_is_called() {
    let mut service = layer_of(Rules::ietf()).layer(Strict::default());
    for key in ["k", "l"] {
        std::future::poll_fn(|cx| Service::<Request<Body>>::poll_ready(&mut service, cx))
            .await
            .expect("it is ready");
        let request = Request::<Body>::from(post("/charges").key(key));
        let response = service.call(request).await.expect("it does not fail");
        // A handler that panics is answered with 500.
        assert_eq!(response.status(), 200);
    }
}

#[tokio::test]
async fn s_124_a_purge_leaves_what_runs() {
    let (shop, gate, clock) = on_a_clock(Rules::ietf().ttl("1h"));
    let running = held(&shop, &gate, charge()).await;
    shop.send(post("/charges").key("done")).await.is_fresh();
    assert_eq!(shop.idem.purge().await, Ok(0));

    clock.advance(std::time::Duration::from_secs(3_600));
    assert_eq!(shop.idem.purge().await, Ok(1));

    gate.open();
    let first = running.await.expect("it is answered");
    shop.send(charge()).await.replays(&first);
}

/// Stands for a layer that compresses what the client accepts so.
async fn compressing(request: Request<Body>, next: Next) -> Response<Body> {
    let accepts = request.headers().contains_key("accept-encoding");
    let response = next.run(request).await;
    if !accepts {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let body = axum::body::to_bytes(body, 1_000)
        .await
        .expect("it is whole");
    let reversed: Vec<u8> = body.iter().rev().copied().collect();
    head.headers.remove("content-length");
    head.headers
        .insert("content-encoding", HeaderValue::from_static("gzip"));
    Response::from_parts(head, Body::from(reversed))
}

#[tokio::test]
async fn s_92_compression_outside_is_up_to_each_request() {
    for compressed_first in [true, false] {
        let shop = Shop::new(Rules::ietf());
        let router = shop.router.clone().layer(middleware::from_fn(compressing));
        let shop = shop.routed_by(router);
        let plain = charge();
        let compressed = charge().header("accept-encoding", "gzip");
        let (one, other, expected) = match compressed_first {
            true => (compressed, plain, "receipt 1"),
            false => (plain, compressed, "1 tpiecer"),
        };
        shop.send(one).await.is_fresh();
        let again = shop.send(other).await;
        assert!(again.is_replay());
        assert_eq!(again.body, expected);
        assert_eq!(
            again.headers.contains_key("content-encoding"),
            !compressed_first
        );
    }
}
