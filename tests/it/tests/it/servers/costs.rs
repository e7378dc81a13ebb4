//! What a call costs, counted on the wire.

use idempotent_runtime::{Error, Idempotency, testing::Proxy};

use super::{Server, on_every_server};

on_every_server![a_call_costs_as_many_round_trips_as_promised];

pub(super) async fn charge(idem: &Idempotency, key: &str) -> Result<u32, Error> {
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
pub(super) async fn two_processes(
    server: &impl Server,
    proxy: &Proxy,
) -> (Idempotency, Idempotency) {
    let process = async |warm| {
        let idem = Idempotency::new(server.at(proxy.address(), 1).await);
        for _ in 0..2 {
            charge(&idem, warm).await.expect("an answer");
        }
        idem
    };
    (process("warm").await, process("warm elsewhere").await)
}
