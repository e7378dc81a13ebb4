//! The cost of a call on Postgres, beside statements written by hand: an insert that claims and an
//! update that records for a first call, a select for a replay. By hand each task holds a
//! connection, which is never pinged, as the store's own are not.
//!
//! `IDEMPOTENT_TEST_POSTGRES_URL` says where the server is; `cargo xtask servers` starts one.

use benches::{
    Held,
    calls::{self, ByHand, Leased, MOST_AT_ONCE, Receipt},
};
use idempotent_runtime::{Idempotency, store::PostgresStore};
use sqlx::{PgConnection, Row};

#[derive(Clone)]
struct Connections(Held<PgConnection>);

impl ByHand for Connections {
    async fn first(&self, task: usize, order: u64) {
        let mut connection = self.0.of(task).await;
        let claimed = sqlx::query(
            "INSERT INTO bench_calls (id, arguments, state) VALUES ($1, $2, 1) ON CONFLICT DO NOTHING",
        )
        .bind(order.to_string())
        .bind(calls::arguments(order))
        .execute(&mut *connection)
        .await
        .expect("a claim");
        assert_eq!(claimed.rows_affected(), 1);
        sqlx::query("UPDATE bench_calls SET state = 2, outcome = $1 WHERE id = $2 AND state = 1")
            .bind(Receipt::of(order).to_json())
            .bind(order.to_string())
            .execute(&mut *connection)
            .await
            .expect("an outcome");
    }

    async fn replay(&self, task: usize, order: u64) {
        let mut connection = self.0.of(task).await;
        let row = sqlx::query("SELECT outcome FROM bench_calls WHERE id = $1 AND state = 2")
            .bind(order.to_string())
            .fetch_one(&mut *connection)
            .await
            .expect("a row");
        assert_eq!(Receipt::from_json(row.get(0)).id, order);
    }
}

impl Leased for Connections {
    async fn first_leased(&self, task: usize, order: u64) {
        let mut connection = self.0.of(task).await;
        let claim = sqlx::query(
            "INSERT INTO bench_leased (id, arguments, state, token, holder, lease_end, expires)
             VALUES ($1, $2, 1, 1, $3, now() + interval '30 seconds', now() + interval '1 day')
             ON CONFLICT DO NOTHING RETURNING token",
        )
        .bind(order.to_string())
        .bind(calls::arguments(order))
        .bind("a process")
        .fetch_one(&mut *connection);
        let token: i64 = claim.await.expect("a claim").get(0);
        let recorded = sqlx::query(
            "UPDATE bench_leased SET state = 2, outcome = $1, lease_end = NULL WHERE id = $2 AND state = 1 AND token = $3",
        )
        .bind(Receipt::of(order).to_json())
        .bind(order.to_string())
        .bind(token)
        .execute(&mut *connection);
        assert_eq!(recorded.await.expect("an outcome").rows_affected(), 1);
    }
}

async fn set_up(url: &str) -> ([Idempotency; 2], Connections) {
    let connections = Held::<PgConnection>::open(url, MOST_AT_ONCE).await;
    sqlx::raw_sql(
        "DROP TABLE IF EXISTS bench_calls, bench_leased, bench_records, bench_steps, bench_schema;
         CREATE TABLE bench_calls (id text PRIMARY KEY, arguments text NOT NULL, state int NOT NULL, outcome bytea);
         CREATE TABLE bench_leased (
             id text PRIMARY KEY, arguments text NOT NULL, state int NOT NULL, token bigint NOT NULL, holder text NOT NULL,
             lease_end timestamptz, expires timestamptz NOT NULL, outcome bytea);
         CREATE INDEX ON bench_leased (expires)",
    )
    .execute(&mut *connections.of(0).await)
    .await
    .expect("a table");
    let builder = PostgresStore::builder()
        .table_prefix("bench_")
        .max_connections(MOST_AT_ONCE);
    let processes = calls::two_processes(async || builder.clone().connect(url).await).await;
    (processes, Connections(connections))
}

fn main() {
    calls::compare_on_server(
        "Postgres",
        "IDEMPOTENT_TEST_POSTGRES_URL",
        set_up,
        (960, 320),
    );
}
