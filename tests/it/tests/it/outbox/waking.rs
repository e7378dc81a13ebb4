//! Relays that sleep: how they are woken, and how little they do meanwhile.

use std::time::Duration;

use idempotent_runtime::{
    Error, Idempotency,
    outbox::{Outbox, OutboxDatabase, Relay},
    testing::Proxy,
};
use sqlx::{Row, postgres::PgPoolOptions};

use super::{
    broker::{Broker, drained, send},
    numbers, outbox, placed, prefix,
};
use crate::{
    servers::{address, url},
    transactions::shop::{PostgresShop, Remote, Shop},
};

on_every_database![
    a_commit_of_transact_and_its_replay_wake_the_relay,
    a_call_of_wake_wakes_it,
];

/// Longer than any test.
const HOURS: Duration = Duration::from_secs(10_000);

/// A relay that looks once, and then only when it is woken.
async fn asleep<DB: OutboxDatabase>(
    outbox: &Outbox<DB>,
    broker: &Broker,
    handle: Option<&Idempotency>,
) -> Relay {
    let mut relay = outbox.relay(broker.clone()).pauses(HOURS, HOURS);
    if let Some(handle) = handle {
        relay = relay.idempotency(handle);
    }
    relay.start().await.expect("it starts")
}

async fn a_commit_of_transact_and_its_replay_wake_the_relay<S: Shop<Database: OutboxDatabase>>(
    shop: S,
) {
    let (outbox, broker) = (outbox(&shop).await, Broker::willing());
    let idem = Idempotency::new(shop.store());
    let _relay = asleep(&outbox, &broker, Some(&idem)).await;
    let place = || async {
        let call = idem.call("orders.place").key("order-1").arguments(&1);
        let placed: Result<String, Error> = call
            .transact(shop.pool(), async |tx| outbox.send(tx, placed(1)).await)
            .await;
        placed.expect("it is placed")
    };
    let id = place().await;
    drained(&shop).await;
    // The relay was not woken, as after a process that died behind its commit.
    send(&shop, &outbox, [placed(2)]).await;
    assert_eq!(place().await, id, "a replay");
    drained(&shop).await;
}

async fn a_call_of_wake_wakes_it<S: Shop<Database: OutboxDatabase>>(shop: S) {
    let (outbox, broker) = (outbox(&shop).await, Broker::willing());
    let relay = asleep(&outbox, &broker, None).await;
    for order in 0..3 {
        send(&shop, &outbox, [placed(order).key("a")]).await;
        relay.wake();
        drained(&shop).await;
    }
    assert_eq!(broker.by_key()["a"], [0, 1, 2]);
}

