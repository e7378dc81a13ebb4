//! Layers of tower-http, and middleware of axum, as services put them beside this one.

use std::{
    convert::Infallible,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response as Answer},
    routing::{Route, post as post_to},
};
use http::{HeaderMap, Method, Response, StatusCode};
use idempotent_runtime::{
    InFlight,
    http::{Rules, UnstorableResponse},
};
use tower::{Layer, Service, ServiceBuilder};
use tower_http::{
    compression::CompressionLayer,
    cors::{AllowOrigin, CorsLayer},
    timeout::TimeoutLayer,
    trace::TraceLayer,
};

use crate::{
    harness::{Ask, Shop, charge, layer_over, post, stream, waiting},
    said::warnings_of,
};

/// Long enough to be worth compressing.
const RECEIPT: &str = "receipt receipt receipt receipt receipt receipt receipt receipt";

fn within<L>(shop: Shop, layer: L) -> Shop
where
    L: Layer<Route> + Clone + Send + Sync + 'static,
    L::Service: Service<Request, Error: Into<Infallible>, Response: IntoResponse, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static,
{
    let router = shop.router.clone().layer(layer);
    shop.routed_by(router)
}

#[tokio::test]
async fn first_hour_14_compression_outside_compresses_a_replay_for_who_accepts_it() {
    let shop = Shop::with(Rules::ietf(), |_, _| async {
        (StatusCode::CREATED, RECEIPT).into_response()
    });
    let shop = within(shop, CompressionLayer::new());
    let zipped = || charge().header("accept-encoding", "gzip");

    let first = shop.send(zipped()).await;
    let again = shop.send(zipped()).await;
    let plain = shop.send(charge()).await;

    assert_eq!(first.headers["content-encoding"], "gzip");
    again.replays(&first);
    assert!(plain.is_replay(), "{plain:?}");
    assert_eq!(plain.status, StatusCode::CREATED);
    assert!(!plain.headers.contains_key("content-encoding"));
    assert_eq!(plain.body, RECEIPT);
    assert_eq!(shop.runs(), 1);
}

fn zipped(path: &str, key: &str) -> Ask {
    post(path).key(key).header("accept-encoding", "gzip")
}

#[tokio::test]
async fn first_hour_14_compression_inside_is_warned_of_once_a_route() {
    let name = "tower-http.compression-inside";
    let shop = Shop::new(Rules::ietf());
    let layer = layer_over(&shop.idem, |layer| layer.name(name));
    let router = Router::new()
        .route("/refunds/{id}", post_to(RECEIPT))
        .route("/orders", post_to(RECEIPT))
        .layer(CompressionLayer::new())
        .layer(layer);
    let shop = shop.routed_by(router);

    let ((), warnings) = warnings_of(name, async {
        for key in ["a", "b"] {
            for (times, path) in [(1, "/refunds/1"), (2, "/refunds/2"), (3, "/orders")] {
                let request = zipped(path, &key.repeat(times));
                shop.send(request).await.is_fresh();
            }
        }
    })
    .await;

    let advice =
        "compressed inside of the layer and is not kept for retries: put compression outside";
    assert_eq!(warnings.matches(advice).count(), 2, "{warnings}");
    for route in ["/refunds/{id}", "/orders"] {
        let named = format!("route=\"{route}\"");
        assert_eq!(warnings.matches(&named).count(), 1, "{warnings}");
    }
}

#[tokio::test]
async fn first_hour_14_what_is_not_kept_is_warned_of_with_what_to_do() {
    let streamed = |name: &'static str, rules: Rules, body: fn() -> Body| async move {
        let shop = Shop::layered(
            |layer| layer.name(name).rules(rules),
            move |_, _| async move { Response::new(body()) },
        );
        let twice = async {
            shop.send(charge()).await.is_fresh();
            shop.send(post("/refunds").key("other")).await.is_fresh();
        };
        warnings_of(name, twice).await.1
    };
    let pieces = || stream::<Infallible>(vec![Ok(RECEIPT.into())]);
    let whole = || Body::from(RECEIPT);

    for (name, rules, body, advice) in [
        (
            "unkept.streamed",
            Rules::ietf(),
            pieces as fn() -> Body,
            "give its body a known length",
        ),
        (
            "unkept.too-long",
            Rules::ietf().max_response(8),
            whole,
            "raise `max_response`",
        ),
    ] {
        let warnings = streamed(name, rules, body).await;
        assert_eq!(warnings.matches(advice).count(), 1, "{warnings}");
    }
    let expected = Rules::ietf().unrepeatable(UnstorableResponse::RunAgain);
    assert_eq!(streamed("unkept.expected", expected, pieces).await, "");
}

