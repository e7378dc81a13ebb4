//! A7: bodies of requests and responses, whole, streamed, broken and too large.

use std::{convert::Infallible, time::Duration};

use axum::{BoxError, body::Body, extract::DefaultBodyLimit, routing::post as on_post};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use idempotent_runtime::{Status, http::Rules, testing::Gate};
use tokio::sync::mpsc;
use tower::util::MapRequestLayer;

use crate::harness::{
    Answer, Shop, charge, gated, held, live, polled_of, post, respond, silent, stream, stream_of,
    with_field,
};

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

/// A request that is sent again would break off again, so no client is told to send it again.
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

#[tokio::test]
async fn s_84_s_97_what_is_refused_for_its_head_is_refused_unread() {
    let shop = Shop::new(Rules::ietf().max_request(8));
    let unread = || polled_of::<Infallible>(9, |_| panic!("nobody may read it"));
    for (ask, status, code) in [
        (post("/c").key("k"), 413, "body_too_large"),
        (post("/c"), 400, "key_missing"),
        (post("/c").key("\"k"), 400, "key_invalid"),
    ] {
        let answer = shop.send_as_is(ask.streaming(unread())).await;
        answer.is_problem(status, code);
    }
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
            let response = Response::new(live(receiver.expect("it runs once")));
            with_field(response, "content-type", "text/event-stream")
        }
    });
    let response = shop.begin(charge()).await;
    let mut body = response.into_body();

    sender.send("event 1".into()).expect("it is read");
    let first = body.frame().await.expect("it is there");
    let first = first.expect("it is sound");
    assert_eq!(first.data_ref().expect("data"), "event 1");
    shop.refuses(charge(), 409, "request_in_progress").await;

    sender.send("event 2".into()).expect("it is read");
    drop(sender);
    let rest = body.collect().await.expect("it is whole").to_bytes();
    assert_eq!(rest, "event 2");
    is_bound(&shop, "result_unavailable").await;
}

/// The record of a stream is written after its end, in the background.
pub(crate) async fn until_settled(shop: &Shop) -> Answer {
    while let Ok(Status::Processing { .. }) =
        shop.idem.lookup("http", Some(&("caller", "A")), "k").await
    {
        tokio::task::yield_now().await;
    }
    shop.send(charge()).await
}

/// Once that record is written, a retry is refused with this problem, and no handler runs for it.
pub(crate) async fn is_bound(shop: &Shop, code: &str) {
    until_settled(shop).await.is_problem(409, code);
    assert_eq!(shop.runs(), 1);
}

#[tokio::test]
async fn s_88_a_stream_whose_client_goes_away_is_not_replayed() {
    let shop = Shop::with(Rules::ietf(), |_, _| async {
        Response::new(stream(pieces(&["1", "2"])))
    });
    let response = shop.begin(charge()).await;
    drop(response);
    is_bound(&shop, "result_unavailable").await;
}

/// Time that is paused goes on when nothing else can: when the run would never end.
#[tokio::test(start_paused = true)]
async fn s_88_s_90_nothing_is_held_for_a_client_that_left_before_the_response_began() {
    for is_streamed in [true, false] {
        let gate = Gate::new();
        let answer = move |_| {
            Response::new(match is_streamed {
                true => stream(pieces(&["event"])),
                false => Body::from("a long receipt"),
            })
        };
        let shop = Shop::with(Rules::ietf().max_response(3), gated(&gate, answer));
        let client = held(&shop, &gate, charge()).await;
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

#[tokio::test]
async fn s_95_a_response_that_breaks_off_is_no_outcome() {
    for knows_its_length in [true, false] {
        let shop = Shop::with(Rules::ietf(), move |_, _| async move {
            let pieces = vec![Ok("rec".into()), Err("the disk is gone".into())];
            Response::new(match knows_its_length {
                true => stream_of::<BoxError>(7, pieces),
                false => stream::<BoxError>(pieces),
            })
        });
        let response = shop.begin(charge()).await;
        let mut body = response.into_body();
        let begun = body.frame().await.expect("it begins").expect("it is sound");
        assert_eq!(begun.data_ref().expect("data"), "rec");
        assert!(body.frame().await.expect("it goes on").is_err());
        is_bound(&shop, "outcome_unknown").await;
    }
}

#[tokio::test]
async fn s_96_a_part_is_kept_as_the_whole_part_that_it_is() {
    let shop = Shop::with(Rules::ietf(), |_, _| async {
        let part = respond(StatusCode::PARTIAL_CONTENT, "part");
        with_field(part, "content-range", "bytes 0-3/9")
    });
    let first = shop.keeps(charge().header("range", "bytes=0-3")).await;
    assert_eq!(first.headers["content-range"], "bytes 0-3/9");
}
