//! A shop whose handler is counted, behind the layer, and requests to it.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Body, routing::any};
use http::{HeaderName, HeaderValue, Request, Response, StatusCode, request::Parts};
use idempotent_runtime::{
    Builder, Idempotency, MemoryStore, RawOutcome,
    http::{IdempotencyLayer, LayerBuilder, MissingScope, Rules, Scope},
    identity::RecordId,
    record::{Draft, Moment, Record, TokenRule, Version},
    store::Swap,
    testing::{Fault, FaultyStore, Gate, ManualClock, On, StoreOperation},
};
use serde_json::Value;
use tokio::task::JoinHandle;
use tower::ServiceExt;

pub(crate) use self::{
    answer::Answer,
    ask::{Ask, charge, post},
    reply::{live, marked, polled, polled_of, receipt, respond, stream, stream_of, with_field},
};

mod answer;
mod ask;
mod reply;

/// A service behind the layer, and what it has done.
#[derive(Clone)]
pub(crate) struct Shop {
    pub(crate) router: Router,
    pub(crate) layer: IdempotencyLayer,
    pub(crate) store: FaultyStore,
    pub(crate) idem: Idempotency,
    runs: Arc<AtomicUsize>,
}

/// Each caller names itself in a header field. A caller with the name `nobody` is not known.
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
    /// Gives a record another outcome, as a program that writes to the store can do.
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
            note: None,
        };
        let store = self.idem.store();
        let swap = store.swap(id, Some(record.version), &draft).await;
        assert!(matches!(swap, Ok(Swap::Applied(_))), "{swap:?}");
    }

    /// A shop that answers with 201, a location and the bytes of its own, counted.
    pub(crate) fn new(rules: Rules) -> Self {
        Self::with(rules, |run, _| async move {
            let mut response = respond(StatusCode::CREATED, format!("receipt {run}"));
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
        let layer = layer_over(&idem, |layer| layer.rules(rules));
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

    /// A shop behind a layer that is set up so.
    pub(crate) fn layered<H, F>(
        set_up: impl FnOnce(LayerBuilder<Scope>) -> LayerBuilder<Scope>,
        handler: H,
    ) -> Self
    where
        H: Fn(usize, Request<Body>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<Body>> + Send,
    {
        Self::new(Rules::ietf()).beside(set_up, handler)
    }

    /// Another shop over the same records, behind a layer that is set up so.
    pub(crate) fn beside<H, F>(
        &self,
        set_up: impl FnOnce(LayerBuilder<Scope>) -> LayerBuilder<Scope>,
        handler: H,
    ) -> Self
    where
        H: Fn(usize, Request<Body>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<Body>> + Send,
    {
        self.scoped_by(|layer| set_up(layer.scope("caller", by_caller)), handler)
    }

    /// The same, where the set-up says whose keys they are.
    pub(crate) fn scoped_by<H, F>(
        &self,
        set_up: impl FnOnce(LayerBuilder<MissingScope>) -> LayerBuilder<Scope>,
        handler: H,
    ) -> Self
    where
        H: Fn(usize, Request<Body>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<Body>> + Send,
    {
        let layer = set_up(IdempotencyLayer::builder(self.idem.clone()));
        let layer = layer.build().expect("the settings are sound");
        Self::behind(layer, self.store.clone(), self.idem.clone(), handler)
    }

    /// A shop whose store and handle go by a clock of the test's own.
    pub(crate) fn timed<H, F>(rules: Rules, handler: H) -> (Self, ManualClock)
    where
        H: Fn(usize, Request<Body>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<Body>> + Send,
    {
        let (store, idem, clock) = by_one_clock(|handle| handle);
        (Self::over(store, idem, rules, handler), clock)
    }

    /// The records in the store, of which there are few.
    pub(crate) async fn records(&self) -> Vec<(RecordId, Arc<Record>)> {
        let records = self.idem.store().scan(None, 10).await;
        records.expect("the store answers")
    }

    /// From now on the store hears of no heartbeat.
    pub(crate) fn lose_heartbeats(&self) {
        let beats = StoreOperation::Heartbeat;
        self.store.fault(beats, On::Every, Fault::LoseRequest);
    }

    /// How often the handler was called.
    pub(crate) fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }

    pub(crate) async fn send(&self, request: Ask) -> Answer {
        self.send_as_is(request.into()).await
    }

    /// It runs, and is replayed when it is sent again.
    pub(crate) async fn keeps(&self, request: Ask) -> Answer {
        let first = self.send(request.clone()).await;
        self.send(request).await.replays(&first);
        first
    }

    /// It is refused with this problem.
    pub(crate) async fn refuses(&self, request: Ask, status: u16, code: &str) -> Value {
        self.send(request).await.is_problem(status, code)
    }

    pub(crate) async fn send_owned(self, request: Request<Body>) -> Answer {
        self.send_as_is(request).await
    }

    pub(crate) async fn send_as_is(&self, request: Request<Body>) -> Answer {
        Answer::of(self.begin(request).await).await
    }

    /// The response as soon as it begins.
    pub(crate) async fn begin(&self, request: impl Into<Request<Body>>) -> Response<Body> {
        let request: Request<Body> = request.into();
        let response = self.router.clone().oneshot(request).await;
        response.expect("a router does not fail")
    }
}

/// A layer for callers that name themselves, set up so.
pub(crate) fn layer_over(
    idem: &Idempotency,
    set_up: impl FnOnce(LayerBuilder<Scope>) -> LayerBuilder<Scope>,
) -> IdempotencyLayer {
    let layer = IdempotencyLayer::builder(idem.clone()).scope("caller", by_caller);
    set_up(layer).build().expect("the settings are sound")
}

/// A store and a handle, set up so, that go by a clock of the test's own.
pub(crate) fn by_one_clock(
    set_up: impl FnOnce(Builder) -> Builder,
) -> (FaultyStore, Idempotency, ManualClock) {
    let clock = ManualClock::new();
    let store = FaultyStore::new(MemoryStore::with_clock(clock.clone()));
    let handle = set_up(Idempotency::builder(store.clone()).timer(clock.clone()));
    (
        store,
        handle.build().expect("the settings are sound"),
        clock,
    )
}

/// Sends a request from a task of its own, as another connection does.
pub(crate) fn spawn(shop: &Shop, request: Ask) -> JoinHandle<Answer> {
    tokio::spawn(shop.clone().send_owned(request.into()))
}

/// The same, when its handler waits at the gate.
pub(crate) async fn held(shop: &Shop, gate: &Gate, request: Ask) -> JoinHandle<Answer> {
    let sent = spawn(shop, request);
    gate.arrived(1).await;
    sent
}

/// The same, of a process that vanishes then: the store hears nothing more of it.
pub(crate) async fn vanished(shop: &Shop, gate: &Gate, request: Ask) -> JoinHandle<Answer> {
    shop.lose_heartbeats();
    held(shop, gate, request).await
}

/// A handler that waits at the gate, and then has nothing to say.
pub(crate) fn held_at(
    gate: &Gate,
) -> impl Fn(usize, Request<Body>) -> BoxFuture<Response<Body>> + Clone + Send + Sync + 'static {
    gated(gate, |_| Response::default())
}

/// A handler that waits at the gate in its first run, and answers with a receipt.
pub(crate) fn first_held_at(
    gate: &Gate,
) -> impl Fn(usize, Request<Body>) -> BoxFuture<Response<Body>> + Clone + Send + Sync + 'static {
    first_gated(gate, receipt)
}

/// A handler that waits at the gate, and then answers so.
pub(crate) fn gated<R>(
    gate: &Gate,
    answer: R,
) -> impl Fn(usize, Request<Body>) -> BoxFuture<Response<Body>> + Clone + Send + Sync + 'static
where
    R: Fn(usize) -> Response<Body> + Clone + Send + Sync + 'static,
{
    held_in(gate, |_| true, answer)
}

/// The same, where only the first run waits.
pub(crate) fn first_gated<R>(
    gate: &Gate,
    answer: R,
) -> impl Fn(usize, Request<Body>) -> BoxFuture<Response<Body>> + Clone + Send + Sync + 'static
where
    R: Fn(usize) -> Response<Body> + Clone + Send + Sync + 'static,
{
    held_in(gate, |run| run == 1, answer)
}

fn held_in<R>(
    gate: &Gate,
    waits: fn(usize) -> bool,
    answer: R,
) -> impl Fn(usize, Request<Body>) -> BoxFuture<Response<Body>> + Clone + Send + Sync + 'static
where
    R: Fn(usize) -> Response<Body> + Clone + Send + Sync + 'static,
{
    let gate = gate.clone();
    move |run, _| {
        let (gate, answer) = (gate.clone(), answer.clone());
        Box::pin(async move {
            if waits(run) {
                gate.pass().await;
            }
            answer(run)
        })
    }
}

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A handler that has nothing to say.
pub(crate) async fn silent(_: usize, _: Request<Body>) -> Response<Body> {
    Response::default()
}

/// A shop whose handler waits at the gate in its first run.
pub(crate) fn waiting(rules: Rules) -> (Shop, Gate) {
    let gate = Gate::new();
    (Shop::with(rules, first_held_at(&gate)), gate)
}

/// The same, while the first request runs.
pub(crate) async fn running(rules: Rules) -> (Shop, Gate, JoinHandle<Answer>) {
    let (shop, gate) = waiting(rules);
    let first = held(&shop, &gate, charge()).await;
    (shop, gate, first)
}

/// The same on a clock of the test's own, for store and handle.
pub(crate) fn on_a_clock(rules: Rules) -> (Shop, Gate, ManualClock) {
    let gate = Gate::new();
    let (shop, clock) = Shop::timed(rules, first_held_at(&gate));
    (shop, gate, clock)
}
