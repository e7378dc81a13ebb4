//! What a call costs on SQLite, beside the statements that somebody would write by hand: an insert that claims and an
//! update that records for a first call, a select for a replay. The same pool of one connection, the same settings, the
//! same folder, in turns.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use benches::Ratios;
use idempotent_runtime::{Error, Idempotency, store::SqliteStore};
use serde::{Deserialize, Serialize};
use sqlx::{
    ConnectOptions, Row, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use tokio::{runtime::Runtime, task::JoinSet};

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Receipt {
    id: u64,
    text: String,
}

fn receipt(id: u64, memo: &str) -> Receipt {
    let text = format!("{} bytes", memo.len());
    Receipt { id, text }
}

static NEXT: AtomicU64 = AtomicU64::new(1_000);

fn fresh() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

const MEMO: &str =
    "a memo as it may stand in an order: leave the parcel with the neighbour on the left";

async fn ours(idem: Idempotency, order: u64) {
    let result: Result<Receipt, Error> = idem
        .call("bench.charge")
        .key(&order)
        .arguments(&(order, MEMO))
        .run(|_| async move { Ok(receipt(order, MEMO)) })
        .await;
    result.expect("an answer");
}

async fn first_by_hand(pool: SqlitePool, order: u64) {
    let claimed = sqlx::query(
        "INSERT INTO calls (id, arguments, state) VALUES (?, ?, 1) ON CONFLICT DO NOTHING",
    )
    .bind(order.to_string())
    .bind(serde_json::to_string(&(order, MEMO)).expect("JSON"))
    .execute(&pool)
    .await
    .expect("a claim");
    assert_eq!(claimed.rows_affected(), 1);
    let outcome = serde_json::to_vec(&receipt(order, MEMO)).expect("JSON");
    sqlx::query("UPDATE calls SET state = 2, outcome = ? WHERE id = ? AND state = 1")
        .bind(outcome)
        .bind(order.to_string())
        .execute(&pool)
        .await
        .expect("an outcome");
}

async fn replay_by_hand(pool: SqlitePool, order: u64) {
    let row = sqlx::query("SELECT outcome FROM calls WHERE id = ? AND state = 2")
        .bind(order.to_string())
        .fetch_one(&pool)
        .await
        .expect("a row");
    let receipt: Receipt = serde_json::from_slice(row.get(0)).expect("JSON");
    assert_eq!(receipt.id, order);
}

/// Does the work so many times, `tasks` at once.
async fn spread<F>(times: u32, tasks: u32, work: impl Fn() -> F + Send + Sync + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    let work = Arc::new(work);
    let mut running = JoinSet::new();
    for task in 0..tasks {
        let work = Arc::clone(&work);
        let share = times / tasks + u32::from(task < times % tasks);
        running.spawn(async move {
            for _ in 0..share {
                work().await;
            }
        });
    }
    running.join_all().await;
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

fn compare(
    runtime: &Runtime,
    ratios: &mut Ratios,
    name: &str,
    idem: &Idempotency,
    by_hand: &SqlitePool,
) {
    for tasks in [1, 16] {
        ratios.time(
            format!("{name}, first call, {tasks} at once"),
            200,
            |times| {
                let idem = idem.clone();
                runtime.block_on(spread(times, tasks, move || ours(idem.clone(), fresh())));
            },
            |times| {
                let pool = by_hand.clone();
                runtime.block_on(spread(times, tasks, move || {
                    first_by_hand(pool.clone(), fresh())
                }));
            },
        );
    }
    for tasks in [1, 16] {
        ratios.time(
            format!("{name}, replay, {tasks} at once"),
            1_000,
            |times| {
                let idem = idem.clone();
                runtime.block_on(spread(times, tasks, move || ours(idem.clone(), 1)));
            },
            |times| {
                let pool = by_hand.clone();
                runtime.block_on(spread(times, tasks, move || {
                    replay_by_hand(pool.clone(), 1)
                }));
            },
        );
    }
}

fn main() {
    if !benches::is_measuring() {
        return;
    }
    let runtime = Runtime::new().expect("a runtime");
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let (by_hand, embedded, pooled) = runtime.block_on(async {
        let by_hand = pool(&at("by_hand.db")).await;
        sqlx::query("CREATE TABLE calls (id TEXT PRIMARY KEY, arguments TEXT NOT NULL, state INTEGER NOT NULL, outcome BLOB)")
            .execute(&by_hand)
            .await
            .expect("a table");
        let embedded = Idempotency::sqlite(at("embedded.db")).await.expect("a store");
        let over_pool = SqliteStore::new(pool(&at("pooled.db")).await);
        over_pool.migrate().await.expect("tables");
        let pooled = Idempotency::new(over_pool);
        ours(embedded.clone(), 1).await;
        ours(pooled.clone(), 1).await;
        first_by_hand(by_hand.clone(), 1).await;
        (by_hand, embedded, pooled)
    });
    let mut ratios = Ratios::new("SQLite", "by hand");
    compare(
        &runtime,
        &mut ratios,
        "file of its own",
        &embedded,
        &by_hand,
    );
    compare(
        &runtime,
        &mut ratios,
        "application's pool",
        &pooled,
        &by_hand,
    );
    ratios.print();
}
