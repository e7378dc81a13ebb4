//! Bodies: sent again byte for byte, or not at all.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::StreamBody;
use hyper::body::Frame;
use idempotent_client::{
    ClientCall, ClientError, IdempotencyKeys, MemoryJournal, Profile, StopReason,
};
use idempotent_runtime::clock::{Timer as _, TokioTimer};
use reqwest::{Body, multipart};

use crate::kit::{
    Client, Ending, Frames, Process, Server, Step, answer, client, client_with, outcome, patient,
    wish,
};

/// A body that does not say how long it is.
fn stream(pieces: &[&'static str]) -> Body {
    let frames = pieces.iter().map(|piece| {
        let frame = Frame::data(Bytes::from_static(piece.as_bytes()));
        Ok::<_, Infallible>(frame)
    });
    Body::wrap(StreamBody::new(Frames::of(frames)))
}

/// A body of three bytes that comes when its pause is over.
struct Late {
    pause: Pin<Box<dyn Future<Output = ()> + Send>>,
    bytes: Option<Bytes>,
}

impl futures_core::Stream for Late {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        ready!(self.pause.as_mut().poll(context));
        Poll::Ready(self.bytes.take().map(Ok))
    }
}

fn late(pause: Duration) -> Body {
    Body::wrap_stream(Late {
        pause: TokioTimer::new().sleep(pause),
        bytes: Some("pay".into()),
    })
}

/// Never answers.
struct Silent;

#[async_trait::async_trait]
impl reqwest_middleware::Middleware for Silent {
    async fn handle(
        &self,
        _: reqwest::Request,
        _: &mut http::Extensions,
        _: reqwest_middleware::Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        std::future::pending().await
    }
}

/// Without a socket, so that tokio's own clock stands still while nothing else happens.
#[tokio::test(start_paused = true)]
async fn cl29_the_deadline_counts_from_before_the_body_is_read() {
    const DEADLINE: Duration = Duration::from_secs(10);
    let keys = IdempotencyKeys::builder(Profile::ietf()).journal(MemoryJournal::new());
    let process = Process::around(keys, Silent);
    let post = || process.client.post("http://api.example.com/pay");
    let stalls = || late(Duration::MAX);
    let known_length = || post().header("content-length", "3");
    for (call, wish) in [
        (known_length().body(stalls()), wish()),
        (post(), wish().body_from(stalls)),
        (post(), ClientCall::new().without_key().body_from(stalls)),
    ] {
        let before = tokio::time::Instant::now();
        let call = call.with_extension(wish.deadline(DEADLINE)).send();
        let ended = tokio::time::timeout(DEADLINE * 2, call).await;
        let ended = ended.expect("it ends at its deadline");
        assert!(matches!(ended.ending(), ClientError::BodyTimedOut));
        assert_eq!(before.elapsed(), DEADLINE);
        assert_eq!(process.open().await, 0, "nothing was sent");
    }

    let half = DEADLINE / 2;
    for (call, wish) in [
        (known_length().body(late(half)), wish()),
        (post(), wish().body_from(move || late(half))),
    ] {
        let before = tokio::time::Instant::now();
        let ended = call.with_extension(wish.deadline(DEADLINE)).send().await;
        assert_eq!(ended.unknown().0, StopReason::Deadline);
        assert_eq!(before.elapsed(), DEADLINE);
    }
}

#[tokio::test]
async fn cl30_a_stream_is_sent_once_and_its_key_is_handed_over() {
    let server = Server::doing([answer(201).into(), Step::Cut]).await;
    let client = client();
    let post = || {
        client
            .http
            .post(server.url("/pay"))
            .body(stream(&["pa", "y"]))
    };

    let response = post().send().await.expect("an answer");
    assert_eq!(outcome(&response).attempts, 1);
    assert_eq!(server.seen()[0].body.as_deref(), Some(&b"pay"[..]));

    let ended = post().send().await;
    let (why, call) = ended.unknown();
    assert_eq!(why, StopReason::Body);
    assert_eq!(server.seen().len(), 2);
    let sent = server.keys()[1].clone().expect("a key");
    assert_eq!(sent, format!("\"{}\"", call.key.as_str()));
}

