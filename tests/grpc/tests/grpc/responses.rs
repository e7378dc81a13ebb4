//! A9: responses of gRPC that tonic does not make.

use std::{
    convert::Infallible,
    sync::{Arc, atomic::Ordering},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use idempotent_runtime::{
    Error, Idempotency,
    http::{HeaderPolicy, IdempotencyLayer, ReplayHint, Rules, UnstorableResponse},
};
use tower::{Layer, ServiceExt, service_fn};

use crate::harness::send_parcel;

const MESSAGE: Bytes = Bytes::from_static(b"\0\0\0\0\x02ab");

fn layer(rules: Rules) -> Result<IdempotencyLayer, Error> {
    IdempotencyLayer::builder(Idempotency::memory())
        .shared_by_all_callers()
        .rules(rules)
        .build()
}

/// The answer of a service: header fields, a message, and trailers where there are some.
#[derive(Clone, Default)]
struct Says {
    head: Vec<(&'static str, &'static str)>,
    trailers: Option<&'static str>,
    mark: Option<ReplayHint>,
}

impl Says {
    /// The answer to a second call with the same key: its status of gRPC, and whether it is a
    /// replay.
    async fn again(self, rules: Rules, accepts: &'static str) -> (String, bool) {
        let layer = layer(rules).expect("the settings are sound");
        let service = layer.layer(service_fn(move |_| {
            let says = self.clone();
            async move { Ok::<_, Infallible>(says.response()) }
        }));
        let mut last = None;
        let mut calls = 0;
        // The outcome of a message that was given on is recorded after the message's end.
        while calls < 2 || last.as_ref().is_some_and(|(status, _)| status == "10") {
            calls += 1;
            tokio::task::yield_now().await;
            let mut request = request();
            if !accepts.is_empty() {
                let accepts = HeaderValue::from_static(accepts);
                request
                    .headers_mut()
                    .insert("grpc-accept-encoding", accepts);
            }
            let response = service.clone().oneshot(request).await;
            let Ok(response) = response;
            let (head, body) = response.into_parts();
            let whole = body.collect().await.expect("it is whole");
            let status = head.headers.get("grpc-status").cloned();
            let behind = whole
                .trailers()
                .and_then(|trailers| trailers.get("grpc-status").cloned());
            let status = status
                .or(behind)
                .unwrap_or(HeaderValue::from_static("none"));
            let is_replay = head.headers.contains_key("idempotent-replayed");
            last = Some((status.to_str().expect("it is text").to_owned(), is_replay));
        }
        last.expect("it was called twice")
    }

    fn response(self) -> Response<impl http_body::Body<Data = Bytes, Error = Infallible>> {
        let trailers = self.trailers.map(|status| {
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", HeaderValue::from_static(status));
            Ok(Frame::trailers(trailers))
        });
        let message = Ok::<_, Infallible>(Frame::data(MESSAGE));
        let frames = [Some(message), trailers].into_iter().flatten();
        let body = StreamBody::new(tokio_stream::iter(frames));
        let mut response = Response::new(body);
        for (name, value) in self.head {
            response
                .headers_mut()
                .insert(name, HeaderValue::from_static(value));
        }
        if let Some(mark) = self.mark {
            response.extensions_mut().insert(mark);
        }
        response
    }
}

fn request() -> Request<Full<Bytes>> {
    let request = Request::post("/shop.v1.Orders/Place")
        .header("content-type", "application/grpc")
        .header("idempotency-key", "\"k\"");
    request.body(Full::new(MESSAGE)).expect("a request")
}

fn ok() -> Says {
    Says {
        trailers: Some("0"),
        ..Says::default()
    }
}

fn is(status: &str, is_replay: bool) -> (String, bool) {
    (status.to_owned(), is_replay)
}

#[tokio::test]
async fn s_116_a_response_without_a_status_is_no_outcome() {
    let rules = Rules::grpc_unary;
    assert_eq!(ok().again(rules(), "").await, is("0", true));
    let silent = Says::default();
    assert_eq!(silent.again(rules(), "").await, is("9", false));
    let garbled = Says {
        trailers: Some("fine"),
        ..Says::default()
    };
    assert_eq!(garbled.again(rules(), "").await, is("9", false));
}

#[tokio::test]
async fn s_116_the_handlers_mark_counts_more_than_its_status() {
    let marked = Says {
        mark: Some(ReplayHint::Uncertain),
        ..ok()
    };
    assert_eq!(marked.again(Rules::grpc_unary(), "").await, is("9", false));
    let marked = Says {
        mark: Some(ReplayHint::Final),
        trailers: Some("14"),
        ..Says::default()
    };
    assert_eq!(marked.again(Rules::grpc_unary(), "").await, is("14", true));
}

#[tokio::test]
async fn s_116_a_message_that_is_too_long_is_not_repeated() {
    let short = || Rules::grpc_unary().max_response(4);
    assert_eq!(ok().again(short(), "").await, is("9", false));
    let again = short().unrepeatable(UnstorableResponse::RunAgain);
    assert_eq!(ok().again(again, "").await, is("0", false));
}

#[tokio::test]
async fn s_116_a_compressed_message_is_for_those_who_accept_that() {
    let compressed = |coding| Says {
        head: vec![("grpc-encoding", coding)],
        ..ok()
    };
    for (coding, accepts, again_is) in [
        ("gzip", "identity,gzip", is("0", true)),
        ("gzip", "identity", is("9", false)),
        ("gzip", "", is("9", false)),
        ("identity", "", is("0", true)),
    ] {
        let again = compressed(coding).again(Rules::grpc_unary(), accepts).await;
        assert_eq!(again, again_is, "{coding} for {accepts:?}");
    }
}

#[test]
fn s_116_rules_that_would_lose_the_status_are_refused() {
    let only = HeaderPolicy::only([http::header::CONTENT_TYPE]);
    let layer = layer(Rules::grpc_unary().headers(only));
    assert!(matches!(layer, Err(Error::InvalidPolicy(_))), "{layer:?}");
}

#[tokio::test]
async fn j18_a_status_behind_the_message_decides_about_the_steps_of_its_handler() {
    for (status, undone) in [("0", 0), ("9", 1)] {
        let says = Says {
            trailers: Some(status),
            ..Says::default()
        };
        let cancelled = Arc::default();
        let counted = Arc::clone(&cancelled);
        let layer = layer(Rules::grpc_unary()).expect("the settings are sound");
        let service = layer.layer(service_fn(move |_| {
            let (says, counted) = (says.clone(), Arc::clone(&counted));
            async move {
                send_parcel(&counted).await.expect("it is sent");
                Ok::<_, Infallible>(says.response())
            }
        }));
        let Ok(response) = service.oneshot(request()).await;
        response.into_body().collect().await.expect("it is whole");
        assert_eq!(cancelled.load(Ordering::SeqCst), undone, "{status}");
    }
}
