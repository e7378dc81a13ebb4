//! A shop whose handler is counted, behind the layer, and requests to it.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{BoxError, Router, body::Body, routing::any};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, request::Parts,
};
use http_body::Frame;
use http_body_util::BodyExt;
use idempotent_runtime::{
    Idempotency, MemoryStore, RawOutcome,
    http::{IdempotencyLayer, Rules},
    identity::RecordId,
    record::{Draft, Moment, Record, TokenRule, Version},
    store::Swap,
    testing::{FaultyStore, Gate, ManualClock},
};
use serde_json::Value;
use tokio::task::JoinHandle;
use tower::ServiceExt;

/// A service behind the layer, and what it has done.
#[derive(Clone)]
pub(crate) struct Shop {
    pub(crate) router: Router,
    pub(crate) layer: IdempotencyLayer,
    pub(crate) store: FaultyStore,
    pub(crate) idem: Idempotency,
    runs: Arc<AtomicUsize>,
}

/// Whoever calls names itself in a header field; who calls itself nobody is not known.
pub(crate) const CALLER: HeaderName = HeaderName::from_static("caller");

pub(crate) fn by_caller(request: &Parts) -> Option<String> {
    let caller = request.headers.get(CALLER).map(HeaderValue::to_str);
    match caller {
        Some(Ok("nobody" | "") | Err(_)) => None,
        Some(Ok(caller)) => Some(caller.to_owned()),
        None => Some("A".to_owned()),
    }
}

impl Shop {
    /// Does what somebody can who writes to the store: gives a record another outcome.
    pub(crate) async fn overwrite(&self, id: &RecordId, record: &Record, outcome: RawOutcome) {
        let draft = Draft {
            version: Version::random(),
            subject: None,
            state: record.state,
            token: TokenRule::Keep,
            attempt: record.attempt,
            attempt_id: record.attempt_id,
            holder: record.holder.clone(),
            on_crash: record.on_crash,
            lease: Moment::Keep,
            expires: Moment::Keep,
            keep: Duration::ZERO,
            outcome: Some(outcome),
        };
        let store = self.idem.store();
        let swap = store.swap(id, Some(record.version), &draft).await;
        assert!(matches!(swap, Ok(Swap::Applied(_))), "{swap:?}");
    }

    /// A shop that answers with 201, a location and the bytes of its own, counted.
    pub(crate) fn new(rules: Rules) -> Self {
        Self::with(rules, |run, _| async move {
            let body = format!("receipt {run}");
            let mut response = Response::new(Body::from(body));
            *response.status_mut() = StatusCode::CREATED;
            let location = format!("/receipts/{run}")
                .try_into()
                .expect("a path is a value");
            response.headers_mut().insert("location", location);
            response
        })
    }

    /// A shop that answers so; its handler is given the number of its run.
    pub(crate) fn with<H, F>(rules: Rules, handler: H) -> Self
    where
        H: Fn(usize, Request<Body>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<Body>> + Send,
    {
        let store = FaultyStore::new(MemoryStore::new());
        let idem = Idempotency::new(store.clone());
        Self::over(store, idem, rules, handler)
    }

    pub(crate) fn over<H, F>(
        store: FaultyStore,
        idem: Idempotency,
        rules: Rules,
        handler: H,
    ) -> Self
    where
        H: Fn(usize, Request<Body>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<Body>> + Send,
    {
        let layer = IdempotencyLayer::builder(idem.clone())
            .scope("caller", by_caller)
            .rules(rules)
            .build()
            .expect("the settings are sound");
        Self::behind(layer, store, idem, handler)
    }

    pub(crate) fn behind<H, F>(
        layer: IdempotencyLayer,
        store: FaultyStore,
        idem: Idempotency,
        handler: H,
    ) -> Self
    where
        H: Fn(usize, Request<Body>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<Body>> + Send,
    {
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&runs);
        let handler = move |request: Request<Body>| {
            let run = counted.fetch_add(1, Ordering::SeqCst) + 1;
            handler(run, request)
        };
        let router = Router::new()
            .route("/", any(handler.clone()))
            .route("/{*path}", any(handler))
            .layer(layer.clone());
        Self {
            router,
            layer,
            store,
            idem,
            runs,
        }
    }

    /// The same with another router around it.
    pub(crate) fn routed_by(self, router: Router) -> Self {
        Self { router, ..self }
    }

    /// How often the handler was called.
    pub(crate) fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    pub(crate) async fn send(&self, request: Ask) -> Answer {
        self.send_as_is(request.into()).await
    }

    pub(crate) async fn send_owned(self, request: Request<Body>) -> Answer {
        self.send_as_is(request).await
    }

    pub(crate) async fn send_as_is(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await;
        Answer::of(response.expect("a router does not fail")).await
    }
}

/// Sends a request from a task of its own, as another connection does.
pub(crate) fn spawn(shop: &Shop, request: Ask) -> JoinHandle<Answer> {
    tokio::spawn(shop.clone().send_owned(request.into()))
}

/// A request to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    method: Method,
    target: Uri,
    headers: HeaderMap,
    body: Bytes,
}

pub(crate) fn post(target: &str) -> Ask {
    Ask::new(Method::POST, target)
}

/// A request with the key `k`, as a client would repeat it.
pub(crate) fn charge() -> Ask {
    post("/charges").key("k").body("amount=12")
}

impl Ask {
    pub(crate) fn new(method: Method, target: &str) -> Self {
        Self {
            method,
            target: target.parse().expect("a target"),
            headers: HeaderMap::new(),
            body: Bytes::new(),
        }
    }

    pub(crate) fn key(self, value: impl AsRef<[u8]>) -> Self {
        self.header("idempotency-key", value)
    }