#[tokio::test]
async fn cl30_a_function_makes_the_stream_again() {
    let server = Server::doing([Step::Cut, answer(500).into(), answer(201).into()]).await;
    let client = client();
    let call = client.http.post(server.url("/pay"));
    let call = call.with_extension(ClientCall::new().body_from(|| stream(&["pa", "y"])));

    let response = call.send().await.expect("an answer");

    assert_eq!(outcome(&response).attempts, 3);
    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|seen| seen.body.as_deref() == Some(b"pay")));
    assert!(
        seen.iter()
            .all(|seen| seen.headers["content-length"] == "3")
    );
}

#[tokio::test]
async fn cl31_other_bytes_are_never_sent_under_a_key() {
    for second in ["yap", "pa", "paid"] {
        let server = Server::doing([answer(500)]).await;
        let made = Arc::new(AtomicUsize::new(0));
        // Made for the hash, and for the first attempt.
        let make = move || match made.fetch_add(1, Ordering::SeqCst) {
            0 | 1 => stream(&["pay"]),
            _ => stream(&[second]),
        };
        let client = client();
        let call = client.http.post(server.url("/pay"));
        let ended = call
            .with_extension(ClientCall::new().body_from(make))
            .send()
            .await;
        assert!(
            matches!(ended.ending(), ClientError::BodyChanged { .. }),
            "{second}: {ended:?}"
        );
        let whole = server.seen().into_iter().filter_map(|seen| seen.body);
        assert_eq!(whole.collect::<Vec<_>>(), ["pay"], "{second}");
    }
}

#[tokio::test]
async fn cl32_a_form_with_parts_is_the_same_at_every_attempt() {
    let form = || {
        multipart::Form::new()
            .text("order", "42")
            .part("receipt", multipart::Part::bytes(vec![7; 3_000]))
    };
    let server = Server::doing([Step::Cut, answer(503).into(), answer(201).into()]).await;
    // The builder of reqwest itself makes forms: its request goes through the same middleware.
    let request = reqwest::Client::new()
        .post(server.url("/pay"))
        .multipart(form());
    let request = request.build().expect("a request");
    let response = client().http.execute(request).await.expect("an answer");

    assert_eq!(outcome(&response).attempts, 3);
    let seen = server.seen();
    assert!(seen[0].body.as_ref().is_some_and(|body| body.len() > 3_000));
    assert!(seen.iter().all(|other| other.body == seen[0].body));
    let types = |seen: &crate::kit::Seen| seen.headers["content-type"].clone();
    assert!(seen.iter().all(|other| types(other) == types(&seen[0])));

    // Beyond the limit it stays a stream, which is sent once.
    let server = Server::doing([answer(503)]).await;
    let request = reqwest::Client::new()
        .post(server.url("/pay"))
        .multipart(form());
    let request = request.build().expect("a request");
    let client = client_with(|keys| keys.max_buffered_body(3_000));
    let ended = client.http.execute(request).await;
    assert_eq!(ended.unknown().0, StopReason::Body);
}

/// Each form is made with a boundary of its own, and a server that compares bytes must not notice.
#[tokio::test]
async fn cl32_one_intent_is_the_same_form_however_often_it_is_made() {
    let server = Server::doing([Step::Cut]).await;
    let ask = async |process: &Client, order: &'static str| {
        let form = multipart::Form::new()
            .text("order", order)
            .part("receipt", multipart::Part::bytes(vec![7; 3_000]));
        let request = reqwest::Client::new().post(server.url("/pay"));
        let request = request.multipart(form).build().expect("a request");
        let mut extensions = http::Extensions::new();
        extensions.insert(wish());
        let http = &process.http;
        http.execute_with_extensions(request, &mut extensions).await
    };
    let once = || client_with(|keys| keys.limits(patient().attempts(1)));
    let first = once();
    assert!(ask(&first, "42").await.is_err());
    ask(&first, "42").await.expect("the same call");
    let refused = ask(&first, "43").await;
    refused.is_another_request();
    ask(&once(), "42").await.expect("an answer");

    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    for other in &seen {
        assert_eq!(other.body, seen[0].body);
        for name in ["idempotency-key", "content-type", "content-length"] {
            assert_eq!(other.headers[name], seen[0].headers[name]);
        }
    }
    let body = seen[0].body.as_ref().expect("it came whole");
    assert_eq!(seen[0].headers["content-length"], body.len().to_string());
    let content_type = seen[0].headers["content-type"].to_str().expect("ASCII");
    let (_, boundary) = content_type.split_once("boundary=").expect("a boundary");
    let end = format!("\r\n--{boundary}--\r\n");
    assert!(body.ends_with(end.as_bytes()));
}
