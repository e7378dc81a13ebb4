//! The cost of an audit: the same calls on two stores of one database, in turns, of which one is
//! audited while a sealer runs. And how fast entries are sealed and verified.
//!
//! `IDEMPOTENT_TEST_POSTGRES_URL` and `IDEMPOTENT_TEST_MARIADB_URL` say where servers are; `cargo
//! xtask servers` starts them.

#![allow(clippy::print_stdout, reason = "figures for people are its purpose")]

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};

use idempotent_audit::{Audit, AuditBuilder};
use idempotent_runtime::{
    Error, Idempotency, step,
    store::{MySqlStore, PostgresStore, SqliteStore},
};
use sqlx::{AssertSqlSafe, MySqlPool, PgPool, SqlitePool};

const ROUNDS: usize = 21;
const PREFIXES: [&str; 2] = ["plain_", "audited_"];

/// What is measured: how many calls of which kind come at once.
#[derive(Clone, Copy)]
enum Kind {
    First,
    Replay,
    TenSteps,
}

static NEXT: AtomicU64 = AtomicU64::new(0);

async fn call(idem: &Idempotency, kind: Kind) {
    let key = match kind {
        Kind::Replay => u64::MAX,
        _ => NEXT.fetch_add(1, Ordering::Relaxed),
    };
    let call = idem.call("bench.charge").key(&key);
    let body = async |_| {
        if let Kind::TenSteps = kind {
            for number in 0..10_u32 {
                step(("part", number), async |_| Ok::<_, Error>(number))
                    .run()
                    .await?;
            }
        }
        Ok::<_, Error>(key)
    };
    call.run(body).await.expect("a call");
}

