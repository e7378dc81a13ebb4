//! A server that does what a test says, and remembers what came.

use std::{
    collections::VecDeque,
    convert::Infallible,
    io, mem,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt as _, Collected, Full, StreamBody, combinators::BoxBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::TokioIo;
use idempotent_runtime::testing::Gate;
use tokio::{net::TcpListener, sync::Notify};

use super::lock;

/// The step that the server takes with one request.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Answer(Answer),
    /// Reads the request and closes the connection.
    Cut,
    /// Announces a longer body than it sends, and closes the connection.
    CutBody,
    /// Reads the request and says nothing, ever.
    Hang,
    /// Sends an event, and then nothing.
    Events,
    /// Answers without saying how long the answer is.
    Chunked(Answer),
    /// The same, and closes the connection before the end.
    CutChunked(Answer),
    /// Answers when the gate is opened.
    Behind(Gate),
    /// Answers this when the gate is opened.
    AnswerBehind(Gate, Answer),
}

#[derive(Clone, Debug)]
pub(crate) struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: String,
}

pub(crate) fn answer(status: u16) -> Answer {
    Answer {
        status,
        headers: Vec::new(),
        body: String::new(),
    }
}

/// A problem of ours, under an operator's own address.
pub(crate) fn problem(status: u16, slug: &str) -> Answer {
    json(
        status,
        &format!(r#"{{"type":"https://api.example.com/problems/{slug}"}}"#),
    )
}

pub(crate) fn json(status: u16, body: &str) -> Answer {
    answer(status)
        .with("content-type", "application/problem+json")
        .body(body)
}

impl Answer {
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn body(mut self, body: &str) -> Self {
        self.body = body.to_owned();
        self
    }

    fn response(self, body: BoxBody<Bytes, io::Error>) -> Response<BoxBody<Bytes, io::Error>> {
        let mut response = Response::builder().status(self.status);
        for (name, value) in self.headers {
            response = response.header(name, value);
        }
        response.body(body).expect("a response")
    }
}

impl From<Answer> for Step {
    fn from(answer: Answer) -> Self {
        Step::Answer(answer)
    }
}

/// A request, as it came off the wire.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    /// `None` where it did not come whole.
    pub(crate) body: Option<Bytes>,
}

impl Seen {
    /// The value of the key's header, byte for byte; every line of it.
    pub(crate) fn keys(&self) -> Vec<String> {
        let lines = self.headers.get_all("idempotency-key").iter();
        lines
            .map(|line| line.to_str().expect("ASCII").to_owned())
            .collect()
    }
}

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    script: Mutex<VecDeque<Step>>,
    seen: Mutex<Vec<Seen>>,
    arrived: Notify,
}

impl Server {
    /// Does these steps, one for each request, and then answers 200.
    pub(crate) async fn doing(steps: impl IntoIterator<Item = impl Into<Step>>) -> Self {
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
        Self::at(anywhere, steps).await
    }

