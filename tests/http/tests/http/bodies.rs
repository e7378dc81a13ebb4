//! A7: bodies of requests and responses, whole, streamed, broken and too large.

use std::{convert::Infallible, time::Duration};

use axum::{BoxError, body::Body, extract::DefaultBodyLimit, routing::post as on_post};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use idempotent_runtime::{Status, http::Rules, testing::Gate};
use tokio::sync::mpsc;
use tower::util::MapRequestLayer;

use crate::harness::{Answer, Shop, charge, post, silent, spawn, stream};

fn pieces(pieces: &[&'static str]) -> Vec<Result<Bytes, Infallible>> {
    pieces
        .iter()
        .map(|piece| Ok(Bytes::from_static(piece.as_bytes())))
        .collect()
}

#[tokio::test]
async fn s_84_s_85_a_body_over_the_limit_is_refused_and_does_not_run() {
    let shop = Shop::new(Rules::ietf().max_request(8));
    let at_limit = post("/c").key("limit").body("12345678");
    shop.send(at_limit).await.is_fresh();
    let round_trips = shop.store.round_trips();

    let known = post("/c").key("k").body("123456789");
    shop.refuses(known.clone(), 413, "body_too_large").await;
    let chunked = known.streaming(stream(pieces(&["1234", "5678", "9"])));
    shop.send_as_is(chunked)
        .await
        .is_problem(413, "body_too_large");

    assert_eq!((shop.runs(), shop.store.round_trips()), (1, round_trips));
}

/// Sent again it would break off again, so nobody is told to.
#[tokio::test]
async fn s_85_a_limit_outside_of_the_layer_is_a_limit() {
    let shop = Shop::new(Rules::ietf());
    let limited =
        MapRequestLayer::new(|request: Request<Body>| request.map(|body| Limited::new(body, 8)));
    let router = shop.router.clone().layer(limited);
    let shop = shop.routed_by(router);

    let too_long = charge().streaming(stream(pieces(&["1234", "5678", "9"])));
    let refused = shop.send_as_is(too_long).await;

    assert_eq!(
        refused.is_problem(413, "body_too_large")["retryable"],
        false
    );
    assert_eq!((shop.runs(), shop.store.round_trips()), (0, 0));
}

/// Panics where anybody reads it.
struct Unread;

impl http_body::Body for Unread {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        panic!("nobody may read it")
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(9)
    }
}

#[tokio::test]
async fn s_84_s_97_what_is_refused_for_its_head_is_refused_unread() {
    let shop = Shop::new(Rules::ietf().max_request(8));
    let unread = || Body::new(Unread);
    let answer = shop
        .send_as_is(post("/c").key("k").streaming(unread()))
        .await;
    answer.is_problem(413, "body_too_large");
    let answer = shop.send_as_is(post("/c").streaming(unread())).await;
    answer.is_problem(400, "key_missing");
    let answer = shop
        .send_as_is(post("/c").key("\"k").streaming(unread()))
        .await;
    answer.is_problem(400, "key_invalid");
}

#[tokio::test]
async fn s_86_a_body_that_breaks_off_leaves_nothing_behind() {
    let shop = Shop::new(Rules::ietf());
    let broken: Vec<Result<Bytes, BoxError>> =
        vec![Ok("amount".into()), Err("the client hung up".into())];

    let answer = shop.send_as_is(charge().streaming(stream(broken))).await;

    assert_eq!(answer.is_problem(400, "body_unreadable")["retryable"], true);
    assert_eq!((shop.runs(), shop.store.round_trips()), (0, 0));
    shop.send(charge()).await.is_fresh();
}

#[tokio::test]
async fn s_87_the_handler_gets_the_body_as_it_came() {
    let shop = Shop::with(Rules::ietf(), |_, request: Request<Body>| async move {
        let length = request.headers().get("content-length").cloned();
        let body = request.into_body().collect().await.expect("it is whole");
        let trailers = body.trailers().cloned().expect("it has trailers");
        assert_eq!(trailers["x-sum"], "12");
        let mut response = Response::new(Body::from(body.to_bytes()));
        if let Some(length) = length {
            response.headers_mut().insert("x-length", length);
        }
        response
    });
    let trailers = async {
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", HeaderValue::from_static("12"));
        Some(Ok(trailers))
    };
    let body = Full::from(&b"\0\xff\r\n"[..]).with_trailers(trailers);
    let request = post("/c").key("k").header("content-length", "4");
    let answer = shop.send_as_is(request.streaming(Body::new(body))).await;
    assert_eq!(answer.body, &b"\0\xff\r\n"[..]);
    assert_eq!(answer.headers["x-length"], "4");
}

#[tokio::test]
async fn s_87_a_limit_of_the_routers_still_counts() {
    let shop = Shop::new(Rules::ietf());
    let router = axum::Router::new()
        .route("/charges", on_post(|body: Bytes| async move { body }))
        .layer(shop.layer.clone())
        .layer(DefaultBodyLimit::max(4));
    let shop = shop.routed_by(router);
    assert_eq!(
        shop.send(charge()).await.status,
        StatusCode::PAYLOAD_TOO_LARGE
    );
    shop.send(charge().body("1234")).await.is_fresh();
}

