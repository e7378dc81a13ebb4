//! The cost of a call on MariaDB, beside statements written by hand: an insert that claims and an
//! update that records for a first call, a select for a replay. By hand each task holds a
//! connection, which is never pinged, as the store's own are not.
//!
//! `IDEMPOTENT_TEST_MARIADB_URL` says where the server is; `cargo xtask servers` starts one.

use benches::{
    Held,
    calls::{self, ByHand, Leased, MOST_AT_ONCE, Receipt},
};
use idempotent_runtime::{Idempotency, store::MySqlStore};
use sqlx::{MySqlConnection, Row};

#[derive(Clone)]
struct Connections(Held<MySqlConnection>);

impl ByHand for Connections {
    async fn first(&self, task: usize, order: u64) {
        let mut connection = self.0.of(task).await;
        sqlx::query("INSERT INTO bench_calls (id, arguments, state) VALUES (?, ?, 1)")
            .bind(order)
            .bind(calls::arguments(order))
            .execute(&mut *connection)
            .await
            .expect("a claim");
        sqlx::query("UPDATE bench_calls SET state = 2, outcome = ? WHERE id = ? AND state = 1")
            .bind(Receipt::of(order).to_json())
            .bind(order)
            .execute(&mut *connection)
            .await
            .expect("an outcome");
    }

    async fn replay(&self, task: usize, order: u64) {
        let mut connection = self.0.of(task).await;
        let row = sqlx::query("SELECT outcome FROM bench_calls WHERE id = ? AND state = 2")
            .bind(order)
            .fetch_one(&mut *connection)
            .await
            .expect("a row");
        assert_eq!(Receipt::from_json(row.get(0)).id, order);
    }
}

impl Leased for Connections {
    async fn first_leased(&self, task: usize, order: u64) {
        const TOKEN: u64 = 1;
        let mut connection = self.0.of(task).await;
        sqlx::query(
            "INSERT INTO bench_leased (id, arguments, state, token, holder, lease_end, expires)
             VALUES (?, ?, 1, ?, ?, now(6) + INTERVAL 30 SECOND, now(6) + INTERVAL 1 DAY)",
        )
        .bind(order)
        .bind(calls::arguments(order))
        .bind(TOKEN)
        .bind("a process")
        .execute(&mut *connection)
        .await
        .expect("a claim");
        let recorded = sqlx::query(
            "UPDATE bench_leased SET state = 2, outcome = ?, lease_end = NULL WHERE id = ? AND state = 1 AND token = ?",
        )
        .bind(Receipt::of(order).to_json())
        .bind(order)
        .bind(TOKEN)
        .execute(&mut *connection);
        assert_eq!(recorded.await.expect("an outcome").rows_affected(), 1);
    }
}

async fn set_up(url: &str) -> ([Idempotency; 2], Connections) {
    let connections = Held::<MySqlConnection>::open(url, MOST_AT_ONCE).await;
    for statement in [
        "DROP TABLE IF EXISTS bench_calls, bench_leased, bench_records, bench_steps, bench_schema",
        "CREATE TABLE bench_calls (id bigint PRIMARY KEY, arguments text NOT NULL, state int NOT NULL, outcome blob)",
        "CREATE TABLE bench_leased (
             id bigint PRIMARY KEY, arguments text NOT NULL, state int NOT NULL, token bigint NOT NULL, holder text NOT NULL,
             lease_end datetime(6), expires datetime(6) NOT NULL, outcome blob, INDEX (expires))",
    ] {
        sqlx::raw_sql(statement)
            .execute(&mut *connections.of(0).await)
            .await
            .expect("a table");
    }
    let builder = MySqlStore::builder()
        .table_prefix("bench_")
        .max_connections(MOST_AT_ONCE);
    let processes = calls::two_processes(async || builder.clone().connect(url).await).await;
    (processes, Connections(connections))
}

fn main() {
    calls::compare_on_server("MariaDB", "IDEMPOTENT_TEST_MARIADB_URL", set_up, (960, 320));
}
