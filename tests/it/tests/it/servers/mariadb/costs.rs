//! The costs of a call whose record is not remembered.

use idempotent_runtime::testing::Proxy;

use super::MariaDb;
use crate::servers::{
    Server,
    costs::{charge, two_processes},
};

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn an_outcome_costs_a_look_more_where_nothing_is_remembered_or_shown() {
    let long = "k".repeat(513);
    for server in [MariaDb::new().await, MariaDb::or_mysql().await] {
        let proxy = Proxy::to(server.address()).await.expect("a proxy");
        let (idem, _elsewhere) = two_processes(&server, &proxy).await;
        charge(&idem, &"w".repeat(513)).await.expect("an answer");

        let before = proxy.round_trips();
        charge(&idem, &long).await.expect("an answer");
        let first = proxy.round_trips() - before;
        charge(&idem, &long).await.expect("an answer");
        let both = proxy.round_trips() - before;

        let expected = if server.is_mysql { 4 } else { 3 };
        assert_eq!((first, both), (expected, expected + 1));
    }
}
