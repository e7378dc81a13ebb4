//! The cost of many finished records on Postgres: a first call among 10,000 and among 1,000,000 of
//! them, and calls beside a purge of half of them.
//!
//! `IDEMPOTENT_TEST_POSTGRES_URL` says where the server is; `cargo xtask servers` starts one. It
//! fills 1.5 GB.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a table for people is its purpose"
)]

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use benches::Ratios;
use idempotent_runtime::{Error, Idempotency, store::PostgresStore};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::runtime::Runtime;

const FEW: u32 = 10_000;
const MANY: u32 = 1_000_000;

/// One table, and a handle over it.
struct Table {
    prefix: &'static str,
    idem: Idempotency,
}

impl Table {
    /// Makes a table with so many finished records: the server itself makes them of one, and every
    /// other one expired an hour ago.
    async fn with(url: &str, prefix: &'static str, records: u32) -> Self {
        let mut side = PgConnection::connect(url).await.expect("a connection");
        run(
            &mut side,
            format!("DROP TABLE IF EXISTS {prefix}records, {prefix}schema"),
        )
        .await;
        let store = PostgresStore::builder().table_prefix(prefix).connect(url);
        let table = Self {
            prefix,
            idem: Idempotency::new(store.await.expect("the server answers")),
        };
        table.call().await;
        let of_one = format!("SELECT * FROM {prefix}records LIMIT 1");
        run(
            &mut side,
            format!(
                "CREATE TEMPORARY TABLE one AS {of_one};
                 INSERT INTO {prefix}records SELECT record.*
                 FROM generate_series(1, {records}) AS number, one,
                     jsonb_populate_record(NULL::{prefix}records, to_jsonb(one) || jsonb_build_object(
                         'id', '\\x' || encode(sha256(number::text::bytea), 'hex'),
                         'expires', one.expires - CASE number % 2 WHEN 0 THEN 90000000000 ELSE 0 END,
                         'purge_from', one.purge_from - CASE number % 2 WHEN 0 THEN 90000000000 ELSE 0 END)) AS record;
                 DROP TABLE one"
            ),
        )
        .await;
        run(&mut side, format!("VACUUM ANALYZE {prefix}records")).await;
        side.close().await.expect("the connection closes");
        table
    }

    /// A first call.
    async fn call(&self) {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let key = NEXT.fetch_add(1, Ordering::Relaxed);
        let call = self.idem.call("bench.charge").key(&key).arguments(&key);
        let answer = call.run(|_| async move { Ok::<_, Error>(key) }).await;
        answer.expect("an answer");
    }
}

async fn run(connection: &mut PgConnection, text: String) {
    sqlx::raw_sql(AssertSqlSafe(text))
        .execute(connection)
        .await
        .expect("the statements run");
}

/// The durations of calls that were made one after the other.
struct Calls(Vec<Duration>);

impl Calls {
    /// Makes calls for as long as `going_on`.
    async fn made(table: &Table, going_on: impl Fn() -> bool) -> Self {
        let mut calls = Vec::new();
        while going_on() {
            let began = Instant::now();
            table.call().await;
            calls.push(began.elapsed());
        }
        calls.sort_unstable();
        Self(calls)
    }

    fn print(&self, beside: &str) {
        let Self(calls) = self;
        let of_hundred = |part: usize| calls.get(calls.len() * part / 100).copied();
        let [middle, late, worst] =
            [of_hundred(50), of_hundred(99), calls.last().copied()].map(Option::unwrap_or_default);
        let count = calls.len();
        println!("| {beside} | {count} | {middle:.2?} | {late:.2?} | {worst:.2?} |");
    }
}

/// Purges, and makes calls meanwhile. Then it makes calls for as long without a purge, because the
/// disk and other work of the machine make some of them wait, too.
async fn compare_purge(table: &Table) {
    let idem = table.idem.clone();
    let began = Instant::now();
    let purging = tokio::spawn(async move { idem.purge().await.expect("an answer") });
    let beside = Calls::made(table, || !purging.is_finished()).await;
    let deleted = purging.await.expect("no panic");
    let took = began.elapsed();
    let began = Instant::now();
    let alone = Calls::made(table, || began.elapsed() < took).await;
    println!("| first calls | how many | median | of 100 the slowest | the slowest of all |");
    println!("|---|---:|---:|---:|---:|");
    beside.print(&format!("beside a purge of {deleted} in {took:.2?}"));
    alone.print("for as long without");
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
    let few = runtime.block_on(Table::with(&url, "bench_few_", FEW));
    let many = runtime.block_on(Table::with(&url, "bench_many_", MANY));
    let calls = |table: &Table, times| {
        runtime.block_on(async {
            for _ in 0..times {
                table.call().await;
            }
        });
    };
    let mut ratios = Ratios::new("first call among 1,000,000", "among 10,000");
    let (ours, theirs) = (|times| calls(&many, times), |times| calls(&few, times));
    ratios.time("1 at once", 100, ours, theirs);
    ratios.print();

    runtime.block_on(compare_purge(&many));

    runtime.block_on(async {
        let mut side = PgConnection::connect(&url).await.expect("a connection");
        for Table { prefix, .. } in [&few, &many] {
            run(
                &mut side,
                format!("DROP TABLE {prefix}records, {prefix}schema"),
            )
            .await;
        }
    });
}