    /// Adds a line of a header field.
    pub(crate) fn header(mut self, name: &'static str, value: impl AsRef<[u8]>) -> Self {
        let value = HeaderValue::from_bytes(value.as_ref()).expect("a value of a header field");
        self.headers.append(name, value);
        self
    }

    pub(crate) fn caller(self, caller: &str) -> Self {
        self.header("caller", caller)
    }

    pub(crate) fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    pub(crate) fn json(self, body: impl Into<Bytes>) -> Self {
        self.header("content-type", "application/json").body(body)
    }

    /// The same with another body, of which nothing need be known.
    pub(crate) fn streaming(self, body: Body) -> Request<Body> {
        let mut request = Request::from(self);
        *request.body_mut() = body;
        request
    }
}

impl From<Ask> for Request<Body> {
    fn from(ask: Ask) -> Self {
        let mut request = Request::new(Body::from(ask.body));
        *request.method_mut() = ask.method;
        *request.uri_mut() = ask.target;
        *request.headers_mut() = ask.headers;
        request
    }
}

/// A body of these pieces, whose length nobody knows.
pub(crate) fn stream<E>(pieces: Vec<Result<Bytes, E>>) -> Body
where
    E: Into<BoxError> + Send + 'static,
{
    Body::new(Pieces(pieces.into()))
}

struct Pieces<E>(VecDeque<Result<Bytes, E>>);

impl<E> http_body::Body for Pieces<E> {
    type Data = Bytes;
    type Error = E;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, E>>> {
        Poll::Ready(self.0.pop_front().map(|piece| piece.map(Frame::data)))
    }
}

impl<E> Unpin for Pieces<E> {}

/// A response, read to its end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) trailers: Option<HeaderMap>,
}

impl Answer {
    pub(crate) async fn of(response: Response<Body>) -> Self {
        let (head, body) = response.into_parts();
        let whole = body.collect().await.expect("the body is whole");
        let trailers = whole.trailers().cloned();
        Self {
            status: head.status,
            headers: head.headers,
            body: whole.to_bytes(),
            trailers,
        }
    }

    pub(crate) fn is_replay(&self) -> bool {
        self.headers
            .get("idempotent-replayed")
            .is_some_and(|value| value == "true")
    }

    /// It is a replay of `first`, byte for byte, and is so marked.
    #[track_caller]
    pub(crate) fn replays(&self, first: &Self) {
        self.replays_but_for(&[], first);
    }

    /// The same, but for these header fields, which are not kept, or made anew for each response.
    #[track_caller]
    pub(crate) fn replays_but_for(&self, fields: &[&str], first: &Self) {
        assert!(self.is_replay(), "{self:?}");
        assert!(!first.is_replay(), "{first:?}");
        let [replay, original] = [self, first].map(|answer| {
            let mut kept = answer.clone();
            for name in ["idempotent-replayed"].iter().chain(fields) {
                kept.headers.remove(*name);
            }
            kept
        });
        assert_eq!(replay, original);
    }

    /// It is a problem of that status and code.
    #[track_caller]
    pub(crate) fn is_problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.headers["content-type"], "application/problem+json");
        assert_eq!(self.headers["cache-control"], "no-store");
        assert!(!self.is_replay());
        let document: Value = serde_json::from_slice(&self.body).expect("the document is JSON");
        assert_eq!(
            document["code"],
            format!("idempotency_{code}"),
            "{document}"
        );
        assert_eq!(document["status"], status);
        let type_uri = document["type"].as_str().expect("it has a type");
        let is_absolute = ["urn:idempotent-runtime:problem:", "https://"]
            .iter()
            .any(|base| type_uri.starts_with(base));
        assert!(is_absolute, "{type_uri}");
        document
    }

    /// It is a handler's own answer, and no replay. How many runs there were, the shop knows.
    #[track_caller]
    pub(crate) fn is_fresh(&self) {
        assert!(self.status.is_success(), "{self:?}");
        assert!(
            !self.headers.contains_key("idempotent-replayed"),
            "{self:?}"
        );
    }
}

/// A handler that waits at the gate, and then has nothing to say.
pub(crate) fn held_at(
    gate: &Gate,
) -> impl Fn(usize, Request<Body>) -> BoxFuture<Response<Body>> + Clone + Send + Sync + 'static {
    let gate = gate.clone();
    move |_, _| {
        let gate = gate.clone();
        Box::pin(async move {
            gate.pass().await;
            Response::default()
        })
    }
}

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A shop whose handler waits at the gate in its first run.
pub(crate) fn waiting(rules: Rules) -> (Shop, Gate) {
    let store = FaultyStore::new(MemoryStore::new());
    let idem = Idempotency::new(store.clone());
    waiting_over(store, idem, rules)
}

fn waiting_over(store: FaultyStore, idem: Idempotency, rules: Rules) -> (Shop, Gate) {
    let gate = Gate::new();
    let inside = gate.clone();
    let shop = Shop::over(store, idem, rules, move |run, _| {
        let gate = inside.clone();
        async move {
            if run == 1 {
                gate.pass().await;
            }
            Response::new(Body::from(format!("receipt {run}")))
        }
    });
    (shop, gate)
}

/// The same on a clock of the test's own, for store and handle.
pub(crate) fn on_a_clock(rules: Rules) -> (Shop, Gate, ManualClock) {
    let clock = ManualClock::new();
    let store = FaultyStore::new(MemoryStore::with_clock(clock.clone()));
    let idem = Idempotency::builder(store.clone())
        .timer(clock.clone())
        .build();
    let (shop, gate) = waiting_over(store, idem.expect("the settings are sound"), rules);
    (shop, gate, clock)
}
