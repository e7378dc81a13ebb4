//! What a call costs, counted on the wire.

use std::time::Duration;

use idempotent_runtime::{Error, Idempotency, Store as _, testing::Proxy};

use super::{Postgres, Redis, Server, on_every_server};

on_every_server![a_call_costs_as_many_round_trips_as_promised];

async fn charge(idem: &Idempotency, key: &str) -> Result<u32, Error> {
    idem.call("charge").key(key).run(|_| async { Ok(1) }).await
}

async fn a_call_costs_as_many_round_trips_as_promised<S: Server>(server: S) {
    let proxy = Proxy::to(server.address()).await.expect("a proxy");
    let (idem, elsewhere) = two_processes(&server, &proxy).await;

    let before = proxy.round_trips();
    charge(&idem, "k").await.expect("an answer");
    let first = proxy.round_trips() - before;
    for idem in [&idem, &elsewhere] {
        let before = proxy.round_trips();
        charge(idem, "k").await.expect("an answer");
        let replay = proxy.round_trips() - before;
        assert_eq!((first, replay), server.round_trips());
    }
}

/// Two handles over a connection each, that is open and knows every statement.
async fn two_processes(server: &impl Server, proxy: &Proxy) -> (Idempotency, Idempotency) {
    let process = async |warm| {
        let idem = Idempotency::new(server.at(proxy.address(), 1).await);
        for _ in 0..2 {
            charge(&idem, warm).await.expect("an answer");
        }
        idem
    };
    (process("warm").await, process("warm elsewhere").await)
}

/// It asks for the outcome, where another process sends a whole claim, to be refused.
async fn a_replay_of_what_was_seen_sends_less_than_a_claim(server: impl Server) {
    let proxy = Proxy::to(server.address()).await.expect("a proxy");
    let (idem, elsewhere) = two_processes(&server, &proxy).await;
    charge(&idem, "k").await.expect("an answer");
    let mut sent = Vec::new();
    // What was replayed once has been seen, too.
    for idem in [&idem, &elsewhere, &elsewhere] {
        let before = proxy.request_bytes();
        charge(idem, "k").await.expect("an answer");
        sent.push(proxy.request_bytes() - before);
    }

    let [seen, claimed, seen_since] = *sent else {
        unreachable!("three calls were made")
    };
    assert_eq!(seen, seen_since);
    assert!(2 * seen < claimed, "{seen} of {claimed} bytes");
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn on_postgres_a_replay_of_what_was_seen_sends_less_than_a_claim() {
    a_replay_of_what_was_seen_sends_less_than_a_claim(Postgres::new().await).await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn on_redis_a_replay_of_what_was_seen_sends_less_than_a_claim() {
    a_replay_of_what_was_seen_sends_less_than_a_claim(Redis::new().await).await;
}

/// Where it asks for an outcome that is gone meanwhile, it claims a round trip later.
async fn a_first_call_after_an_outcome_was_forgotten<S: Server>(server: S) {
    let proxy = Proxy::to(server.address()).await.expect("a proxy");
    let (idem, elsewhere) = two_processes(&server, &proxy).await;
    let mut cost = Vec::new();
    for (key, second) in [("k", &idem), ("l", &elsewhere)] {
        charge(&idem, key).await.expect("an answer");
        forgotten(&server).await;
        let before = proxy.round_trips();
        charge(second, key).await.expect("an answer");
        cost.push(proxy.round_trips() - before);
        let before = proxy.round_trips();
        charge(second, key).await.expect("an answer");
        assert_eq!(proxy.round_trips() - before, 1, "a replay");
    }

    let (first, _) = server.round_trips();
    assert_eq!(cost, [first + 1, first]);
}

/// All that stands expires, and another process deletes it.
async fn forgotten(server: &impl Server) {
    server.advance(Duration::from_secs(48 * 3600)).await;
    let store = server.at(server.address(), 1).await;
    let purged = store.purge(100, Duration::ZERO).await;
    purged.expect("a purge is answered");
    assert_eq!(store.scan(None, 100).await, Ok(Vec::new()));
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn on_postgres_a_first_call_after_an_outcome_was_forgotten() {
    a_first_call_after_an_outcome_was_forgotten(Postgres::new().await).await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn on_redis_a_first_call_after_an_outcome_was_forgotten() {
    a_first_call_after_an_outcome_was_forgotten(Redis::new().await).await;
}
