//! A receiver of Standard Webhooks: the guide's listing is this one.

use std::{
    collections::HashSet,
    fs,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    response::{IntoResponse, Response},
    routing::post,
};
use http::{HeaderMap, Request, StatusCode, header::RETRY_AFTER};
use idempotent_runtime::{
    BoxError, Idempotency, MemoryStore, StoreErrorKind,
    consumer::{Consumer, DeadLetterReason, Disposition},
    testing::{FaultyStore, Gate},
};
use standardwebhooks::Webhook;
use tower::ServiceExt;

const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
const OTHER: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

#[derive(Clone)]
struct App {
    webhook: Arc<Webhook>,
    consumer: Consumer,
    runs: Arc<AtomicUsize>,
    gate: Gate,
    dead: Arc<Mutex<HashSet<String>>>,
}

/// The signature comes first: until it is checked, the id may be forged.
async fn receive(State(app): State<App>, headers: HeaderMap, body: Bytes) -> Response {
    let Some(Ok(id)) = headers.get("webhook-id").map(|id| id.to_str()) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    if app.webhook.verify(&body, &headers).is_err() {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let message = app.consumer.message(id).payload_bytes(&body);
    match message.run(async |_attempt| app.handle(&body).await).await {
        Disposition::Ack { .. } => StatusCode::NO_CONTENT.into_response(),
        Disposition::DeadLetter { reason, .. } => app.put_aside(id, &body, reason).await,
        Disposition::Retry { after, .. } => {
            let seconds = after.as_secs().max(1).to_string();
            (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, seconds)]).into_response()
        }
        _ => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

impl App {
    async fn handle(&self, body: &[u8]) -> Result<(), BoxError> {
        self.gate.pass().await;
        self.runs.fetch_add(1, Ordering::SeqCst);
        match body {
            b"too early" => Err("the customer is not known yet".into()),
            _ => Ok(()),
        }
    }

    /// Stores a dead letter under its id; the sender is told if the mistake is its own.
    async fn put_aside(&self, id: &str, _body: &[u8], reason: DeadLetterReason) -> Response {
        self.dead.lock().expect("no panic").insert(id.to_owned());
        let status = match reason {
            DeadLetterReason::InvalidMessage => StatusCode::BAD_REQUEST,
            DeadLetterReason::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            _ => StatusCode::ACCEPTED,
        };
        status.into_response()
    }

    fn new() -> (Self, FaultyStore) {
        let store = FaultyStore::new(MemoryStore::new());
        let idem = Idempotency::new(store.clone());
        let consumer = idem.consumer("webhooks").broker_retention("4d").build();
        let gate = Gate::new();
        gate.open();
        let app = Self {
            webhook: Arc::new(Webhook::new(SECRET).expect("a secret")),
            consumer: consumer.expect("a consumer"),
            runs: Arc::default(),
            gate,
            dead: Arc::default(),
        };
        (app, store)
    }

    /// Delivers a request, as a server does.
    async fn receives(&self, delivery: Request<Body>) -> (StatusCode, HeaderMap) {
        let router = Router::new().route("/webhooks", post(receive));
        let answer = router.with_state(self.clone()).oneshot(delivery).await;
        let answer = answer.expect("a router always answers");
        (answer.status(), answer.headers().clone())
    }

    async fn answers(&self, delivery: Request<Body>) -> u16 {
        self.receives(delivery).await.0.as_u16()
    }

    fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = now.expect("it is after 1970").as_secs();
    seconds.try_into().expect("it is before the end of time")
}

fn signature(secret: &str, id: &str, timestamp: i64, body: &str) -> String {
    let webhook = Webhook::new(secret).expect("a secret");
    let signature = webhook.sign(id, timestamp, body.as_bytes());
    signature.expect("a body of text")
}

fn request(id: Option<&str>, timestamp: i64, signature: &str, body: &str) -> Request<Body> {
    let mut request = Request::post("/webhooks")
        .header("webhook-timestamp", timestamp)
        .header("webhook-signature", signature);
    if let Some(id) = id {
        request = request.header("webhook-id", id);
    }
    let request = request.body(Body::from(body.to_owned()));
    request.expect("a request")
}

/// A delivery that is signed now by this secret.
fn signed(secret: &str, id: &str, body: &str) -> Request<Body> {
    let at = now();
    request(Some(id), at, &signature(secret, id, at, body), body)
}

#[tokio::test]
async fn a_webhook_runs_once_and_its_duplicates_are_acknowledged() {
    let (app, _store) = App::new();
    for _delivery in 0..3 {
        assert_eq!(app.answers(signed(SECRET, "msg_1", "{}")).await, 204);
    }
    assert_eq!(app.runs(), 1);
    assert_eq!(app.answers(signed(SECRET, "msg_2", "{}")).await, 204);
    assert_eq!(app.runs(), 2);
}

/// Without the secret, no sender can occupy an id, or find out whether it is known.
#[tokio::test]
async fn a_webhook_with_a_wrong_signature_leaves_its_id_free() {
    let (app, _store) = App::new();
    assert_eq!(app.answers(signed(OTHER, "msg_1", "forged")).await, 401);
    assert_eq!(app.runs(), 0);
    assert_eq!(app.answers(signed(SECRET, "msg_1", "{}")).await, 204);
    for probe in ["{}", "forged"] {
        assert_eq!(app.answers(signed(OTHER, "msg_1", probe)).await, 401);
    }
    assert_eq!(app.answers(signed(SECRET, "msg_1", "{}")).await, 204);
    assert_eq!(app.runs(), 1);
}

#[tokio::test]
async fn a_webhook_without_an_id_is_refused_and_runs_nothing() {
    let (app, _store) = App::new();
    let at = now();
    let proof = signature(SECRET, "", at, "{}");
    let missing = request(None, at, &proof, "{}");
    assert_eq!(app.answers(missing).await, 400);
    let empty = request(Some(""), at, &proof, "{}");
    assert_eq!(app.answers(empty).await, 400);
    assert_eq!(app.runs(), 0);
}

#[tokio::test]
async fn an_id_with_another_body_is_refused_although_it_is_signed() {
    let (app, _store) = App::new();
    assert_eq!(app.answers(signed(SECRET, "msg_1", "{}")).await, 204);
    assert_eq!(app.answers(signed(SECRET, "msg_1", "[]")).await, 422);
    assert_eq!(app.runs(), 1);
    assert!(app.dead.lock().expect("no panic").contains("msg_1"));
}

#[tokio::test]
async fn a_webhook_that_is_too_old_or_not_yet_sent_is_refused() {
    let (app, _store) = App::new();
    for at in [now() - 6 * 60, now() + 6 * 60] {
        let signature = signature(SECRET, "msg_1", at, "{}");
        let late = request(Some("msg_1"), at, &signature, "{}");
        assert_eq!(app.answers(late).await, 401);
    }
    // The time is signed, too.
    let old = signature(SECRET, "msg_1", now() - 6 * 60, "{}");
    assert_eq!(
        app.answers(request(Some("msg_1"), now(), &old, "{}")).await,
        401
    );
    assert_eq!(app.runs(), 0);
}

/// While a secret is changed, the sender signs by the old one and the new one.
#[tokio::test]
async fn a_webhook_is_accepted_by_one_of_its_signatures() {
    let (app, _store) = App::new();
    let at = now();
    let of = |secret| signature(secret, "msg_1", at, "{}");
    for both in [
        format!("{} {}", of(OTHER), of(SECRET)),
        format!("{} {}", of(SECRET), of(OTHER)),
    ] {
        let delivery = request(Some("msg_1"), at, &both, "{}");
        assert_eq!(app.answers(delivery).await, 204);
    }
    assert_eq!(app.runs(), 1);
}

#[tokio::test]
async fn a_webhook_comes_again_where_nothing_stands() {
    let (app, store) = App::new();
    store.outage(StoreErrorKind::Unavailable);
    tokio::time::pause();
    let (status, headers) = app.receives(signed(SECRET, "msg_1", "{}")).await;
    tokio::time::resume();
    assert_eq!(status, 503);
    let seconds = headers[RETRY_AFTER].to_str().expect("a number").parse();
    assert!(
        (1..=30).contains(&seconds.expect("a number")),
        "{headers:?}"
    );
    assert_eq!(app.runs(), 0, "it does not run unprotected");
    store.heal();
    for body in ["too early", "too early"] {
        assert_eq!(app.answers(signed(SECRET, "msg_2", body)).await, 503);
    }
    assert_eq!(app.runs(), 2);
}

/// A sender that waits no longer delivers again while the first delivery runs.
#[tokio::test]
async fn a_copy_of_a_webhook_that_runs_comes_again() {
    let (app, _store) = App::new();
    let app = App {
        gate: Gate::new(),
        ..app
    };
    let (first, ()) = tokio::join!(app.answers(signed(SECRET, "msg_1", "{}")), async {
        app.gate.arrived(1).await;
        assert_eq!(app.answers(signed(SECRET, "msg_1", "{}")).await, 503);
        app.gate.open();
    });
    assert_eq!(first, 204);
    assert_eq!(app.answers(signed(SECRET, "msg_1", "{}")).await, 204);
    assert_eq!(app.runs(), 1);
}

#[test]
fn the_listing_of_the_page_on_webhooks_is_this_one() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = here.join("../../idempotent-runtime/src/guide/standard_webhooks.md");
    let page = fs::read_to_string(page).expect("the page");
    let listing = page.split("```").nth(1).expect("a listing");
    let shown = listing
        .lines()
        .skip(1)
        .filter(|line| !line.starts_with("# "));
    let shown: Vec<_> = shown.collect();
    assert!(include_str!("webhooks.rs").contains(shown.join("\n").trim()));
}
