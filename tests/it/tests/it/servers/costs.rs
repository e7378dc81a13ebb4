//! What a call costs, counted on the wire.

use idempotent_runtime::{Error, Idempotency, testing::Proxy};

use super::{Server, on_every_server};

on_every_server![a_call_costs_as_many_round_trips_as_promised];

async fn charge(idem: &Idempotency, key: &str) -> Result<u32, Error> {
    idem.call("charge").key(key).run(|_| async { Ok(1) }).await
}

async fn a_call_costs_as_many_round_trips_as_promised<S: Server>(server: S) {
    let proxy = Proxy::to(server.address()).await.expect("a proxy");
    let idem = Idempotency::new(server.at(proxy.address(), 1).await);
    // The connection is opened, and every statement is known to it.
    for _ in 0..2 {
        charge(&idem, "warm").await.expect("an answer");
    }

    let before = proxy.round_trips();
    charge(&idem, "k").await.expect("an answer");
    let first = proxy.round_trips() - before;
    charge(&idem, "k").await.expect("an answer");
    let replay = proxy.round_trips() - before - first;

    assert_eq!((first, replay), server.round_trips());
}
