//! The same ledger on two databases.

use std::future::Future;

use idempotent_runtime::{
    StoreError,
    store::{MySqlStore, PostgresStore, SqlConnection, Store},
};
use sqlx::{
    AssertSqlSafe, Database, Executor, MySql, MySqlPool, PgPool, Pool, Postgres, Row,
    mysql::MySqlPoolOptions, postgres::PgPoolOptions,
};

const ACCOUNTS: i64 = 8;

/// All money at the beginning, on each account.
pub const BALANCE: i64 = 1_000_000;

/// A database that a ledger stands in.
pub trait Ledger: Database<Connection: SqlConnection> {
    /// The variable with the address of a server.
    const VARIABLE: &'static str;

    /// A pool over a database.
    fn open(url: &str) -> impl Future<Output = sqlx::Result<Pool<Self>>> + Send;

    /// A store over the pool, with its tables.
    fn store(
        pool: Pool<Self>,
    ) -> impl Future<Output = Result<impl Store + 'static, StoreError>> + Send;

    /// Runs a statement that holds numbers only.
    fn run(
        connection: &mut Self::Connection,
        statement: String,
    ) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// Reads rows of two numbers.
    fn pairs(
        pool: &Pool<Self>,
        query: &'static str,
    ) -> impl Future<Output = sqlx::Result<Vec<(i64, i64)>>> + Send;

    /// Makes the accounts.
    fn create(pool: &Pool<Self>) -> impl Future<Output = sqlx::Result<()>> + Send
    where
        Self: Sized,
    {
        async move {
            let mut connection = pool.acquire().await?;
            for table in [
                "CREATE TABLE accounts (id BIGINT PRIMARY KEY, cents BIGINT NOT NULL)",
                "CREATE TABLE entries (number BIGINT NOT NULL, account BIGINT NOT NULL, cents BIGINT NOT NULL)",
            ] {
                Self::run(&mut connection, table.to_owned()).await?;
            }
            for account in 0..ACCOUNTS {
                let account = format!("INSERT INTO accounts VALUES ({account}, {BALANCE})");
                Self::run(&mut connection, account).await?;
            }
            Ok(())
        }
    }
}

macro_rules! ledger {
    ($database:ident, $variable:literal, $options:ident, $pool:ident, $store:ident) => {
        impl Ledger for $database {
            const VARIABLE: &'static str = $variable;

            async fn open(url: &str) -> sqlx::Result<$pool> {
                $options::new().max_connections(6).connect(url).await
            }

            async fn store(pool: $pool) -> Result<impl Store + 'static, StoreError> {
                let store = $store::new(pool);
                store.migrate().await?;
                Ok(store)
            }

            async fn run(
                connection: &mut <$database as Database>::Connection,
                statement: String,
            ) -> sqlx::Result<()> {
                let statement = sqlx::query(AssertSqlSafe(statement));
                connection.execute(statement).await.map(drop)
            }

            async fn pairs(pool: &$pool, query: &'static str) -> sqlx::Result<Vec<(i64, i64)>> {
                let rows = pool.fetch_all(query).await?;
                rows.iter()
                    .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
                    .collect()
            }
        }
    };
}

ledger!(
    Postgres,
    "IDEMPOTENT_TEST_POSTGRES_URL",
    PgPoolOptions,
    PgPool,
    PostgresStore
);
ledger!(
    MySql,
    "IDEMPOTENT_TEST_MARIADB_URL",
    MySqlPoolOptions,
    MySqlPool,
    MySqlStore
);
