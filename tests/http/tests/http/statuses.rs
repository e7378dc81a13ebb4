//! A5: what is stored, by the status and by the handler's own word.

use std::time::Duration;

use axum::{body::Body, response::IntoResponse as _};
use http::{Method, Response, StatusCode};
use idempotent_runtime::{
    BoxError, Idempotency, MemoryStore, Status, StoreErrorKind,
    http::{
        IdempotencyLayer, KeyScope, ReplayHint, Rules, Seal, ServerErrors, Storage,
        problem::{Kind, Problem},
    },
    identity::RecordId,
    testing::{Fault, FaultyStore, Gate, ManualClock, On, Operation},
};

use crate::{
    bodies::until_settled,
    harness::{Answer, Ask, Shop, by_caller, charge, post, spawn, stream},
};

/// A shop that answers with this status, and with this mark.
fn answering(rules: Rules, status: u16, mark: Option<ReplayHint>) -> Shop {
    Shop::with(rules, move |run, _| async move {
        let mut response = Response::new(Body::from(format!("run {run}")));
        *response.status_mut() = StatusCode::from_u16(status).expect("a status");
        response
            .headers_mut()
            .insert("location", "/receipts/1".parse().expect("a value"));
        if let Some(mark) = mark {
            response.extensions_mut().insert(mark);
        }
        response
    })
}

async fn twice(shop: &Shop) -> (Answer, Answer) {
    (shop.send(charge()).await, shop.send(charge()).await)
}

async fn is_kept(rules: Rules, status: u16, mark: Option<ReplayHint>) {
    let shop = answering(rules, status, mark);
    let (first, again) = twice(&shop).await;
    assert_eq!(first.status, status);
    again.replays(&first);
    assert_eq!(says_of_its_key(&first).or(says_of_its_key(&again)), None);
    assert_eq!(again.headers["location"], "/receipts/1");
    assert_eq!(shop.runs(), 1, "{status}");
}

async fn is_released(rules: Rules, status: u16, mark: Option<ReplayHint>) {
    let shop = answering(rules, status, mark);
    let (first, again) = twice(&shop).await;
    assert_eq!(
        (first.status.as_u16(), again.status.as_u16()),
        (status, status)
    );
    assert!(!again.is_replay());
    assert_eq!(shop.runs(), 2, "{status}");
    for answer in [first, again] {
        assert_eq!(says_of_its_key(&answer), Some("released"), "{status}");
    }
}

/// What a response says of its key beside its status.
fn says_of_its_key(answer: &Answer) -> Option<&str> {
    let said = answer.headers.get("idempotency-status");
    said.map(|said| said.to_str().expect("it is text"))
}

async fn is_uncertain(rules: Rules, status: u16, mark: Option<ReplayHint>) {
    let shop = answering(rules, status, mark);
    let (first, again) = twice(&shop).await;
    assert_eq!(
        first.status, status,
        "the first caller gets what the handler said"
    );
    let document = again.is_problem(409, "outcome_unknown");
    let reference = document["operation_ref"]
        .as_str()
        .expect("there is something to ask for");
    assert!(reference.starts_with("op_"), "{reference}");
    assert_eq!(shop.runs(), 1, "{status}");
}

/// A retry is told that there is a result, and the handler does not run for it.
async fn is_unavailable(shop: &Shop) -> Answer {
    let first = shop.send(charge()).await;
    until_settled(shop)
        .await
        .is_problem(409, "result_unavailable");
    assert_eq!(shop.runs(), 1);
    first
}

#[tokio::test]
async fn s_60_what_went_well_is_kept() {
    for status in [200, 201, 202, 203, 206] {
        is_kept(Rules::ietf(), status, None).await;
    }
}

#[tokio::test]
async fn s_61_a_redirection_is_kept_and_not_modified_never() {
    for status in [301, 302, 303, 307, 308] {
        is_kept(Rules::ietf(), status, None).await;
    }
    is_released(Rules::ietf(), 304, None).await;
}

/// A client repeats its request where it is led, with its key.
#[tokio::test]
async fn s_61_a_key_that_is_led_on_is_bound_to_its_first_path_unless_that_is_said() {
    for (rules, mark, led_on_to) in [
        (Rules::ietf(), None, 422),
        (Rules::ietf(), Some(ReplayHint::Retryable), 200),
        (Rules::ietf().key_scope(KeyScope::Route), None, 200),
    ] {
        let shop = Shop::with(rules, move |_, request| async move {
            let mut response = Response::new(Body::empty());
            if request.uri() == "/old" {
                *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
                mark.map(|mark| response.extensions_mut().insert(mark));
            }
            response
        });
        assert_eq!(shop.send(post("/old").key("k")).await.status, 308);
        assert_eq!(shop.send(post("/new").key("k")).await.status, led_on_to);
    }
}

