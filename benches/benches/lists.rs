//! Pages of an operator's lists in stores of 1,000,000 records, beside calls; and what the index of
//! operations costs a first call.
//!
//! `IDEMPOTENT_TEST_POSTGRES_URL`, `IDEMPOTENT_TEST_MARIADB_URL` and `IDEMPOTENT_TEST_REDIS_URL`
//! say where servers are; `cargo xtask servers` starts them. `IDEMPOTENT_BENCH_RECORDS` is another
//! number of records. Each of the databases fills about a gigabyte.

#![allow(clippy::print_stdout, reason = "a table for people is its purpose")]

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, Instant},
};

use benches::{Ratios, server};
use idempotent_runtime::{
    Error, Idempotency,
    operate::Records,
    store::{MySqlStore, PostgresStore, RedisStore, SqliteStore},
};
use sqlx::{AssertSqlSafe, Connection, MySqlConnection, PgConnection, SqliteConnection};
use tokio::runtime::Runtime;

/// How many records need somebody.
const UNCERTAIN: usize = 100;

/// How many pages of each list are asked for.
const PAGES: usize = 200;

fn records() -> u64 {
    let asked = std::env::var("IDEMPOTENT_BENCH_RECORDS").ok();
    asked.map_or(1_000_000, |asked| asked.parse().expect("a number"))
}

/// A first call.
async fn call(idem: &Idempotency) {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let key = NEXT.fetch_add(1, Ordering::Relaxed);
    let call = idem.call("bench.charge").key(&key).arguments(&key);
    let answer = call.run(|_| async move { Ok::<_, Error>(key) }).await;
    answer.expect("an answer");
}

/// Leaves calls of another operation uncertain.
async fn leave_uncertain(idem: &Idempotency) {
    for key in 0..UNCERTAIN {
        let call = idem.call("bench.transfer").key(&key).uncertain_errors();
        let unknown = || async { Err::<(), _>(Error::InvalidPolicy("no answer")) };
        assert!(call.run(|_| unknown()).await.is_err());
    }
}

fn print(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)];
    let (middle, late, worst) = (at(50), at(99), at(100));
    let count = times.len();
    println!("| {name} | {count} | {middle:.2?} | {late:.2?} | {worst:.2?} |");
}

/// Asks for pages of this list one after the other, and begins anew behind the last one.
async fn pages(name: &str, idem: &Idempotency, list: Records<'_>) {
    let (mut times, mut next) = (Vec::new(), None);
    let is_over = AtomicBool::new(false);
    let asking = async {
        for _ in 0..PAGES {
            let list = match next {
                Some(next) => list.clone().after(next),
                None => list.clone(),
            };
            let began = Instant::now();
            let page = list.page(50).await.expect("an answer");
            times.push(began.elapsed());
            next = page.next;
        }
        is_over.store(true, Ordering::Relaxed);
    };
    let calling = async {
        while !is_over.load(Ordering::Relaxed) {
            call(idem).await;
        }
    };
    tokio::join!(asking, calling);
    print(name, times);
}

async fn compare(store: &str, idem: &Idempotency) {
    leave_uncertain(idem).await;
    let all = || idem.records();
    pages(&format!("{store}: attention"), idem, all().attention()).await;
    let operation = all().operation("bench.charge");
    pages(&format!("{store}: an operation"), idem, operation).await;
    let rare = all().operation("bench.transfer");
    pages(&format!("{store}: a rare operation"), idem, rare).await;
    pages(&format!("{store}: all"), idem, all()).await;
}

/// Runs statements on a connection.
macro_rules! run {
    ($connection:expr, $($text:tt)*) => {
        sqlx::raw_sql(AssertSqlSafe(format!($($text)*)))
            .execute(&mut $connection)
            .await
            .expect("the statements run")
    };
}

