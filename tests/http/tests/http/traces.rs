//! A9: what operators are told, and what is never told to them.

use std::sync::{Arc, Mutex};

use axum::{Router, body::Body, http::Request, response::IntoResponse, routing};
use http::HeaderValue;
use idempotent_runtime::{
    CallEvent, CallOutcome, Idempotency, MemoryStore, Observer, RawOutcome, RecordEvent,
    StoreErrorKind,
    http::{IdempotencyLayer, LayerBuilder, Rules, Scope, ServerErrors},
    testing::{FaultyStore, Gate},
};
use tower::ServiceExt as _;

use crate::{
    harness::{Ask, Shop, held, held_at, post},
    said::said_during,
};

/// The events that observers are told, as text.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<CallOutcome>>>, Arc<Mutex<String>>);

/// The routes of the calls that ended.
#[derive(Clone, Default)]
struct Routes(Arc<Mutex<Vec<Option<String>>>>);

impl Observer for Routes {
    fn answered(&self, answered: &CallEvent<'_>) {
        let route = answered.route.map(str::to_owned);
        self.0.lock().expect("nobody panics").push(route);
    }
}

#[tokio::test]
async fn a_call_names_the_template_of_its_path_and_not_the_path() {
    let routes = Routes::default();
    let idem = Idempotency::builder(MemoryStore::new()).observer(routes.clone());
    let layer = IdempotencyLayer::builder(idem.build().expect("sound"));
    let layer = layer.shared_by_all_callers().build().expect("sound");
    let placed = routing::post(async || "placed");
    let app = Router::new().route("/orders/{id}", placed).layer(layer);
    let request = Request::post("/orders/7").header("idempotency-key", "k");
    let request = request.body(Body::empty()).expect("a request");
    let response = app.oneshot(request).await.expect("it answers");
    assert_eq!(response.status(), 200);
    let routes = routes.0.lock().expect("nobody panics").clone();
    assert_eq!(routes, [Some("/orders/{id}".to_owned())]);
}

impl Observer for Told {
    fn transition(&self, transition: &RecordEvent<'_>) {
        let mut said = self.1.lock().expect("nobody panics");
        said.push_str(&format!("{transition:?}"));
    }

    fn answered(&self, answered: &CallEvent<'_>) {
        self.0.lock().expect("nobody panics").push(answered.outcome);
        let mut said = self.1.lock().expect("nobody panics");
        said.push_str(&format!("{answered:?}"));
    }
}

#[tokio::test]
async fn s_119_every_answer_is_counted_and_no_key_is_told() {
    let told = Told::default();
    let store = FaultyStore::new(MemoryStore::new());
    let idem = Idempotency::builder(store.clone())
        .observer(told.clone())
        .build();
    let gate = Gate::new();
    let shop = Shop::over(store, idem.expect("sound"), Rules::ietf(), held_at(&gate));
    let keyed = || post("/charges").key("secret-key").body("secret-body");
    let first = held(&shop, &gate, keyed()).await;
    shop.send(keyed()).await;
    shop.send(keyed().body("other")).await;
    gate.open();
    first.await.expect("it is answered").is_fresh();
    shop.send(keyed()).await;

    let answers = told.0.lock().expect("nobody panics").clone();
    assert_eq!(
        answers,
        [
            CallOutcome::InProgress,
            CallOutcome::KeyReused,
            CallOutcome::Executed,
            CallOutcome::Replayed
        ]
    );
    let said = told.1.lock().expect("nobody panics").clone();
    assert!(!said.contains("secret"), "{said}");
    let shown = format!("{:?}", shop.layer);
    assert!(!shown.contains("secret"), "{shown}");
}

const NAME: &str = "said.confidential";

/// A shop that waits at the gate, and answers as the request asks.
fn confidential(rules: Rules, gate: &Gate) -> Shop {
    let named = |layer: LayerBuilder<Scope>| layer.name(NAME).rules(rules);
    let inside = gate.clone();
    Shop::layered(named, move |_, request| {
        let gate = inside.clone();
        async move {
            gate.pass().await;
            assert!(!request.headers().contains_key("panic"), "the test says so");
            let mut response = "secret-receipt".into_response();
            if request.headers().contains_key("zip") {
                let zipped = HeaderValue::from_static("gzip");
                response.headers_mut().insert("content-encoding", zipped);
            }
            response
        }
    })
}

fn asked_with(key: &str) -> Ask {
    post("/charges?secret-query")
        .key(key)
        .caller("secret-caller")
        .header("authorization", "secret-token")
        .body("secret-amount")
}

fn asked() -> Ask {
    asked_with("secret-key")
}

/// A key, and all that can become of it.
async fn a_life(gate: &Gate) {
    let shop = confidential(Rules::ietf(), gate);
    let first = held(&shop, gate, asked()).await;
    let early = shop.send(asked()).await;
    early.is_problem(409, "request_in_progress");
    let other = shop.send(asked().body("secret-other")).await;
    other.is_problem(422, "key_reused");
    gate.open();
    let first = first.await.expect("it is answered");
    shop.send(asked()).await.replays(&first);

    let records = shop.idem.store().scan(None, 1).await;
    let (id, record) = &records.expect("the store answers")[0];
    let garbage = RawOutcome::value("secret-garbage");
    shop.overwrite(id, record, garbage).await;
    let unread = shop.send(asked()).await;
    unread.is_problem(409, "outcome_unknown");
    shop.store.outage(StoreErrorKind::Unavailable);
    let lost = shop.send(asked()).await;
    lost.is_problem(503, "store_unavailable");
}

/// Failures beside those of the store.
async fn misfortunes(gate: &Gate) {
    let shop = confidential(Rules::ietf().server_errors(ServerErrors::Uncertain), gate);
    let panicking = || asked().header("panic", "1");
    let failed = shop.send(panicking()).await;
    failed.is_problem(500, "handler_failed");
    let unknown = shop.send(panicking()).await;
    unknown.is_problem(409, "outcome_unknown");
    let zipped = asked_with("secret-second").header("zip", "1");
    shop.send(zipped).await.is_fresh();
    for malformed in ["\"secret-key", ""] {
        let malformed = shop.send(asked_with(malformed)).await;
        malformed.is_problem(400, "key_invalid");
    }
}

#[tokio::test]
async fn s_119_nothing_is_said_of_keys_callers_and_bodies() {
    let gate = Gate::new();
    let ((), said) = said_during(async {
        a_life(&gate).await;
        misfortunes(&gate).await;
    })
    .await;

    for told in [
        NAME,
        "a stored response cannot be read",
        "a handler panicked",
        "a response is stored compressed",
    ] {
        assert!(said.contains(told), "{told}\n{said}");
    }
    assert!(!said.contains("secret"), "{said}");
    // As bytes, text is not hidden.
    let as_bytes = format!("{:?}", b"secret");
    assert!(!said.contains(as_bytes.trim_matches(['[', ']'])), "{said}");
}
