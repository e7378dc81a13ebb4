//! A8: bodies, seals and renderers that panic when the handler has answered.

use std::{convert::Infallible, task::Poll};

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use idempotent_runtime::{
    BoxError, Idempotency, OnCrash,
    http::{
        LayerBuilder, ReplayHint, Rules, Scope, Seal, ServerErrors,
        problem::{Document, Problems, Rendered, Renderer},
    },
    identity::RecordId,
    testing::Gate,
};

use crate::{
    bodies::is_bound,
    harness::{Shop, charge, gated, held, held_at, marked, polled, post, respond, spawn},
};

/// A body that panics when it is asked for, and may know its length.
struct Panics(http_body::SizeHint);

impl http_body::Body for Panics {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        panic!("the body of a test")
    }

    fn is_end_stream(&self) -> bool {
        panic!("the body of a test")
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.0
    }
}

#[tokio::test]
async fn s_95_a_stream_that_panics_is_no_outcome() {
    let shop = Shop::with(Rules::ietf(), |_, _| async {
        Response::new(Body::new(Panics(http_body::SizeHint::default())))
    });
    let first = spawn(&shop, charge()).await;
    assert!(first.is_err_and(|panicked| panicked.is_panic()));
    is_bound(&shop, "outcome_unknown").await;
}

/// A body that panics when it is given up.
struct Clings;

impl Drop for Clings {
    fn drop(&mut self) {
        panic!("the body of a test");
    }
}

#[tokio::test]
async fn s_98_a_response_that_nobody_took_and_that_panics_is_done() {
    let gate = Gate::new();
    let clinging = |_| {
        let clings = Clings;
        let body = polled::<Infallible>(move |_| {
            let _held = &clings;
            Poll::Pending
        });
        Response::new(body)
    };
    let shop = Shop::with(Rules::ietf(), gated(&gate, clinging));
    let client = held(&shop, &gate, charge()).await;
    client.abort();
    let _gone = client.await;

    gate.open();

    is_bound(&shop, "result_unavailable").await;
}

#[tokio::test]
async fn s_102_a_panic_while_the_response_is_read_is_the_handlers() {
    for (errors, again_is, runs) in [
        (ServerErrors::Replay, (500, "handler_failed"), 1),
        (ServerErrors::Release, (409, "outcome_unknown"), 1),
        (ServerErrors::Uncertain, (409, "outcome_unknown"), 1),
    ] {
        let shop = Shop::with(Rules::ietf().server_errors(errors), |_, _| async {
            Response::new(Body::new(Panics(http_body::SizeHint::with_exact(4))))
        });
        let first = shop.send(charge()).await;
        first.is_problem(500, "handler_failed");

        let again = shop.send(charge()).await;

        let (status, code) = again_is;
        assert_eq!(again.status, status, "{errors:?}");
        let text = String::from_utf8_lossy(&again.body);
        assert!(text.contains(code), "{errors:?}: {text}");
        assert_eq!(shop.runs(), runs, "{errors:?}");
    }
}

#[tokio::test]
async fn s_102_a_refusal_that_panics_is_a_refusal() {
    let rules = Rules::ietf().on_crash(OnCrash::Uncertain);
    let shop = Shop::with(rules, |_, _| async {
        let body = Body::new(Panics(http_body::SizeHint::default()));
        respond(StatusCode::METHOD_NOT_ALLOWED, body)
    });
    for runs in 1..=2 {
        let refused = spawn(&shop, charge()).await;
        assert!(refused.is_err_and(|panicked| panicked.is_panic()));
        assert_eq!(shop.runs(), runs);
    }
}

#[tokio::test]
async fn s_102_a_panic_never_says_more_than_the_handler_did() {
    let outcome_unknown = |errors, mark: ReplayHint| async move {
        let shop = Shop::with(
            Rules::ietf().server_errors(errors),
            move |_, _| async move {
                let sized = http_body::SizeHint::with_exact(4);
                marked(Response::new(Body::new(Panics(sized))), mark)
            },
        );
        shop.send(charge()).await.is_problem(500, "handler_failed");
        shop.send(charge()).await.is_problem(409, "outcome_unknown");
        assert_eq!(shop.runs(), 1, "{errors:?} and {mark:?}");
    };
    outcome_unknown(ServerErrors::Replay, ReplayHint::Uncertain).await;
    outcome_unknown(ServerErrors::Release, ReplayHint::NotStored).await;
    outcome_unknown(ServerErrors::Release, ReplayHint::Final).await;
}

