//! Calls whose outcome this process has seen: it asks for that one again before it claims.

use std::time::Duration;

use idempotent_runtime::{Error, Idempotency, testing::Proxy};

use super::{
    Server,
    costs::{charge, two_processes},
    on_every_server,
};

on_every_server![
    a_first_call_costs_a_look_more_where_the_outcome_is_gone,
    an_outcome_in_the_place_of_a_seen_one_is_replayed,
];
on_every_server! { @on postgres_alone (crate::servers::Postgres::new) [a_replay_sends_less_than_a_claim] }
on_every_server! { @on redis_alone (crate::servers::Redis::new) [a_replay_sends_less_than_a_claim] }

/// It asks for the outcome, where another process sends a whole claim, to be refused.
async fn a_replay_sends_less_than_a_claim<S: Server>(server: S) {
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
    assert!(2 * seen < claimed, "{seen} of {claimed} bytes");
    assert!(2 * seen_since < claimed, "{seen_since} of {claimed} bytes");
}

/// Where it asks for an outcome that is gone meanwhile, it claims a round trip later.
async fn a_first_call_costs_a_look_more_where_the_outcome_is_gone<S: Server>(server: S) {
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

/// What this process knows of a record counts only for as long as the store says so.
async fn an_outcome_in_the_place_of_a_seen_one_is_replayed<S: Server>(server: S) {
    let process = async || Idempotency::new(server.at(server.address(), 1).await);
    let (idem, elsewhere) = (process().await, process().await);
    let draw = async |idem: &Idempotency, of: &str, number: u32| {
        let call = idem.call("draw").key("k").arguments(&of);
        call.run(|_| async move { Ok(number) }).await
    };
    assert_eq!(draw(&idem, "one urn", 1).await, Ok(1));
    assert_eq!(draw(&idem, "one urn", 2).await, Ok(1), "it is seen, too");
    forgotten(&server).await;

    assert_eq!(draw(&elsewhere, "another urn", 3).await, Ok(3));

    assert_eq!(draw(&idem, "another urn", 4).await, Ok(3));
    let reused = draw(&idem, "one urn", 5).await;
    assert!(matches!(reused, Err(Error::KeyReused { .. })), "{reused:?}");
    assert_eq!(draw(&idem, "another urn", 4).await, Ok(3));
}

/// All that stands expires, and another process deletes it.
async fn forgotten(server: &impl Server) {
    server.advance(Duration::from_secs(48 * 3600)).await;
    let store = server.at(server.address(), 1).await;
    let purged = store.purge(100, Duration::ZERO).await;
    purged.expect("a purge is answered");
    assert_eq!(store.scan(None, 100).await, Ok(Vec::new()));
}
