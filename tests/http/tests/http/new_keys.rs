//! How fast a caller may bring new keys, and what that leaves alone.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use http::{Response, StatusCode};
use http_body::Frame;
use idempotent_runtime::{
    Error, Idempotency, MemoryStore, OnExpired,
    http::{Builder, IdempotencyLayer, Rules, Scope, Unscoped},
    record::State,
    testing::{Fault, FaultyStore, Gate, ManualClock, Nth, Operation},
};

use tokio::task::JoinHandle;

use crate::harness::{Answer, Ask, Shop, by_caller, post, spawn, stream};

const SECOND: Duration = Duration::from_secs(1);

/// A shop that takes three new keys of a caller in ten seconds; the handler of its first run waits at the gate.
fn shop(scope: Scope) -> (Shop, Gate, ManualClock) {
    shop_of(|layer| layer.scope(scope))
}

/// The same, behind a layer that is set up so.
fn shop_of(set_up: impl FnOnce(Builder<Unscoped>) -> Builder<Scope>) -> (Shop, Gate, ManualClock) {
    shop_that_takes(3, 10 * SECOND, set_up)
}

fn shop_that_takes(
    keys: u32,
    per: Duration,
    set_up: impl FnOnce(Builder<Unscoped>) -> Builder<Scope>,
) -> (Shop, Gate, ManualClock) {
    let clock = ManualClock::new();
    let store = FaultyStore::new(MemoryStore::with_clock(clock.clone()));
    let idem = Idempotency::builder(store.clone()).timer(clock.clone());
    let idem = idem.build().expect("the settings are sound");
    let layer = set_up(IdempotencyLayer::builder(idem.clone()))
        .rules(Rules::ietf().lease("5s"))
        .max_new_keys_per_caller(keys, per)
        .build()
        .expect("the settings are sound");
    let gate = Gate::new();
    let inside = gate.clone();
    let shop = Shop::behind(layer, store, idem, move |run, _| {
        let gate = inside.clone();
        async move {
            if run == 1 {
                gate.pass().await;
            }
            let mut response = Response::new(Body::from(format!("receipt {run}")));
            *response.status_mut() = StatusCode::CREATED;
            response
        }
    });
    (shop, gate, clock)
}

fn open_shop() -> (Shop, ManualClock) {
    let (shop, gate, clock) = shop(by_caller());
    gate.open();
    (shop, clock)
}

/// A body of which nothing arrives.
struct Unread;

