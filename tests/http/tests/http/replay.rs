//! A3: the first request, its replays, other requests with its key, and those that come while it
//! runs.

use std::{io, time::Duration};

use axum::body::Body;
use bytes::Bytes;
use http::{Response, StatusCode};
use idempotent_runtime::{
    Error, Idempotency, InFlight,
    http::{IdempotencyKey, IdempotencyLayer, KeyEcho, MismatchDetails, ReplayOfCreated, Rules},
    testing::{Fault, Gate, On, StoreOperation},
};

use crate::harness::{
    Answer, Shop, by_caller, charge, held, held_at, post, receipt, respond, running, spawn, stream,
    with_field,
};

#[tokio::test]
async fn s_35_the_first_request_gets_the_handlers_own_response() {
    let shop = Shop::new(Rules::ietf());

    let first = shop.send(charge()).await;

    first.is_fresh();
    assert_eq!(first.status, 201);
    assert_eq!(first.body, "receipt 1");
    assert_eq!(first.headers["location"], "/receipts/1");
    assert_eq!(shop.runs(), 1);
}

#[tokio::test]
async fn s_36_a_retry_gets_the_same_response() {
    let shop = Shop::new(Rules::ietf());

    let first = shop.keeps(charge()).await;

    assert_eq!(first.headers["location"], "/receipts/1");
    assert_eq!(shop.runs(), 1);
}

#[tokio::test]
async fn s_39_another_body_with_the_key_is_refused_and_changes_nothing() {
    let shop = Shop::new(Rules::ietf());
    let first = shop.send(charge()).await;

    let other = shop.send(charge().body("amount=99")).await;

    other.is_problem(422, "key_reused");
    shop.send(charge()).await.replays(&first);
    assert_eq!(shop.runs(), 1);
}

#[tokio::test]
async fn s_40_a_retry_while_the_first_runs_is_told_to_come_again() {
    let (shop, gate, first) = running(Rules::ietf()).await;

    let meanwhile = shop.send(charge()).await;

    let document = meanwhile.is_problem(409, "request_in_progress");
    assert_eq!(meanwhile.headers["retry-after"], "1");
    assert_eq!(document["retry_after"], 1);
    assert_eq!(document["retryable"], true);
    gate.open();
    first.await.expect("it is answered").is_fresh();
    assert_eq!(shop.runs(), 1);
}

#[tokio::test]
async fn s_41_another_request_while_the_first_runs_is_another_request() {
    let (shop, gate, first) = running(Rules::ietf()).await;

    let other = shop.send(post("/charges").key("k").body("amount=99")).await;

    other.is_problem(422, "key_reused");
    gate.open();
    first.await.expect("it is answered").is_fresh();
}

#[tokio::test]
async fn s_37_only_the_layer_says_that_a_response_is_a_replay() {
    let shop = Shop::with(Rules::ietf(), |_, _| async {
        with_field(receipt(1), "idempotent-replayed", "true")
    });
    shop.keeps(charge()).await.is_fresh();
}

#[tokio::test]
async fn s_38_a_replay_of_created_is_created() {
    let shop = Shop::new(Rules::ietf());
    shop.send(charge()).await;
    let again = shop.send(charge()).await;
    assert_eq!(again.status, 201);
    assert_eq!(again.headers["location"], "/receipts/1");
}

#[tokio::test]
async fn s_38_a_replay_of_created_is_ok_where_that_is_said() {
    let rules = || Rules::ietf().replay_of_created(ReplayOfCreated::Ok);
    let shop = Shop::new(rules());
    let first = shop.send(charge()).await;
    assert_eq!(first.status, 201);

    let again = shop.send(charge()).await;

    assert!(again.is_replay());
    assert_eq!(again.status, 200);
    assert_eq!(
        (&again.headers["location"], &again.body),
        (&first.headers["location"], &first.body)
    );
    let contract = shop.layer.contract().to_markdown();
    assert!(contract.contains("200 in place of 201"), "{contract}");
    // Another layer over the same records has the status that is stored.
    let other = Shop::over(shop.store, shop.idem, Rules::ietf(), |_, _| async {
        Response::new(Body::empty())
    });
    assert_eq!(other.send(charge()).await.status, 201);
    let accepted = Shop::with(rules(), |_, _| async {
        respond(StatusCode::ACCEPTED, Body::empty())
    });
    accepted.keeps(charge()).await;
}

#[tokio::test]
async fn s_42_the_statuses_of_refusals_are_the_services_and_the_types_stay() {
    let rules = Rules::ietf()
        .mismatch_status(StatusCode::BAD_REQUEST)
        .in_flight_status(StatusCode::LOCKED)
        .mismatch_details(MismatchDetails::Named)
        .retry_after("2500ms");
    let (shop, gate, first) = running(rules).await;

    let other = shop.send(charge().body("amount=99")).await;
    let document = other.is_problem(400, "key_reused");
    assert_eq!(document["mismatch"], serde_json::json!(["body"]));
    let again = shop.send(charge()).await;
    again.is_problem(423, "request_in_progress");
    assert_eq!(again.headers["retry-after"], "3");

    gate.open();
    first.await.expect("it is answered").is_fresh();
}

