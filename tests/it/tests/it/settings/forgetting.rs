//! Connections of the application's on which nothing that was prepared lasts.

use idempotent_runtime::outbox::{Message, Outbox};
use sqlx::postgres::PgPoolOptions;

use super::forms::{every_form_on_its_connections_works, every_form_works};
use crate::{
    harness::in_time,
    outbox::{outbox, placed, prefix},
    servers::url,
    transactions::shop::{PostgresShop, Shop},
};

/// The statements that make a connection of Postgres forget.
const WORDS: [&str; 2] = ["DISCARD ALL", "DEALLOCATE ALL"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn mend_23_every_form_works_on_connections_that_forget() {
    for word in WORDS {
        let shop = PostgresShop::between(word).await;
        in_time(every_form_works(&shop)).await;
    }
}

/// Nobody has said that it pools transactions. Only a relay has to know that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn mend_23_every_form_works_behind_a_proxy_that_pools_transactions() {
    let shop = PostgresShop::at(&url("IDEMPOTENT_TEST_PGBOUNCER_URL")).await;
    in_time(every_form_on_its_connections_works(&shop)).await;
}

/// A message with a key, one without, and one that is longer than a text may be.
fn messages(number: i64) -> [Message; 3] {
    let long = Message::new("orders.placed", &"x".repeat(300 * 1024));
    let long = long.expect("it is JSON").key("b");
    [placed(number).key("a"), placed(number), long]
}

fn takes_long_ones(outbox: Outbox<sqlx::Postgres>) -> Outbox<sqlx::Postgres> {
    outbox.max_payload(1024 * 1024)
}

/// The proxy gives both clients the same connection of the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn mend_23_clients_that_share_a_connection_of_the_server_send() {
    let shop = PostgresShop::new().await;
    in_time(async {
        outbox(&shop).await;
        for client in 0..2 {
            let pool = PgPoolOptions::new().max_connections(1);
            let pool = pool.connect(&url("IDEMPOTENT_TEST_PGBOUNCER_URL")).await;
            let pool = pool.expect("the proxy answers");
            let outbox = Outbox::new(&pool).prefix(&prefix(&shop));
            let outbox = takes_long_ones(outbox.expect("a prefix"));
            for number in 0..2 {
                let mut tx = pool.begin().await.expect("a transaction");
                let sent = outbox.send_all(&mut tx, messages(number)).await;
                sent.unwrap_or_else(|error| panic!("{client}: {error}"));
                tx.commit().await.expect("it commits");
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn mend_23_a_transaction_that_forgets_its_statements_sends_on() {
    let shop = PostgresShop::new().await;
    in_time(async {
        let outbox = takes_long_ones(outbox(&shop).await);
        let mut tx = shop.begin().await.expect("a transaction");
        for number in 0..3 {
            let sent = outbox.send_all(&mut tx, messages(number)).await;
            sent.expect("they are written");
            let forgets = PostgresShop::run(&mut tx, "DEALLOCATE ALL".to_owned()).await;
            forgets.expect("it forgets");
        }
        tx.commit().await.expect("it commits");
    })
    .await;
}
