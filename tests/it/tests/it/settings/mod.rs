//! Sessions that a server, a role or a pool sets otherwise: nothing of ours depends on it.

mod emptied;
mod forgetting;
mod forms;
mod read_only;

use std::{panic::AssertUnwindSafe, str::FromStr as _};

use futures_util::FutureExt as _;
use idempotent_runtime::outbox::OutboxDatabase;
use sqlx::{Connection as _, MySqlConnection, PgConnection, postgres::PgConnectOptions};

use self::forms::every_form_works;
use crate::{
    harness::in_time,
    servers::{self, Product, Spare},
    transactions::shop::{MariaDbShop, PostgresShop, Shop},
};

/// The settings of Postgres. A schema of its own is named by its test.
const POSTGRES: &[(&str, &str)] = &[
    ("bytea_output", "hex"),
    ("bytea_output", "escape"),
    ("standard_conforming_strings", "off"),
    ("backslash_quote", "off"),
    ("default_transaction_isolation", "repeatable read"),
    ("default_transaction_isolation", "serializable"),
    ("default_transaction_deferrable", "on"),
    ("DateStyle", "SQL, DMY"),
    ("IntervalStyle", "sql_standard"),
    ("TimeZone", "America/St_Johns"),
    ("search_path", "SCHEMA"),
    ("search_path", "SCHEMA, pg_catalog"),
    ("transform_null_equals", "on"),
    ("array_nulls", "off"),
    ("quote_all_identifiers", "on"),
    ("plan_cache_mode", "force_custom_plan"),
    ("enable_indexscan", "off"),
    ("enable_seqscan", "off"),
    ("row_security", "off"),
    ("lock_timeout", "5s"),
    ("statement_timeout", "20s"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn mend_29_nothing_depends_on_what_a_session_of_postgres_is_set_to() {
    let url = servers::url("IDEMPOTENT_TEST_POSTGRES_URL");
    let options = PgConnectOptions::from_str(&url).expect("a URL");
    let schema = format!("{}schema", servers::prefix());
    let mut admin = PgConnection::connect_with(&options)
        .await
        .expect("a connection");
    let create = format!("CREATE SCHEMA {schema}");
    PostgresShop::run(&mut admin, create)
        .await
        .expect("a schema");
    let mut failed = Vec::new();
    for (name, value) in POSTGRES {
        let value = value.replace("SCHEMA", &schema);
        let shop = PostgresShop::set(options.clone().options([(name, &value)])).await;
        failed.extend(fails(&shop, name, &value).await);
    }
    let drop = format!("DROP SCHEMA {schema} CASCADE");
    PostgresShop::run(&mut admin, drop)
        .await
        .expect("it is dropped");
    assert_eq!(failed, [""; 0]);
}

/// The settings of MariaDB.
const MARIADB: &[(&str, &str)] = &[
    ("sql_safe_updates", "1"),
    ("autocommit", "0"),
    ("sql_mode", "''"),
    ("sql_mode", "'EMPTY_STRING_IS_NULL'"),
    ("sql_mode", "'SIMULTANEOUS_ASSIGNMENT'"),
    ("sql_mode", "'ANSI_QUOTES'"),
    ("sql_mode", "'NO_BACKSLASH_ESCAPES'"),
    ("sql_mode", "'PIPES_AS_CONCAT'"),
    ("sql_mode", "'IGNORE_SPACE'"),
    ("sql_mode", "'HIGH_NOT_PRECEDENCE'"),
    ("sql_mode", "'NO_UNSIGNED_SUBTRACTION'"),
    ("sql_mode", "'PAD_CHAR_TO_FULL_LENGTH'"),
    ("sql_mode", "'TRADITIONAL'"),
    ("sql_mode", "'ANSI'"),
    ("time_zone", "'+05:30'"),
    ("tx_isolation", "'SERIALIZABLE'"),
    ("tx_isolation", "'READ-UNCOMMITTED'"),
    ("completion_type", "'CHAIN'"),
    ("sql_select_limit", "1"),
    ("unique_checks", "0"),
    ("sql_auto_is_null", "1"),
];

/// Each setting is one of the server, which the sessions of a store and of a relay begin with, and
/// one of a hook of the pool.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn mend_29_nothing_depends_on_what_a_session_of_mariadb_is_set_to() {
    let server = Spare::with(Product::MariaDb, &[]).await;
    let mut admin = MySqlConnection::connect(&server.url())
        .await
        .expect("a connection");
    let mut failed = Vec::new();
    for (name, value) in MARIADB {
        let before = format!("SET @before = @@GLOBAL.{name}, GLOBAL {name} = {value}");
        MariaDbShop::run(&mut admin, before)
            .await
            .expect("it is set");
        let shop = MariaDbShop::set(&server.url(), format!("SET SESSION {name} = {value}")).await;
        failed.extend(fails(&shop, name, value).await);
        assert_kept(&shop, name).await;
        let after = format!("SET GLOBAL {name} = @before");
        MariaDbShop::run(&mut admin, after)
            .await
            .expect("it is set");
    }
    assert_eq!(failed, [""; 0]);
}

/// The setting, if a form fails under it.
async fn fails<S: Shop<Database: OutboxDatabase>>(
    shop: &S,
    name: &str,
    value: &str,
) -> Option<String> {
    let works = AssertUnwindSafe(in_time(every_form_works(shop)));
    let failed = works.catch_unwind().await.is_err();
    failed.then(|| format!("{name} = {value}"))
}

/// Asserts that the sessions which the pool got back are set as before.
async fn assert_kept(shop: &MariaDbShop, name: &str) {
    let first = shop.pool().acquire().await.expect("a connection");
    let others = std::iter::from_fn(|| shop.pool().try_acquire());
    let mut open: Vec<_> = std::iter::once(first).chain(others).collect();
    let others = format!("SELECT CAST(@@SESSION.{name} <> @@GLOBAL.{name} AS SIGNED)");
    for connection in &mut open {
        let found = MariaDbShop::numbers(connection, others.clone()).await;
        assert_eq!(found.expect("a number"), [0], "{name}");
    }
}