#[test]
fn s_42_a_refusal_that_is_no_error_is_a_mistake() {
    let built = |unscoped, rules: Rules| {
        let layer = IdempotencyLayer::builder(Idempotency::memory()).unscoped_status(unscoped);
        let layer = layer.route("/charges", |_| rules);
        layer.scope("caller", by_caller).build().map(drop)
    };
    let refusal = StatusCode::UNAUTHORIZED;
    for status in [StatusCode::OK, StatusCode::SEE_OTHER] {
        for (unscoped, rules) in [
            (refusal, Rules::ietf().mismatch_status(status)),
            (refusal, Rules::ietf().in_flight_status(status)),
            (status, Rules::ietf()),
        ] {
            let built = built(unscoped, rules);
            assert!(matches!(built, Err(Error::InvalidPolicy(_))), "{built:?}");
        }
    }
    built(refusal, Rules::ietf()).expect("the settings are sound");
}

/// Every request would fail by it.
#[test]
fn a_duration_that_cannot_be_one_is_a_mistake_wherever_it_stands() {
    for rules in [
        || Rules::ietf().ttl(Duration::ZERO),
        || Rules::ietf().lease(Duration::ZERO),
        || Rules::ietf().lease("99ms"),
        || Rules::ietf().ttl(Duration::MAX),
        || Rules::ietf().lease("1h").ttl("1m"),
        // Longer than the ttl of the handle.
        || Rules::ietf().lease("48h"),
    ] {
        let of_all = IdempotencyLayer::builder(Idempotency::memory()).rules(rules());
        let of_a_route = IdempotencyLayer::builder(Idempotency::memory());
        let of_a_route = of_a_route.route("/charges", move |_| rules());
        for layer in [of_all, of_a_route] {
            let built = layer.scope("caller", by_caller).build().map(drop);
            assert!(matches!(built, Err(Error::InvalidPolicy(_))), "{built:?}");
        }
    }
}