#[tokio::test]
async fn s_62_s_70_a_handlers_refusal_is_kept() {
    for status in [400, 402, 404, 409, 410, 422] {
        is_kept(Rules::ietf(), status, None).await;
    }
}

#[tokio::test]
async fn s_63_what_is_refused_before_the_handler_is_released() {
    for status in [401, 403, 405, 413, 415, 421, 428, 431] {
        is_released(Rules::ietf(), status, None).await;
    }
}

#[tokio::test]
async fn s_64_not_now_is_released() {
    for status in [408, 425, 429, 503] {
        is_released(Rules::ietf(), status, None).await;
    }
}

#[tokio::test]
async fn s_64_not_now_is_released_however_long_it_is_told() {
    let shop = Shop::with(Rules::ietf().max_response(3), |run, _| async move {
        let told = format!("not now, {run}");
        let mut response = Response::new(stream::<axum::BoxError>(vec![Ok(told.into())]));
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        response
    });
    let (first, again) = twice(&shop).await;
    assert_eq!(
        (&*first.body, &*again.body),
        (&b"not now, 1"[..], &b"not now, 2"[..])
    );
    for answer in [first, again] {
        assert_eq!(says_of_its_key(&answer), Some("released"));
    }
}

#[tokio::test]
async fn s_65_what_a_failure_means_is_a_choice() {
    for status in [500, 502, 504] {
        is_kept(Rules::ietf(), status, None).await;
        is_kept(
            Rules::ietf().server_errors(ServerErrors::Replay),
            status,
            None,
        )
        .await;
        is_released(
            Rules::ietf().server_errors(ServerErrors::Release),
            status,
            None,
        )
        .await;
        is_uncertain(
            Rules::ietf().server_errors(ServerErrors::Uncertain),
            status,
            None,
        )
        .await;
    }
}

#[tokio::test]
async fn s_67_the_handlers_word_counts_more_than_the_status() {
    is_released(Rules::ietf(), 422, Some(ReplayHint::Retryable)).await;
    is_kept(Rules::acp(), 500, Some(ReplayHint::Final)).await;
    is_kept(Rules::ietf(), 503, Some(ReplayHint::Final)).await;
    is_uncertain(Rules::ietf(), 202, Some(ReplayHint::Uncertain)).await;
    is_unavailable(&answering(Rules::ietf(), 200, Some(ReplayHint::NotStored))).await;
}

/// Clients that remember what a call came to ask again where the key is free, and never where it is not.
#[tokio::test]
async fn s_67_only_the_layer_says_that_a_key_is_free() {
    let claims = |mark: Option<ReplayHint>| {
        Shop::with(Rules::acp(), move |_, request| async move {
            assert!(request.uri() != "/panics", "it panics");
            let mut response = Response::new(Body::from("receipt"));
            let claimed = "released".parse().expect("a value");
            response.headers_mut().insert("idempotency-status", claimed);
            mark.map(|mark| response.extensions_mut().insert(mark));
            response
        })
    };
    for mark in [
        None,
        Some(ReplayHint::NotStored),
        Some(ReplayHint::Uncertain),
    ] {
        let (first, again) = twice(&claims(mark)).await;
        assert_eq!(says_of_its_key(&first), None, "{mark:?}");
        assert_eq!(says_of_its_key(&again), None, "{mark:?}");
    }
    let other = charge().body("amount=13");
    let shop = claims(None);
    shop.send(charge()).await;
    for refused in [other, post("/charges"), post("/panics").key("p")] {
        let refused = shop.send(refused).await;
        assert!(refused.status.as_u16() >= 400, "{refused:?}");
        assert_eq!(says_of_its_key(&refused), None, "{refused:?}");
    }
}

/// A retry is to reach the handler, and what another call holds, or has done, is not undone by that.
#[tokio::test]
async fn s_67_a_problem_about_another_call_does_not_say_that_a_key_is_free() {
    for kind in [Kind::RequestInProgress, Kind::ResultOutOfReach] {
        let shop = Shop::with(Rules::ietf(), move |_, _| async move {
            Problem::new(kind).into_response()
        });
        let (first, again) = twice(&shop).await;
        assert_eq!(shop.runs(), 2, "{kind:?}");
        for answer in [first, again] {
            assert_eq!(says_of_its_key(&answer), None, "{kind:?}");
        }
    }
}

