//! The costs of a call, counted on the wire.

use idempotent_runtime::{Error, Idempotency, sequence::Decision, testing::Proxy};

use super::{Server, on_every_server};

on_every_server![
    a_call_costs_as_many_round_trips_as_promised,
    a_number_costs_three_round_trips_and_its_copy_one,
];

/// A trail costs no round trip.
mod audited {
    use super::{
        a_call_costs_as_many_round_trips_as_promised,
        a_number_costs_three_round_trips_and_its_copy_one, on_every_server,
    };

    on_every_server! { @on postgres (crate::servers::Postgres::audited) [
        a_call_costs_as_many_round_trips_as_promised
        a_number_costs_three_round_trips_and_its_copy_one
    ] }
    on_every_server! { @on mariadb (crate::servers::MariaDb::audited) [
        a_call_costs_as_many_round_trips_as_promised
        a_number_costs_three_round_trips_and_its_copy_one
    ] }
    on_every_server! { @on mariadb_or_mysql (crate::servers::MariaDb::or_mysql_audited) [
        a_call_costs_as_many_round_trips_as_promised
        a_number_costs_three_round_trips_and_its_copy_one
    ] }
}

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

/// It looks, claims and records.
async fn a_number_costs_three_round_trips_and_its_copy_one<S: Server>(server: S) {
    let proxy = Proxy::to(server.address()).await.expect("a proxy");
    let (idem, elsewhere) = two_processes(&server, &proxy).await;
    let apply = async |idem: &Idempotency, number: u64| {
        let before = proxy.round_trips();
        let call = idem.sequence("s", "k").first(1).number(number);
        let applied = call.run(async |_| Ok::<_, Error>(number)).await;
        (applied.expect("an answer"), proxy.round_trips() - before)
    };
    for number in 1..=2 {
        for idem in [&idem, &elsewhere] {
            let _the_statements_are_known = apply(idem, number).await;
        }
    }
    for number in 3..=4 {
        let (decision, trips) = apply(&idem, number).await;
        assert_eq!((decision, trips), (Decision::Applied(number), 3));
        let (decision, trips) = apply(&elsewhere, number).await;
        assert_eq!((decision, trips), (Decision::Replayed(number), 1));
        let (decision, trips) = apply(&elsewhere, 2).await;
        assert_eq!((decision, trips), (Decision::Past { last: number }, 1));
    }
}

/// Two handles, each over one open connection that knows every statement.
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
