//! A8: clients that do not read their responses, and requests that wait.

use std::{convert::Infallible, task::Poll, time::Duration};

use axum::body::Body;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use idempotent_runtime::{
    Error, Idempotency, InFlight,
    http::{IdempotencyLayer, LayerBuilder, Rules, Scope},
    testing::{Gate, ManualClock, StoreOperation},
};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::harness::{
    Shop, by_one_clock, charge, first_held_at, held, layer_over, live, polled, post, spawn,
};

const SECOND: Duration = Duration::from_secs(1);

/// A shop on a clock, whose first run streams what is sent, and says when it is dropped. Its other
/// runs answer whole.
struct Streaming {
    shop: Shop,
    clock: ManualClock,
    pieces: UnboundedSender<Bytes>,
}

impl Streaming {
    fn new(set_up: impl FnOnce(LayerBuilder<Scope>) -> LayerBuilder<Scope>) -> Self {
        let (store, idem, clock) = by_one_clock(|handle| handle);
        let layer = layer_over(&idem, set_up);
        let (pieces, sent) = unbounded_channel();
        let sent = std::sync::Mutex::new(Some(sent));
        let sent = std::sync::Arc::new(sent);
        let shop = Shop::behind(layer, store, idem, move |run, _: Request<Body>| {
            let sent = sent.lock().expect("nobody panics").take();
            async move {
                match sent {
                    Some(sent) => Response::new(live(sent)),
                    None => Response::new(Body::from(format!("receipt {run}"))),
                }
            }
        });
        Self {
            shop,
            clock,
            pieces,
        }
    }

    /// The key counts as that of a response that is gone.
    async fn is_over(&self) {
        let mut again = self.shop.send(charge()).await;
        while again.status == 409 && again.headers.contains_key("retry-after") {
            tokio::task::yield_now().await;
            again = self.shop.send(charge()).await;
        }
        again.is_problem(409, "result_unavailable");
    }

    async fn is_running(&self) {
        let again = self.shop.send(charge()).await;
        again.is_problem(409, "request_in_progress");
    }
}

#[tokio::test]
async fn mend_37_a_response_that_streams_takes_no_place_of_a_handler() {
    let streaming = Streaming::new(|layer| layer.max_in_flight(1));
    let unread = streaming.shop.begin(charge()).await;

    streaming
        .shop
        .send(post("/charges").key("l"))
        .await
        .is_fresh();

    streaming.is_running().await;
    drop(unread);
    streaming.is_over().await;
}

#[tokio::test]
async fn mend_37_a_response_that_streams_counts_for_its_caller() {
    let streaming = Streaming::new(|layer| layer.max_in_flight_per_caller(1));
    let unread = streaming.shop.begin(charge()).await;

    let other = || post("/charges").key("l");
    let refused = streaming.shop.send(other()).await;
    refused.is_problem(429, "too_many_keys");
    streaming.shop.send(other().caller("B")).await.is_fresh();

    drop(unread);
    streaming.is_over().await;
    streaming.shop.send(other()).await.is_fresh();
}

#[tokio::test]
async fn mend_37_responses_that_stream_have_a_bound_of_their_own() {
    let streaming = Streaming::new(|layer| layer.max_streams(1));
    let unread = streaming.shop.begin(charge()).await;

    let other = || post("/charges").key("l");
    let refused = streaming.shop.send(other()).await;
    refused.is_problem(503, "overloaded");

    drop(unread);
    streaming.is_over().await;
    streaming.shop.send(other()).await.is_fresh();
}

#[tokio::test]
async fn mend_37_a_response_that_is_not_read_is_cut_off() {
    let rules = || Rules::ietf().stream_timeout("5s");
    let streaming = Streaming::new(|layer| layer.rules(rules()));
    let mut response = streaming.shop.begin(charge()).await;
    for _ in 0..3 {
        streaming.clock.advance(4 * SECOND);
        streaming.pieces.send("a".into()).expect("it is there");
        let piece = response.body_mut().frame().await.expect("it goes on");
        assert!(piece.is_ok());
    }
    streaming.clock.advance(4 * SECOND);
    streaming.is_running().await;

    streaming.clock.advance(SECOND);

    streaming.is_over().await;
    assert!(
        streaming.pieces.is_closed(),
        "the handler's part is dropped"
    );
    let broken = response.body_mut().frame().await.expect("it is told");
    assert!(broken.is_err());
    assert!(response.body_mut().frame().await.is_none());
}

