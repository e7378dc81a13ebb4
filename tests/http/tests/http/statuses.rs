//! A5: what is stored, by the status and by the handler's own word.

use axum::body::Body;
use http::{Method, Response, StatusCode};
use idempotent_runtime::{
    BoxError, Status,
    http::{KeyScope, ReplayHint, Rules, Seal, ServerErrors, Storage},
    identity::RecordId,
};

use crate::{
    bodies::is_bound,
    harness::{Answer, Ask, Shop, charge, marked, post, receipt, respond, stream, with_field},
};

mod key_status;

/// A shop that answers with this status, and with this mark.
fn answering(rules: Rules, status: u16, mark: Option<ReplayHint>) -> Shop {
    Shop::with(rules, move |run, _| async move {
        let status = StatusCode::from_u16(status).expect("a status");
        let response = respond(status, format!("run {run}"));
        marked(with_field(response, "location", "/receipts/1"), mark)
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

/// The word of a response about its key, beside its status.
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
    is_bound(shop, "result_unavailable").await;
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
        let told = stream::<axum::BoxError>(vec![Ok(told.into())]);
        respond(StatusCode::SERVICE_UNAVAILABLE, told)
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
        let rules = |errors| Rules::ietf().server_errors(errors);
        is_kept(Rules::ietf(), status, None).await;
        is_kept(rules(ServerErrors::Replay), status, None).await;
        is_released(rules(ServerErrors::Release), status, None).await;
        is_uncertain(rules(ServerErrors::Uncertain), status, None).await;
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
        with_field(receipt(1), "cache-control", "no-store")
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
    shop.refuses(charge().body("a=2"), 422, "key_reused").await;
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

/// Stands for encryption: only code that has the mask can open and read it.
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
        shop.beside(
            |layer| layer.seal(seal),
            |_, _| async { Response::new(Body::from("receipt")) },
        )
    };
    let open = Shop::new(Rules::ietf());
    let shop = sealed_by(&open, Mask(0x55));
    shop.keeps(charge()).await;
    let records = shop.records().await;
    let outcome = records[0].1.outcome.clone().expect("it is stored");
    let text = b"receipt";
    assert!(!outcome.bytes.windows(text.len()).any(|piece| piece == text));
    for other in [sealed_by(&open, Mask(0x54)), open.clone()] {
        other.refuses(charge(), 409, "outcome_unknown").await;
        assert_eq!(other.runs(), 0);
    }
    let cannot = sealed_by(&open, Mask(0));
    let unsealed = charge().caller("B");
    cannot.send(unsealed.clone()).await.is_fresh();
    cannot.refuses(unsealed, 409, "result_unavailable").await;
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
        shop.refuses(charge(), 409, "result_unavailable").await;
        assert_eq!(shop.runs(), 1);
    }
}
