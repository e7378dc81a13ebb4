//! MariaDB, what MySQL is told on MariaDB, and MySQL where there is one.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use idempotent_runtime::{
    store::{MySqlStore, Store, mysql::MySqlBuilder},
    testing::conformance::Subject,
};
use sqlx::{AssertSqlSafe, Connection, MySqlConnection};

use super::Server;

/// A table of its own. Every client has connections of its own, and the clock is the server's, so records age instead.
pub(crate) struct MariaDb {
    url: String,
    prefix: String,
    as_mysql: bool,
}

impl MariaDb {
    pub(crate) async fn new() -> Self {
        Self::at(super::url("IDEMPOTENT_TEST_MARIADB_URL"), false).await
    }

    /// With the statements of MySQL only.
    pub(crate) async fn as_mysql() -> Self {
        Self::at(super::url("IDEMPOTENT_TEST_MARIADB_URL"), true).await
    }

    /// The real MySQL where `IDEMPOTENT_TEST_MYSQL_URL` names one, which Debian does not have; else as far as MariaDB can stand in.
    pub(crate) async fn or_mysql() -> Self {
        match std::env::var("IDEMPOTENT_TEST_MYSQL_URL") {
            Ok(url) => Self::at(url, false).await,
            Err(_) => Self::as_mysql().await,
        }
    }

    async fn at(url: String, as_mysql: bool) -> Self {
        let database = Self {
            url,
            prefix: super::prefix(),
            as_mysql,
        };
        database.open().await;
        database
    }

    fn builder(&self) -> MySqlBuilder {
        let builder = MySqlStore::builder().table_prefix(&self.prefix);
        if self.as_mysql {
            builder.as_mysql()
        } else {
            builder
        }
    }

    async fn open(&self) -> MySqlStore {
        let opened = self.builder().connect(&self.url).await;
        opened.expect("the server answers")
    }
}

#[async_trait]
impl Subject for MariaDb {
    async fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.open().await)
    }

    async fn advance(&self, by: Duration) {
        let by = by.as_micros();
        let ageing = format!(
            "UPDATE {}records SET lease_end = lease_end - {by}, created = created - {by},
                    finished = finished - {by}, expires = expires - {by}, purge_from = purge_from - {by}",
            self.prefix
        );
        let side = MySqlConnection::connect(&self.url).await;
        let mut side = side.expect("the server answers");
        let aged = sqlx::raw_sql(AssertSqlSafe(ageing))
            .execute(&mut side)
            .await;
        aged.expect("records age");
        side.close().await.expect("the connection closes");
    }
}

#[async_trait]
impl Server for MariaDb {
    fn address(&self) -> SocketAddr {
        super::address(&self.url)
    }

    async fn at(&self, address: SocketAddr, connections: u32) -> Arc<dyn Store> {
        let url = self
            .url
            .replace(&self.address().to_string(), &address.to_string());
        let builder = self.builder().max_connections(connections);
        Arc::new(builder.connect(&url).await.expect("the server answers"))
    }

    const ROUND_TRIPS: (u64, u64) = (3, 1);
}

mod mariadb {
    use super::MariaDb;
    idempotent_runtime::conformance_tests!(
        MariaDb::new().await,
        #[ignore = "needs a server: cargo xtask test"]
    );
}

mod mariadb_or_mysql {
    use super::MariaDb;
    idempotent_runtime::conformance_tests!(
        MariaDb::or_mysql().await,
        #[ignore = "needs a server: cargo xtask test"]
    );
}
