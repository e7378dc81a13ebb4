//! Cuts pieces out of the statements of Postgres.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use sqlx::{AssertSqlSafe, Connection, Executor, postgres::PgConnection};

use super::{
    Inner, PostgresStore, Statements,
    rows::Way,
    statements::{ARRIVED, NOW},
};
use crate::{
    store::{
        Store,
        cutter::{Bench, Cut, Unnoticed, ageing, each_is_noticed, sql},
        sql::upgrade,
    },
    testing::conformance::Subject,
};

/// What stands in the place of the time.
const TIMES: &[(&str, &str)] = &[
    ("NOW", "0::bigint"),
    ("ARRIVED", "0::bigint"),
    ("clock.now", "0::bigint"),
    ("now", "(SELECT 0::bigint AS now)"),
];

const UNNOTICED: &[Unnoticed] = &[
    Unnoticed(
        "load",
        "id IS NOT NULL",
        "a record of nothing but NULL is none",
    ),
    Unnoticed("again", "id = $1::bytea", "the version is known"),
    Unnoticed("again", "state = 2", "the version is known"),
    Unnoticed("again", "expires = $3::bigint", "the version is known"),
    Unnoticed(
        "create",
        "$9::bigint IS NULL -> ($9::bigint IS NULL AND FALSE)",
        "a claim has a least token",
    ),
    Unnoticed(
        "create",
        "now + greatest(0, … - coalesce($15::bigint, 0))",
        "a purge only looks too early",
    ),
    Unnoticed(
        "create",
        "NOT EXISTS (SELECT FROM claimed)",
        "the snapshot is from before the claim",
    ),
    Unnoticed(
        "replace",
        "THEN MAX … $16::bigint IS NULL -> ($16::bigint IS NULL AND FALSE)",
        "a purge only looks too early",
    ),
    Unnoticed(
        "replace",
        "THEN purge_from … $15::bigint IS NULL -> ($15::bigint IS NULL OR TRUE)",
        "a purge only looks too early",
    ),
    Unnoticed(
        "replace",
        "least(purge_from, … MAX - now)) -> (now + least($16::bigint, MAX - now))",
        "a purge only looks too early",
    ),
    Unnoticed(
        "replace",
        "now + least($16::bigint, MAX - now))",
        "a purge only looks too early",
    ),
    Unnoticed(
        "replace",
        "WHEN $3::text IS NULL AND -> ($3::text IS NULL OR TRUE)",
        "a purge only looks too early",
    ),
    Unnoticed(
        "replace",
        "WHEN $3::text IS NULL AND -> ($3::text IS NULL AND FALSE)",
        "a purge only looks too early",
    ),
    Unnoticed(
        "replace",
        "now + greatest(0, … - $15::bigint)",
        "a purge only looks too early",
    ),
    Unnoticed(
        "replace",
        "CASE WHEN waited … pg_notify",
        "a wait looks as well",
    ),
    Unnoticed(
        "complete",
        "CASE WHEN waited … pg_notify",
        "a wait looks as well",
    ),
    Unnoticed(
        "purge",
        "purge_from <= … $2::bigint",
        "it only decides which rows are looked at",
    ),
    Unnoticed(
        "purge",
        "ORDER BY purge_from",
        "it only decides which rows are first",
    ),
    Unnoticed(
        "purge",
        "CASE WHEN waited … pg_notify",
        "a wait looks as well",
    ),
    Unnoticed(
        "complete",
        "least(purge_from, … - ARRIVED)) -> (ARRIVED + least($4::bigint, MAX - ARRIVED))",
        "it only saves a write of the index",
    ),
    Unnoticed(
        "complete",
        "least(purge_from, … - ARRIVED)) -> 0::bigint",
        "a purge only looks too early",
    ),
    Unnoticed(
        "complete",
        "id = $1::bytea",
        "a version stands under one id",
    ),
    Unnoticed(
        "purge",
        "state = 1",
        "`purge_from` spares the others as well",
    ),
];

/// Clients of one table whose statements are these.
struct Mutant {
    sound: PostgresStore,
    statements: Arc<Statements>,
    url: String,
}

impl Mutant {
    async fn change(&self, change: String) {
        let connected = PgConnection::connect(&self.url).await;
        let mut side = connected.expect("the server answers");
        let changed = side.execute(sqlx::raw_sql(AssertSqlSafe(change))).await;
        changed.expect("the records change");
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
        let mut statements = Statements::new(&prefix, Way::Prepared);
        let (table, max) = (format!("{prefix}records"), i64::MAX.to_string());
        // Only who waits marks, and a wait looks as well.
        for (name, statement) in [
            ("load", &mut statements.load),
            ("again", &mut statements.again),
            ("create", &mut statements.create),
            ("replace", &mut statements.replace),
            ("complete", &mut statements.complete),
            ("purge", &mut statements.purge),
            ("scan", &mut statements.scan),
        ] {
            let drawn = statement.name.to_string();
            let words = [
                ("NOW", NOW),
                ("ARRIVED", ARRIVED),
                ("MAX", &max),
                ("TABLE", &table),
                ("DRAWN", &drawn),
            ];
            statement.text = cut.of(name, &statement.text, &words).into();
        }
        Self {
            sound,
            statements: Arc::new(statements),
            url,
        }
    }

    async fn empty(&self) {
        let prefix = &self.sound.inner.prefix;
        self.change(format!("DELETE FROM {prefix}records")).await;
    }
}

#[async_trait]
impl Subject for Mutant {
    async fn store(&self) -> Arc<dyn Store> {
        let sound = &self.sound.inner;
        Arc::new(PostgresStore {
            inner: Arc::new(Inner {
                connections: sound.connections.another(10),
                statements: Arc::clone(&self.statements),
                prefix: sound.prefix.clone(),
                waiters: Arc::default(),
                listening: Arc::default(),
                recent: Arc::default(),
            }),
        })
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
