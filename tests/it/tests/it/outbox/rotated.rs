//! Relays whose credentials were rotated, and those whose database refuses what they ask.

use std::{str::FromStr, time::Duration};

use idempotent_runtime::outbox::{Outbox, OutboxDatabase, Relay};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use super::{broker::Broker, numbers, outbox, prefix};
use crate::{
    harness::{in_time, runtime_in_the_background, said_in_the_background},
    servers::{address, url},
    transactions::shop::{MariaDbShop, PostgresShop, Remote, Shop, SqliteShop},
};

/// Waits until these words stand in one line of the log.
async fn said(words: &[&str]) -> String {
    loop {
        let said = said_in_the_background();
        let has_all = |line: &&str| words.iter().all(|word| line.contains(word));
        if let Some(line) = said.lines().find(has_all) {
            return line.to_owned();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn run<S: Shop>(shop: &S, statement: String) {
    let mut connection = shop.pool().acquire().await.expect("a connection");
    let run = S::run(&mut connection, statement).await;
    run.expect("the database does it");
}

/// A relay whose log is heard.
async fn heard<DB: OutboxDatabase>(
    runtime: &tokio::runtime::Runtime,
    outbox: &Outbox<DB>,
) -> Relay {
    let relay = outbox.relay(Broker::willing());
    let started = runtime.spawn(relay.start()).await;
    started.expect("no panic").expect("it starts")
}

/// Waits until a session of this role listens.
async fn listens(shop: &PostgresShop, role: &str) {
    let query = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE usename = '{role}' AND query LIKE 'LISTEN%'"
    );
    while numbers(shop, query.clone()).await == [0] {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A server that trusts every role stands in for passwords.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn mend_31_a_relay_listens_by_the_credentials_of_now() {
    let shop = PostgresShop::new().await;
    let runtime = runtime_in_the_background();
    in_time(async {
        outbox(&shop).await;
        let [old, new] = ["old", "new"].map(|role| format!("{}{role}", shop.prefix()));
        for role in [&old, &new] {
            run(&shop, format!("CREATE ROLE {role} LOGIN SUPERUSER")).await;
        }
        let options = PgConnectOptions::from_str(&url(PostgresShop::URL)).expect("a URL");
        let pool = PgPoolOptions::new().connect_with(options.clone().username(&old));
        let pool = pool.await.expect("the server answers");
        let its = Outbox::new(&pool).prefix(&prefix(&shop));
        let relay = heard(&runtime, &its.expect("a prefix")).await;
        listens(&shop, &old).await;

        let ended = format!(
            "ALTER ROLE {old} NOLOGIN;
             SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{old}'"
        );
        run(&shop, ended).await;
        let place = address(&url(PostgresShop::URL)).to_string();
        let refusal = format!("role \"{old}\" is not permitted to log in");
        said(&["WARN", "notifications", &refusal, &place, &old]).await;

        pool.set_connect_options(options.username(&new));
        listens(&shop, &new).await;
        relay.stop().await;
        pool.close().await;
        run(&shop, format!("DROP ROLE {old}; DROP ROLE {new}")).await;
    })
    .await;
    runtime.shutdown_background();
}

/// The database answers, and refuses.
async fn a_relay_names_the_cause_and_the_place<S: Shop<Database: OutboxDatabase>>(
    shop: S,
    cause: &str,
    place: &str,
) {
    let runtime = runtime_in_the_background();
    in_time(async {
        let outbox = outbox(&shop).await;
        let relay = heard(&runtime, &outbox).await;
        let table = format!("{}outbox_messages", prefix(&shop));
        run(&shop, format!("DROP TABLE {table}")).await;
        let line = said(&["WARN", "a relay", &table, cause, place]).await;
        assert!(!line.contains("cannot reach"), "{line}");
        relay.stop().await;
    })
    .await;
    runtime.shutdown_background();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn mend_31_a_relay_on_postgres_names_the_cause_and_the_place() {
    let place = address(&url(PostgresShop::URL)).to_string();
    let shop = PostgresShop::new().await;
    a_relay_names_the_cause_and_the_place(shop, "does not exist", &place).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn mend_31_a_relay_on_mariadb_names_the_cause_and_the_place() {
    let place = address(&url(MariaDbShop::URL)).to_string();
    let shop = MariaDbShop::new().await;
    a_relay_names_the_cause_and_the_place(shop, "doesn't exist", &place).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mend_31_a_relay_on_sqlite_names_the_cause_and_the_place() {
    let shop = SqliteShop::new().await;
    a_relay_names_the_cause_and_the_place(shop, "no such table", "shop.db").await;
}
