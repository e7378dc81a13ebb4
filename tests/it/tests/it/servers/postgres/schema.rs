//! The tables, and how they are made.

use std::time::Duration;

use idempotent_runtime::{
    Error, Idempotency,
    store::{PostgresStore, StoreErrorKind},
};
use sqlx::{AssertSqlSafe, PgPool, postgres::PgPoolOptions};
use tokio::task::JoinSet;

use super::{Postgres, URL, run, side};
use crate::{
    harness::{in_time, says_that_it_is_missing},
    servers::{cancelled, prefix, url},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn f27_eight_first_starts_at_once_all_succeed() {
    for _ in 0..5 {
        let prefix = prefix();
        let mut starting = JoinSet::new();
        for _ in 0..8 {
            let prefix = prefix.clone();
            starting.spawn(async move { Postgres::open_at(&prefix).await });
        }
        for store in starting.join_all().await {
            store.check_schema().await.expect("the tables are right");
        }
    }
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn f27_tables_of_a_newer_release_are_left_alone() {
    let prefix = prefix();
    let store = Postgres::open_at(&prefix).await;
    let mut side = side(&url(URL)).await;
    let newer =
        format!("INSERT INTO {prefix}schema (version, applied, usable_from) VALUES (99, 0, 99)");
    run(&mut side, newer).await;

    let checked = store.check_schema().await.map_err(|error| error.kind());
    assert_eq!(checked, Err(StoreErrorKind::Schema));
    let migrated = store.migrate().await.map_err(|error| error.kind());
    assert_eq!(migrated, Err(StoreErrorKind::Schema));
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_table_of_records_or_steps_that_is_gone_is_named() {
    let prefix = prefix();
    let store = Postgres::open_at(&prefix).await;
    for table in ["steps", "records"].map(|table| format!("{prefix}{table}")) {
        run(&mut side(&url(URL)).await, format!("DROP TABLE {table}")).await;

        for refused in [store.check_schema().await, store.migrate().await] {
            says_that_it_is_missing(refused, &table);
        }
    }
}

/// A newer release was quicker, while this one waited for it.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_start_that_finds_the_tables_of_a_newer_release_locks_nothing_any_more() {
    let prefix = prefix();
    let mut newer = side(&url(URL)).await;
    let name = format!("hashtextextended('{prefix}schema', 7091)");
    let statement = format!("BEGIN; SELECT pg_advisory_xact_lock({name})");
    run(&mut newer, statement).await;
    let store = beside(&pool().await, &prefix);
    let starting = tokio::spawn({
        let store = store.clone();
        async move { store.migrate().await }
    });
    let mut side = side(&url(URL)).await;
    let waits = format!(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
         AND classid::bigint << 32 | objid::bigint = {name}"
    );
    let waits = async {
        loop {
            let waiting = sqlx::query_scalar::<_, i64>(AssertSqlSafe(waits.clone()));
            if waiting.fetch_one(&mut side).await.expect("a number") > 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    in_time(waits).await;
    let tables = format!(
        "CREATE TABLE {prefix}schema (version bigint, applied bigint, usable_from bigint);
         INSERT INTO {prefix}schema (version, applied, usable_from) VALUES (99, 0, 99); COMMIT"
    );
    run(&mut newer, tables).await;

    let started = starting.await.expect("no panic");
    let kind = started.map_err(|error| error.kind());
    assert_eq!(kind, Err(StoreErrorKind::Schema));
    let statement = format!("SET lock_timeout = '20s'; SELECT pg_advisory_lock({name})");
    run(&mut newer, statement).await;
    drop(store);
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn the_statements_as_text_make_tables_that_are_right() {
    let pool = pool().await;
    let store = beside(&pool, &prefix());
    let missing = store.check_schema().await.map_err(|error| error.kind());
    assert_eq!(missing, Err(StoreErrorKind::Schema));

    sqlx::raw_sql(AssertSqlSafe(store.ddl()))
        .execute(&pool)
        .await
        .expect("the tables are made");

    store.check_schema().await.expect("the tables are right");
    let call = Idempotency::new(store).call("charge").key("k");
    let answer: Result<u32, Error> = call.run(|_| async { Ok(1) }).await;
    assert_eq!(answer.ok(), Some(1));
}

fn beside(pool: &PgPool, prefix: &str) -> PostgresStore {
    PostgresStore::builder()
        .table_prefix(prefix)
        .pool(pool.clone())
        .expect("the options can be used")
}

async fn pool() -> PgPool {
    PgPoolOptions::new()
        .max_connections(1)
        .connect(&url(URL))
        .await
        .expect("a pool")
}

/// The application holds its only connection, in a transaction. Its pool is not asked for another,
/// and not closed.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_pool_that_is_used_up_is_in_nobodys_way() {
    let pool = pool().await;
    let transaction = pool.begin().await.expect("a transaction");
    let store = beside(&pool, &prefix());
    store.migrate().await.expect("the tables are made");
    let idem = Idempotency::new(store);

    let answer: Result<u32, Error> = idem.call("charge").key("k").run(|_| async { Ok(1) }).await;

    assert_eq!(answer.ok(), Some(1));
    transaction.rollback().await.expect("it is still there");
    drop(idem);
    assert!(!pool.is_closed());
}

/// Cancelled `begin()`s leave transactions open in the application's pool. Writes through it are
/// acknowledged, and do not stand for other clients. All of ours do.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_cancelled_begin_loses_no_acknowledged_write() {
    let pool: PgPool = cancelled::pool(&url(URL)).await;
    let prefix = prefix();
    let store = beside(&pool, &prefix);
    store.migrate().await.expect("the tables are made");
    let idem = Idempotency::new(store);
    let mut side = side(&url(URL)).await;
    let statement = format!("CREATE TABLE {prefix}plain (number bigint)");
    run(&mut side, statement).await;

    let other = Idempotency::new(Postgres::open_at(&prefix).await);
    cancelled::loses_nothing(&pool, [&idem, &other], async |number| {
        let plain = format!("INSERT INTO {prefix}plain VALUES ({number})");
        let plain = sqlx::query(AssertSqlSafe(plain)).execute(&pool).await;
        plain.expect("it is acknowledged");
        let stands = format!("SELECT count(*) FROM {prefix}plain WHERE number = {number}");
        let stands = sqlx::query_scalar::<_, i64>(AssertSqlSafe(stands));
        stands.fetch_one(&mut side).await.expect("a number") == 1
    })
    .await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_stricter_isolation_by_default_fails_nobody() {
    let mut side = side(&url(URL)).await;
    let user = prefix();
    let role = format!(
        "CREATE ROLE {user} LOGIN SUPERUSER;
         ALTER ROLE {user} SET default_transaction_isolation = 'serializable'"
    );
    run(&mut side, role).await;
    let strict = url(URL).replacen("idempotent@", &format!("{user}@"), 1);
    let store = PostgresStore::builder().table_prefix(&prefix());
    let store = store.connect(&strict);
    let idem = Idempotency::new(store.await.expect("the server answers"));
    let mut running = JoinSet::new();
    for caller in 0..64_u32 {
        let idem = idem.clone();
        running.spawn(async move {
            let call = idem.call("charge").key(&(caller % 4));
            call.run(|_| async { Ok::<_, Error>(1) }).await
        });
    }
    for answer in running.join_all().await {
        assert_eq!(answer.ok(), Some(1));
    }
}
