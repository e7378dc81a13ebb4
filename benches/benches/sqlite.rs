//! The cost of a call on SQLite, beside statements written by hand: an insert that claims and an
//! update that records for a first call, a select for a replay. Both sides have the same pool of
//! one connection, the same settings and the same folder, in turns.

use std::path::Path;

use benches::{
    Ratios,
    calls::{self, ByHand, Receipt},
};
use idempotent_runtime::{Idempotency, store::SqliteStore};
use sqlx::{
    ConnectOptions, Row, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use tokio::runtime::Runtime;

#[derive(Clone)]
struct Pool(SqlitePool);

impl ByHand for Pool {
    async fn first(&self, _: usize, order: u64) {
        let claimed = sqlx::query(
            "INSERT INTO calls (id, arguments, state) VALUES (?, ?, 1) ON CONFLICT DO NOTHING",
        )
        .bind(order.to_string())
        .bind(calls::arguments(order))
        .execute(&self.0)
        .await
        .expect("a claim");
        assert_eq!(claimed.rows_affected(), 1);
        sqlx::query("UPDATE calls SET state = 2, outcome = ? WHERE id = ? AND state = 1")
            .bind(Receipt::of(order).to_json())
            .bind(order.to_string())
            .execute(&self.0)
            .await
            .expect("an outcome");
    }

    async fn replay(&self, _: usize, order: u64) {
        let row = sqlx::query("SELECT outcome FROM calls WHERE id = ? AND state = 2")
            .bind(order.to_string())
            .fetch_one(&self.0)
            .await
            .expect("a row");
        assert_eq!(Receipt::from_json(row.get(0)).id, order);
    }
}

async fn pool(path: &Path) -> SqlitePool {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .disable_statement_logging();
    SqlitePoolOptions::new()
        .max_connections(1)
        .connect_with(options)
        .await
        .expect("a pool")
}

/// By hand, for a side that has made no calls yet.
async fn by_hand(path: &Path) -> Pool {
    let pool = pool(path).await;
    sqlx::query("CREATE TABLE calls (id TEXT PRIMARY KEY, arguments TEXT NOT NULL, state INTEGER NOT NULL, outcome BLOB)")
        .execute(&pool)
        .await
        .expect("a table");
    Pool(pool)
}

fn main() {
    if !benches::is_measuring() {
        return;
    }
    let runtime = Runtime::new().expect("a runtime");
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let (embedded, pooled) = runtime.block_on(async {
        let over_pool = SqliteStore::new(pool(&at("pooled.db")).await);
        over_pool.migrate().await.expect("tables");
        let embedded = Idempotency::sqlite(at("embedded.db")).await;
        (embedded.expect("a store"), Idempotency::new(over_pool))
    });
    let mut ratios = Ratios::new("SQLite", "by hand");
    for (named, idem) in [
        ("file of its own, ", embedded),
        ("application's pool, ", pooled),
    ] {
        let file = at(&format!("beside the {named}.db"));
        let by_hand = runtime.block_on(by_hand(&file));
        calls::compare(
            &runtime,
            &mut ratios,
            named,
            (&idem, &by_hand),
            &[1, 16],
            (500, 100),
        );
    }
    ratios.print();
}
