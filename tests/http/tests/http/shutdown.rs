//! A8: the end of a service.

use std::{convert::Infallible, task::Poll, time::Duration};

use axum::body::Body;
use http::{Request, Response, StatusCode};
use idempotent_runtime::{
    InFlight,
    http::{ReplayHint, Rules},
    record::State,
    testing::{Fault, Gate, On, StoreOperation},
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};
use tower::ServiceExt;

use crate::{
    clients::is_recorded,
    harness::{
        Answer, Shop, charge, gated, held, marked, on_a_clock, polled, post, respond, running,
        spawn, vanished, waiting,
    },
};

#[tokio::test]
async fn s_101_a_shutdown_waits_for_handlers_and_refuses_new_work() {
    let (shop, gate, first) = running(Rules::ietf()).await;
    first.abort();
    let _gone = first.await;

    assert!(!shop.layer.shutdown(Duration::ZERO).await, "a handler runs");
    let refused = shop.send(post("/charges").key("l")).await;
    refused.is_problem(503, "overloaded");
    // Its record would say that it runs.
    shop.send(charge()).await.is_problem(503, "overloaded");

    gate.open();
    assert!(shop.layer.shutdown(Duration::from_secs(60)).await);
    is_recorded(&shop).await;
}

#[tokio::test]
async fn s_101_a_shutdown_waits_for_what_is_being_recorded() {
    let (shop, inside) = waiting(Rules::ietf());
    inside.open();
    let writing = Gate::new();
    shop.store.fault(
        StoreOperation::Ending,
        On::Every,
        Fault::Delay(writing.clone()),
    );
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

/// A request whose body is asked for, and what its client sends of it from then on.
async fn begins_to_send(shop: &Shop) -> (JoinHandle<Answer>, mpsc::UnboundedSender<bytes::Bytes>) {
    let (rest, mut pieces) = mpsc::unbounded_channel();
    let (asked, asks) = oneshot::channel();
    let mut asked = Some(asked);
    let slow = polled::<Infallible>(move |cx| {
        if let Some(asked) = asked.take() {
            asked.send(()).expect("the test waits");
        }
        pieces.poll_recv(cx).map(|piece| piece.map(Ok))
    });
    let slow = tokio::spawn(shop.clone().send_owned(charge().streaming(slow)));
    asks.await.expect("the body is read");
    (slow, rest)
}

#[tokio::test]
async fn s_101_a_request_whose_body_arrives_after_the_shutdown_does_not_run() {
    let shop = Shop::new(Rules::ietf());
    let (slow, rest) = begins_to_send(&shop).await;

    assert!(shop.layer.shutdown(Duration::from_secs(60)).await);

    rest.send("amount=12".into()).expect("it is read");
    drop(rest);
    let refused = slow.await.expect("it is answered");
    refused.is_problem(503, "overloaded");
    assert_eq!(shop.runs(), 0);
}

#[tokio::test]
async fn s_101_a_takeover_that_comes_too_late_leaves_the_key_bound() {
    let (shop, gate, clock) = on_a_clock(Rules::ietf());
    let first = vanished(&shop, &gate, charge()).await;
    clock.advance(Duration::from_secs(31));
    let (slow, rest) = begins_to_send(&shop).await;
    assert!(!shop.layer.shutdown(Duration::ZERO).await, "a handler runs");

    rest.send("amount=12".into()).expect("it is read");
    drop(rest);

    let refused = slow.await.expect("it is answered");
    refused.is_problem(503, "overloaded");
    assert_eq!(refused.headers["idempotency-status"], "open");
    assert_eq!(shop.store.swaps_to(State::Released), 0);
    gate.open();
    first.await.expect("it is answered");
}

#[test]
fn s_101_a_handler_that_has_answered_does_not_run_again_for_a_runtime_that_ends() {
    let runtime = || tokio::runtime::Runtime::new().expect("a runtime");
    // The record that the first runtime leaves is written in the background.
    let wait = InFlight::Wait(Duration::from_secs(60));
    for (mark, code) in [
        (None, "result_unavailable"),
        (Some(ReplayHint::NotStored), "result_unavailable"),
        (Some(ReplayHint::Uncertain), "outcome_unknown"),
    ] {
        let shop = Shop::with(Rules::ietf().in_flight(wait), move |run, _| async move {
            let response = match run {
                // It never ends.
                1 => Response::new(polled::<Infallible>(|_| Poll::Pending)),
                _ => Response::default(),
            };
            marked(response, mark)
        });
        let first = runtime();
        let request: Request<Body> = charge().into();
        let answered = first.block_on(shop.router.clone().oneshot(request));
        // Its client goes on reading.
        let answered = answered.expect("a router does not fail");
        assert_eq!(answered.status(), 200);

        drop(first);

        let again = runtime().block_on(shop.send(charge()));
        again.is_problem(409, code);
        assert_eq!(shop.runs(), 1, "{mark:?}");
        drop(answered);
    }
}

#[tokio::test]
async fn s_101_a_retry_that_waits_does_not_run_after_the_shutdown() {
    let wait = InFlight::Wait(Duration::from_secs(3_600));
    let gate = Gate::new();
    // Nothing has happened yet, so the key is free again.
    let refuses = gated(&gate, |_| respond(StatusCode::UNAUTHORIZED, Body::empty()));
    let shop = Shop::with(Rules::ietf().in_flight(wait), refuses);
    let first = held(&shop, &gate, charge()).await;
    let second = spawn(&shop, charge());
    while shop.store.calls(StoreOperation::Wait) == 0 {
        tokio::task::yield_now().await;
    }

    assert!(!shop.layer.shutdown(Duration::ZERO).await, "a handler runs");
    gate.open();

    assert_eq!(first.await.expect("it is answered").status, 401);
    let refused = second.await.expect("it is answered");
    refused.is_problem(503, "overloaded");
    assert_eq!(shop.runs(), 1);
}