/// Nothing happened this time; what the handler before it did, which vanished, is another question.
#[tokio::test]
async fn s_67_a_takeover_does_not_say_that_a_key_is_free() {
    let (gate, clock) = (Gate::new(), ManualClock::new());
    let store = FaultyStore::new(MemoryStore::with_clock(clock.clone()));
    let idem = Idempotency::builder(store.clone())
        .timer(clock.clone())
        .build();
    let idem = idem.expect("the settings are sound");
    let inside = gate.clone();
    let shop = Shop::over(store, idem, Rules::ietf().lease("5s"), move |run, _| {
        let inside = inside.clone();
        async move {
            if run == 1 {
                inside.pass().await;
            }
            (StatusCode::CONFLICT, ReplayHint::Retryable, "sold out").into_response()
        }
    });
    shop.store
        .fault(Operation::Heartbeat, On::Every, Fault::LoseRequest);
    let vanished = spawn(&shop, charge());
    gate.arrived(1).await;
    clock.advance(Duration::from_secs(6));

    // The second one is no less a takeover: nobody has found out meanwhile what the first handler did.
    for _ in 0..2 {
        let answer = shop.send(charge()).await;
        assert_eq!(answer.body, "sold out");
        assert_eq!(says_of_its_key(&answer), Some("open"));
    }
    let other = shop.send(charge().body("amount=99")).await;
    other.is_problem(422, "key_reused");
    assert_eq!(shop.runs(), 3);
    vanished.abort();
}

/// The store does not know it yet, and a retry finds the key taken.
#[tokio::test]
async fn s_67_a_key_that_the_store_could_not_free_is_not_said_to_be_free() {
    let store = FaultyStore::new(MemoryStore::new());
    let idem = Idempotency::new(store.clone());
    let breaks = store.clone();
    let shop = Shop::over(store, idem, Rules::ietf(), move |_, _| {
        breaks.outage(StoreErrorKind::Unavailable);
        async { (StatusCode::CONFLICT, ReplayHint::Retryable, "sold out").into_response() }
    });
    let answer = shop.send(charge()).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.body[..]),
        (409, &b"sold out"[..])
    );
    assert_eq!(says_of_its_key(&answer), Some("open"));
}

