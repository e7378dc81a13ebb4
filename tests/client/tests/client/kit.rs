//! A server that does what a test says, and time that passes when nobody waits for anything else.

use std::{
    collections::VecDeque,
    convert::Infallible,
    future::Future,
    io, mem,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Extensions, HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt as _, Collected, Full, StreamBody, combinators::BoxBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::TokioIo;
use idempotent_client::{
    ClientError, ClientOutcome, IdempotencyKeys, KeysBuilder, Limits, PendingCall, Profile,
};
use idempotent_runtime::{clock::Timer, testing::Gate};
use reqwest_middleware::{ClientWithMiddleware, Middleware, Next, RequestBuilder};
use tokio::{net::TcpListener, sync::Notify};

/// Looks at every request that passes, or changes it.
pub(crate) struct Passing<F>(pub(crate) F);

#[async_trait]
impl<F: Fn(&mut reqwest::Request) + Send + Sync + 'static> Middleware for Passing<F> {
    async fn handle(
        &self,
        mut request: reqwest::Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        (self.0)(&mut request);
        next.run(request, extensions).await
    }
}

/// Asks once more after such an answer.
pub(crate) struct OnceMore(pub(crate) fn(&reqwest_middleware::Result<reqwest::Response>) -> bool);

#[async_trait]
impl Middleware for OnceMore {
    async fn handle(
        &self,
        request: reqwest::Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        let again = request.try_clone().expect("its body is in memory");
        let answered = next.clone().run(request, extensions).await;
        match (self.0)(&answered) {
            true => next.run(again, extensions).await,
            false => answered,
        }
    }
}

/// What the server does with one request.
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

    /// The key of each request; fails where one has several lines.
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
    let mut response = Response::builder().status(answer.status);
    for (name, value) in answer.headers {
        response = response.header(name, value);
    }
    response.body(BoxBody::new(body)).expect("a response")
}

fn whole(answer: Answer) -> Response<BoxBody<Bytes, io::Error>> {
    let mut response = Response::builder().status(answer.status);
    for (name, value) in answer.headers {
        response = response.header(name, value);
    }
    let body = Full::new(Bytes::from(answer.body));
    let body = body.map_err(|never: Infallible| match never {}).boxed();
    response.body(body).expect("a response")
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
        // A server keeps what it was given to itself until it has to wait, and forgets it where the rest fails.
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

/// Lets pauses pass at once and writes them down. What is longer than any pause is a deadline, and is never over.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pauses {
    taken: Arc<Mutex<Vec<Duration>>>,
    /// Where pauses wait until the test lets them pass.
    gate: Option<Gate>,
}

const LONGEST_PAUSE: Duration = Duration::from_secs(90);

impl Pauses {
    pub(crate) fn behind(gate: &Gate) -> Self {
        Self {
            gate: Some(gate.clone()),
            ..Self::default()
        }
    }

    pub(crate) fn taken(&self) -> Vec<Duration> {
        lock(&self.taken).clone()
    }
}

impl Timer for Pauses {
    fn now(&self) -> Duration {
        lock(&self.taken).iter().sum()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        if duration > LONGEST_PAUSE {
            return Box::pin(std::future::pending());
        }
        let pauses = self.clone();
        Box::pin(async move {
            if let Some(gate) = &pauses.gate {
                gate.pass().await;
            }
            lock(&pauses.taken).push(duration);
        })
    }
}

/// Lets pauses pass at once, and one timeout of an attempt when its gate is opened; the others are never over.
#[derive(Clone, Debug)]
pub(crate) struct Timeout(Arc<TimeoutState>);

#[derive(Debug)]
struct TimeoutState {
    /// How long an attempt may take: what is shorter is a pause.
    most: Duration,
    /// Which of the timeouts it is, counted from 1.
    which: usize,
    gate: Gate,
    /// The timeouts that attempts were given.
    given: Mutex<Vec<Duration>>,
    now: Mutex<Duration>,
}

impl Timeout {
    pub(crate) fn of(most: Duration, which: usize, gate: &Gate) -> Self {
        Self(Arc::new(TimeoutState {
            most,
            which,
            gate: gate.clone(),
            given: Mutex::default(),
            now: Mutex::default(),
        }))
    }

    pub(crate) fn given(&self) -> Vec<Duration> {
        lock(&self.0.given).clone()
    }
}

impl Timer for Timeout {
    fn now(&self) -> Duration {
        *lock(&self.0.now)
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let state = Arc::clone(&self.0);
        if duration < state.most {
            return Box::pin(std::future::ready(()));
        }
        let mut given = lock(&state.given);
        given.push(duration);
        if given.len() != state.which {
            return Box::pin(std::future::pending());
        }
        drop(given);
        Box::pin(async move {
            state.gate.pass().await;
            *lock(&state.now) += duration;
        })
    }
}

/// A client that pauses for no time at all, and all but never gives up.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) http: ClientWithMiddleware,
    pub(crate) pauses: Pauses,
}

pub(crate) fn client() -> Client {
    client_with(|keys| keys)
}

pub(crate) fn client_with(set_up: impl FnOnce(KeysBuilder) -> KeysBuilder) -> Client {
    let pauses = Pauses::default();
    let keys = set_up(builder(&pauses));
    let http = keys.client(reqwest::Client::builder());
    Client {
        http: http.expect("a client"),
        pauses,
    }
}

pub(crate) fn builder(pauses: &Pauses) -> KeysBuilder {
    IdempotencyKeys::builder(Profile::ietf())
        .limits(patient())
        .timer(pauses.clone())
}

pub(crate) fn patient() -> Limits {
    Limits::default().deadline(Duration::from_secs(3_600))
}

impl Client {
    pub(crate) fn post(&self, url: &str) -> RequestBuilder {
        self.http.post(url).body("pay")
    }
}

pub(crate) fn outcome(response: &reqwest::Response) -> &ClientOutcome {
    ClientOutcome::from_response(response).expect("every response has one")
}

/// The calls that the journal holds open, each of which can be read.
pub(crate) async fn unfinished(keys: &IdempotencyKeys) -> Vec<PendingCall> {
    let open = keys.unfinished(9).await.expect("a list");
    let open = open.into_iter();
    open.map(|call| call.expect("it can be read")).collect()
}

/// What a call ended with that has no outcome.
pub(crate) trait Ending {
    fn ending(&self) -> &ClientError;
}

impl Ending for reqwest_middleware::Result<reqwest::Response> {
    fn ending(&self) -> &ClientError {
        let error = self.as_ref().expect_err("there is no outcome");
        ClientError::from_error(error).unwrap_or_else(|| panic!("an error of ours, not {error:?}"))
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
