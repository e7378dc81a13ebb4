//! One operation with two doors: a handler behind the layer, and a consumer of messages. Both name
//! the same order.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{Router, extract::State, routing::post as on_post};
use idempotent_runtime::{
    Error, Idempotency,
    consumer::Disposition,
    http::{Json, Rules},
    idempotent,
    testing::Gate,
};

use crate::harness::{Ask, Shop, post};

#[derive(Clone)]
struct App {
    idem: Idempotency,
    runs: Arc<AtomicUsize>,
    gate: Gate,
}

#[idempotent(
    name = "orders.charge",
    key = order,
    in_flight = reject,
    on_error = release,
    handle = app.idem,
    skip(app)
)]
async fn charge(app: &App, order: &str) -> Result<usize, Error> {
    let run = app.runs.fetch_add(1, Ordering::SeqCst) + 1;
    app.gate.pass().await;
    Ok(run)
}

async fn by_http(State(app): State<App>, Json(order): Json<String>) -> Result<Json<usize>, Error> {
    charge(&app, &order).await.map(Json)
}

impl App {
    fn new() -> (Self, Shop) {
        let app = Self {
            idem: Idempotency::memory(),
            runs: Arc::default(),
            gate: Gate::new(),
        };
        let router = Router::new().route("/orders", on_post(by_http));
        let router = router.with_state(app.clone());
        (app, Shop::new(Rules::ietf()).routed_by(router))
    }

    async fn by_message(&self, delivery: u32) -> Disposition {
        let consumer = self.idem.consumer("charges").broker_retention("3d").build();
        let message = consumer.expect("a consumer").message("message-7");
        let message = message.payload("order-42").delivery(delivery);
        message.run(async |_| charge(self, "order-42").await).await
    }
}

fn request(key: &str) -> Ask {
    post("/orders").key(key).json("\"order-42\"")
}

fn is_ack(disposition: &Disposition) -> bool {
    matches!(disposition, Disposition::Ack { replayed: false })
}

#[tokio::test]
async fn an_order_that_came_by_http_is_not_charged_again_by_a_message() {
    let (app, shop) = App::new();
    app.gate.open();
    assert_eq!(shop.send(request("a")).await.body, "1");
    let acknowledged = app.by_message(1).await;
    assert!(is_ack(&acknowledged), "{acknowledged:?}");
    assert_eq!(shop.send(request("b")).await.body, "1");
    assert_eq!(app.runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_message_waits_for_the_order_that_comes_by_http_and_is_no_dead_letter() {
    let (app, shop) = App::new();
    let (answer, ()) = tokio::join!(shop.send(request("a")), async {
        app.gate.arrived(1).await;
        for delivery in [1, 100] {
            let again = app.by_message(delivery).await;
            assert!(matches!(again, Disposition::Retry { .. }), "{again:?}");
        }
        app.gate.open();
    });
    assert_eq!(answer.body, "1");
    let acknowledged = app.by_message(2).await;
    assert!(is_ack(&acknowledged), "{acknowledged:?}");
    assert_eq!(app.runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_request_is_refused_while_the_message_runs() {
    let (app, shop) = App::new();
    let (acknowledged, ()) = tokio::join!(app.by_message(1), async {
        app.gate.arrived(1).await;
        let refused = shop.send(request("a")).await;
        assert_eq!(refused.status, 409, "{refused:?}");
        app.gate.open();
    });
    assert!(is_ack(&acknowledged), "{acknowledged:?}");
    assert_eq!(shop.send(request("b")).await.body, "1");
    assert_eq!(app.runs.load(Ordering::SeqCst), 1);
}