/// How many relays say that they sleep.
async fn sleepers(shop: &PostgresShop) -> i64 {
    let query = format!(
        "SELECT count(*) FROM {}outbox_relays WHERE sleeps_until > extract(epoch FROM now()) * 1000000",
        prefix(shop)
    );
    numbers(shop, query).await[0]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn a_message_of_another_process_wakes_a_relay_on_postgres() {
    let shop = PostgresShop::new().await;
    crate::harness::in_time(async {
        let (outbox, broker) = (outbox(&shop).await, Broker::willing());
        let relay = asleep(&outbox, &broker, None).await;
        for order in 0..3 {
            // It hears that notifications come through, looks once more, and lies down.
            while sleepers(&shop).await == 0 {
                relay.wake();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            send(&shop, &outbox, [placed(order).key("a")]).await;
            drained(&shop).await;
        }
        relay.stop().await;
        assert_eq!(sleepers(&shop).await, 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn a_writer_notifies_only_where_a_relay_sleeps() {
    let shop = PostgresShop::new().await;
    crate::harness::in_time(async {
        let outbox = outbox(&shop).await;
        let channel = format!("{}outbox_messages", prefix(&shop));
        let mut listener = sqlx::postgres::PgListener::connect_with(shop.pool()).await;
        let listener = listener.as_mut().expect("it connects");
        listener.listen(&channel).await.expect("it listens");
        send(&shop, &outbox, [placed(1).key("a")]).await;
        let far = i64::MAX;
        for (until, is_heard) in [(1, false), (far, true), (1, false)] {
            let mut connection = shop.pool().acquire().await.expect("a connection");
            let text = format!(
                "DELETE FROM {0}outbox_relays; INSERT INTO {0}outbox_relays VALUES (1, {until})",
                prefix(&shop)
            );
            let asleep = sqlx::raw_sql(sqlx::AssertSqlSafe(text)).execute(&mut *connection);
            asleep.await.expect("it is written");
            send(&shop, &outbox, [placed(2).key("a"), placed(3)]).await;
            // It comes after all that the server has told before.
            let last = format!("NOTIFY {channel}, 'last'");
            let last = sqlx::raw_sql(sqlx::AssertSqlSafe(last)).execute(&mut *connection);
            last.await.expect("it notifies");
            let mut heard = Vec::new();
            loop {
                let told = listener.recv().await.expect("it hears");
                match told.payload() {
                    "last" => break,
                    other => heard.push(other.to_owned()),
                }
            }
            assert_eq!(!heard.is_empty(), is_heard, "{until}: {heard:?}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn a_relay_behind_a_proxy_that_pools_transactions_polls() {
    let shop = PostgresShop::new().await;
    crate::harness::in_time(async {
        let plain = outbox(&shop).await;
        let proxy = url("IDEMPOTENT_TEST_PGBOUNCER_URL");
        let pool = PgPoolOptions::new().connect(&proxy).await;
        let pool = pool.expect("the proxy answers");
        let proxied = Outbox::new(&pool).transaction_pooling();
        let proxied = proxied.prefix(&prefix(&shop)).expect("a prefix");
        let broker = Broker::willing();
        let relay = proxied.relay(broker.clone()).start().await;
        let relay = relay.expect("it starts");
        for order in 0..20 {
            let (pool, outbox) = match order % 2 {
                0 => (&pool, &proxied),
                _ => (shop.pool(), &plain),
            };
            let mut tx = pool.begin().await.expect("a transaction");
            let message = placed(order).key(&format!("k{}", order % 3));
            outbox.send(&mut tx, message).await.expect("it is written");
            tx.commit().await.expect("it commits");
        }
        drained(&shop).await;
        assert_eq!(broker.arrived().len(), 20);
        relay.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn an_idle_relay_sends_one_statement_a_look() {
    let proxy = Proxy::to(address(&url(PostgresShop::URL))).await;
    let proxy = proxy.expect("a proxy");
    let shop = PostgresShop::through(proxy.address()).await;
    crate::harness::in_time(async {
        let outbox = outbox(&shop).await;
        let pause = Duration::from_millis(200);
        let relay = outbox.relay(Broker::willing()).pauses(pause, pause);
        let relay = relay.start().await.expect("it starts");
        // The connections are open, and the first hello has come back.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let before = proxy.round_trips();
        tokio::time::sleep(Duration::from_secs(3)).await;
        let looks = proxy.round_trips() - before;
        assert!((1..=19).contains(&looks), "3 s at 160 ms a look: {looks}");
        drop(relay);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn an_idle_look_reads_few_pages() {
    let shop = PostgresShop::new().await;
    crate::harness::in_time(async {
        let (outbox, broker) = (outbox(&shop).await, Broker::willing());
        for batch in 0..20 {
            let messages = (0..100).map(|it| placed(it).key(&format!("k{batch}-{it}")));
            send(&shop, &outbox, messages).await;
        }
        let relay = outbox.relay(broker).start().await.expect("it starts");
        drained(&shop).await;
        relay.stop().await;
        let mut connection = shop.pool().acquire().await.expect("a connection");
        // A transaction of another test keeps dead rows alive. A change of another test's tables
        // makes the session read its facts about tables again. Both only add pages, and both pass.
        let mut pages = u32::MAX;
        for _ in 0..100 {
            vacuumed(&mut connection, &prefix(&shop)).await;
            // The first time, the session also reads its facts about the tables.
            pages_of(&mut connection, &outbox.poll()).await;
            pages = pages.min(pages_of(&mut connection, &outbox.poll()).await);
            if pages <= 8 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        assert!(pages <= 8, "{pages} pages");
        send(&shop, &outbox, [placed(1).key("a")]).await;
        let pages = pages_of(&mut connection, &outbox.poll()).await;
        assert!(pages > 0, "it counts");
    })
    .await;
}

/// Vacuums the tables that an idle look reads.
async fn vacuumed(connection: &mut sqlx::PgConnection, prefix: &str) {
    for table in ["messages", "claims", "relays"] {
        let vacuum = format!("VACUUM {prefix}outbox_{table}");
        let vacuum = sqlx::raw_sql(sqlx::AssertSqlSafe(vacuum)).execute(&mut *connection);
        vacuum.await.expect("it vacuums");
    }
}

/// How many pages a query reads, planning included.
async fn pages_of(connection: &mut sqlx::PgConnection, query: &str) -> u32 {
    let text = format!("EXPLAIN (ANALYZE, BUFFERS, COSTS OFF) {query}");
    let plan = sqlx::raw_sql(sqlx::AssertSqlSafe(text)).fetch_all(connection);
    let plan = plan.await.expect("a plan");
    let lines: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
    // The first line counts all nodes below it. Planning has a line of its own.
    let is_whole = |line: &&String| !line.starts_with("    ");
    let lines = lines.iter().filter(is_whole).map(|line| line.trim());
    let buffers = lines.filter_map(|line| line.strip_prefix("Buffers: shared "));
    buffers
        .flat_map(|buffers| buffers.split(' '))
        .filter_map(|part| part.split_once('=')?.1.parse::<u32>().ok())
        .sum()
}