/// Makes many records of the one that stands, each under an id of its own. `columns` lists the
/// columns of the table, `numbers` makes as many rows as there are to be records.
macro_rules! fill {
    ($connection:expr, $prefix:expr, $columns:expr, $id:expr, $numbers:expr) => {{
        let columns: Vec<String> = sqlx::query_scalar(AssertSqlSafe($columns))
            .fetch_all(&mut $connection)
            .await
            .expect("the columns");
        let made: Vec<_> = columns
            .iter()
            .map(|column| match &**column {
                "id" => $id.to_owned(),
                column => format!("one.{column}"),
            })
            .collect();
        let (columns, made, prefix) = (columns.join(", "), made.join(", "), $prefix);
        run!(
            $connection,
            "CREATE TEMPORARY TABLE one AS SELECT * FROM {prefix}records LIMIT 1;
             INSERT INTO {prefix}records ({columns}) SELECT {made} FROM one, {};
             DROP TABLE one",
            $numbers
        );
    }};
}

/// First calls with the index of operations, and without.
fn compare_index(runtime: &Runtime, store: &str, [with, without]: [&Idempotency; 2]) {
    let mut ratios = Ratios::new("first call with the index of operations", "without");
    for at_once in [1, 16] {
        let calls = |idem: &Idempotency, times: u32| {
            runtime.block_on(async {
                let tasks = (0..at_once).map(|_| {
                    let idem = idem.clone();
                    tokio::spawn(async move {
                        for _ in 0..times.div_ceil(at_once) {
                            call(&idem).await;
                        }
                    })
                });
                for task in tasks.collect::<Vec<_>>() {
                    task.await.expect("no panic");
                }
            });
        };
        let name = format!("{store}, {at_once} at once");
        ratios.time(
            name,
            320,
            |times| calls(with, times),
            |times| calls(without, times),
        );
    }
    ratios.print();
}

/// The stores of one database, under three prefixes: many records, few, and few without the index.
const PREFIXES: [&str; 3] = ["bench_list_", "bench_with_", "bench_bare_"];

fn tables(prefix: &str) -> String {
    ["records", "schema", "steps"]
        .map(|table| format!("{prefix}{table}"))
        .join(", ")
}

fn postgres(runtime: &Runtime) {
    let Some(url) = server("IDEMPOTENT_TEST_POSTGRES_URL") else {
        return;
    };
    let handle = |prefix: &'static str| {
        let (runtime, url) = (&runtime, &url);
        let store = async move {
            let mut side = PgConnection::connect(url).await.expect("a connection");
            run!(side, "DROP TABLE IF EXISTS {}", tables(prefix));
            let store = PostgresStore::builder().table_prefix(prefix).connect(url);
            let idem = Idempotency::new(store.await.expect("the server answers"));
            call(&idem).await;
            idem
        };
        runtime.block_on(store)
    };
    let [list, with, bare] = PREFIXES.map(handle);
    let prefix = PREFIXES[0];
    let filled = async {
        let mut side = PgConnection::connect(&url).await.expect("a connection");
        let columns = format!(
            "SELECT attname::text FROM pg_attribute WHERE attrelid = '{prefix}records'::regclass AND attnum > 0 AND NOT attisdropped"
        );
        let numbers = format!("generate_series(1, {}) AS made(number)", records());
        fill!(
            side,
            prefix,
            columns,
            "sha256(number::text::bytea)",
            numbers
        );
        run!(side, "VACUUM ANALYZE {prefix}records");
        run!(side, "DROP INDEX {}records_operation", PREFIXES[2]);
        compare("Postgres", &list).await;
        side
    };
    let mut side = runtime.block_on(filled);
    compare_index(runtime, "Postgres", [&with, &bare]);
    runtime.block_on(async {
        for prefix in PREFIXES {
            run!(side, "DROP TABLE {}", tables(prefix));
        }
    });
}

