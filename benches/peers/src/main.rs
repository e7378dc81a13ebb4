//! A call with one step costs so much with us, and so much with DBOS: a call of ours whose body has
//! one step, beside a workflow of DBOS that has one step. Both run on the same Postgres, in the
//! same process and in turns. Each call has a fresh key and waits for its result.
//!
//! `IDEMPOTENT_TEST_POSTGRES_URL` says where the server is; `cargo xtask servers` starts one.

mod sides;
mod turns;

use std::{
    process::ExitCode,
    time::{SystemTime, UNIX_EPOCH},
};

use sqlx::PgPool;
use tokio::runtime::Runtime;

use self::{
    sides::{Ours, Side, Theirs},
    turns::Turns,
};

const VARIABLE: &str = "IDEMPOTENT_TEST_POSTGRES_URL";

/// How many call at once, and how many calls one turn makes.
const ROWS: [(usize, u32); 2] = [(1, 100), (16, 480)];

/// Three times as fast.
const TARGET: f64 = 0.33;

fn main() -> ExitCode {
    let Ok(url) = std::env::var(VARIABLE) else {
        eprintln!("{VARIABLE} is not set: `cargo xtask servers` starts a server");
        return ExitCode::from(2);
    };
    let runtime = Runtime::new().expect("a runtime");
    runtime.block_on(run(url));
    ExitCode::SUCCESS
}

/// Measures, and leaves nothing behind on the server, also where measuring failed.
async fn run(url: String) {
    let pool = PgPool::connect(&url).await.expect("the server answers");
    let name = fresh_name();
    let measuring = tokio::spawn(compare(url, pool.clone(), name.clone()));
    let measured = measuring.await;
    sides::clean_up(&pool, &name).await;
    print(&pool, &measured.expect("all calls are answered")).await;
}

/// A name for the tables of ours, and for the schema of DBOS, that no other run has.
fn fresh_name() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.expect("a clock behind 1970").as_secs();
    format!("peers_{now:x}_{:x}", std::process::id())
}

/// Makes calls in turns, a row after the other, and counts what stands on the server afterwards.
async fn compare(url: String, pool: PgPool, name: String) -> Vec<Turns> {
    let ours = Ours::connect(&url, &name).await;
    let theirs = Theirs::launch(&url, &name).await;
    let mut rows = Vec::new();
    for (callers, calls) in ROWS {
        rows.push(Turns::measure(callers, calls, &ours, &theirs).await);
    }
    let calls: i64 = rows.iter().map(Turns::calls_of_a_side).sum();
    let made = (calls, calls);
    assert_eq!(ours.recorded(&pool).await, made, "calls and steps of ours");
    let recorded = theirs.recorded(&pool).await;
    assert_eq!(recorded, made, "workflows and steps of DBOS");
    theirs.shut_down().await;
    rows
}

async fn print(pool: &PgPool, rows: &[Turns]) {
    let server: String = sqlx::query_scalar("SHOW server_version")
        .fetch_one(pool)
        .await
        .expect("a version");
    let [ours, theirs] = ["idempotent-runtime", "dbos"].map(version_of);
    println!("\nPostgres {server}\n");
    println!(
        "| a call with one step, median latency | ours {ours} | DBOS {theirs} | ratio | target |"
    );
    println!("|---|---:|---:|---:|---:|");
    for row in rows {
        row.print(TARGET);
    }
}

/// The version of a package that this was built with.
fn version_of(package: &str) -> &'static str {
    let begins = format!("name = \"{package}\"\nversion = \"");
    let (_, version) = include_str!("../Cargo.lock")
        .split_once(&begins)
        .expect("a package of the lock file");
    version.split('"').next().expect("a version")
}
