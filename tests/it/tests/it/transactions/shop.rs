//! A database of an application's with a table of its own, and a store beside it.

use std::{net::SocketAddr, path::Path, sync::Arc};

use async_trait::async_trait;
use idempotent_runtime::store::{MySqlStore, PostgresStore, SqlConnection, SqliteStore, Store};
use sqlx::{
    AssertSqlSafe, Connection, Database, Executor, MySql, MySqlPool, Pool, Postgres, Row, Sqlite,
    Transaction,
    mysql::MySqlPoolOptions,
    postgres::{PgConnectOptions, PgPoolOptions},
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};
use tempfile::TempDir;

use crate::servers;

/// An application that places orders in `orders`.
#[async_trait]
pub(crate) trait Shop: Send + Sync + 'static {
    type Database: Database<Connection: SqlConnection>;

    fn store(&self) -> Arc<dyn Store>;

    fn pool(&self) -> &Pool<Self::Database>;

    /// How a transaction begins, where it is not the driver's own way.
    const BEGIN: Option<&'static str> = None;

    async fn run(
        connection: &mut <Self::Database as Database>::Connection,
        statement: String,
    ) -> sqlx::Result<()>;

    /// The numbers that a query tells, one a row.
    async fn numbers(
        connection: &mut <Self::Database as Database>::Connection,
        query: String,
    ) -> sqlx::Result<Vec<i64>>;

    /// The prefix of the tables of this test.
    fn prefix(&self) -> &str;

    /// The table of the records.
    fn records(&self) -> String {
        match self.prefix() {
            "" => "idempotent_records".to_owned(),
            prefix => format!("{prefix}records"),
        }
    }

    async fn begin(&self) -> sqlx::Result<Transaction<'static, Self::Database>> {
        match Self::BEGIN {
            Some(statement) => self.pool().begin_with(statement).await,
            None => self.pool().begin().await,
        }
    }

    /// The same on a connection that no pool gets back.
    async fn begin_on<'c>(
        connection: &'c mut <Self::Database as Database>::Connection,
    ) -> sqlx::Result<Transaction<'c, Self::Database>> {
        match Self::BEGIN {
            Some(statement) => connection.begin_with(statement).await,
            None => connection.begin().await,
        }
    }

    /// Writes an order where the connection stands.
    async fn order(
        &self,
        connection: &mut <Self::Database as Database>::Connection,
        item: i64,
    ) -> sqlx::Result<()> {
        let orders = self.prefix();
        let insert = format!("INSERT INTO {orders}orders (item) VALUES ({item})");
        Self::run(connection, insert).await
    }

    /// The orders that were committed.
    async fn orders(&self) -> Vec<i64> {
        let orders = self.prefix();
        let query = format!("SELECT item FROM {orders}orders ORDER BY item");
        let mut connection = self.pool().acquire().await.expect("a connection");
        let numbers = Self::numbers(&mut connection, query).await;
        numbers.expect("the orders are read")
    }
}

macro_rules! shop {
    ($shop:ident of $database:ident, $($begin:literal)?) => {
        #[async_trait]
        impl Shop for $shop {
            type Database = $database;

            $(const BEGIN: Option<&'static str> = Some($begin);)?

            fn store(&self) -> Arc<dyn Store> {
                Arc::clone(&self.store)
            }

            fn pool(&self) -> &Pool<$database> {
                &self.pool
            }

            fn prefix(&self) -> &str {
                &self.prefix
            }

            async fn run(
                connection: &mut <$database as Database>::Connection,
                statement: String,
            ) -> sqlx::Result<()> {
                let statement = sqlx::raw_sql(AssertSqlSafe(statement));
                connection.execute(statement).await.map(drop)
            }

            async fn numbers(
                connection: &mut <$database as Database>::Connection,
                query: String,
            ) -> sqlx::Result<Vec<i64>> {
                let query = sqlx::raw_sql(AssertSqlSafe(query));
                let rows = connection.fetch_all(query).await?;
                rows.iter().map(|row| row.try_get(0)).collect()
            }
        }
    };
}

async fn with_orders<S: Shop>(shop: S) -> S {
    let create = format!(
        "CREATE TABLE {}orders (item BIGINT NOT NULL)",
        shop.prefix()
    );
    let mut connection = shop.pool().acquire().await.expect("a connection");
    S::run(&mut connection, create).await.expect("a table");
    drop(connection);
    shop
}

/// A shop on SQLite, whose pool is its own.
pub(crate) struct SqliteShop {
    pool: Pool<Sqlite>,
    store: Arc<dyn Store>,
    prefix: String,
    _folder: Option<TempDir>,
}
shop!(SqliteShop of Sqlite, "BEGIN IMMEDIATE");

impl SqliteShop {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut shop = with_orders(Self::open(folder.path()).await).await;
        shop._folder = Some(folder);
        shop
    }

    /// Opens what is in a folder, which several processes may.
    pub(crate) async fn open(folder: &Path) -> Self {
        let path = folder.join("shop.db");
        let store = SqliteStore::open(&path).await.expect("the file opens");
        let options = SqliteConnectOptions::new().filename(path);
        let pool = SqlitePoolOptions::new().max_connections(8);
        let pool = pool.connect_with(options).await.expect("the file opens");
        Self {
            pool,
            store: Arc::new(store),
            prefix: String::new(),
            _folder: None,
        }
    }
}

