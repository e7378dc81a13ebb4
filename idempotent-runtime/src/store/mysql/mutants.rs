//! Cuts pieces out of the statements of MariaDB.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use async_trait::async_trait;
use sqlx::{AssertSqlSafe, Executor};

use super::{
    Inner, MySqlStore, Statements,
    statements::{NOW, Statement},
};
use crate::{
    store::{
        Store,
        cutter::{Bench, Cut, ageing, each_is_noticed, sql},
        sql::tests::upgrade,
    },
    testing::conformance::StoreUnderTest,
};

/// The text that stands in the place of the time.
const TIMES: &[(&str, &str)] = &[("NOW", "0")];

/// The places where nothing needs to be noticed, and why.
const UNNOTICED: &str = "
    again | id = ?1 | the version is known
    again | state = 2 | the version is known
    again | expires = ?3 | the version is known
    create | NOW + GREATEST(0, … - COALESCE(?15, 0)) -/> (MAX - NOW) | a purge only looks too early
    replace | THEN purge_from … ?15 IS NULL -> (?15 IS NULL OR TRUE) | a purge only looks too early
    replace | LEAST(purge_from, … MAX - NOW)) -> (NOW + LEAST(?16, MAX - NOW)) | a purge only looks too early
    replace | NOW + LEAST(?16, MAX - NOW)) -/> (MAX - NOW) | a purge only looks too early
    replace | WHEN ?3 IS NULL AND -> (?3 IS NULL OR TRUE) | a purge only looks too early
    replace | WHEN ?3 IS NULL AND -> (?3 IS NULL AND FALSE) | a purge only looks too early
    replace | NOW + GREATEST(0, … - ?15) -/> (MAX - NOW) | a purge only looks too early
    replace_and_show | operation = … TABLE.digests) | `replace` has the same assignments
    replace_and_show | token = … TABLE.token) -/> (NOW) | `replace` has the same assignments
    replace_and_show | attempt = … on_crash = ?14 | `replace` has the same assignments
    replace_and_show | LEAST(?15, MAX - NOW) -/> (MAX - NOW) | `replace` has the same assignments
    replace_and_show | created = … TABLE.created, NOW) -/> (?3 IS NULL AND FALSE) | `replace` has the same assignments
    replace_and_show | LEAST(?16, MAX - NOW) -/> (MAX - NOW) | `replace` has the same assignments
    replace_and_show | purge_from = CASE … END | `replace` has the same assignments
    expired | purge_from <= NOW - ?2 -/> 0 | it only decides which rows are looked at
    expired | ORDER BY purge_from | it only decides which rows are first
    replace | LAST_INSERT_ID(NOW + 0 * state) = 0 -> (LAST_INSERT_ID(NOW + 0 * state) = 0 AND FALSE) | the time is never 0
    complete | LEAST(purge_from, … - NOW)) -> (NOW + LEAST(?4, MAX - NOW)) | it only saves a write of the index
    complete | LEAST(purge_from, NOW -> 0 | a purge only looks too early
    complete | id = ?1 | a version stands under one id
    expired | state = 1 -/> (state = 1 AND FALSE) | `purge_from` spares the others as well
    load_steps | record.id = step.record | two records rarely begin at one moment
    write_step | LAST_INSERT_ID(1 + 0 * held.state) -> (1 + 0 * held.state) | a write that is told nothing looks
    write_step | life = IF(@idempotent_over -> (@idempotent_over OR TRUE) | a refused write is of the same life
    write_step | held.id = ?1 LOCK IN SHARE MODE | the cut takes the lock for a part of it
    create | LAST_INSERT_ID(NOW) -> (NOW) | a claim that is told no time looks at the record
    create | state = TABLE.state + LAST_INSERT_ID(0 * TABLE.state) -> state = TABLE.state | it is the same as its last operand alone
    create | LAST_INSERT_ID(0 * TABLE.state) -> (0 * TABLE.state) | only a case that is left out tells
    complete | LAST_INSERT_ID(NOW + 0 * state) -> (NOW + 0 * state) | only a case that is left out tells
";

/// Clients of one table whose statements are these.
struct Mutant {
    sound: MySqlStore,
    statements: Arc<Statements>,
}

impl Mutant {
    async fn change(&self, change: String) {
        let side = self.sound.inner.connections.acquire("testing").await;
        let mut side = side.expect("the server answers");
        let change = sqlx::raw_sql(AssertSqlSafe(change));
        let changed = side.connection.execute(change).await;
        changed.expect("the records change");
        side.release(Ok(())).expect("it changed them");
    }
}

#[async_trait]
impl Bench for Mutant {
    async fn new(cut: &Cut) -> Self {
        let url = std::env::var("IDEMPOTENT_TEST_MARIADB_URL");
        let url = url.expect("`cargo xtask test` says where MariaDB is");
        let prefix = upgrade::prefix();
        let builder = MySqlStore::builder().table_prefix(&prefix.to_string());
        let sound = builder.connect(&url).await.expect("the server answers");
        let mut statements = Statements::new(&prefix);
        let (table, max) = (format!("{prefix}records"), i64::MAX.to_string());
        let steps = statements.steps.clone();
        for (name, statement) in [
            ("load", &mut statements.load),
            ("again", &mut statements.again),
            ("create", &mut statements.create),
            ("replace", &mut statements.replace),
            ("complete", &mut statements.complete),
            ("replace_and_show", &mut statements.replace_and_show),
            ("expired", &mut statements.expired),
            ("scan", &mut statements.scan),
            ("load_steps", &mut statements.load_steps),
            ("write_step", &mut statements.write_step),
        ] {
            let table = if name == "write_step" { &steps } else { &table };
            let words = [("NOW", NOW), ("MAX", &max), ("TABLE", table)];
            *statement = Statement::new(&cut.of(name, &numbered(statement), &words));
        }
        Self {
            sound,
            statements: Arc::new(statements),
        }
    }

    async fn empty(&self) {
        let prefix = &self.sound.inner.prefix;
        let both = format!("DELETE FROM {prefix}steps; DELETE FROM {prefix}records");
        self.change(both).await;
    }
}

/// The text of a statement before the numbers were taken out of it.
fn numbered(statement: &Statement) -> String {
    let mut parts = statement.text.split('?');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for (part, place) in parts.zip(&statement.places) {
        write!(text, "?{}{part}", place + 1).expect("a text takes everything");
    }
    text
}

#[async_trait]
impl StoreUnderTest for Mutant {
    async fn store(&self) -> Arc<dyn Store> {
        let sound = &self.sound.inner;
        Arc::new(MySqlStore {
            inner: Arc::new(Inner::with(
                sound.connections.another(10),
                Arc::clone(&self.statements),
                sound.prefix.clone(),
            )),
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
