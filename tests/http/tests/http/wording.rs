//! Problems speak of what the client has sent, and of what there is.

use std::time::Duration;

use axum::{Router, extract::State, routing::post as posted};
use idempotent_runtime::{
    Error, Idempotency,
    http::{IdempotencyLayer, Json, Rules, problem::Problems},
    idempotent,
    testing::{Gate, ManualClock},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::harness::{
    Answer, Ask, Shop, by_caller, by_one_clock, charge, held, on_a_clock, post, vanished,
};

#[derive(Serialize, Deserialize)]
struct Order {
    id: Option<String>,
    cents: u64,
}

#[derive(Clone)]
struct Orders {
    idem: Idempotency,
    gate: Gate,
}

#[idempotent(
    name = "wording.place",
    key = order.id,
    scope = 7,
    handle = orders.idem,
    skip(orders),
    in_flight = reject,
    on_cancel = detach
)]
async fn place(State(orders): State<Orders>, Json(order): Json<Order>) -> Result<Json<u64>, Error> {
    orders.gate.pass().await;
    Ok(Json(order.cents))
}

/// A shop whose handler is annotated, and has its key of the body.
fn annotated() -> (Shop, Gate, ManualClock) {
    let (store, idem, clock) = by_one_clock(|handle| handle);
    let gate = Gate::new();
    let orders = Orders {
        idem: idem.clone(),
        gate: gate.clone(),
    };
    let mut shop = Shop::new(Rules::ietf());
    (shop.store, shop.idem) = (store, idem);
    let router = Router::new().route("/orders", posted(place));
    (shop.routed_by(router.with_state(orders)), gate, clock)
}

fn order(id: &str, cents: u64) -> Ask {
    post("/orders").json(format!(r#"{{"id":{id},"cents":{cents}}}"#))
}

fn document(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).expect("it is JSON")
}

#[tokio::test]
async fn first_hour_15_no_problem_of_a_key_in_the_body_names_a_header_field() {
    let (shop, gate, _) = annotated();
    let running = held(&shop, &gate, order("\"a\"", 1)).await;
    let long = format!("\"{}\"", "a".repeat(100_000));
    for (ask, status, code) in [
        (order("null", 1), 400, "key_missing"),
        (order("\"\"", 1), 400, "key_invalid"),
        (order(&long, 1), 400, "key_invalid"),
        (order("\"a\"", 2), 422, "key_reused"),
        (order("\"a\"", 1), 409, "request_in_progress"),
    ] {
        let answer = shop.send(ask).await;
        assert_eq!(answer.status, status, "{answer:?}");
        let document = document(&answer);
        assert_eq!(document["code"], format!("idempotency_{code}"));
        for text in [&document["title"], &document["detail"]] {
            let text = text.as_str().expect("it is text").to_ascii_lowercase();
            for word in ["idempotency-key", "header", "field"] {
                assert!(!text.contains(word), "{text}");
            }
        }
    }
    gate.open();
    running.await.expect("it is answered").is_fresh();
}

/// As long as a holder sends heartbeats, it may end at any moment.
#[tokio::test]
async fn first_hour_15_a_retry_after_a_crash_is_sent_to_the_end_of_the_lease() {
    let (of_the_layer, layers_gate, layers_clock) = on_a_clock(Rules::ietf());
    let (of_a_handler, handlers_gate, handlers_clock) = annotated();
    for (shop, gate, clock, ask) in [
        (of_the_layer, layers_gate, layers_clock, charge()),
        (
            of_a_handler,
            handlers_gate,
            handlers_clock,
            order("\"a\"", 1),
        ),
    ] {
        let vanished = vanished(&shop, &gate, ask.clone()).await;
        for (seconds, wait) in [(0, 1), (9, 1), (11, 10), (8, 2)] {
            clock.advance(Duration::from_secs(seconds));
            let answer = shop.send(ask.clone()).await;
            assert_eq!(answer.status, 409, "{answer:?}");
            assert_eq!(answer.headers["retry-after"], wait.to_string());
            assert_eq!(document(&answer)["retry_after"], wait);
        }
        vanished.abort();
    }
}

#[tokio::test]
async fn first_hour_15_the_type_of_a_problem_is_the_services_or_a_name() {
    for (base, expected) in [
        (None, "urn:idempotent-runtime:problem:"),
        (
            Some("https://example.com/problems/"),
            "https://example.com/problems/",
        ),
    ] {
        let problems = match base {
            Some(base) => Problems::new().base(base).expect("an absolute URI"),
            None => Problems::new(),
        };
        let shop = Shop::new(Rules::ietf());
        let layer = IdempotencyLayer::builder(shop.idem.clone())
            .scope("caller", by_caller)
            .problems(problems)
            .build()
            .expect("the settings are sound");
        let routes = Router::new().route("/charges", posted(|| async { "charged" }));
        let shop = shop.routed_by(routes.layer(layer));

        let refused = shop.send(post("/charges")).await;

        let expected = format!("{expected}idempotency-key-missing");
        assert_eq!(document(&refused)["type"], expected);
    }
}