impl http_body::Body for Unread {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

fn charge(key: impl std::fmt::Display) -> Ask {
    post("/charges").key(key.to_string()).body("amount=12")
}

#[tokio::test]
async fn a_caller_that_brings_new_keys_too_fast_is_refused_until_it_may() {
    let (shop, clock) = open_shop();
    for key in 0..3 {
        shop.send(charge(key)).await.is_fresh();
    }

    let refused = shop.send(charge(3)).await;

    let document = refused.is_problem(429, "too_many_keys");
    assert_eq!(refused.headers["retry-after"], "4");
    assert_eq!(document["retry_after"], 4);
    assert_eq!(document["retryable"], true);
    assert_eq!(document["key_action"], "keep");
    assert_eq!(shop.runs(), 3);

    shop.send(charge(3).caller("B")).await.is_fresh();
    clock.advance(4 * SECOND);
    shop.send(charge(3)).await.is_fresh();
    shop.send(charge(4)).await.is_problem(429, "too_many_keys");
}

/// What it costs the store is one look each, however many there are.
#[tokio::test]
async fn a_flood_of_new_keys_writes_nothing() {
    let (shop, _) = open_shop();
    for key in 0..3 {
        shop.send(charge(key)).await.is_fresh();
    }
    let claims = shop.store.swaps_to(State::Running);
    let trips = shop.store.round_trips();

    for key in 3..1_003 {
        shop.send(charge(key))
            .await
            .is_problem(429, "too_many_keys");
    }

    assert_eq!(shop.store.swaps_to(State::Running), claims);
    assert_eq!(shop.store.round_trips(), trips + 1_000);
    assert_eq!(shop.runs(), 3);
}

/// A call that runs, and one that is recorded.
async fn known_keys(shop: &Shop, gate: &Gate) -> (JoinHandle<Answer>, Answer) {
    let running = spawn(shop, charge("running"));
    gate.arrived(1).await;
    let first = shop.send(charge("known")).await;
    first.is_fresh();
    (running, first)
}

async fn known_keys_are_answered(shop: &Shop, first: &Answer) {
    shop.send(charge("known")).await.replays(first);
    let other = charge("known").body("amount=13");
    shop.send(other).await.is_problem(422, "key_reused");
    let again = shop.send(charge("running")).await;
    again.is_problem(409, "request_in_progress");
}

#[tokio::test]
async fn a_known_key_is_answered_whatever_its_caller_has_brought() {
    let (shop, gate, _) = shop(by_caller());
    let (running, first) = known_keys(&shop, &gate).await;
    shop.send(charge("last")).await.is_fresh();
    shop.send(charge("new"))
        .await
        .is_problem(429, "too_many_keys");

    for _ in 0..9 {
        known_keys_are_answered(&shop, &first).await;
    }

    gate.open();
    let ended = running.await.expect("it is answered");
    ended.is_fresh();
    shop.send(charge("running")).await.replays(&ended);
}

/// A shop that takes one new key of a caller in two hours, and forgets what became of it after one.
fn shop_of_an_hour(on_expired: OnExpired) -> (Shop, ManualClock) {
    let clock = ManualClock::new();
    let store = FaultyStore::new(MemoryStore::with_clock(clock.clone()));
    let idem = Idempotency::builder(store.clone()).timer(clock.clone());
    let idem = idem.keep("10h").build().expect("the settings are sound");
    let rules = Rules::ietf().ttl("1h").on_expired(on_expired);
    let layer = IdempotencyLayer::builder(idem.clone())
        .scope(by_caller())
        .rules(rules)
        .max_new_keys_per_caller(1, "2h")
        .build()
        .expect("the settings are sound");
    let shop = Shop::behind(layer, store, idem, |_, _| async { Response::default() });
    (shop, clock)
}

#[tokio::test]
async fn a_key_whose_time_is_over_is_one_too_many_where_it_is_new_and_nothing_is_written() {
    let (shop, clock) = shop_of_an_hour(OnExpired::Run);
    shop.send(charge(0)).await.is_fresh();
    let claims = shop.store.swaps_to(State::Running);

    clock.advance(Duration::from_secs(60 * 60));

    shop.send(charge(0)).await.is_problem(429, "too_many_keys");
    assert_eq!(shop.store.swaps_to(State::Running), claims);
    assert_eq!(shop.runs(), 1);
}

/// It was carried out, so that it is not one too many, and nobody is to be told that it was not.
#[tokio::test]
async fn a_key_whose_time_is_over_is_known_where_it_is_refused_for_that() {
    let (shop, clock) = shop_of_an_hour(OnExpired::Refuse);
    shop.send(charge(0)).await.is_fresh();

    clock.advance(Duration::from_secs(60 * 60));

    shop.send(charge(0)).await.is_problem(409, "result_expired");
    shop.send(charge(1)).await.is_problem(429, "too_many_keys");
    assert_eq!(shop.runs(), 1);
}

#[tokio::test]
async fn who_takes_over_from_a_handler_that_vanished_brings_no_new_key() {
    let (shop, gate, clock) = shop(by_caller());
    // To the store, a process that is gone is one of which nothing more is heard.
    let heartbeat = Operation::Heartbeat;
    shop.store.fault(heartbeat, Nth::Every, Fault::LoseRequest);
    let vanished = spawn(&shop, charge("taken over"));
    gate.arrived(1).await;
    clock.advance(11 * SECOND);
    for key in 0..3 {
        shop.send(charge(key)).await.is_fresh();
    }
    shop.send(charge("new"))
        .await
        .is_problem(429, "too_many_keys");

    shop.send(charge("taken over")).await.is_fresh();

    vanished.abort();
}

#[tokio::test]
async fn requests_of_one_moment_claim_as_many_keys_as_may_run() {
    let (shop, clock) = open_shop();
    for round in 0..3 {
        let claims = shop.store.swaps_to(State::Running);
        let asked = (0..50)
            .map(|key| spawn(&shop, charge(50 * round + key)))
            .collect::<Vec<_>>();
        let mut answers = Vec::new();
        for asked in asked {
            answers.push(asked.await.expect("it is answered"));
        }

        let (fresh, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|one| one.status == 201);
        assert_eq!((fresh.len(), refused.len()), (3, 47));
        assert_eq!(shop.store.swaps_to(State::Running), claims + 3);
        for refused in refused {
            refused.is_problem(429, "too_many_keys");
            assert!(refused.headers.contains_key("retry-after"));
        }
        clock.advance(10 * SECOND);
    }
    assert_eq!(shop.store.swaps_to(State::Released), 0);
}

/// A hundred at once, and one more in each of the 99 moments after the first.
#[tokio::test]
async fn ten_thousand_new_keys_in_a_second_run_and_leave_behind_no_more_than_the_bound() {
    const MOMENTS: u32 = 100;
    const BOUND: usize = 100 + 99;
    let (shop, gate, clock) = shop_that_takes(100, SECOND, |layer| layer.scope(by_caller()));
    gate.open();

    let (mut fresh, mut refused) = (0, 0);
    for moment in 0..MOMENTS {
        let asked: Vec<_> = (0..100)
            .map(|key| spawn(&shop, charge(100 * moment + key)))
            .collect();
        for asked in asked {
            let answer = asked.await.expect("it is answered");
            if answer.status == StatusCode::CREATED {
                answer.is_fresh();
                fresh += 1;
            } else {
                answer.is_problem(429, "too_many_keys");
                refused += 1;
            }
        }
        clock.advance(SECOND / MOMENTS);
    }

    assert_eq!((fresh, refused), (BOUND, 10_000 - BOUND));
    assert_eq!(shop.runs(), BOUND);
    let records = shop.idem.store().scan(None, 10_000).await;
    assert_eq!(records.expect("the store answers").len(), BOUND);
}

#[tokio::test]
async fn what_runs_no_handler_of_its_own_costs_nothing() {
    let (shop, gate, _) = shop(by_caller());
    let (running, first) = known_keys(&shop, &gate).await;

    for _ in 0..9 {
        known_keys_are_answered(&shop, &first).await;
        let broken = stream(vec![Err("the network")]);
        let broken = shop.send_as_is(charge("new").streaming(broken)).await;
        broken.is_problem(400, "body_unreadable");
    }

    shop.send(charge("new")).await.is_fresh();
    shop.send(charge("newer"))
        .await
        .is_problem(429, "too_many_keys");
    gate.open();
    running.await.expect("it is answered").is_fresh();
}

#[tokio::test]
async fn who_finds_no_room_has_brought_no_key() {
    let (shop, gate, _) = shop_of(|layer| layer.scope(by_caller()).max_in_flight(1));
    let running = spawn(&shop, charge("running"));
    gate.arrived(1).await;
    for key in 0..9 {
        shop.send(charge(key)).await.is_problem(503, "overloaded");
    }

    gate.open();

    running.await.expect("it is answered").is_fresh();
    for key in 0..2 {
        shop.send(charge(key)).await.is_fresh();
    }
    shop.send(charge(2)).await.is_problem(429, "too_many_keys");
}

#[tokio::test]
async fn a_client_that_goes_away_before_its_request_is_read_gives_its_place_back() {
    let (shop, _) = open_shop();
    for key in 0..9 {
        let unread = Body::new(Unread);
        let mut asked = pin!(shop.clone().send_owned(charge(key).streaming(unread)));
        let polled = poll_fn(|cx| Poll::Ready(asked.as_mut().poll(cx))).await;
        assert!(polled.is_pending());
    }
    for key in 0..3 {
        shop.send(charge(key)).await.is_fresh();
    }
}

/// A freed key is bound to nothing, so the store knows it no more than any other.
#[tokio::test]
async fn a_key_that_was_freed_is_a_new_one_again() {
    let (shop, gate, clock) = shop(by_caller());
    gate.open();
    let freeing = Shop::behind(
        shop.layer.clone(),
        shop.store.clone(),
        shop.idem.clone(),
        |_, _| async {
            let mut response = Response::default();
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            response
        },
    );
    for _ in 0..3 {
        assert_eq!(freeing.send(charge("k")).await.status, 503);
    }
    freeing
        .send(charge("k"))
        .await
        .is_problem(429, "too_many_keys");

    clock.advance(4 * SECOND);

    shop.send(charge("k")).await.is_fresh();
}

#[tokio::test]
async fn callers_who_share_their_keys_are_one_caller() {
    let (shop, gate, _) = shop(Scope::shared_by_all_callers());
    gate.open();
    for caller in ["A", "B", "C"] {
        shop.send(charge(caller).caller(caller)).await.is_fresh();
    }
    let refused = shop.send(charge("D").caller("D")).await;
    refused.is_problem(429, "too_many_keys");
}

/// Whether the key is known is then found out by its claim.
#[tokio::test]
async fn where_the_store_does_not_say_whether_it_knows_a_key_the_claim_does() {
    let (shop, _) = open_shop();
    let first = shop.send(charge(0)).await;
    for key in 1..3 {
        shop.send(charge(key)).await.is_fresh();
    }
    shop.store
        .fault(Operation::Load, Nth::Every, Fault::LoseRequest);

    shop.send(charge(0)).await.replays(&first);
    shop.send(charge(3)).await.is_problem(429, "too_many_keys");
    assert_eq!(shop.runs(), 3);
}

#[tokio::test]
async fn a_request_that_no_key_counts_for_is_not_counted() {
    let (shop, _) = open_shop();
    for _ in 0..9 {
        let ask = Ask::new(http::Method::PUT, "/charges").key("k");
        assert_eq!(shop.send(ask).await.status, 201);
    }
    for key in 0..3 {
        shop.send(charge(key)).await.is_fresh();
    }
}

#[test]
fn a_bound_that_lets_nothing_through_is_refused() {
    let layer = || IdempotencyLayer::builder(Idempotency::memory()).scope(by_caller());
    for layer in [
        layer().max_in_flight(0),
        layer().max_in_flight_per_caller(0),
    ] {
        assert!(matches!(layer.build(), Err(Error::InvalidPolicy(_))));
    }
    for (keys, per) in [(0, "1s"), (1, "0s"), (1, "now and then")] {
        let layer = layer().max_new_keys_per_caller(keys, per);
        assert!(matches!(layer.build(), Err(Error::InvalidPolicy(_))));
    }
}
