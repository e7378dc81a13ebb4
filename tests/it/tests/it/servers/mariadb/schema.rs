//! The tables, and how they are made.

use idempotent_runtime::Idempotency;
use sqlx::MySqlPool;
use tokio::task::JoinSet;

use super::{
    AssertSqlSafe, MariaDb, MySqlStore, StoreErrorKind, kind, lazy, options, run, side, text, url,
};
use crate::{
    harness::says_that_it_is_missing,
    servers::{cancelled, prefix},
};

fn store(prefix: &str) -> MySqlStore {
    lazy(prefix, options())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn f27_eight_starts_at_once_make_the_tables_once() {
    for _ in 0..5 {
        let prefix = prefix();
        let mut starts = JoinSet::new();
        for _ in 0..8 {
            let store = store(&prefix);
            starts.spawn(async move { store.migrate().await });
        }
        for start in starts.join_all().await {
            start.expect("the tables are made");
        }
        store(&prefix).check_schema().await.expect("they are right");
    }
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_migration_that_died_half_way_is_finished_by_the_next() {
    let whole = store(&prefix());
    let statements = whole.ddl();
    let statements: Vec<_> = statements.split_inclusive(";\n").collect();
    assert_eq!(statements.len(), 10, "{statements:?}");
    for done in 0..=statements.len() {
        let prefix = prefix();
        let store = store(&prefix);
        let ddl = store.ddl();
        let died_after: String = ddl.split_inclusive(";\n").take(done).collect();
        if done > 0 {
            run(&mut side(&url()).await, died_after).await;
        }

        if done < statements.len() {
            assert_eq!(kind(store.check_schema().await), StoreErrorKind::Schema);
        }
        store.migrate().await.expect("the rest is made");
        store.check_schema().await.expect("the tables are right");
    }
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn the_statements_as_text_make_the_tables_that_the_migrator_makes() {
    let (by_hand, migrated) = (prefix(), prefix());
    let mut side = side(&url()).await;
    run(&mut side, store(&by_hand).ddl()).await;
    let checked = store(&by_hand).check_schema().await;
    checked.expect("the tables are right");
    let made = store(&migrated).migrate().await;
    made.expect("the tables are made");

    for table in ["schema", "records", "steps"] {
        let mut shown = Vec::new();
        for prefix in [&by_hand, &migrated] {
            let create = format!("SHOW CREATE TABLE {prefix}{table}");
            let create = text(&mut side, create, 1).await;
            shown.push(create.replace(prefix, ""));
        }
        assert_eq!(shown[0], shown[1]);
        assert!(
            shown[0].contains("ENGINE=InnoDB") && shown[0].contains("utf8mb4_bin"),
            "{}",
            shown[0]
        );
    }
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn f27_tables_of_a_newer_release_are_left_alone() {
    let prefix = prefix();
    let store = store(&prefix);
    store.migrate().await.expect("the tables are made");
    let newer =
        format!("INSERT INTO {prefix}schema (version, applied, usable_from) VALUES (99, 0, 99)");
    run(&mut side(&url()).await, newer).await;

    assert_eq!(kind(store.migrate().await), StoreErrorKind::Schema);
    assert_eq!(kind(store.check_schema().await), StoreErrorKind::Schema);
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_table_of_records_or_steps_that_is_gone_is_named() {
    let prefix = prefix();
    let store = store(&prefix);
    store.migrate().await.expect("the tables are made");
    for table in ["steps", "records"].map(|table| format!("{prefix}{table}")) {
        run(&mut side(&url()).await, format!("DROP TABLE {table}")).await;

        for refused in [store.check_schema().await, store.migrate().await] {
            says_that_it_is_missing(refused, &table);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn a_start_waits_for_another_one_that_migrates() {
    let prefix = prefix();
    let name = format!(
        "CONCAT('idempotent.', LEFT(SHA2(CONCAT(DATABASE(), '.{prefix}schema'), 256), 32))"
    );
    let mut other = side(&url()).await;
    run(&mut other, format!("DO GET_LOCK({name}, 0)")).await;

    let migrating = tokio::spawn({
        let store = store(&prefix);
        async move { store.migrate().await }
    });
    let waits = format!(
        "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE '%GET_LOCK%.{prefix}schema%' AND state = 'User lock'"
    );
    let mut side = side(&url()).await;
    let mut waiting: i64 = 0;
    while waiting == 0 {
        assert!(!migrating.is_finished(), "it has not waited");
        let asked = sqlx::query_scalar(AssertSqlSafe(waits.clone()));
        let answer = asked.fetch_one(&mut side).await;
        waiting = answer.expect("the server says who waits");
    }
    run(&mut other, format!("DO RELEASE_LOCK({name})")).await;

    let migrated = migrating.await.expect("it does not panic");
    migrated.expect("the tables are made");
}

/// As on Postgres: writes through the application's pool are acknowledged, and do not stand for
/// other clients. All of ours do.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_cancelled_begin_loses_no_acknowledged_write() {
    let pool: MySqlPool = cancelled::pool(&url()).await;
    let prefix = prefix();
    let store = MySqlStore::builder().table_prefix(&prefix);
    let store = store.pool(pool.clone()).expect("the options can be used");
    store.migrate().await.expect("the tables are made");
    let idem = Idempotency::new(store);
    let mut side = side(&url()).await;
    let statement = format!("CREATE TABLE {prefix}plain (number BIGINT) ENGINE = InnoDB");
    run(&mut side, statement).await;

    let other = Idempotency::new(MariaDb::open_at(&prefix).await);
    cancelled::loses_nothing(&pool, [&idem, &other], async |number| {
        let plain = format!("INSERT INTO {prefix}plain VALUES ({number})");
        let plain = sqlx::query(AssertSqlSafe(plain)).execute(&pool).await;
        plain.expect("it is acknowledged");
        let stands = format!("SELECT COUNT(*) FROM {prefix}plain WHERE number = {number}");
        let stands = sqlx::query_scalar::<_, i64>(AssertSqlSafe(stands));
        stands.fetch_one(&mut side).await.expect("a number") == 1
    })
    .await;
}