/// Until the store was asked so often to wait.
async fn waits(shop: &Shop, calls: u64) {
    while shop.store.calls(StoreOperation::Wait) < calls {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn s_43_a_retry_that_may_wait_gets_the_replay() {
    let wait = InFlight::Wait(Duration::from_secs(3_600));
    let (shop, gate, first) = running(Rules::ietf().in_flight(wait)).await;
    let second = spawn(&shop, charge());

    waits(&shop, 1).await;

    gate.open();

    let first = first.await.expect("it is answered");
    second.await.expect("it is answered").replays(&first);
    assert_eq!(shop.runs(), 1);
}

#[tokio::test]
async fn s_44_a_retry_waits_no_longer_than_it_may() {
    let wait = InFlight::Wait(Duration::from_secs(5));
    let gate = Gate::new();
    let (shop, clock) = Shop::timed(Rules::ietf().in_flight(wait), held_at(&gate));
    let first = held(&shop, &gate, charge()).await;
    let second = spawn(&shop, charge());
    waits(&shop, 1).await;

    let asked = |shop: &Shop| {
        (
            shop.store.round_trips(),
            shop.store.calls(StoreOperation::Wait),
        )
    };
    let before = asked(&shop);
    for _ in 0..4_999 {
        clock.advance(Duration::from_millis(1));
        tokio::task::yield_now().await;
        clock.await_sleepers(1).await;
    }
    assert!(!second.is_finished());
    assert_eq!(
        asked(&shop),
        before,
        "it waits at the store, and asks nothing"
    );
    clock.advance(Duration::from_millis(1));

    let answer = second.await.expect("it is answered");
    answer.is_problem(409, "request_in_progress");
    // One look, at the end, finds that nothing has changed.
    assert_eq!(asked(&shop), (before.0 + 1, before.1));
    gate.open();
    first.await.expect("it is answered").is_fresh();
    assert_eq!(shop.runs(), 1);
}

#[tokio::test]
async fn s_44_a_client_that_waits_and_goes_away_leaves_nothing_behind() {
    let wait = InFlight::Wait(Duration::from_secs(3_600));
    let (shop, gate, first) = running(Rules::ietf().in_flight(wait)).await;
    let loads = shop.store.calls(StoreOperation::Wait);
    let second = spawn(&shop, charge());
    waits(&shop, loads + 1).await;

    second.abort();
    assert!(second.await.is_err_and(|stopped| stopped.is_cancelled()));

    gate.open();
    let first = first.await.expect("it is answered");
    shop.send(charge()).await.replays(&first);
    assert_eq!(shop.runs(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s_45_of_a_hundred_at_once_one_runs() {
    let shop = Shop::new(Rules::ietf());
    // Each of four services over the store stands for a process.
    let others: Vec<_> = (0..4)
        .map(|_| {
            Shop::over(
                shop.store.clone(),
                Idempotency::new(shop.store.clone()),
                Rules::ietf(),
                |run, _| async move { receipt(run) },
            )
        })
        .collect();
    let requests: Vec<_> = (0..100).map(|n| spawn(&others[n % 4], charge())).collect();
    let mut fresh = 0;
    for request in requests {
        let answer = request.await.expect("it is answered");
        match answer.status.as_u16() {
            200 if answer.is_replay() => {}
            200 => fresh += 1,
            _ => drop(answer.is_problem(409, "request_in_progress")),
        }
    }
    let runs: usize = others.iter().map(Shop::runs).sum();
    assert_eq!((fresh, runs), (1, 1));
}

#[tokio::test]
async fn s_46_s_47_a_claim_whose_answer_was_lost_is_ones_own() {
    let shop = Shop::new(Rules::ietf());
    shop.store
        .fault(StoreOperation::Claim, On::Call(1), Fault::LoseAnswer);

    shop.keeps(charge()).await.is_fresh();
    assert_eq!(shop.runs(), 1);
}

#[tokio::test]
async fn s_46_nothing_runs_without_a_claim() {
    let shop = Shop::new(Rules::ietf());
    shop.store
        .fault(StoreOperation::Claim, On::Every, Fault::LoseRequest);
    shop.refuses(charge(), 503, "store_unavailable").await;
    assert_eq!(shop.runs(), 0);
    shop.store.heal();
    shop.send(charge()).await.is_fresh();
    assert_eq!(shop.runs(), 1);
}

#[tokio::test]
async fn s_48_other_keys_are_other_requests_whatever_they_hold() {
    let shop = Shop::new(Rules::ietf());
    for key in ["k", "l"] {
        shop.send(post("/charges").key(key).body("amount=12"))
            .await
            .is_fresh();
    }
    assert_eq!(shop.runs(), 2);
}

#[tokio::test]
async fn s_49_the_handler_gets_the_key_and_its_attempt() {
    let shop = Shop::with(Rules::ietf(), |_, request| async move {
        let key = request.extensions().get::<IdempotencyKey>().cloned();
        let key = key.expect("the layer gives it");
        let downstream = idempotent_runtime::current().child_key("gateway");
        Response::new(Body::from(format!("{} {downstream}", key.as_str())))
    });
    let mine = shop.send(post("/charges").key("\"k\\\"1\"")).await;
    let theirs = shop
        .send(post("/charges").key("\"k\\\"1\"").caller("B"))
        .await;
    assert!(mine.body.starts_with(b"k\"1 "), "{:?}", mine.body);
    assert_ne!(mine.body, theirs.body, "downstream keys are scoped");
}

/// All of them, which have these statuses.
#[track_caller]
fn repeat_the_key(answers: &[Answer], expected: &[u16]) {
    let statuses = answers.iter().map(|answer| answer.status.as_u16());
    assert_eq!(statuses.collect::<Vec<_>>(), expected);
    for answer in answers {
        assert_eq!(answer.headers["idempotency-key"], "k", "{answer:?}");
    }
}

#[tokio::test]
async fn s_50_the_key_is_repeated_on_every_response_where_that_is_on() {
    let (shop, gate, first) = running(Rules::ietf().echo(KeyEcho::Key)).await;
    let mut answers = vec![
        shop.send(charge()).await,
        shop.send(charge().body("amount=99")).await,
    ];
    gate.open();
    answers.push(first.await.expect("it is answered"));
    answers.push(shop.send(charge()).await);
    repeat_the_key(&answers, &[409, 422, 200, 200]);
    let small = Shop::new(Rules::ietf().echo(KeyEcho::Key).max_request(4));
    let broken = stream(vec![Err::<Bytes, _>(io::Error::other("it breaks off"))]);
    let mut refusals = vec![
        small.send(charge()).await,
        small
            .send_as_is(charge().streaming(stream(vec![Ok::<_, io::Error>("amount=12".into())])))
            .await,
        small.send_as_is(charge().streaming(broken)).await,
        small.send(charge().caller("nobody")).await,
    ];
    small.layer.shutdown(Duration::ZERO).await;
    refusals.push(small.send(charge().body("")).await);
    repeat_the_key(&refusals, &[413, 413, 400, 400, 503]);
    let malformed = small.send(post("/").key("\"k")).await;
    assert!(!malformed.headers.contains_key("idempotency-key"));
    let silent = Shop::new(Rules::ietf()).send(charge()).await;
    assert!(!silent.headers.contains_key("idempotency-key"));
}