    pub(crate) async fn at(
        address: SocketAddr,
        steps: impl IntoIterator<Item = impl Into<Step>>,
    ) -> Self {
        let listener = TcpListener::bind(address).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(State {
            script: Mutex::new(steps.into_iter().map(Into::into).collect()),
            ..State::default()
        });
        let serving = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = Arc::clone(&serving);
                let service = hyper::service::service_fn(move |request| {
                    let state = Arc::clone(&state);
                    async move { serve(&state, request).await }
                });
                let connection = hyper::server::conn::http1::Builder::new();
                tokio::spawn(connection.serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { address, state }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        lock(&self.state.seen).clone()
    }

    /// The key of each request; fails if one has several lines.
    pub(crate) fn keys(&self) -> Vec<Option<String>> {
        let seen = self.seen();
        seen.iter()
            .map(|seen| {
                let mut keys = seen.keys();
                assert!(keys.len() < 2, "one line, not {}", keys.len());
                keys.pop()
            })
            .collect()
    }

    /// How many requests have come; fails if they do not all have the same key.
    #[track_caller]
    pub(crate) fn requests_with_one_key(&self) -> usize {
        let keys = self.keys();
        assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
        keys.len()
    }

    /// Resolves when `n` requests have come.
    pub(crate) async fn await_requests(&self, n: usize) {
        loop {
            let arrived = self.state.arrived.notified();
            if self.seen().len() >= n {
                return;
            }
            arrived.await;
        }
    }
}

async fn serve(
    state: &State,
    request: Request<Incoming>,
) -> io::Result<Response<BoxBody<Bytes, io::Error>>> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.ok().map(Collected::to_bytes);
    lock(&state.seen).push(Seen {
        method: parts.method,
        path: parts
            .uri
            .path_and_query()
            .map_or_else(String::new, ToString::to_string),
        headers: parts.headers,
        body,
    });
    state.arrived.notify_waiters();
    let step = lock(&state.script).pop_front();
    match step.unwrap_or_else(|| answer(200).into()) {
        Step::Answer(answer) => Ok(whole(answer)),
        Step::Cut => Err(io::ErrorKind::ConnectionReset.into()),
        Step::CutBody => {
            let frames = [
                Ok(Frame::data(Bytes::from_static(b"half"))),
                Err(io::ErrorKind::ConnectionReset.into()),
            ];
            let body = StreamBody::new(Frames::of(frames));
            let response = Response::builder().header("content-length", "8");
            Ok(response.body(BoxBody::new(body)).expect("a response"))
        }
        Step::Hang => std::future::pending().await,
        Step::Events => {
            let event = Frame::data(Bytes::from_static(b"data: 1\n\n"));
            let body = StreamBody::new(Frames::endless([Ok(event)]));
            let response = Response::builder().header("content-type", "text/event-stream");
            Ok(response.body(BoxBody::new(body)).expect("a response"))
        }
        Step::Chunked(answer) => Ok(chunked(answer, None)),
        Step::CutChunked(answer) => {
            let end = io::ErrorKind::ConnectionReset;
            Ok(chunked(answer, Some(end.into())))
        }
        Step::Behind(gate) => {
            gate.pass().await;
            Ok(Response::new(BoxBody::default()))
        }
        Step::AnswerBehind(gate, answer) => {
            gate.pass().await;
            Ok(whole(answer))
        }
    }
}

fn chunked(answer: Answer, end: Option<io::Error>) -> Response<BoxBody<Bytes, io::Error>> {
    let frames = answer.body.as_bytes().chunks(50_000);
    let frames = frames.map(|piece| Ok(Frame::data(Bytes::copy_from_slice(piece))));
    let body = StreamBody::new(Frames::of(frames.chain(end.map(Err))));
    answer.response(BoxBody::new(body))
}

fn whole(mut answer: Answer) -> Response<BoxBody<Bytes, io::Error>> {
    let body = Full::new(Bytes::from(mem::take(&mut answer.body)));
    let body = body.map_err(|never: Infallible| match never {}).boxed();
    answer.response(body)
}

/// Frames, one after the other, each when the one before is on its way.
#[derive(Debug)]
pub(crate) struct Frames<E> {
    frames: VecDeque<Result<Frame<Bytes>, E>>,
    ends: bool,
    rested: bool,
}

impl<E> Frames<E> {
    pub(crate) fn of(frames: impl IntoIterator<Item = Result<Frame<Bytes>, E>>) -> Self {
        Self {
            frames: frames.into_iter().collect(),
            ends: true,
            rested: false,
        }
    }

    fn endless(frames: impl IntoIterator<Item = Result<Frame<Bytes>, E>>) -> Self {
        Self {
            ends: false,
            ..Self::of(frames)
        }
    }
}

impl<E> Unpin for Frames<E> {}

impl<E> futures_core::Stream for Frames<E> {
    type Item = Result<Frame<Bytes>, E>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        // A server keeps what it was given to itself until it has to wait, and forgets it if the
        // rest fails.
        if self.frames.front().is_some_and(Result::is_err) && !mem::replace(&mut self.rested, true)
        {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        match self.frames.pop_front() {
            None if !self.ends => Poll::Pending,
            next => Poll::Ready(next),
        }
    }
}
