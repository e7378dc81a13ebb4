//! A8: the end of a service.

use std::time::Duration;

use axum::body::Body;
use http::{Response, StatusCode};
use idempotent_runtime::{
    InFlight,
    http::Rules,
    testing::{Fault, Gate, Nth, Operation},
};
use tokio::sync::{mpsc, oneshot};

use crate::{
    clients::is_recorded,
    harness::{Shop, charge, post, spawn, waiting},
};

#[tokio::test]
async fn s_101_a_shutdown_waits_for_handlers_and_refuses_new_work() {
    let (shop, gate) = waiting(Rules::ietf());
    let first = spawn(&shop, charge());
    gate.arrived(1).await;
    first.abort();
    let _gone = first.await;

    assert!(!shop.layer.shutdown(Duration::ZERO).await, "a handler runs");
    let refused = shop.send(post("/charges").key("l")).await;
    refused.is_problem(503, "overloaded");

    gate.open();
    assert!(shop.layer.shutdown(Duration::from_secs(60)).await);
    is_recorded(&shop).await;
}

#[tokio::test]
async fn s_101_a_shutdown_waits_for_what_is_being_recorded() {
    let (shop, inside) = waiting(Rules::ietf());
    inside.open();
    let writing = Gate::new();
    shop.store
        .fault(Operation::Ending, Nth::Every, Fault::Delay(writing.clone()));
    let first = spawn(&shop, charge());
    writing.arrived(1).await;

    assert!(
        !shop.layer.shutdown(Duration::ZERO).await,
        "the handler has ended, and nothing is recorded"
    );

    writing.open();
    assert!(shop.layer.shutdown(Duration::from_secs(60)).await);
    first.await.expect("it is answered").is_fresh();
}

#[tokio::test]
async fn s_101_a_request_whose_body_arrives_after_the_shutdown_does_not_run() {
    let shop = Shop::new(Rules::ietf());
    let (sender, receiver) = mpsc::unbounded_channel::<bytes::Bytes>();
    let (asked, asks) = oneshot::channel();
    let slow = Body::new(Asked {
        body: crate::bodies::Live(receiver),
        asked: Some(asked),
    });
    let slow = tokio::spawn(shop.clone().send_owned(charge().streaming(slow)));
    asks.await.expect("the body is read");

    assert!(shop.layer.shutdown(Duration::from_secs(60)).await);

    sender.send("amount=12".into()).expect("it is read");
    drop(sender);
    let refused = slow.await.expect("it is answered");
    refused.is_problem(503, "overloaded");
    assert_eq!(shop.runs(), 0);
}

/// Says when it is asked for a piece.
struct Asked {
    body: crate::bodies::Live,
    asked: Option<oneshot::Sender<()>>,
}

impl http_body::Body for Asked {
    type Data = bytes::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<bytes::Bytes>, Self::Error>>> {
        if let Some(asked) = self.asked.take() {
            asked.send(()).expect("the test waits");
        }
        std::pin::Pin::new(&mut self.body).poll_frame(cx)
    }
}

#[tokio::test]
async fn s_101_a_retry_that_waits_does_not_run_after_the_shutdown() {
    let wait = InFlight::Wait(Duration::from_secs(3_600));
    let gate = Gate::new();
    let inside = gate.clone();
    let shop = Shop::with(Rules::ietf().in_flight(wait), move |_, _| {
        let gate = inside.clone();
        async move {
            gate.pass().await;
            // Nothing has happened yet, so the key is free again.
            let mut response = Response::default();
            *response.status_mut() = StatusCode::UNAUTHORIZED;
            response
        }
    });
    let first = spawn(&shop, charge());
    gate.arrived(1).await;
    let second = spawn(&shop, charge());
    while shop.store.calls(Operation::Wait) == 0 {
        tokio::task::yield_now().await;
    }

    assert!(!shop.layer.shutdown(Duration::ZERO).await, "a handler runs");
    gate.open();

    assert_eq!(first.await.expect("it is answered").status, 401);
    let refused = second.await.expect("it is answered");
    refused.is_problem(503, "overloaded");
    assert_eq!(shop.runs(), 1);
}
