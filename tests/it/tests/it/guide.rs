//! The recipes of the guide on servers whose SQL differs from SQLite's: each meets its duplicate.

use sqlx::{AssertSqlSafe, MySqlPool, PgPool};

use crate::servers::{prefix, url};

/// A name for the table of one test, and the statement that creates it.
fn named(create: &str) -> (String, AssertSqlSafe<String>) {
    let table = format!("{}guide", prefix());
    let create = create.replace("TABLE", &format!("TABLE {table}"));
    (table, AssertSqlSafe(create))
}

async fn postgres(create: &str) -> (PgPool, String) {
    let (table, create) = named(create);
    let pool = PgPool::connect(&url("IDEMPOTENT_TEST_POSTGRES_URL")).await;
    let pool = pool.expect("the server answers");
    let created = sqlx::raw_sql(create).execute(&pool).await;
    created.expect("a table");
    (pool, table)
}

async fn mariadb(create: &str) -> (MySqlPool, String) {
    let (table, create) = named(create);
    let pool = MySqlPool::connect(&url("IDEMPOTENT_TEST_MARIADB_URL")).await;
    let pool = pool.expect("the server answers");
    let created = sqlx::raw_sql(create).execute(&pool).await;
    created.expect("a table");
    (pool, table)
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_unique_constraint_of_postgres_answers_duplicates_with_the_first_row() {
    let (pool, table) =
        postgres("CREATE TABLE (id BIGSERIAL PRIMARY KEY, address TEXT NOT NULL UNIQUE)").await;
    let subscribe = async |address: &str| -> i64 {
        let insert = format!(
            "INSERT INTO {table} (address) VALUES ($1) ON CONFLICT (address) DO NOTHING RETURNING id"
        );
        let insert = sqlx::query_scalar(AssertSqlSafe(insert)).bind(address);
        if let Some(new) = insert.fetch_optional(&pool).await.expect("it is written") {
            return new;
        }
        let there = format!("SELECT id FROM {table} WHERE address = $1");
        let there = sqlx::query_scalar(AssertSqlSafe(there)).bind(address);
        there.fetch_one(&pool).await.expect("it is there")
    };
    let first = subscribe("a@b").await;
    assert_eq!(subscribe("a@b").await, first);
    assert_ne!(subscribe("c@d").await, first);
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_unique_constraint_of_mariadb_answers_duplicates_with_the_first_row() {
    let create =
        "CREATE TABLE (id BIGINT AUTO_INCREMENT PRIMARY KEY, address VARCHAR(99) NOT NULL UNIQUE)";
    let (pool, table) = mariadb(create).await;
    let subscribe = async |address: &str| -> u64 {
        let insert = format!(
            "INSERT INTO {table} (address) VALUES (?) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)"
        );
        let insert = sqlx::query(AssertSqlSafe(insert)).bind(address);
        let inserted = insert.execute(&pool).await.expect("it is written");
        inserted.last_insert_id()
    };
    let first = subscribe("a@b").await;
    assert_eq!(subscribe("a@b").await, first);
    assert_ne!(subscribe("c@d").await, first);
}

/// Counts of one item, with duplicates, and one that comes late.
const COUNTS: [(i64, i64); 4] = [(5, 1), (5, 1), (8, 2), (5, 1)];

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn an_upsert_of_postgres_keeps_the_newest_state() {
    let create = "CREATE TABLE (item TEXT PRIMARY KEY, pieces BIGINT, counted_at BIGINT)";
    let (pool, table) = postgres(create).await;
    for (pieces, counted_at) in COUNTS {
        let upsert = format!(
            "INSERT INTO {table} AS stock (item, pieces, counted_at) VALUES ('nut', $1, $2)
             ON CONFLICT (item) DO UPDATE
             SET pieces = excluded.pieces, counted_at = excluded.counted_at
             WHERE excluded.counted_at > stock.counted_at"
        );
        let upsert = sqlx::query(AssertSqlSafe(upsert))
            .bind(pieces)
            .bind(counted_at);
        upsert.execute(&pool).await.expect("it is written");
    }
    let pieces = format!("SELECT pieces FROM {table}");
    let pieces: i64 = sqlx::query_scalar(AssertSqlSafe(pieces))
        .fetch_one(&pool)
        .await
        .expect("it is there");
    assert_eq!(pieces, 8);
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn an_upsert_of_mariadb_keeps_the_newest_state() {
    let create = "CREATE TABLE (item VARCHAR(99) PRIMARY KEY, pieces BIGINT, counted_at BIGINT)";
    let (pool, table) = mariadb(create).await;
    for (pieces, counted_at) in COUNTS {
        let upsert = format!(
            "INSERT INTO {table} (item, pieces, counted_at) VALUES ('nut', ?, ?)
             ON DUPLICATE KEY UPDATE
             pieces = IF(VALUES(counted_at) > counted_at, VALUES(pieces), pieces),
             counted_at = GREATEST(counted_at, VALUES(counted_at))"
        );
        let upsert = sqlx::query(AssertSqlSafe(upsert))
            .bind(pieces)
            .bind(counted_at);
        upsert.execute(&pool).await.expect("it is written");
    }
    let pieces = format!("SELECT pieces FROM {table}");
    let pieces: i64 = sqlx::query_scalar(AssertSqlSafe(pieces))
        .fetch_one(&pool)
        .await
        .expect("it is there");
    assert_eq!(pieces, 8);
}

/// sqlx asks MariaDB to count rows that were found, so a duplicate over the same values counts,
/// too.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_version_of_mariadb_is_written_over_once() {
    let create = "CREATE TABLE (id BIGINT PRIMARY KEY, title VARCHAR(99), version BIGINT)";
    let (pool, table) = mariadb(create).await;
    let insert = format!("INSERT INTO {table} VALUES (1, 'draft', 0)");
    let insert = sqlx::raw_sql(AssertSqlSafe(insert)).execute(&pool).await;
    insert.expect("a row");
    for changed in [1, 0] {
        let rename = format!(
            "UPDATE {table} SET title = 'final', version = version + 1 WHERE id = 1 AND version = 0"
        );
        let renamed = sqlx::raw_sql(AssertSqlSafe(rename)).execute(&pool).await;
        assert_eq!(renamed.expect("it is answered").rows_affected(), changed);
    }
}

/// The coordinator of the recipe ends what an earlier one left behind: it commits what was decided,
/// and rolls back the rest.
async fn recover(databases: [&PgPool; 2], decided: &[String], ours: &str) {
    for pool in databases {
        let left = "SELECT gid FROM pg_prepared_xacts
                    WHERE database = current_database() AND gid LIKE $1 || '%'";
        let left = sqlx::query_scalar(left).bind(ours).fetch_all(pool).await;
        let left: Vec<String> = left.expect("they are listed");
        for gid in left {
            let word = match decided.iter().any(|it| gid.starts_with(it.as_str())) {
                true => "COMMIT",
                false => "ROLLBACK",
            };
            let end = sqlx::raw_sql(AssertSqlSafe(format!("{word} PREPARED '{gid}'")));
            end.execute(pool).await.expect("it is ended");
        }
    }
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn mend_34_two_databases_agree_after_a_coordinator_that_died_between_its_decision_and_its_words()
 {
    let create = "CREATE TABLE (id BIGINT PRIMARY KEY, cents BIGINT NOT NULL)";
    let (one, from) = postgres(create).await;
    let other = format!("{from}_other");
    let created = format!("CREATE DATABASE {other}");
    let created = sqlx::raw_sql(AssertSqlSafe(created)).execute(&one).await;
    created.expect("a database");
    let two = (*one.connect_options()).clone().database(&other);
    let two = PgPool::connect_with(two).await.expect("the server answers");
    let again = create.replace("TABLE", &format!("TABLE {from}"));
    let again = sqlx::raw_sql(AssertSqlSafe(again)).execute(&two).await;
    again.expect("a table");
    for pool in [&one, &two] {
        let fill = format!("INSERT INTO {from} VALUES (1, 1000)");
        let fill = sqlx::raw_sql(AssertSqlSafe(fill)).execute(pool).await;
        fill.expect("an account");
    }
    let transfers = ["decided", "undecided"].map(|name| format!("{from}-{name}"));
    for (transfer, cents) in transfers.iter().zip([100, 1]) {
        for (pool, change, side) in [(&one, -cents, "debit"), (&two, cents, "credit")] {
            let statements = format!(
                "BEGIN;
                 INSERT INTO {from} VALUES ({cents} + 1, {change});
                 PREPARE TRANSACTION '{transfer}-{side}'"
            );
            let prepared = sqlx::raw_sql(AssertSqlSafe(statements)).execute(pool).await;
            prepared.expect("`max_prepared_transactions` is above 0");
        }
    }

    recover([&one, &two], &transfers[..1], &from).await;
    recover([&one, &two], &transfers[..1], &from).await;

    let sum = format!("SELECT sum(cents)::bigint FROM {from}");
    for (pool, expected) in [(&one, 900), (&two, 1100)] {
        let sum = sqlx::query_scalar(AssertSqlSafe(sum.clone()));
        let sum: i64 = sum.fetch_one(pool).await.expect("it is there");
        assert_eq!(sum, expected);
        let left = "SELECT count(*) FROM pg_prepared_xacts WHERE gid LIKE $1 || '%'";
        let left = sqlx::query_scalar(left).bind(&from).fetch_one(pool).await;
        assert_eq!(left.ok(), Some(0_i64));
    }
}
