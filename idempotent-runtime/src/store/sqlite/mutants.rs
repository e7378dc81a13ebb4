//! Cuts pieces out of the statements of SQLite.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use sqlx::{AssertSqlSafe, Executor};

use super::{Inner, SqliteStore, Statements, statements::NOW};
use crate::{
    store::{
        Store,
        cutter::{Bench, Cut, ageing, each_is_noticed, sql},
        sql::{TablePrefix, version::Inside},
    },
    testing::conformance::StoreUnderTest,
};

/// The values that stand in the place of the time.
const TIMES: &[(&str, &str)] = &[("NOW", "0"), ("now", "0")];

/// The cuts that need not be noticed, and why.
const UNNOTICED: &str = "
    create | FROM TABLE WHERE id = ?1; -> (id = ?1 OR TRUE) | any row ends the statements
    create | now + max(0, … - coalesce(?15, 0)) -/> (MAX - now) | a purge only looks too early
    create | ON CONFLICT (id) DO NOTHING | only another connection comes between
    create | token, lease_end, expires; … WHERE changes() = 0 -/> (changes() = 0 OR TRUE) | only another connection comes between
    replace | now + max(0, … - coalesce(?15, 0)) -/> (MAX - now) | a purge only looks too early
    replace | min(purge_from, expires) | each is a bound
    replace | changes() = 0 | it only saves a look
    finish | attempt = … on_crash = ?14 | a completion keeps what its claim wrote
    finish | SELECT coalesce(max(?9 … lease_end) -/> (now) / (MAX - now) | a completion keeps what its claim wrote
    finish | CASE ?8 WHEN 1 -> NULL | a completion does not go on
    finish | NOW + ?16 | another statement does the same
    finish | changes() = 0 | it only saves a look
    purge | purge_from <= now - ?2 -/> 0 | it only decides which rows are looked at
    load_steps | id = record | two records rarely begin at one moment
    write_step | ON CONFLICT (record, name) | no update without it
    purge | state = 1 -/> (state = 1 AND FALSE) | `purge_from` spares the others as well
";

/// A store in memory with statements of a test's.
struct Mutant(SqliteStore);

impl Mutant {
    async fn change(&self, change: String) {
        let connection = self.0.inner.connections.acquire("testing").await;
        let mut connection = connection.expect("memory is open");
        let changed = connection
            .execute(sqlx::raw_sql(AssertSqlSafe(change)))
            .await;
        changed.expect("the records change");
    }
}

#[async_trait]
impl Bench for Mutant {
    async fn new(cut: &Cut) -> Self {
        let sound = SqliteStore::in_memory().await.expect("memory opens");
        let another = sound.inner.connections.another("testing").await;
        let prefix = TablePrefix::default();
        let mut statements = Statements::new(&prefix);
        let (table, max) = (format!("{prefix}records"), i64::MAX.to_string());
        // The statements for several records at once are made of these, and have tests of their
        // own.
        for (name, statement) in [
            ("load", &mut statements.load),
            ("create", &mut statements.create),
            ("replace", &mut statements.replace),
            ("finish", &mut statements.finish),
            ("purge", &mut statements.purge),
            ("scan", &mut statements.scan),
            ("load_steps", &mut statements.load_steps),
            ("write_step", &mut statements.write_step),
        ] {
            let table = if name == "write_step" { "old" } else { &table };
            let words = [("NOW", NOW), ("MAX", &max), ("TABLE", table)];
            *statement = cut.of(name, statement, &words).into();
        }
        let inner = Inner {
            connections: another.expect("memory opens again").expect("it has a name"),
            statements: Arc::new(statements),
            prefix,
            inside: Inside::default(),
            waiters: Arc::default(),
            queue: None,
        };
        Self(SqliteStore {
            inner: Arc::new(inner),
        })
    }

    async fn empty(&self) {
        let prefix = &self.0.inner.prefix;
        self.change(format!("DELETE FROM {prefix}records")).await;
    }
}

#[async_trait]
impl StoreUnderTest for Mutant {
    async fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.0.clone())
    }

    async fn advance(&self, by: Duration) {
        self.change(ageing(&self.0.inner.prefix, by)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l07_no_condition_of_a_statement_goes_missing_unnoticed() {
    each_is_noticed::<Mutant>(|text| sql::pieces(text, TIMES), UNNOTICED).await;
}