/// A shop on Postgres.
pub(crate) struct PostgresShop {
    pool: Pool<Postgres>,
    store: Arc<dyn Store>,
    prefix: String,
}
shop!(PostgresShop of Postgres,);

impl PostgresShop {
    pub(crate) async fn new() -> Self {
        Self::at(&servers::url("IDEMPOTENT_TEST_POSTGRES_URL")).await
    }

    /// The shop whose pool has this on each connection before it is used again.
    pub(crate) async fn between(statement: &'static str) -> Self {
        let url = servers::url("IDEMPOTENT_TEST_POSTGRES_URL");
        let mut shop = Self::at(&url).await;
        let pool = PgPoolOptions::new().max_connections(16);
        let pool = pool.before_acquire(move |connection, _| {
            Box::pin(async move {
                Self::run(connection, statement.to_owned()).await?;
                Ok(true)
            })
        });
        shop.pool = pool.connect(&url).await.expect("the server answers");
        shop
    }

    pub(crate) async fn at(url: &str) -> Self {
        with_orders(Self::open(url, servers::prefix()).await).await
    }

    /// Opens the tables of this prefix, which several processes may.
    pub(crate) async fn open(url: &str, prefix: String) -> Self {
        let store = PostgresStore::builder().table_prefix(&prefix);
        let store = store
            .connect(&servers::url("IDEMPOTENT_TEST_POSTGRES_URL"))
            .await;
        let pool = PgPoolOptions::new().max_connections(16).connect(url).await;
        Self {
            pool: pool.expect("the server answers"),
            store: Arc::new(store.expect("the server answers")),
            prefix,
        }
    }
}

impl PostgresShop {
    /// The shop whose pool and whose store connect so.
    pub(crate) async fn set(options: PgConnectOptions) -> Self {
        let prefix = servers::prefix();
        let store = PostgresStore::builder().table_prefix(&prefix);
        let store = store
            .options(options.clone())
            .expect("the options are used");
        store.migrate().await.expect("tables");
        let pool = PgPoolOptions::new().max_connections(16);
        let shop = Self {
            pool: pool
                .connect_with(options)
                .await
                .expect("the server answers"),
            store: Arc::new(store),
            prefix,
        };
        with_orders(shop).await
    }
}

/// A shop on MariaDB, or on MySQL where the variable names that.
pub(crate) struct MariaDbShop {
    pool: MySqlPool,
    store: Arc<dyn Store>,
    prefix: String,
}
shop!(MariaDbShop of MySql,);

impl MariaDbShop {
    pub(crate) async fn new() -> Self {
        Self::at(&servers::url("IDEMPOTENT_TEST_MARIADB_URL")).await
    }

    async fn at(url: &str) -> Self {
        with_orders(Self::open(url, servers::prefix()).await).await
    }

    /// Opens the tables of this prefix, which several processes may.
    pub(crate) async fn open(url: &str, prefix: String) -> Self {
        let store = MySqlStore::builder().table_prefix(&prefix);
        let store = store
            .connect(&servers::url("IDEMPOTENT_TEST_MARIADB_URL"))
            .await;
        let pool = MySqlPoolOptions::new().max_connections(16).connect(url);
        let pool = pool.await;
        Self {
            pool: pool.expect("the server answers"),
            store: Arc::new(store.expect("the server answers")),
            prefix,
        }
    }
}

impl MariaDbShop {
    /// The shop at a server whose sessions begin with this statement.
    pub(crate) async fn set(url: &str, statement: String) -> Self {
        let prefix = servers::prefix();
        let store = MySqlStore::builder().table_prefix(&prefix);
        let store = store.connect(url).await.expect("the server answers");
        let pool = MySqlPoolOptions::new().max_connections(16);
        let pool = pool.after_connect(move |connection, _| {
            let statement = statement.clone();
            Box::pin(async move { Self::run(connection, statement).await })
        });
        let shop = Self {
            pool: pool.connect(url).await.expect("the server answers"),
            store: Arc::new(store),
            prefix,
        };
        with_orders(shop).await
    }
}

/// A shop on a server, whose own connections may go elsewhere than its store's.
#[async_trait]
pub(crate) trait Remote: Shop + Sized {
    const URL: &'static str;

    async fn through(address: SocketAddr) -> Self;

    /// The same, with as many messages for each statement the second time as the first.
    async fn through_uncached(address: SocketAddr) -> Self {
        Self::through(address).await
    }
}

#[async_trait]
impl Remote for PostgresShop {
    const URL: &'static str = "IDEMPOTENT_TEST_POSTGRES_URL";

    async fn through(address: SocketAddr) -> Self {
        Self::at(&servers::url_at(&servers::url(Self::URL), address)).await
    }
}

#[async_trait]
impl Remote for MariaDbShop {
    const URL: &'static str = "IDEMPOTENT_TEST_MARIADB_URL";

    async fn through(address: SocketAddr) -> Self {
        Self::at(&servers::url_at(&servers::url(Self::URL), address)).await
    }

    async fn through_uncached(address: SocketAddr) -> Self {
        let url = servers::url_at(&servers::url(Self::URL), address);
        Self::at(&format!("{url}?statement-cache-capacity=0")).await
    }
}
