//! Transactions that were forgotten, and copies of a database: Postgres.

use std::sync::Arc;

use idempotent_runtime::{
    outbox::{Envelope, Publisher},
    testing::Gate,
};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::process::Command;

use super::{
    broker::{Answer, Broker, drained, send, start},
    numbers, outbox, placed, prefix,
};
use crate::{
    servers::{self, Product, Spare},
    transactions::shop::{PostgresShop, Shop},
};

const URL: &str = "IDEMPOTENT_TEST_POSTGRES_URL";

/// Fills an outbox with messages of so many keys; the payload is the place within the key, and so
/// many bytes of padding.
pub(crate) async fn fill(shop: &PostgresShop, messages: u32, keys: u32, padding: u32) {
    let padding = match padding {
        0 => String::new(),
        bytes => format!("|| repeat(' ', {bytes})"),
    };
    let insert = format!(
        "INSERT INTO {}outbox_messages (id, message_key, number, topic, headers, payload, created)
         SELECT convert_to('message-' || n, 'UTF8'), convert_to('kkey-' || n % {keys}, 'UTF8'), n,
             'orders.placed', '', convert_to((n / {keys})::text {padding}, 'UTF8'), 0
         FROM generate_series(0, {messages} - 1) AS n",
        prefix(shop)
    );
    let mut connection = shop.pool().acquire().await.expect("a connection");
    let filled = PostgresShop::run(&mut connection, insert).await;
    filled.expect("the messages are written");
}

/// Another database of the server.
async fn database(shop: &PostgresShop) -> (String, String) {
    let name = format!("{}other", shop.prefix());
    let mut connection = shop.pool().acquire().await.expect("a connection");
    let create = format!("CREATE DATABASE {name}");
    let created = PostgresShop::run(&mut connection, create).await;
    created.expect("a database");
    let url = servers::url(URL);
    let (server, _) = url.rsplit_once('/').expect("a URL names a database");
    (format!("{server}/{name}"), name)
}

async fn drop_database(shop: &PostgresShop, name: &str) {
    let mut connection = shop.pool().acquire().await.expect("a connection");
    let drop = format!("DROP DATABASE {name} WITH (FORCE)");
    let dropped = PostgresShop::run(&mut connection, drop).await;
    dropped.expect("the database is dropped");
}

async fn number(connection: &mut PgConnection, query: String) -> i64 {
    let number = sqlx::query_scalar(AssertSqlSafe(query));
    number.fetch_one(connection).await.expect("a number")
}

/// A transaction that was forgotten.
async fn idle(url: &str, begin: &str, look: String) -> (PgConnection, i64) {
    let mut connection = PgConnection::connect(url).await.expect("a connection");
    let begun = PostgresShop::run(&mut connection, begin.to_owned()).await;
    begun.expect("a transaction");
    let seen = number(&mut connection, look).await;
    (connection, seen)
}