#[tokio::test]
async fn each_preset_does_what_its_table_says() {
    is_kept(Rules::ietf(), 500, None).await;
    is_kept(Rules::stripe_v1(), 500, None).await;
    is_released(Rules::acp(), 500, None).await;
    for (rules, without_a_key, mismatch, other_spelling, patch, echo) in [
        (Rules::ietf(), 400, 422, 422, 201, None),
        (Rules::stripe_v1(), 201, 400, 400, 201, Some("k")),
        (Rules::acp(), 400, 422, 201, 201, Some("k")),
    ] {
        let shop = Shop::new(rules);
        let json = |body: &'static str| post("/charges").key("k").json(body);
        let status = async |ask| shop.send(ask).await.status.as_u16();
        assert_eq!(status(post("/charges")).await, without_a_key);
        let first = shop.send(json(r#"{"a":1}"#)).await;
        let repeated = first.headers.get("idempotency-key").map(|key| key.to_str());
        assert_eq!(repeated.transpose().expect("it is text"), echo);
        assert_eq!(status(json(r#"{"a":2}"#)).await, mismatch);
        assert_eq!(status(json(r#"{ "a": 1 }"#)).await, other_spelling);
        let patched = Ask::new(Method::PATCH, "/charges").key("p");
        assert_eq!(status(patched).await, patch);
    }
}

#[tokio::test]
async fn s_68_no_store_is_for_caches() {
    let shop = Shop::with(Rules::ietf(), |_, _| async {
        let mut response = Response::new(Body::from("receipt"));
        response
            .headers_mut()
            .insert("cache-control", "no-store".parse().expect("a value"));
        response
    });
    let (first, again) = twice(&shop).await;
    again.replays(&first);
    assert_eq!(again.headers["cache-control"], "no-store");
}

#[tokio::test]
async fn s_69_our_own_refusals_are_never_stored() {
    let shop = Shop::new(Rules::ietf().max_request(8));
    shop.send(charge()).await.is_problem(413, "body_too_large");
    let short = charge().body("a=1");
    let first = shop.send(short.clone()).await;
    first.is_fresh();
    shop.send(charge().body("a=2"))
        .await
        .is_problem(422, "key_reused");
    shop.send(short).await.replays(&first);
}

#[tokio::test]
async fn s_71_a_secret_is_not_stored() {
    let shop = Shop::with(Rules::ietf().storage(Storage::Nothing), |_, _| async {
        Response::new(Body::from("token 1234"))
    });
    let first = is_unavailable(&shop).await;
    assert_eq!(first.body, "token 1234");
    let found = shop.idem.lookup("http", Some(&("caller", "A")), "k").await;
    assert!(
        matches!(found, Ok(Status::NotReplayable { .. })),
        "{found:?}"
    );
}

#[tokio::test]
async fn s_90_a_response_that_is_too_large_is_given_once() {
    for known in [true, false] {
        let shop = Shop::with(Rules::ietf().max_response(10), move |_, _| async move {
            let body = vec![7; 11];
            Response::new(if known {
                Body::from(body)
            } else {
                stream::<axum::BoxError>(vec![Ok(body.into())])
            })
        });
        let first = is_unavailable(&shop).await;
        assert_eq!(first.body, vec![7; 11]);
    }
}

#[tokio::test]
async fn s_90_a_response_that_is_as_long_as_it_may_be_is_kept() {
    let shop = Shop::with(Rules::ietf().max_response(10), |_, _| async {
        Response::new(Body::from(vec![7; 10]))
    });
    let (first, again) = twice(&shop).await;
    again.replays(&first);
}

/// Stands for encryption: nobody can read it, and whoever has the mask can open it.
#[derive(Debug)]
pub(crate) struct Mask(pub(crate) u8);

impl Seal for Mask {
    fn seal(&self, _: &RecordId, response: Vec<u8>) -> Result<Vec<u8>, BoxError> {
        if self.0 == 0 {
            return Err("no key".into());
        }
        Ok(response.iter().map(|byte| byte ^ self.0).collect())
    }

    fn open(&self, record: &RecordId, sealed: &[u8]) -> Result<Vec<u8>, BoxError> {
        self.seal(record, sealed.to_vec())
    }
}

#[tokio::test]
async fn s_72_a_sealed_response_is_replayed_and_cannot_be_read_in_the_store() {
    let sealed_by = |shop: &Shop, seal| {
        let layer = IdempotencyLayer::builder(shop.idem.clone())
            .scope("caller", by_caller)
            .seal(seal);
        let layer = layer.build().expect("the settings are sound");
        let (store, idem) = (shop.store.clone(), shop.idem.clone());
        Shop::behind(layer, store, idem, |_, _| async {
            Response::new(Body::from("receipt"))
        })
    };
    let open = Shop::new(Rules::ietf());
    let shop = sealed_by(&open, Mask(0x55));
    let first = shop.send(charge()).await;
    shop.send(charge()).await.replays(&first);
    let records = shop
        .idem
        .store()
        .scan(None, 1)
        .await
        .expect("the store answers");
    let outcome = records[0].1.outcome.clone().expect("it is stored");
    let text = b"receipt";
    assert!(!outcome.bytes.windows(text.len()).any(|piece| piece == text));
    for other in [sealed_by(&open, Mask(0x54)), open.clone()] {
        other
            .send(charge())
            .await
            .is_problem(409, "outcome_unknown");
        assert_eq!(other.runs(), 0);
    }
    let cannot = sealed_by(&open, Mask(0));
    let unsealed = charge().caller("B");
    cannot.send(unsealed.clone()).await.is_fresh();
    cannot
        .send(unsealed)
        .await
        .is_problem(409, "result_unavailable");
    assert_eq!(cannot.runs(), 1);
}

#[tokio::test]
async fn s_65_an_unknown_outcome_is_settled_by_the_handle() {
    for key_scope in [KeyScope::Caller, KeyScope::Route] {
        let rules = Rules::ietf().key_scope(key_scope);
        let shop = answering(rules, 200, Some(ReplayHint::Uncertain));
        shop.send(charge()).await;
        let settle = match key_scope {
            KeyScope::Route => {
                shop.idem
                    .settle("http", Some(&("caller", "A")), &("POST", "/charges", "k"))
            }
            _ => shop.idem.settle("http", Some(&("caller", "A")), "k"),
        };
        let settled = settle.expect("these are keys").as_done().await;
        assert_eq!(settled, Ok(()));
        shop.send(charge())
            .await
            .is_problem(409, "result_unavailable");
        assert_eq!(shop.runs(), 1);
    }
}