/// How long a call takes, in microseconds, with so many callers.
async fn round(idem: &Idempotency, kind: Kind, callers: usize) -> f64 {
    const CALLS: usize = 64;
    let began = Instant::now();
    let tasks: Vec<_> = (0..callers)
        .map(|_| {
            let idem = idem.clone();
            tokio::spawn(async move {
                for _ in 0..CALLS / callers {
                    call(&idem, kind).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("it ends");
    }
    began.elapsed().as_secs_f64() * 1e6 / CALLS as f64
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

async fn compare(database: &str, [plain, audited]: [Idempotency; 2], audit: Audit) {
    let _sealer = audit.seal_every("1s").expect("a duration");
    for (name, kind, callers) in [
        ("first call, 1 caller", Kind::First, 1),
        ("first call, 16 callers", Kind::First, 16),
        ("replay, 1 caller", Kind::Replay, 1),
        ("ten steps, 1 caller", Kind::TenSteps, 1),
    ] {
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            without.push(round(&plain, kind, callers).await);
            with.push(round(&audited, kind, callers).await);
        }
        let (without, with) = (median(without), median(with));
        println!(
            "{database}, {name}: {without:.0} us, audited {with:.0} us, ratio {:.2}",
            with / without
        );
    }
    let began = Instant::now();
    let sealed = audit.seal().await.expect("it seals");
    println!(
        "{database}: the last {sealed} entries were sealed in {:?}",
        began.elapsed()
    );
}

/// Seals and verifies so many entries of events.
async fn seal_and_verify(database: &str, audit: &Audit, entries: u64) {
    let began = Instant::now();
    let sealed = audit.seal().await.expect("it seals");
    let took = began.elapsed();
    println!(
        "{database}: {sealed} entries sealed in {took:?}, {:.0} a second",
        sealed as f64 / took.as_secs_f64()
    );
    let began = Instant::now();
    let report = audit.verify().run().await.expect("it can be read");
    let took = began.elapsed();
    assert!(report.divergence.is_none(), "{report:?}");
    println!(
        "{database}: {} entries verified in {took:?}, 1,000,000 in {:.0} s",
        report.entries,
        took.as_secs_f64() * 1e6 / report.entries as f64
    );
    assert!(report.entries >= entries);
}

/// The time within which 99 of 100 calls end, in microseconds, with 64 callers.
async fn p99(idem: &Idempotency) -> f64 {
    const CALLERS: usize = 64;
    const CALLS: usize = 20;
    let tasks = (0..CALLERS).map(|_| {
        let idem = idem.clone();
        tokio::spawn(async move {
            let mut took = Vec::with_capacity(CALLS);
            for _ in 0..CALLS {
                let began = Instant::now();
                call(&idem, Kind::First).await;
                took.push(began.elapsed().as_secs_f64() * 1e6);
            }
            took
        })
    });
    let mut all = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        all.extend(task.await.expect("it ends"));
    }
    all.sort_by(f64::total_cmp);
    all[all.len() * 99 / 100]
}

/// 64 callers beside a sealer that sleeps in its transaction, in turns with none.
async fn beside_a_sleeping_sealer<DB: sqlx::Database>(
    database: &str,
    idem: &Idempotency,
    pool: &sqlx::Pool<DB>,
    before: &str,
) where
    for<'c> &'c mut DB::Connection: sqlx::Executor<'c, Database = DB>,
{
    const ASLEEP: &str = "SELECT batch FROM audited_audit_seals ORDER BY batch DESC LIMIT 1 FOR UPDATE;
        UPDATE audited_audit SET place = 7 WHERE number IN (SELECT number FROM (
            SELECT number FROM audited_audit WHERE batch IS NULL ORDER BY number LIMIT 1000) AS next)";
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        alone.push(p99(idem).await);
        let mut sealer = pool.acquire().await.expect("a connection");
        let asleep = AssertSqlSafe(format!("{before}; {ASLEEP}"));
        sqlx::raw_sql(asleep)
            .execute(&mut *sealer)
            .await
            .expect("it sleeps");
        beside.push(p99(idem).await);
        sqlx::raw_sql("ROLLBACK")
            .execute(&mut *sealer)
            .await
            .expect("it ends");
    }
    let (alone, beside) = (median(alone), median(beside));
    println!(
        "{database}, p99 of 64 callers: {alone:.0} us, beside a sealer that sleeps {beside:.0} us, ratio {:.2}",
        beside / alone
    );
}

async fn trail(audit: AuditBuilder) -> Audit {
    let audit = audit.table_prefix(PREFIXES[1]);
    audit.migrate().await.expect("a trail");
    audit.connect().await.expect("it stands")
}

fn handle(store: impl idempotent_runtime::Store) -> Idempotency {
    Idempotency::builder(store).build().expect("a handle")
}

const TABLES: [&str; 8] = [
    "audit",
    "audit_seals",
    "audit_outcomes",
    "audit_events",
    "audit_schema",
    "records",
    "steps",
    "schema",
];

fn drop_tables() -> String {
    let tables = PREFIXES
        .iter()
        .flat_map(|prefix| TABLES.map(|table| format!("{prefix}{table}")));
    let tables: Vec<_> = tables.collect();
    format!("DROP TABLE IF EXISTS {}", tables.join(", "))
}

fn entries() -> u64 {
    let said = std::env::var("IDEMPOTENT_BENCH_ENTRIES").ok();
    said.and_then(|said| said.parse().ok()).unwrap_or(100_000)
}

async fn postgres(url: String) {
    let pool = PgPool::connect(&url).await.expect("the server answers");
    sqlx::raw_sql(AssertSqlSafe(drop_tables()))
        .execute(&pool)
        .await
        .expect("they go");
    let mut idems = Vec::new();
    for prefix in PREFIXES {
        let store = PostgresStore::builder()
            .table_prefix(prefix)
            .max_connections(16);
        idems.push(handle(store.connect(&url).await.expect("a store")));
    }
    let audit = trail(Audit::postgres(pool.clone())).await;
    let audited = idems[1].clone();
    compare("Postgres", idems.try_into().expect("two"), audit.clone()).await;
    let fill = format!(
        "INSERT INTO audited_audit_events (event, holder, detail) SELECT 'bench', 'till', 'number ' || it FROM generate_series(1, {}) AS it",
        entries()
    );
    sqlx::raw_sql(AssertSqlSafe(fill))
        .execute(&pool)
        .await
        .expect("events");
    seal_and_verify("Postgres", &audit, entries()).await;
    beside_a_sleeping_sealer("Postgres", &audited, &pool, "BEGIN").await;
}

async fn mariadb(url: String) {
    let pool = MySqlPool::connect(&url).await.expect("the server answers");
    sqlx::raw_sql(AssertSqlSafe(drop_tables()))
        .execute(&pool)
        .await
        .expect("they go");
    let mut idems = Vec::new();
    for prefix in PREFIXES {
        let store = MySqlStore::builder()
            .table_prefix(prefix)
            .max_connections(16);
        idems.push(handle(store.connect(&url).await.expect("a store")));
    }
    let audit = trail(Audit::mysql(pool.clone())).await;
    let audited = idems[1].clone();
    compare("MariaDB", idems.try_into().expect("two"), audit.clone()).await;
    let begin = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION";
    let fill = format!(
        "INSERT INTO audited_audit_events (event, holder, detail) SELECT 'bench', 'till', CONCAT('number ', seq) FROM seq_1_to_{}",
        entries()
    );
    sqlx::raw_sql(AssertSqlSafe(fill))
        .execute(&pool)
        .await
        .expect("events");
    seal_and_verify("MariaDB", &audit, entries()).await;
    beside_a_sleeping_sealer("MariaDB", &audited, &pool, begin).await;
}

/// The time for which a batch keeps writers of the file waiting, at most.
async fn a_batch_of_sqlite(audit: &Audit, pool: &SqlitePool) {
    const BATCH: &str = "WITH RECURSIVE it(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM it WHERE number < 200)
        INSERT INTO audited_audit_events (event, holder, detail) SELECT 'bench', 'till', 'number ' || number FROM it";
    let mut took = Vec::new();
    for _ in 0..ROUNDS {
        audit.seal().await.expect("it seals");
        sqlx::raw_sql(BATCH).execute(pool).await.expect("events");
        let began = Instant::now();
        assert_eq!(audit.seal().await, Ok(200));
        took.push(began.elapsed().as_secs_f64() * 1e3);
    }
    let longest = took.iter().copied().fold(0.0, f64::max);
    println!(
        "SQLite, a batch: {:.1} ms, the longest {longest:.1} ms",
        median(took)
    );
}

async fn sqlite() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut idems = Vec::new();
    for prefix in PREFIXES {
        // A writer keeps the others of its file waiting, so each has one of its own.
        let store = SqliteStore::builder().table_prefix(prefix);
        let store = store.open(folder.path().join(format!("{prefix}.db"))).await;
        idems.push(handle(store.expect("a store")));
    }
    let url = format!("sqlite:{}", folder.path().join("audited_.db").display());
    let pool = SqlitePool::connect(&url).await.expect("the file opens");
    let audit = trail(Audit::sqlite(pool.clone())).await;
    compare("SQLite", idems.try_into().expect("two"), audit.clone()).await;
    a_batch_of_sqlite(&audit, &pool).await;
    let fill = format!(
        "WITH RECURSIVE it(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM it WHERE number < {})
         INSERT INTO audited_audit_events (event, holder, detail) SELECT 'bench', 'till', 'number ' || number FROM it",
        entries()
    );
    sqlx::raw_sql(AssertSqlSafe(fill))
        .execute(&pool)
        .await
        .expect("events");
    seal_and_verify("SQLite", &audit, entries()).await;
}

fn main() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        sqlite().await;
        let url = |name| std::env::var(name).ok();
        if let Some(url) = url("IDEMPOTENT_TEST_POSTGRES_URL") {
            postgres(url).await;
        }
        if let Some(url) = url("IDEMPOTENT_TEST_MARIADB_URL") {
            mariadb(url).await;
        }
    });
}