#[tokio::test]
async fn mend_37_the_silence_of_a_handler_is_not_its_client_s() {
    let rules = Rules::ietf().stream_timeout("5s").stream_deadline("1m");
    // No heartbeat has to come in time on this clock.
    let rules = rules.lease("1h");
    let streaming = Streaming::new(|layer| layer.rules(rules));
    let response = streaming.shop.begin(charge()).await;
    let reading = tokio::spawn(response.into_body().collect());
    streaming.pieces.send("a".into()).expect("it is there");
    for _ in 0..11 {
        tokio::task::yield_now().await;
        streaming.clock.advance(5 * SECOND);
        streaming.is_running().await;
    }

    streaming.clock.advance(5 * SECOND);

    streaming.is_over().await;
    let broken = reading.await.expect("no panic");
    assert!(broken.is_err(), "it has had its minute");
}

#[tokio::test]
async fn mend_37_a_shutdown_waits_for_no_client_that_reads() {
    let streaming = Streaming::new(|layer| layer);
    let response = streaming.shop.begin(charge()).await;

    assert!(streaming.shop.layer.shutdown(60 * SECOND).await);

    streaming.pieces.send("all".into()).expect("it goes on");
    drop(streaming.pieces);
    let whole = response.into_body().collect().await.expect("it goes on");
    assert_eq!(whole.to_bytes(), "all");
    let records = streaming.shop.records().await;
    assert!(records[0].1.finished.is_some(), "{records:?}");
}

#[tokio::test]
async fn mend_37_a_body_that_panics_while_it_streams_is_a_failure() {
    let shop = Shop::with(Rules::ietf(), |_, _| async {
        Response::new(polled::<Infallible>(|_| -> Poll<Option<_>> {
            panic!("the body of a test")
        }))
    });
    let response = shop.begin(charge()).await;
    let reading = tokio::spawn(response.into_body().collect());
    assert!(reading.await.is_err());
    let mut again = shop.send(charge()).await;
    while again.headers.contains_key("retry-after") {
        tokio::task::yield_now().await;
        again = shop.send(charge()).await;
    }
    again.is_problem(409, "outcome_unknown");
}

#[tokio::test]
async fn mend_37_a_request_that_waits_takes_the_place_of_a_handler() {
    let (store, idem, _) = by_one_clock(|handle| handle);
    let rules = Rules::ietf().in_flight(InFlight::Wait(3_600 * SECOND));
    let layer = layer_over(&idem, |layer| layer.rules(rules).max_in_flight(2));
    let gate = Gate::new();
    let shop = Shop::behind(layer, store, idem, first_held_at(&gate));
    let first = held(&shop, &gate, charge()).await;
    let waiting = spawn(&shop, charge());
    while shop.store.calls(StoreOperation::Wait) == 0 {
        tokio::task::yield_now().await;
    }

    let other = || post("/charges").key("l");
    shop.send(other()).await.is_problem(503, "overloaded");
    let another = shop.send(charge()).await;
    another.is_problem(409, "request_in_progress");

    gate.open();
    let first = first.await.expect("it is answered");
    waiting.await.expect("it is answered").replays(&first);
    shop.send(other()).await.is_fresh();
}

#[test]
fn mend_37_mend_39_no_time_and_no_room_at_all_are_mistakes() {
    let built = |set_up: &dyn Fn(LayerBuilder<Scope>) -> LayerBuilder<Scope>| {
        let layer = IdempotencyLayer::builder(Idempotency::memory()).shared_by_all_callers();
        set_up(layer).build().map(drop)
    };
    let by = |rules: Rules| built(&|layer| layer.rules(rules.clone()));
    for refused in [
        by(Rules::ietf().body_timeout("0s")),
        by(Rules::ietf().body_deadline("0s")),
        by(Rules::ietf().stream_timeout("0s")),
        by(Rules::ietf().stream_deadline("0s")),
        built(&|layer| layer.route("/a", |rules| rules.body_timeout("0s"))),
        built(&|layer| layer.max_streams(0)),
    ] {
        assert!(
            matches!(refused, Err(Error::InvalidPolicy(_))),
            "{refused:?}"
        );
    }
}
