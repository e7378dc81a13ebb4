//! A9: which answers operators, observers and clients are told of.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Router, body::Body, routing::post as posted};
use http::Request;
use idempotent_runtime::{
    CallEvent, Error, FrontEndEvent, Idempotency, Observer,
    http::{IdempotencyKey, Json, Replayable, Replayed, Rules},
    idempotent,
    testing::{Gate, ManualClock},
};
use tower::ServiceExt;

use crate::{
    harness::{Shop, by_one_clock, charge, first_held_at, layer_over, post, stream, vanished},
    said::said_during,
};

#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<(String, bool)>>>);

impl Told {
    fn push(&self, what: String, has_record: bool) {
        let mut told = self.0.lock().expect("nobody panics");
        told.push((what, has_record));
    }
}

impl Observer for Told {
    fn answered(&self, answered: &CallEvent<'_>) {
        self.push(format!("{:?}", answered.outcome), answered.id.is_some());
    }

    fn front_end(&self, event: &FrontEndEvent<'_>) {
        assert_eq!(event.front_end, "http");
        self.push(event.kind.to_owned(), event.record.is_some());
    }
}

/// A shop of this name, whose first run waits at the gate.
fn shop(name: &str, observer: &Told) -> (Shop, Gate, ManualClock) {
    let (store, idem, clock) = by_one_clock(|handle| handle.observer(observer.clone()));
    let rules = Rules::ietf().max_request(16);
    let layer = layer_over(&idem, |layer| layer.name(name).rules(rules));
    let gate = Gate::new();
    let shop = Shop::behind(layer, store, idem, first_held_at(&gate));
    (shop, gate, clock)
}

#[tokio::test]
async fn first_hour_16_observers_are_told_of_every_refusal_once() {
    let told = Told::default();
    let (shop, gate, _) = shop("told.observers", &told);
    gate.open();
    let broken = || stream(vec![Ok("amount".into()), Err("the network")]);
    let long = || stream(vec![Ok::<_, String>("more than sixteen".into())]);
    for (request, answer, has_record) in [
        (post("/c").into(), "idempotency_key_missing", false),
        (
            post("/c").key("\"").into(),
            "idempotency_key_invalid",
            false,
        ),
        (
            charge().caller("nobody").into(),
            "idempotency_scope_unresolved",
            false,
        ),
        (
            charge().body("more than sixteen").into(),
            "idempotency_body_too_large",
            false,
        ),
        (
            charge().streaming(long()),
            "idempotency_body_too_large",
            true,
        ),
        (
            charge().streaming(broken()),
            "idempotency_body_unreadable",
            true,
        ),
        (charge().into(), "Executed", true),
        (charge().into(), "Replayed", true),
        (charge().body("other").into(), "KeyReused", true),
    ] {
        let request: Request<Body> = request;
        shop.send_as_is(request).await;
        let answers = std::mem::take(&mut *told.0.lock().expect("nobody panics"));
        assert_eq!(answers, [(answer.to_owned(), has_record)]);
    }
}

/// The events of this level that name this operation.
fn events<'a>(said: &'a str, level: &str, name: &str) -> Vec<&'a str> {
    let words = [
        "idempotent call operation",
        "a request is refused",
        "the key came with other arguments",
        "replayed the recorded outcome",
    ];
    let of_ours = |line: &&str| {
        line.contains(&format!("{level} "))
            && line.contains(name)
            && words.iter().any(|word| line.contains(word))
    };
    said.lines().filter(of_ours).collect()
}

#[tokio::test]
async fn first_hour_16_takeovers_reused_keys_and_refused_scopes_are_said_aloud_and_replays_softly()
{
    const NAME: &str = "told.operators";
    let (shop, gate, clock) = shop(NAME, &Told::default());
    let ((), said) = said_during(async {
        let vanished = vanished(&shop, &gate, charge()).await;
        clock.advance(Duration::from_secs(31));
        shop.send(charge()).await.is_fresh();
        vanished.abort();
        shop.refuses(charge().body("other"), 422, "key_reused")
            .await;
        let nobody = charge().caller("nobody");
        shop.send(nobody).await.is_problem(400, "scope_unresolved");
        assert!(shop.send(charge()).await.is_replay());
    })
    .await;

    let aloud = events(&said, "INFO", NAME);
    assert_eq!(aloud.len(), 3, "{aloud:#?}");
    for (line, word) in aloud
        .iter()
        .zip(["TakenOver", "key_reused", "scope_unresolved"])
    {
        assert!(line.contains(word), "{line}");
        let names_record = line.contains(" id=");
        assert_eq!(names_record, word != "scope_unresolved", "{line}");
    }
    let softly = events(&said, "DEBUG", NAME);
    assert!(
        softly
            .iter()
            .any(|line| line.contains(r#"outcome="replayed""#)),
        "{softly:#?}"
    );
}

#[idempotent(name = "told.place", key = key, scope = 7, handle = idem, skip(idem), on_cancel = detach)]
async fn place(
    axum::extract::State(idem): axum::extract::State<Idempotency>,
    key: IdempotencyKey,
) -> Result<Replayable<Json<u64>>, Error> {
    Ok(Json(42).into())
}

#[tokio::test]
async fn first_hour_16_the_response_of_an_annotated_handler_tells_that_it_is_a_replay() {
    let router: Router = Router::new()
        .route("/orders", posted(place))
        .with_state(Idempotency::memory());
    for is_replay in [false, true, true] {
        let request: Request<Body> = post("/orders").key("k").into();
        let response = router.clone().oneshot(request).await.expect("it answers");
        assert_eq!(response.status(), 200);
        let header = response.headers().get("idempotent-replayed");
        assert_eq!(header.is_some_and(|value| value == "true"), is_replay);
        assert_eq!(response.extensions().get::<Replayed>().is_some(), is_replay);
        let body = axum::body::to_bytes(response.into_body(), 16).await;
        assert_eq!(body.expect("it is whole"), "42");
    }
}
