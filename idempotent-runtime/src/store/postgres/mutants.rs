//! Cuts pieces out of the statements of Postgres.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use sqlx::{AssertSqlSafe, Executor};

use super::{
    Inner, PostgresStore, Statements,
    rows::Protocol,
    statements::{ARRIVED, NOW},
};
use crate::{
    store::{
        Store,
        cutter::{Bench, Cut, ageing, each_is_noticed, sql},
        sql::tests::upgrade,
    },
    testing::conformance::StoreUnderTest,
};

/// The values that stand in the place of the time.
const TIMES: &[(&str, &str)] = &[
    ("NOW", "0::bigint"),
    ("ARRIVED", "0::bigint"),
    ("clock.now", "0::bigint"),
    ("now", "(SELECT 0::bigint AS now)"),
];

/// The cuts that need not be noticed, and why.
const UNNOTICED: &str = "
    load_steps | id = record | two records rarely begin at one moment
    write_step | ON CONFLICT (record, name) | no update without it
    load | id IS NOT NULL -> (id IS NOT NULL OR TRUE) | a record of nothing but NULL is none
    again | id = $1::bytea | the version is known
    again | state = 2 | the version is known
    again | expires = $3::bigint | the version is known
    create | $9::bigint IS NULL -> ($9::bigint IS NULL AND FALSE) | a claim has a least token
    create | now + greatest(0, … - coalesce($15::bigint, 0)) -/> (MAX - now) | a purge only looks too early
    create | NOT EXISTS (SELECT FROM claimed) | the snapshot is from before the claim
    replace | THEN MAX … $16::bigint IS NULL -> ($16::bigint IS NULL AND FALSE) | a purge only looks too early
    replace | THEN purge_from … $15::bigint IS NULL -> ($15::bigint IS NULL OR TRUE) | a purge only looks too early
    replace | least(purge_from, … MAX - now)) -> (now + least($16::bigint, MAX - now)) | a purge only looks too early
    replace | now + least($16::bigint, MAX - now)) -/> (MAX - now) | a purge only looks too early
    replace | WHEN $3::text IS NULL AND -> ($3::text IS NULL OR TRUE) | a purge only looks too early
    replace | WHEN $3::text IS NULL AND -> ($3::text IS NULL AND FALSE) | a purge only looks too early
    replace | now + greatest(0, … - $15::bigint) -/> (MAX - now) | a purge only looks too early
    replace | CASE WHEN waited … pg_notify | a wait looks as well
    complete | CASE WHEN waited … pg_notify | a wait looks as well
    purge | purge_from <= … $2::bigint -/> (SELECT 0::bigint AS now) | it only decides which rows are looked at
    purge | ORDER BY purge_from | it only decides which rows are first
    purge | CASE WHEN waited … pg_notify | a wait looks as well
    complete | least(purge_from, … - ARRIVED)) -> (ARRIVED + least($4::bigint, MAX - ARRIVED)) | it only saves a write of the index
    complete | least(purge_from, ARRIVED -> 0::bigint | a purge only looks too early
    complete | id = $1::bytea | a version stands under one id
    purge | state = 1 -/> (state = 1 AND FALSE) | `purge_from` spares the others as well
";

/// Clients of one table whose statements are these.
struct Mutant {
    sound: PostgresStore,
    statements: Arc<Statements>,
    given: Mutex<Vec<PostgresStore>>,
}

impl Mutant {
    async fn change(&self, change: String) {
        let side = self.sound.inner.connections.acquire("testing").await;
        let mut side = side.expect("the server answers");
        let change = sqlx::raw_sql(AssertSqlSafe(change));
        side.connection
            .execute(change)
            .await
            .expect("the records change");
        side.release(Ok(())).expect("it changed them");
    }
}

#[async_trait]
impl Bench for Mutant {
    async fn new(cut: &Cut) -> Self {
        let url = std::env::var("IDEMPOTENT_TEST_POSTGRES_URL");
        let url = url.expect("`cargo xtask test` says where Postgres is");
        let prefix = upgrade::prefix();
        let builder = PostgresStore::builder().table_prefix(&prefix.to_string());
        let sound = builder.connect(&url).await.expect("the server answers");
        let mut statements = Statements::new(&prefix, Protocol::Extended);
        let (table, max) = (format!("{prefix}records"), i64::MAX.to_string());
        // Only a call that waits marks, and a wait looks as well.
        for (name, statement) in [
            ("load", &mut statements.load),
            ("again", &mut statements.again),
            ("create", &mut statements.create),
            ("replace", &mut statements.replace),
            ("complete", &mut statements.complete),
            ("purge", &mut statements.purge),
            ("scan", &mut statements.scan),
            ("load_steps", &mut statements.load_steps),
            ("write_step", &mut statements.write_step),
        ] {
            let drawn = statement.name.to_string();
            let words = [
                ("NOW", NOW),
                ("ARRIVED", ARRIVED),
                ("MAX", &max),
                ("TABLE", if name == "write_step" { "old" } else { &table }),
                ("DRAWN", &drawn),
            ];
            statement.text = cut.of(name, &statement.text, &words).into();
        }
        Self {
            sound,
            statements: Arc::new(statements),
            given: Mutex::default(),
        }
    }

    async fn empty(&self) {
        let prefix = &self.sound.inner.prefix;
        let both = format!("DELETE FROM {prefix}steps; DELETE FROM {prefix}records");
        self.change(both).await;
    }
}

#[async_trait]
impl StoreUnderTest for Mutant {
    async fn store(&self) -> Arc<dyn Store> {
        let sound = &self.sound.inner;
        let connections = sound.connections.another(10);
        let mut given = self.given.lock().expect("no panic here");
        // Opening a connection takes longer than most cases do with it.
        for left in given.extract_if(.., |given| Arc::strong_count(&given.inner) == 1) {
            connections.inherit(&left.inner.connections);
        }
        let store = PostgresStore {
            inner: Arc::new(Inner::with(
                connections,
                Arc::clone(&self.statements),
                sound.prefix.clone(),
            )),
        };
        given.push(store.clone());
        Arc::new(store)
    }

    async fn advance(&self, by: Duration) {
        self.change(ageing(&self.sound.inner.prefix, by)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn l07_no_condition_of_a_statement_goes_missing_unnoticed() {
    each_is_noticed::<Mutant>(|text| sql::pieces(text, TIMES), UNNOTICED).await;
}
