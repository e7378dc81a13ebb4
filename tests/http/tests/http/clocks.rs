//! A8: a store whose clock is not that of the machines that ask it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use idempotent_runtime::{
    Idempotency, MemoryStore, Time,
    http::Rules,
    testing::{FaultyStore, Gate, ManualClock},
};

use crate::harness::{Shop, charge, gated, receipt, vanished};

const MINUTE: Duration = Duration::from_secs(60);

/// How far the store's clock is from the machine of the test, in both directions. It is longer than
/// records are kept, so that code that asks the wrong clock is wrong.
const SKEWS: [i64; 2] = [-10, 10];

/// A store whose clock is so many minutes off, and stands still.
fn off_by(minutes: i64) -> (FaultyStore, ManualClock) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.expect("it is later than 1970").as_micros() as i64;
    let clock = ManualClock::new();
    clock.step(Time::from_micros(now + minutes * 60 * 1_000_000));
    (
        FaultyStore::new(MemoryStore::with_clock(clock.clone())),
        clock,
    )
}

/// A machine that serves the shop, with a timer of its own.
fn machine(store: &FaultyStore, gate: &Gate) -> (Shop, ManualClock) {
    let timer = ManualClock::new();
    let idem = Idempotency::builder(store.clone())
        .timer(timer.clone())
        .build()
        .expect("the settings are sound");
    let rules = Rules::ietf().ttl("5m").lease("30s");
    let shop = Shop::over(store.clone(), idem, rules, gated(gate, receipt));
    (shop, timer)
}

#[tokio::test]
async fn s_112_a_response_is_kept_by_the_clock_of_the_store() {
    for minutes in SKEWS {
        let (store, clock) = off_by(minutes);
        let gate = Gate::new();
        gate.open();
        let (shop, timer) = machine(&store, &gate);
        let first = shop.send(charge()).await;
        first.is_fresh();

        clock.advance(5 * MINUTE - Duration::from_secs(1));
        shop.send(charge()).await.replays(&first);
        timer.advance(60 * MINUTE);
        shop.send(charge()).await.replays(&first);
        clock.advance(Duration::from_secs(1));

        let second = shop.send(charge()).await;
        second.is_fresh();
        assert_eq!(second.body, "receipt 2", "{minutes} minutes off");
        shop.send(charge()).await.replays(&second);
    }
}

#[tokio::test]
async fn s_112_a_lease_ends_by_the_clock_of_the_store() {
    for minutes in SKEWS {
        let (store, clock) = off_by(minutes);
        let (waits, passes) = (Gate::new(), Gate::new());
        passes.open();
        let (vanishes, _) = machine(&store, &waits);
        let first = vanished(&vanishes, &waits, charge()).await;
        let (other, timer) = machine(&store, &passes);

        clock.advance(Duration::from_secs(29));
        for later in [Duration::ZERO, 60 * MINUTE] {
            timer.advance(later);
            let told = other.send(charge()).await;
            told.is_problem(409, "request_in_progress");
            assert_eq!(told.headers["retry-after"], "1", "{minutes} minutes off");
        }
        clock.advance(Duration::from_secs(1));

        other.send(charge()).await.is_fresh();
        assert_eq!((vanishes.runs(), other.runs()), (1, 1));
        first.abort();
    }
}
