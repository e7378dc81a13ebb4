//! Postgres, and Postgres behind a proxy that pools transactions.

mod locks;
mod marks;
mod notifications;
mod places;
mod policies;
mod schema;
mod updates;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use super::Server;
use crate::audited;
use async_trait::async_trait;
use idempotent_runtime::{
    store::{PostgresStore, Store},
    testing::conformance::StoreUnderTest,
};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

const URL: &str = "IDEMPOTENT_TEST_POSTGRES_URL";

/// A table of its own. Every client has connections of its own, and the clock is the server's, so
/// records age instead.
pub(crate) struct Postgres {
    url: String,
    prefix: String,
    behind_proxy: bool,
}

impl Postgres {
    pub(crate) async fn new() -> Self {
        Self::at(URL, false).await
    }

    pub(crate) async fn behind_proxy() -> Self {
        Self::at("IDEMPOTENT_TEST_PGBOUNCER_URL", true).await
    }

    async fn at(name: &str, behind_proxy: bool) -> Self {
        let postgres = Self {
            url: super::url(name),
            prefix: super::prefix(),
            behind_proxy,
        };
        postgres.open().await;
        if audited::is_everything() {
            audited::in_postgres(&postgres.url, &postgres.prefix).await;
        }
        postgres
    }

    pub(crate) async fn audited() -> Self {
        let postgres = Self::new().await;
        audited::in_postgres(&postgres.url, &postgres.prefix).await;
        postgres
    }

    /// A client of the tables of this prefix.
    pub(crate) async fn open_at(prefix: &str) -> PostgresStore {
        PostgresStore::builder()
            .table_prefix(prefix)
            .connect(&super::url(URL))
            .await
            .expect("the server answers")
    }

    async fn open(&self) -> PostgresStore {
        let mut builder = PostgresStore::builder().table_prefix(&self.prefix);
        if self.behind_proxy {
            builder = builder.transaction_pooling();
        }
        let connected = builder.connect(&self.url).await;
        connected.expect("the server answers")
    }
}

async fn side(url: &str) -> PgConnection {
    let side = PgConnection::connect(url).await;
    side.expect("the server answers")
}

async fn run(side: &mut PgConnection, statements: String) {
    let run = sqlx::raw_sql(AssertSqlSafe(statements)).execute(side).await;
    run.expect("the server does it");
}

#[async_trait]
impl StoreUnderTest for Postgres {
    async fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.open().await)
    }

    async fn advance(&self, by: Duration) {
        let ageing = super::ageing(&self.prefix, by);
        let mut side = side(&self.url).await;
        run(&mut side, ageing).await;
        side.close().await.expect("the connection closes");
    }
}

#[async_trait]
impl Server for Postgres {
    fn address(&self) -> SocketAddr {
        super::address(&self.url)
    }

    async fn at(&self, address: SocketAddr, connections: u32) -> Arc<dyn Store> {
        let url = super::url_at(&self.url, address);
        let store = PostgresStore::builder().table_prefix(&self.prefix);
        let store = store.max_connections(connections).connect(&url).await;
        Arc::new(store.expect("the server answers"))
    }

    fn round_trips(&self) -> (u64, u64) {
        (2, 1)
    }
}

mod direct {
    use super::Postgres;
    idempotent_runtime::conformance_tests!(
        Postgres::new().await,
        #[ignore = "needs a server: cargo xtask test"]
    );
}

mod proxied {
    use super::Postgres;
    idempotent_runtime::conformance_tests!(
        Postgres::behind_proxy().await,
        #[ignore = "needs a server: cargo xtask test"]
    );
}