fn names(headers: &HeaderMap, field: &str) -> Vec<String> {
    let names = headers[field].to_str().expect("names of fields");
    names
        .split(',')
        .map(|name| name.trim().to_owned())
        .collect()
}

#[tokio::test]
async fn first_hour_14_cors_outside_lets_browsers_send_the_key_and_read_that_it_is_a_replay() {
    let shop = Shop::new(Rules::ietf());
    let contract = shop.layer.contract();
    let cors = CorsLayer::new()
        .allow_origin(AllowOrigin::mirror_request())
        .allow_methods([Method::POST])
        .allow_headers(contract.cors_allowed_headers())
        .expose_headers(contract.cors_exposed_headers());
    let shop = within(shop, cors);
    let from = |ask: Ask, origin: &str| ask.header("origin", origin);

    let preflight = Ask::new(Method::OPTIONS, "/charges")
        .header("access-control-request-method", "POST")
        .header(
            "access-control-request-headers",
            "idempotency-key,content-type",
        );
    let allowed = shop.send(from(preflight, "https://a.example")).await;
    let first = shop.send(from(charge(), "https://a.example")).await;
    let again = shop.send(from(charge(), "https://b.example")).await;

    let allowed = names(&allowed.headers, "access-control-allow-headers");
    for name in ["idempotency-key", "content-type"] {
        assert!(allowed.iter().any(|allowed| allowed == name), "{allowed:?}");
    }
    let exposed = names(&again.headers, "access-control-expose-headers");
    assert!(exposed.iter().any(|name| name == "idempotent-replayed"));
    again.replays_but_for(&["access-control-allow-origin"], &first);
    let origin = &again.headers["access-control-allow-origin"];
    assert_eq!(origin, "https://b.example");
    assert_eq!(shop.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn first_hour_14_after_a_timeout_outside_the_handler_goes_on_and_its_answer_is_replayed() {
    let (shop, gate) = waiting(Rules::ietf().in_flight(InFlight::Wait(Duration::from_secs(10))));
    let timeout =
        TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, Duration::from_secs(1));
    let shop = within(shop, timeout);

    let cut_off = shop.send(charge()).await;
    gate.open();
    let again = shop.send(charge()).await;

    assert_eq!(cut_off.status, StatusCode::GATEWAY_TIMEOUT);
    assert!(again.is_replay(), "{again:?}");
    assert_eq!(again.body, "receipt 1");
    assert_eq!(shop.runs(), 1);
}

#[tokio::test]
async fn first_hour_14_a_trace_outside_sees_the_first_response_and_its_replay() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sees = Arc::clone(&seen);
    let trace = TraceLayer::new_for_http().on_response(
        move |response: &Response<_>, _: Duration, _: &_| {
            let replayed = response.headers().contains_key("idempotent-replayed");
            let mut seen = sees.lock().expect("nobody panics");
            seen.push((response.status(), replayed));
        },
    );
    let shop = within(Shop::new(Rules::ietf()), trace);

    shop.keeps(charge()).await;

    let seen = seen.lock().expect("nobody panics").clone();
    let created = StatusCode::CREATED;
    assert_eq!(seen, [(created, false), (created, true)]);
}

async fn counted(State(passed): State<Arc<AtomicUsize>>, request: Request, next: Next) -> Answer {
    passed.fetch_add(1, Ordering::SeqCst);
    next.run(request).await
}

#[tokio::test]
async fn first_hour_14_the_layer_composes_with_from_fn_in_one_service_builder() {
    let shop = Shop::new(Rules::ietf());
    let [outside, inside] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
    let layers = ServiceBuilder::new()
        .layer(from_fn_with_state(Arc::clone(&outside), counted))
        .layer(shop.layer.for_axum())
        .layer(from_fn_with_state(Arc::clone(&inside), counted));
    let router = Router::new()
        .route("/charges", post_to(RECEIPT))
        .layer(layers);
    let shop = shop.routed_by(router);

    let first = shop.keeps(charge()).await;

    assert_eq!(first.body, RECEIPT);
    assert_eq!(outside.load(Ordering::SeqCst), 2);
    assert_eq!(inside.load(Ordering::SeqCst), 1);
}