/// So many messages of each key arrived in order, and one more of each of the first ten keys.
fn assert_all_arrived(broker: &Broker, keys: u32, each: i64) {
    let by_key = broker.by_key();
    assert_eq!(by_key.len(), keys as usize);
    for number in 0..keys {
        let key = format!("key-{number}");
        let all: Vec<_> = (0..each + i64::from(number < 10)).collect();
        assert_eq!(by_key[&key], all, "{key}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn forgotten_transactions_stop_no_delivery() {
    let (messages, keys) = match std::env::var("IDEMPOTENT_TEST_ROUNDS").as_deref() {
        Ok("full") => (100_000, 1_000),
        _ => (20_000, 400),
    };
    let shop = PostgresShop::new().await;
    let (outbox, broker) = (outbox(&shop).await, Broker::willing());
    let (other, name) = database(&shop).await;
    let taken = "SELECT pg_current_xact_id()::text::bigint".to_owned();
    let (mut writer, transaction) = idle(&other, "BEGIN", taken).await;
    let counted = format!("SELECT count(*) FROM {}outbox_messages", prefix(&shop));
    let snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ";
    let (mut reader, seen) = idle(&servers::url(URL), snapshot, counted.clone()).await;
    assert_eq!(seen, 0);

    let relay = start(&outbox, &broker).await;
    fill(&shop, messages, keys, 0).await;
    let last = i64::from(messages / keys);
    send(
        &shop,
        &outbox,
        (0..10).map(|key| placed(last).key(&format!("key-{key}"))),
    )
    .await;
    relay.wake();
    drained(&shop).await;

    let horizon = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint".to_owned();
    let horizon = numbers(&shop, horizon).await[0];
    assert!(horizon <= transaction, "the horizon stood still meanwhile");
    assert_eq!(number(&mut reader, counted).await, 0, "its snapshot is old");
    assert_eq!(number(&mut writer, "SELECT 1::bigint".to_owned()).await, 1);
    assert_all_arrived(&broker, keys, last);
    drop(writer);
    drop_database(&shop, &name).await;
}

/// A publisher that stands still with one of its batches.
struct Halting {
    broker: Broker,
    at: &'static [u8],
    gate: Gate,
}

impl Publisher for Halting {
    async fn publish(&self, batch: &[Envelope]) -> Answer {
        if batch.iter().any(|it| &it.payload[..] == self.at) {
            self.gate.pass().await;
        }
        self.broker.publish(batch).await
    }
}

/// Copies the tables of the outbox into another database.
async fn copy(shop: &PostgresShop, url: &str) {
    let script =
        r#"pg_dump --no-owner --table="$1*" "$2" | psql --quiet --set ON_ERROR_STOP=1 "$3""#;
    let path = std::env::var("PATH").unwrap_or_default();
    let programs = servers::url("IDEMPOTENT_TEST_PROGRAMS");
    let copied = Command::new("bash")
        .args(["-o", "pipefail", "-c", script, "bash"])
        .args([&prefix(shop), &servers::url(URL), url])
        .env("PATH", format!("{path}:{programs}"))
        .output();
    let copied = copied.await.expect("`bash` runs");
    let said = String::from_utf8_lossy(&copied.stderr);
    assert!(copied.status.success(), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn a_relay_on_a_copy_of_the_database_skips_nothing() {
    const EACH: u32 = 20;
    const KEYS: u32 = 10;
    let shop = PostgresShop::new().await;
    let (outbox, broker) = (outbox(&shop).await, Broker::willing());
    fill(&shop, KEYS * EACH, KEYS, 0).await;
    let (url, name) = database(&shop).await;
    let gate = Gate::new();
    let halting = Halting {
        broker: broker.clone(),
        at: b"12",
        gate: gate.clone(),
    };
    let relay = outbox.relay(halting).lease("1s").start().await;
    let _relay = relay.expect("it starts");
    gate.arrived(1).await;
    // Its keys are claimed, and the batch may have gone out.
    copy(&shop, &url).await;
    let before = broker.by_key();
    gate.open();
    drained(&shop).await;

    let restored = PostgresShop::open(&url, shop.prefix().to_owned()).await;
    let (outbox, broker) = (super::outbox(&restored).await, Broker::willing());
    let next = ["key-0", "new"].map(|key| placed(EACH.into()).key(key));
    send(&restored, &outbox, next).await;
    let other = start(&outbox, &broker).await;
    drained(&restored).await;
    let after = broker.by_key();
    assert_eq!(after.len(), KEYS as usize + 1);
    assert_eq!(after["new"], [i64::from(EACH)]);
    for key in 0..KEYS {
        let key = format!("key-{key}");
        let all = [&before[&key][..], &after[&key]].concat();
        let last = i64::from(EACH) + i64::from(key == "key-0");
        assert_eq!(all, (0..last).collect::<Vec<_>>(), "{key}");
    }
    drop(other);
    drop_database(&shop, &name).await;
}

/// A key stays locked until the prepared transaction ends, and the others go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn a_prepared_transaction_holds_up_its_own_key_alone() {
    let server = Spare::with(Product::Postgres, &["-cmax_prepared_transactions=2"]).await;
    let shop = PostgresShop::open(&server.url(), servers::prefix()).await;
    let (outbox, broker) = (outbox(&shop).await, Broker::willing());
    send(&shop, &outbox, [placed(0).key("held")]).await;
    for (order, key) in [(1, "held"), (1, "undone")] {
        let mut tx = shop.begin().await.expect("a transaction");
        let sent = outbox.send(&mut tx, placed(order).key(key)).await;
        sent.expect("it is written");
        end(&mut tx, format!("PREPARE TRANSACTION '{key}'")).await;
        // The transaction is no longer this connection's.
        tx.commit().await.expect("there is nothing to commit");
    }
    let shop = Arc::new(shop);
    let waiting = tokio::spawn({
        let (shop, outbox) = (Arc::clone(&shop), outbox.clone());
        async move { send(&*shop, &outbox, [placed(2).key("held")]).await }
    });
    let _relay = start(&outbox, &broker).await;
    let others = (0..100).map(|order| placed(order).key(&format!("key-{}", order % 4)));
    send(&*shop, &outbox, others).await;
    drained(&*shop).await;
    assert_eq!(broker.arrived().len(), 101);
    assert_eq!(broker.by_key()["held"], [0]);
    assert!(!waiting.is_finished(), "the key is locked");

    let mut connection = shop.pool().acquire().await.expect("a connection");
    end(&mut connection, "ROLLBACK PREPARED 'undone'".to_owned()).await;
    end(&mut connection, "COMMIT PREPARED 'held'".to_owned()).await;
    waiting.await.expect("no panic");
    drained(&*shop).await;
    assert_eq!(broker.by_key()["held"], [0, 1, 2]);
    assert!(!broker.by_key().contains_key("undone"));
}

async fn end(connection: &mut PgConnection, statement: String) {
    let ended = PostgresShop::run(connection, statement).await;
    ended.expect("the server does it");
}
