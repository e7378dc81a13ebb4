//! MariaDB, MariaDB that is told what MySQL would be told, and MySQL if there is one.

mod chains;
mod costs;
mod identity;
mod locks;
mod refusals;
mod schema;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use idempotent_runtime::{
    StoreError, StoreErrorKind,
    store::{
        MySqlStore, Store,
        mysql::{MySqlBuilder, as_mysql},
    },
    testing::conformance::StoreUnderTest,
};
use sqlx::{AssertSqlSafe, Connection, MySqlConnection, Row, mysql::MySqlConnectOptions};

use super::Server;
use crate::audited;

/// A table of its own. Every client has connections of its own, and the clock is the server's, so
/// records age instead.
pub(crate) struct MariaDb {
    url: String,
    prefix: String,
    is_mysql: bool,
}

impl MariaDb {
    /// If the variable names MySQL, every test of MariaDB is one of MySQL.
    pub(crate) async fn new() -> Self {
        let version = text(&mut side(&url()).await, "SELECT VERSION()".to_owned(), 0).await;
        Self::at(url(), !version.contains("MariaDB")).await
    }

    /// The real MySQL if `IDEMPOTENT_TEST_MYSQL_URL` names one; Debian does not have it. Otherwise
    /// MariaDB stands in for it, and is told what MySQL would be told.
    pub(crate) async fn or_mysql() -> Self {
        let mysql = std::env::var("IDEMPOTENT_TEST_MYSQL_URL");
        Self::at(mysql.unwrap_or_else(|_| url()), true).await
    }

    async fn at(url: String, is_mysql: bool) -> Self {
        let database = Self {
            url,
            prefix: super::prefix(),
            is_mysql,
        };
        database.open().await;
        if audited::is_everything() {
            audited::in_mysql(&database.url, &database.prefix).await;
        }
        database
    }

    pub(crate) async fn audited() -> Self {
        Self::new().await.with_a_trail().await
    }

    pub(crate) async fn or_mysql_audited() -> Self {
        Self::or_mysql().await.with_a_trail().await
    }

    async fn with_a_trail(self) -> Self {
        audited::in_mysql(&self.url, &self.prefix).await;
        self
    }

    /// A client of the tables of this prefix.
    pub(crate) async fn open_at(prefix: &str) -> MySqlStore {
        let builder = MySqlStore::builder().table_prefix(prefix);
        let opened = builder.connect(&url()).await;
        opened.expect("the server answers")
    }

    fn builder(&self) -> MySqlBuilder {
        let builder = MySqlStore::builder().table_prefix(&self.prefix);
        if self.is_mysql {
            as_mysql(builder)
        } else {
            builder
        }
    }

    async fn open(&self) -> MySqlStore {
        let opened = self.builder().connect(&self.url).await;
        opened.expect("the server answers")
    }

    /// Runs statements past the store.
    async fn run(&self, statements: String) {
        run(&mut side(&self.url).await, statements).await;
    }
}

fn url() -> String {
    super::url("IDEMPOTENT_TEST_MARIADB_URL")
}

fn options() -> MySqlConnectOptions {
    url().parse().expect("a URL of MariaDB")
}

/// A client of the tables of this prefix, which has not connected yet.
fn lazy(prefix: &str, options: MySqlConnectOptions) -> MySqlStore {
    let builder = MySqlStore::builder().table_prefix(prefix);
    builder.options(options).expect("the options can be used")
}

async fn side(url: &str) -> MySqlConnection {
    let side = MySqlConnection::connect(url).await;
    side.expect("the server answers")
}

async fn run(connection: &mut MySqlConnection, statements: String) {
    let run = sqlx::raw_sql(AssertSqlSafe(statements))
        .execute(connection)
        .await;
    run.expect("the server does it");
}

async fn text(connection: &mut MySqlConnection, query: String, place: usize) -> String {
    let row = sqlx::raw_sql(AssertSqlSafe(query))
        .fetch_one(connection)
        .await;
    row.expect("a row").try_get(place).expect("a text")
}

fn kind<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> StoreErrorKind {
    answer.expect_err("it fails").kind()
}

#[async_trait]
impl StoreUnderTest for MariaDb {
    async fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.open().await)
    }

    async fn advance(&self, by: Duration) {
        let ageing = super::ageing(&self.prefix, by);
        self.run(ageing).await;
    }
}

#[async_trait]
impl Server for MariaDb {
    fn address(&self) -> SocketAddr {
        super::address(&self.url)
    }

    async fn at(&self, address: SocketAddr, connections: u32) -> Arc<dyn Store> {
        let url = super::url_at(&self.url, address);
        let builder = self.builder().max_connections(connections);
        Arc::new(builder.connect(&url).await.expect("the server answers"))
    }

    fn round_trips(&self) -> (u64, u64) {
        (3, 1)
    }
}

mod direct {
    use super::MariaDb;
    idempotent_runtime::conformance_tests!(
        MariaDb::new().await,
        #[ignore = "needs a server: cargo xtask test"]
    );
}

mod or_mysql {
    use super::MariaDb;
    idempotent_runtime::conformance_tests!(
        MariaDb::or_mysql().await,
        #[ignore = "needs a server: cargo xtask test"]
    );
}
