//! Stores with 50,000 records, with damaged ones among them, and servers that go away.

use std::process::Command;

use idempotent_runtime::testing::{Disconnect, Proxy};
use sqlx::{AssertSqlSafe, MySqlPool, PgPool, SqlitePool};

use crate::shop::Shop;

const COLUMNS: &str = "version, operation, scope, call_key, fingerprint, digests, state, token, attempt, attempt_id, \
    holder, trace_parent, on_crash, lease_end, created, finished, expires, outcome_kind, outcome_schema, outcome, purge_from";

/// A few records among 50,000 copies of one: each is found.
async fn found_among_many(shop: &Shop, copy: impl AsyncFn(String)) {
    shop.charged("order-1").await;
    let table = format!("{}records", shop.prefix().unwrap_or("idempotent_"));
    copy(table).await;
    let id = shop.uncertain("order-2").await.to_hex();
    let listed = shop.run(&["list", "--attention"]);
    assert!(listed.out.contains("order-2"), "{}", listed.all());
    assert_eq!(listed.out.lines().count(), 2, "{}", listed.all());
    for named in [&id[..], &id[..16]] {
        let shown = shop.run(&["show", named]);
        assert!(shown.out.contains("order-2"), "{}", shown.all());
    }
    let rare = shop.run(&["list", "--key", "order-2", "--operation", "payments.charge"]);
    assert!(rare.out.contains("order-2"), "{}", rare.all());
    let all = shop.run(&["list", "--limit", "10000", "--json"]);
    assert_eq!(all.out.lines().count(), 10_000, "{}", all.err);
    assert!(all.err.contains("--after"), "{}", all.err);
}

#[tokio::test]
async fn a_record_is_found_among_many_of_a_file() {
    let shop = Shop::sqlite().await;
    let pool = SqlitePool::connect(shop.url()).await.expect("a file");
    let copy = async |table: String| {
        let text = format!(
            "WITH RECURSIVE copies(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copies WHERE n < 50000)
             INSERT INTO {table} (id, {COLUMNS}) SELECT randomblob(32), {COLUMNS} FROM {table}, copies"
        );
        let copied = sqlx::query(AssertSqlSafe(text)).execute(&pool).await;
        copied.expect("they are copied");
    };
    found_among_many(&shop, copy).await;
}

#[tokio::test]
#[ignore = "needs servers: cargo xtask test"]
async fn a_record_is_found_among_many_of_postgres() {
    let shop = Shop::postgres().await;
    let pool = PgPool::connect(shop.url()).await.expect("a server");
    let copy = async |table: String| {
        let text = format!(
            "INSERT INTO {table} (id, {COLUMNS})
             SELECT sha256(n::text::bytea), {COLUMNS} FROM {table}, generate_series(1, 50000) AS n"
        );
        let copied = sqlx::query(AssertSqlSafe(text)).execute(&pool).await;
        copied.expect("they are copied");
    };
    found_among_many(&shop, copy).await;
}

#[tokio::test]
#[ignore = "needs servers: cargo xtask test"]
async fn a_record_is_found_among_many_of_mariadb() {
    let shop = Shop::mariadb().await;
    let pool = MySqlPool::connect(shop.url()).await.expect("a server");
    let copy = async |table: String| {
        let text = format!(
            "INSERT INTO {table} (id, {COLUMNS})
             SELECT unhex(sha2(seq, 256)), {COLUMNS} FROM {table}, seq_1_to_50000"
        );
        let copied = sqlx::query(AssertSqlSafe(text)).execute(&pool).await;
        copied.expect("they are copied");
    };
    found_among_many(&shop, copy).await;
}

#[tokio::test]
async fn a_damaged_record_is_counted_and_hides_no_other() {
    let shop = Shop::sqlite().await;
    shop.uncertain("order-1").await;
    shop.charged("order-2").await;
    let damaged = shop.charged("order-3").await.to_hex();
    let pool = SqlitePool::connect(shop.url()).await.expect("a file");
    let damage =
        "UPDATE idempotent_records SET state = 77 WHERE CAST(call_key AS TEXT) = 'order-3'";
    let changed = sqlx::query(damage).execute(&pool).await;
    assert_eq!(changed.expect("it is written").rows_affected(), 1);
    let listed = shop.run(&["list"]);
    assert!(
        listed.out.contains("order-1") && listed.out.contains("order-2"),
        "{}",
        listed.all()
    );
    assert!(
        listed.err.contains("1 records cannot be read"),
        "{}",
        listed.all()
    );
    let shown = shop.run(&["show", &damaged]);
    assert_eq!(shown.code, 1, "{}", shown.all());
}

/// A settlement whose connection is cut at each of its requests is made or not, and the same
/// command ends it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs servers: cargo xtask test"]
async fn a_settlement_that_is_cut_ends_when_it_is_given_again() {
    let shop = Shop::postgres().await;
    let (user, rest) = shop.url().split_once('@').expect("a user");
    let (host, database) = rest.split_once('/').expect("a database");
    let server = host.parse().expect("an address");
    let proxy = Proxy::to(server).await.expect("a proxy");
    let url = format!("{user}@{}/{database}", proxy.address());
    for cut in 0..24 {
        let id = shop.uncertain(&format!("order-{cut}")).await.to_hex();
        let disconnect = match cut % 2 {
            0 => Disconnect::BeforeRequest,
            _ => Disconnect::BeforeAnswer,
        };
        proxy.cut_after(cut / 2, disconnect);
        let settle = [
            "settle",
            &id,
            "--value",
            "1",
            "--version",
            "0",
            "--reason",
            "r",
            "--yes",
            "--by",
            "anna",
        ];
        let settle = || {
            let set = |it: &mut Command| {
                it.env("IDEMPOTENT_STORE", &url);
            };
            shop.raw_with(&settle, set)
        };
        let first = tokio::task::block_in_place(settle);
        proxy.cancel_cut();
        let second = tokio::task::block_in_place(settle);
        let ended = second.0.contains("Done") || second.1.contains("done already");
        assert!(ended, "{cut}: {first:?} {second:?}");
        let shown = shop.run(&["show", &id]);
        assert!(shown.out.ends_with("\n1\n"), "{cut}: {}", shown.all());
    }
}
