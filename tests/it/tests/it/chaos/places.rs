//! The stores that chaos runs use, and ways to them.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use idempotent_runtime::{
    StoreError,
    store::{MySqlStore, PostgresStore, RedisStore, SqliteStore, Store, mysql::as_mysql},
};
use tempfile::TempDir;

use crate::servers;

const POSTGRES: &str = "IDEMPOTENT_TEST_POSTGRES_URL";
const MARIADB: &str = "IDEMPOTENT_TEST_MARIADB_URL";
const REDIS: &str = "IDEMPOTENT_TEST_REDIS_URL";
const CLUSTER: &str = "IDEMPOTENT_TEST_REDIS_CLUSTER_URLS";

/// The place of the records of a test, which are no other test's.
#[derive(Debug)]
pub(super) struct Place {
    product: Product,
    prefix: String,
    folder: TempDir,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Product {
    Sqlite,
    Postgres,
    MariaDb,
    /// MariaDB that is told what MySQL would be told.
    AsMySql,
    Redis,
    Cluster,
}

impl Place {
    pub(super) fn new(product: Product) -> Self {
        Self {
            product,
            prefix: servers::prefix(),
            folder: tempfile::tempdir().expect("a temporary folder"),
        }
    }

    /// The address of the server; nothing if a client goes its own ways, or to no server.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        let name = match self.product {
            Product::Sqlite | Product::Cluster => return None,
            Product::Postgres => POSTGRES,
            Product::MariaDb | Product::AsMySql => MARIADB,
            Product::Redis => REDIS,
        };
        Some(servers::address(&servers::url(name)))
    }

    /// Another client, which finds the server at `at` and waits so long for an answer.
    pub(super) async fn open(
        &self,
        at: Option<SocketAddr>,
        answer: Duration,
    ) -> Result<Arc<dyn Store>, StoreError> {
        let url = |name| {
            let url = servers::url(name);
            at.map_or(url.clone(), |at| servers::url_at(&url, at))
        };
        Ok(match self.product {
            Product::Sqlite => {
                let path = self.folder.path().join("records.db");
                Arc::new(SqliteStore::open(path).await?)
            }
            Product::Postgres => {
                let builder = PostgresStore::builder().table_prefix(&self.prefix);
                let builder = builder.max_connections(4).answer_timeout(answer);
                Arc::new(builder.connect(&url(POSTGRES)).await?)
            }
            Product::MariaDb | Product::AsMySql => {
                let builder = MySqlStore::builder().table_prefix(&self.prefix);
                let mut builder = builder.max_connections(4).answer_timeout(answer);
                if self.product == Product::AsMySql {
                    builder = as_mysql(builder);
                }
                Arc::new(builder.connect(&url(MARIADB)).await?)
            }
            Product::Redis => {
                let builder = self.redis(answer);
                Arc::new(builder.connect(&url(REDIS)).await?)
            }
            Product::Cluster => {
                let urls = servers::url(CLUSTER);
                let builder = self.redis(answer);
                Arc::new(builder.connect_cluster(urls.split(',')).await?)
            }
        })
    }

    fn redis(&self, answer: Duration) -> idempotent_runtime::store::redis::RedisBuilder {
        RedisStore::builder()
            .key_prefix(&self.prefix)
            .answer_timeout(answer)
            .accept_at_most_once_until_failover()
    }
}
