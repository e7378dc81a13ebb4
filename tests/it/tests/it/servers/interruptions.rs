//! Interruptions of connections and sessions by operators and pools, in the middle of traffic.

use std::sync::Arc;

use idempotent_runtime::{
    OnCrash,
    store::{PostgresStore, Store},
};
use sqlx::{Connection, MySqlConnection, PgConnection, Row, postgres::PgPoolOptions};

use super::{
    prefix,
    redis::past_the_library,
    spare::{Product, Spare},
    traffic::{Progress, Traffic},
    url,
};
use crate::harness::in_time;

/// How often it happens, each time after so many more answers.
const TIMES: usize = 6;
const APART: usize = 100;

/// Lets it happen again and again in the middle of calls. All of them are answered as if nothing
/// had happened.
async fn is_survived(store: Arc<dyn Store>, mut happens: impl AsyncFnMut()) -> Traffic {
    let again_and_again = async |mut progress: Progress| {
        for time in 1..=TIMES {
            happens().await;
            progress.answered(300 + time * APART).await;
        }
    };
    let traffic = Traffic::around(Arc::clone(&store), OnCrash::Uncertain, again_and_again);
    let traffic = in_time(traffic).await;
    traffic.assert_kept(store).await;
    traffic
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn every_backend_of_postgres_is_terminated() {
    let server = Spare::new(Product::Postgres).await;
    let side = PgConnection::connect(&server.url()).await;
    let mut side = side.expect("the server answers");
    is_survived(server.store().await, async || {
        let all = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                   WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
        let ended = sqlx::query_scalar::<_, i64>(all).fetch_one(&mut side).await;
        assert!(ended.expect("the server does it") > 0, "somebody was there");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn every_connection_of_mariadb_is_killed() {
    let server = Spare::new(Product::MariaDb).await;
    let side = MySqlConnection::connect(&server.url()).await;
    let mut side = side.expect("the server answers");
    is_survived(server.store().await, async || {
        let all = "SELECT CAST(id AS SIGNED) FROM information_schema.processlist
                   WHERE user = 'root' AND id <> CONNECTION_ID()";
        let all = sqlx::raw_sql(all).fetch_all(&mut side).await;
        let all = all.expect("the server lists them");
        assert!(!all.is_empty(), "somebody was there");
        for one in all {
            let kill = format!("KILL {}", one.get::<i64, _>(0));
            // The connection may have gone by itself.
            let kill = sqlx::raw_sql(sqlx::AssertSqlSafe(kill));
            let _ = kill.execute(&mut side).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn every_client_of_redis_is_killed() {
    let server = Spare::new(Product::Redis).await;
    let mut side = redis_side(&server).await;
    is_survived(server.store().await, async || {
        for kind in ["normal", "pubsub"] {
            let mut kill = redis::cmd("CLIENT");
            kill.arg(&["KILL", "TYPE", kind, "SKIPME", "yes"][..]);
            let _: u64 = kill.query_async(&mut side).await.expect("a number");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn the_scripts_of_redis_are_flushed() {
    let server = Spare::new(Product::Redis).await;
    let mut side = redis_side(&server).await;
    let traffic = is_survived(server.store().await, async || {
        let flush = redis::cmd("SCRIPT")
            .arg("FLUSH")
            .exec_async(&mut side)
            .await;
        flush.expect("the server does it");
    });
    assert_eq!(traffic.await.refused, 0);
}

async fn redis_side(server: &Spare) -> redis::aio::MultiplexedConnection {
    past_the_library(&server.url()).await
}

/// The store was made of the pool, and has connections of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn the_pool_of_the_application_discards_its_sessions() {
    let pool = PgPoolOptions::new().max_connections(4);
    let pool = pool.connect(&url("IDEMPOTENT_TEST_POSTGRES_URL")).await;
    let pool = pool.expect("the server answers");
    let store = PostgresStore::builder().table_prefix(&prefix());
    let store = store.pool(pool.clone()).expect("the options can be used");
    store.migrate().await.expect("the tables are made");
    let traffic = is_survived(Arc::new(store), async || discard(&pool, 4).await);
    assert_eq!(traffic.await.refused, 0);
}

/// Any user of the proxy may do that to any connection of the server's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn sessions_behind_a_proxy_are_discarded() {
    let proxy = url("IDEMPOTENT_TEST_PGBOUNCER_URL");
    let pool = PgPoolOptions::new().max_connections(4);
    let pool = pool.connect(&proxy).await.expect("the proxy answers");
    let store = PostgresStore::builder().table_prefix(&prefix());
    let store = store.transaction_pooling().connect(&proxy).await;
    let store = store.expect("the server answers");
    let traffic = is_survived(Arc::new(store), async || discard(&pool, 4).await);
    assert_eq!(traffic.await.refused, 0);
}

async fn discard(pool: &sqlx::PgPool, times: usize) {
    for _ in 0..times {
        let discard = sqlx::raw_sql("DISCARD ALL").execute(pool).await;
        discard.expect("the server does it");
    }
}