fn mariadb(runtime: &Runtime) {
    let Some(url) = server("IDEMPOTENT_TEST_MARIADB_URL") else {
        return;
    };
    let handle = |prefix: &'static str| {
        let (runtime, url) = (&runtime, &url);
        let store = async move {
            let mut side = MySqlConnection::connect(url).await.expect("a connection");
            run!(side, "DROP TABLE IF EXISTS {}", tables(prefix));
            let store = MySqlStore::builder().table_prefix(prefix).connect(url);
            let idem = Idempotency::new(store.await.expect("the server answers"));
            call(&idem).await;
            idem
        };
        runtime.block_on(store)
    };
    let [list, with, bare] = PREFIXES.map(handle);
    let prefix = PREFIXES[0];
    let filled = async {
        let mut side = MySqlConnection::connect(&url).await.expect("a connection");
        let columns = format!(
            "SELECT CAST(column_name AS CHAR) FROM information_schema.columns
             WHERE table_schema = database() AND table_name = '{prefix}records' AND is_generated = 'NEVER'"
        );
        let numbers = format!("seq_1_to_{}", records());
        fill!(side, prefix, columns, "unhex(sha2(seq, 256))", numbers);
        run!(side, "ANALYZE TABLE {prefix}records");
        let bare = PREFIXES[2];
        run!(side, "DROP INDEX {bare}records_operation ON {bare}records");
        compare("MariaDB", &list).await;
        side
    };
    let mut side = runtime.block_on(filled);
    compare_index(runtime, "MariaDB", [&with, &bare]);
    runtime.block_on(async {
        for prefix in PREFIXES {
            run!(side, "DROP TABLE {}", tables(prefix));
        }
    });
}

async fn sqlite() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("records.db");
    let store = SqliteStore::open(&file).await.expect("a file");
    let idem = Idempotency::new(store);
    call(&idem).await;
    let url = format!("sqlite://{}", file.display());
    let mut side = SqliteConnection::connect(&url).await.expect("a connection");
    let prefix = "idempotent_";
    let columns = format!("SELECT name FROM pragma_table_info('{prefix}records')");
    let numbers = format!(
        "(WITH RECURSIVE made(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM made WHERE number < {})
          SELECT number FROM made)",
        records()
    );
    fill!(side, prefix, columns, "randomblob(32)", numbers);
    run!(side, "ANALYZE");
    compare("SQLite", &idem).await;
}

/// Copies the one record within the server.
async fn redis() {
    let Some(url) = server("IDEMPOTENT_TEST_REDIS_URL") else {
        return;
    };
    let prefix = "bench-lists:";
    let store = RedisStore::builder().key_prefix(prefix).connect(&url);
    let store = store.await.expect("the server answers");
    let idem = Idempotency::new(store);
    call(&idem).await;
    let client = redis::Client::open(url).expect("an address");
    let mut side = client
        .get_multiplexed_async_connection_with_config(
            &redis::AsyncConnectionConfig::new().set_response_timeout(None),
        )
        .await
        .expect("a connection");
    let script = redis::Script::new(
        "local one = redis.call('KEYS', KEYS[1] .. '*')[1]
         for number = ARGV[1], ARGV[2] do
             redis.call('COPY', one, KEYS[1] .. redis.sha1hex(number) .. string.rep('0', 24))
         end",
    );
    let (all, at_once) = (records(), 50_000);
    for from in (0..all).step_by(at_once) {
        let to = (from + at_once as u64).min(all) - 1;
        let mut filling = script.key(prefix);
        let filling = filling.arg(from).arg(to);
        let () = filling.invoke_async(&mut side).await.expect("it copies");
    }
    compare("Redis", &idem).await;
    let delete = redis::Script::new(
        "for _, key in ipairs(redis.call('KEYS', KEYS[1] .. '*')) do redis.call('UNLINK', key) end",
    );
    let () = delete
        .key(prefix)
        .invoke_async(&mut side)
        .await
        .expect("it deletes");
}

async fn memory() {
    let idem = Idempotency::memory();
    for _ in 0..records() {
        call(&idem).await;
    }
    compare("memory", &idem).await;
}

fn main() {
    if !benches::is_measuring() {
        return;
    }
    let runtime = Runtime::new().expect("a runtime");
    println!(
        "| pages of 50 beside calls | how many | median | of 100 the slowest | the slowest of all |"
    );
    println!("|---|---:|---:|---:|---:|");
    runtime.block_on(memory());
    runtime.block_on(sqlite());
    runtime.block_on(redis());
    postgres(&runtime);
    mariadb(&runtime);
}
