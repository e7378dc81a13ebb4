//! The operators' page over a store of 1,000,000 records in Postgres, of which 20,000 need a
//! person: how long its pages take, and their calls of the store.
//!
//! `IDEMPOTENT_TEST_POSTGRES_URL` says where the server is; `cargo xtask servers` starts one. It
//! fills a gigabyte.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a table for people is its purpose"
)]

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use axum::{Router, body::Body};
use http::{Request, StatusCode, request::Parts};
use idempotent_admin::{Act, Page, Person};
use idempotent_runtime::{
    Error, Idempotency, Observer,
    store::{PostgresStore, StoreEvent},
};
use sqlx::{AssertSqlSafe, PgPool};
use tower::ServiceExt as _;

const RECORDS: u32 = 1_000_000;
const NEEDY: u32 = 20_000;
const PREFIX: &str = "bench_page_";

/// How long each call of the store took.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<Duration>>>);

impl Observer for Calls {
    fn wants_store_events(&self) -> bool {
        true
    }

    fn store(&self, event: &StoreEvent) {
        self.0.lock().expect("a list").push(event.elapsed);
    }
}

async fn run(pool: &PgPool, text: &str) {
    let ran = sqlx::raw_sql(AssertSqlSafe(text.to_owned())).execute(pool);
    ran.await.expect("the statements run");
}

/// Makes the table: the server itself makes its records of two.
async fn filled(pool: &PgPool, calls: &Calls) -> Idempotency {
    run(
        pool,
        &format!("DROP TABLE IF EXISTS {PREFIX}records, {PREFIX}steps, {PREFIX}schema"),
    )
    .await;
    let store = PostgresStore::builder().table_prefix(PREFIX);
    let store = store.pool(pool.clone()).expect("a store");
    store.migrate().await.expect("tables");
    let idem = Idempotency::builder(store).observer(calls.clone());
    let idem = idem.build().expect("a handle");
    let call = idem.call("payments.charge").key("done");
    call.run(async |_| Ok::<_, Error>(7)).await.expect("a call");
    let call = idem.call("mails.send").key("lost").uncertain_errors();
    let lost = call.run(async |_| Err::<(), _>(Error::InvalidPolicy("no answer")));
    lost.await.expect_err("nobody knows");
    for (operation, records) in [("payments.charge", RECORDS - NEEDY), ("mails.send", NEEDY)] {
        let copied = format!(
            "INSERT INTO {PREFIX}records SELECT record.*
             FROM generate_series(1, {records}) AS number,
                 (SELECT * FROM {PREFIX}records WHERE operation = '{operation}' LIMIT 1) AS one,
                 jsonb_populate_record(NULL::{PREFIX}records, to_jsonb(one) || jsonb_build_object(
                     'id', '\\x' || encode(sha256(('{operation}' || number)::bytea), 'hex'))) AS record"
        );
        run(pool, &copied).await;
    }
    run(pool, &format!("VACUUM ANALYZE {PREFIX}records")).await;
    idem
}

/// A page, asked for by eight browsers at once: how long the slowest waits.
async fn shown(app: &Router, path: &str) -> Duration {
    let began = Instant::now();
    let browsers: Vec<_> = (0..8)
        .map(|_| {
            let request = Request::get(path).body(Body::empty()).expect("a request");
            tokio::spawn(app.clone().oneshot(request))
        })
        .collect();
    for browser in browsers {
        let answer = browser.await.expect("no panic").expect("an answer");
        assert_eq!(answer.status(), StatusCode::OK);
    }
    began.elapsed()
}

#[tokio::main]
async fn main() {
    if !benches::is_measuring() {
        return;
    }
    let Ok(url) = std::env::var("IDEMPOTENT_TEST_POSTGRES_URL") else {
        eprintln!("IDEMPOTENT_TEST_POSTGRES_URL is not set: `cargo xtask servers` starts a server");
        return;
    };
    let pool = PgPool::connect(&url).await.expect("the server answers");
    let calls = Calls::default();
    let idem = filled(&pool, &calls).await;
    let access = |_: &Parts| Some(Person::reader("anna").with(Act::ALL));
    let app = Page::new(idem, access).router();
    println!("| page, for eight browsers | took | calls of the store | the slowest of them |");
    println!("|---|---:|---:|---:|");
    for path in [
        "/overview",
        "/records",
        "/records?state=attention",
        "/records?operation=payments.charge",
        "/records?state=attention&show=500",
        "/records?state=parked",
    ] {
        calls.0.lock().expect("a list").clear();
        let took = shown(&app, path).await;
        let all = calls.0.lock().expect("a list").clone();
        let slowest = all.iter().max().copied().unwrap_or_default();
        println!("| {path} | {took:.1?} | {} | {slowest:.1?} |", all.len());
    }
    run(
        &pool,
        &format!("DROP TABLE {PREFIX}records, {PREFIX}steps, {PREFIX}schema"),
    )
    .await;
}