#[tokio::test]
async fn s_88_s_89_a_stream_is_given_on_as_it_comes_and_not_replayed() {
    let (sender, receiver) = mpsc::unbounded_channel::<Bytes>();
    let receiver = std::sync::Arc::new(std::sync::Mutex::new(Some(receiver)));
    let shop = Shop::with(Rules::ietf(), move |_, _| {
        let receiver = receiver.lock().expect("nobody panics").take();
        async move {
            let mut response = Response::new(Body::new(Live(receiver.expect("it runs once"))));
            let events = HeaderValue::from_static("text/event-stream");
            response.headers_mut().insert("content-type", events);
            response
        }
    });
    let response = shop.begin(charge()).await;
    let mut body = response.into_body();

    sender.send("event 1".into()).expect("it is read");
    let first = body
        .frame()
        .await
        .expect("it is there")
        .expect("it is sound");
    assert_eq!(first.data_ref().expect("data"), "event 1");
    shop.refuses(charge(), 409, "request_in_progress").await;

    sender.send("event 2".into()).expect("it is read");
    drop(sender);
    let rest = body.collect().await.expect("it is whole").to_bytes();
    assert_eq!(rest, "event 2");
    until_settled(&shop)
        .await
        .is_problem(409, "result_unavailable");
    assert_eq!(shop.runs(), 1);
}

/// What is recorded of a stream is written after its end, in the background.
pub(crate) async fn until_settled(shop: &Shop) -> Answer {
    while let Ok(Status::Processing { .. }) =
        shop.idem.lookup("http", Some(&("caller", "A")), "k").await
    {
        tokio::task::yield_now().await;
    }
    shop.send(charge()).await
}

/// What is sent, as it is sent.
pub(crate) struct Live(pub(crate) mpsc::UnboundedReceiver<Bytes>);

impl http_body::Body for Live {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        self.0
            .poll_recv(cx)
            .map(|piece| piece.map(|piece| Ok(http_body::Frame::data(piece))))
    }
}

#[tokio::test]
async fn s_88_a_stream_whose_client_goes_away_is_not_replayed() {
    let shop = Shop::with(Rules::ietf(), |_, _| async {
        Response::new(stream(pieces(&["1", "2"])))
    });
    let response = shop.begin(charge()).await;
    drop(response);
    until_settled(&shop)
        .await
        .is_problem(409, "result_unavailable");
    assert_eq!(shop.runs(), 1);
}

/// Time that is paused goes on when nothing else can: when the run would never end.
#[tokio::test(start_paused = true)]
async fn s_88_s_90_nothing_is_held_for_a_client_that_left_before_the_response_began() {
    for is_streamed in [true, false] {
        let gate = Gate::new();
        let inside = gate.clone();
        let shop = Shop::with(Rules::ietf().max_response(3), move |_, _| {
            let gate = inside.clone();
            async move {
                gate.pass().await;
                Response::new(if is_streamed {
                    stream(pieces(&["event"]))
                } else {
                    Body::from("a long receipt")
                })
            }
        });
        let client = spawn(&shop, charge());
        gate.arrived(1).await;
        client.abort();
        let _gone = client.await;

        gate.open();

        assert!(shop.layer.shutdown(Duration::from_secs(60)).await);
        let (store, idem) = (shop.store.clone(), shop.idem.clone());
        let successor = Shop::over(store, idem, Rules::ietf(), silent);
        successor.refuses(charge(), 409, "result_unavailable").await;
        assert_eq!((shop.runs(), successor.runs()), (1, 0));
    }
}

#[tokio::test]
async fn s_91_any_bytes_are_replayed() {
    let all: Vec<u8> = (0..=255).collect();
    let body = Bytes::from(all);
    let shop = Shop::with(Rules::ietf(), move |_, _| {
        let body = body.clone();
        async move { Response::new(Body::from(body)) }
    });
    let first = shop.send(charge()).await;
    assert_eq!(first.body.len(), 256);
    shop.send(charge()).await.replays(&first);
}

/// A body that knows its length and breaks off before it.
struct Broken(bool);

impl http_body::Body for Broken {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, BoxError>>> {
        let begun = std::mem::replace(&mut self.0, true);
        std::task::Poll::Ready(Some(if begun {
            Err("the disk is gone".into())
        } else {
            Ok(http_body::Frame::data("rec".into()))
        }))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(7)
    }
}

#[tokio::test]
async fn s_95_a_response_that_breaks_off_is_no_outcome() {
    for knows_its_length in [true, false] {
        let shop = Shop::with(Rules::ietf(), move |_, _| async move {
            Response::new(if knows_its_length {
                Body::new(Broken(false))
            } else {
                stream::<BoxError>(vec![Ok("rec".into()), Err("the disk is gone".into())])
            })
        });
        let response = shop.begin(charge()).await;
        let mut body = response.into_body();
        let begun = body.frame().await.expect("it begins").expect("it is sound");
        assert_eq!(begun.data_ref().expect("data"), "rec");
        assert!(body.frame().await.expect("it goes on").is_err());
        until_settled(&shop)
            .await
            .is_problem(409, "outcome_unknown");
        assert_eq!(shop.runs(), 1);
    }
}

#[tokio::test]
async fn s_96_a_part_is_kept_as_the_whole_part_that_it_is() {
    let shop = Shop::with(Rules::ietf(), |_, _| async {
        let mut response = Response::new(Body::from("part"));
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        let range = HeaderValue::from_static("bytes 0-3/9");
        response.headers_mut().insert("content-range", range);
        response
    });
    let first = shop.send(charge().header("range", "bytes=0-3")).await;
    let again = shop.send(charge().header("range", "bytes=0-3")).await;
    again.replays(&first);
    assert_eq!(again.headers["content-range"], "bytes 0-3/9");
}
