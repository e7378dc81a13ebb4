//! What a call costs on Postgres, beside the statements that somebody would write by hand: an insert that claims and an
//! update that records for a first call, a select for a replay. By hand each task holds a connection, which is never pinged,
//! as the store's own are not.
//!
//! `IDEMPOTENT_TEST_POSTGRES_URL` says where the server is; `cargo xtask servers` starts one.

#![allow(
    clippy::print_stderr,
    reason = "whoever measures is told what is missing"
)]

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use benches::Ratios;
use idempotent_runtime::{Error, Idempotency, store::PostgresStore};
use serde::{Deserialize, Serialize};
use sqlx::{ConnectOptions, PgConnection, Row, postgres::PgConnectOptions};
use tokio::{runtime::Runtime, sync::Mutex, task::JoinSet};

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

async fn ours(idem: &Idempotency, order: u64) {
    let result: Result<Receipt, Error> = idem
        .call("bench.charge")
        .key(&order)
        .arguments(&(order, MEMO))
        .run(|_| async move { Ok(receipt(order, MEMO)) })
        .await;
    result.expect("an answer");
}

async fn first_by_hand(connection: &mut PgConnection, order: u64) {
    let claimed = sqlx::query(
        "INSERT INTO bench_calls (id, arguments, state) VALUES ($1, $2, 1) ON CONFLICT DO NOTHING",
    )
    .bind(order.to_string())
    .bind(serde_json::to_string(&(order, MEMO)).expect("JSON"))
    .execute(&mut *connection)
    .await
    .expect("a claim");
    assert_eq!(claimed.rows_affected(), 1);
    let outcome = serde_json::to_vec(&receipt(order, MEMO)).expect("JSON");
    sqlx::query("UPDATE bench_calls SET state = 2, outcome = $1 WHERE id = $2 AND state = 1")
        .bind(outcome)
        .bind(order.to_string())
        .execute(connection)
        .await
        .expect("an outcome");
}

async fn replay_by_hand(connection: &mut PgConnection, order: u64) {
    let row = sqlx::query("SELECT outcome FROM bench_calls WHERE id = $1 AND state = 2")
        .bind(order.to_string())
        .fetch_one(connection)
        .await
        .expect("a row");
    let receipt: Receipt = serde_json::from_slice(row.get(0)).expect("JSON");
    assert_eq!(receipt.id, order);
}

/// What the two sides work on.
#[derive(Clone)]
struct Sides {
    idem: Idempotency,
    connections: Arc<Vec<Mutex<PgConnection>>>,
}

#[derive(Clone, Copy)]
enum Work {
    First,
    Replay,
}

/// Makes so many calls in each of so many tasks.
fn run(runtime: &Runtime, sides: &Sides, tasks: usize, times: u32, work: Work, by_hand: bool) {
    runtime.block_on(async {
        let mut running = JoinSet::new();
        for task in 0..tasks {
            let sides = sides.clone();
            let share = times / u32::try_from(tasks).unwrap_or(1);
            running.spawn(async move {
                let mut connection = sides.connections[task].lock().await;
                for _ in 0..share {
                    match (work, by_hand) {
                        (Work::First, false) => ours(&sides.idem, fresh()).await,
                        (Work::Replay, false) => ours(&sides.idem, 1).await,
                        (Work::First, true) => first_by_hand(&mut connection, fresh()).await,
                        (Work::Replay, true) => replay_by_hand(&mut connection, 1).await,
                    }
                }
            });
        }
        running.join_all().await;
    });
}

async fn set_up(url: &str) -> Sides {
    let options: PgConnectOptions = url.parse().expect("a URL");
    let options = options.disable_statement_logging();
    let mut connections = Vec::new();
    for _ in 0..64 {
        connections.push(options.connect().await.expect("the server answers"));
    }
    sqlx::raw_sql(
        "DROP TABLE IF EXISTS bench_calls, bench_records, bench_schema;
         CREATE TABLE bench_calls (id text PRIMARY KEY, arguments text NOT NULL, state int NOT NULL, outcome bytea)",
    )
    .execute(&mut connections[0])
    .await
    .expect("a table");
    let store = PostgresStore::builder()
        .table_prefix("bench_")
        .max_connections(64)
        .connect(url);
    let idem = Idempotency::new(store.await.expect("the server answers"));
    ours(&idem, 1).await;
    first_by_hand(&mut connections[0], 1).await;
    Sides {
        idem,
        connections: Arc::new(connections.into_iter().map(Mutex::new).collect()),
    }
}

fn main() {
    if !benches::is_measuring() {
        return;
    }
    let Ok(url) = std::env::var("IDEMPOTENT_TEST_POSTGRES_URL") else {
        eprintln!("IDEMPOTENT_TEST_POSTGRES_URL is not set: `cargo xtask servers` starts a server");
        return;
    };
    let runtime = Runtime::new().expect("a runtime");
    let sides = runtime.block_on(set_up(&url));
    let mut ratios = Ratios::new("Postgres", "by hand");
    for (name, work, times) in [
        ("replay", Work::Replay, 960),
        ("first call", Work::First, 320),
    ] {
        for tasks in [1, 16, 64] {
            let side = |by_hand| {
                let (runtime, sides) = (&runtime, &sides);
                move |times| run(runtime, sides, tasks, times, work, by_hand)
            };
            ratios.time(
                format!("{name}, {tasks} at once"),
                times,
                side(false),
                side(true),
            );
        }
    }
    ratios.print();
}