#[tokio::test]
async fn s_102_a_panic_frees_no_key_where_a_crash_would_not() {
    let panics = |_, _| async { panic!("the handler of a test") };
    let release = || Rules::acp().server_errors(ServerErrors::Release);
    let by_the_rules = Shop::with(release().on_crash(OnCrash::Uncertain), panics);
    let shop = Shop::new(Rules::ietf());
    let strict = Idempotency::builder(shop.store.clone()).on_crash(OnCrash::Uncertain);
    let strict = strict.build().expect("the settings are sound");
    let by_the_handle = Shop::over(shop.store, strict, release(), panics);
    for shop in [by_the_rules, by_the_handle] {
        shop.send(charge()).await.is_problem(500, "handler_failed");
        shop.send(charge()).await.is_problem(409, "outcome_unknown");
        assert_eq!(shop.runs(), 1);
    }
}

/// It panics where it seals, as one may whose key is gone.
#[derive(Debug)]
struct NoKey;

impl Seal for NoKey {
    fn seal(&self, _: &RecordId, _: Vec<u8>) -> Result<Vec<u8>, BoxError> {
        panic!("the seal of a test")
    }

    fn open(&self, _: &RecordId, _: &[u8]) -> Result<Vec<u8>, BoxError> {
        panic!("the seal of a test")
    }
}

#[tokio::test]
async fn s_102_a_seal_that_panics_loses_the_response_and_nothing_else() {
    for errors in [
        ServerErrors::Replay,
        ServerErrors::Release,
        ServerErrors::Uncertain,
    ] {
        let shop = Shop::layered(
            |layer| layer.rules(Rules::ietf().server_errors(errors)).seal(NoKey),
            |_, _| async { Response::new(Body::from("receipt")) },
        );
        let first = shop.send(charge()).await;
        first.is_fresh();
        assert_eq!(first.body, "receipt");
        shop.refuses(charge(), 409, "result_unavailable").await;
        assert_eq!(shop.runs(), 1, "{errors:?}");
    }
}

/// It panics, as one may that was given what it did not expect.
#[derive(Debug)]
pub(crate) struct NoTemplate;

impl Renderer for NoTemplate {
    fn render(&self, _: &Document<'_>, _: &HeaderMap) -> Rendered {
        panic!("the renderer of a test")
    }
}

#[tokio::test]
async fn s_102_a_failure_that_cannot_be_told_is_a_failure_nonetheless() {
    let shop = Shop::layered(
        |layer| layer.problems(Problems::new().renderer(NoTemplate)),
        |_, _| async { panic!("the handler of a test") },
    );
    for _ in 0..2 {
        let answer = spawn(&shop, charge()).await;
        assert!(answer.is_err_and(|panicked| panicked.is_panic()));
    }
    assert_eq!(shop.runs(), 1);
}

#[tokio::test]
async fn s_102_a_refusal_that_cannot_be_told_binds_no_key() {
    let gate = Gate::new();
    let set_up = |layer: LayerBuilder<Scope>| {
        let rules = Rules::ietf().on_crash(OnCrash::Uncertain);
        let problems = Problems::new().renderer(NoTemplate);
        layer.rules(rules).problems(problems).max_in_flight(1)
    };
    let shop = Shop::layered(set_up, held_at(&gate));
    let first = held(&shop, &gate, charge()).await;
    let second = post("/charges").key("l");

    let refused = spawn(&shop, second.clone()).await;

    gate.open();
    first.await.expect("there was room").is_fresh();
    shop.send(second).await.is_fresh();
    assert_eq!(shop.runs(), 2);
    let refused = refused.expect("it is told in JSON");
    refused.is_problem(503, "overloaded");
}
