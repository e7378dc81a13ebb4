//! A transaction in another database than the store's, which has the store's tables, too.

use idempotent_runtime::{
    Error, Idempotency, StoreError, StoreErrorKind,
    store::{MySqlStore, PostgresStore, SqliteStore},
    transaction::SqlDatabase,
};
use sqlx::{AssertSqlSafe, MySqlPool, PgPool, Pool, SqlitePool};

use super::{
    Placed, ours, place,
    shop::{MariaDbShop, PostgresShop, Remote, Shop, SqliteShop},
};
use crate::servers;

/// Both forms are refused, and nothing is written.
async fn is_refused_elsewhere<S: Shop<Database: SqlDatabase>>(
    shop: &S,
    elsewhere: &Pool<S::Database>,
    tables: &str,
) {
    let idem = Idempotency::new(shop.store());
    let call = || idem.call("orders.place").key("k").arguments(&7_i64);
    let owned: Placed = call().transact(elsewhere, async |_| Ok(7)).await;
    let mut tx = elsewhere.begin().await.expect("a transaction");
    let joined: Placed = call().run_in(&mut *tx, async |_| Ok(7)).await;
    for refused in [owned, joined] {
        let refused = ours(refused).expect_err("its record would stand elsewhere");
        let Error::Store(error) = &refused else {
            panic!("{refused:?}");
        };
        assert_eq!(error.kind(), StoreErrorKind::Configuration, "{error:?}");
        let source = std::error::Error::source(error).map(ToString::to_string);
        let source = source.unwrap_or_default();
        assert!(source.contains("another database"), "{source}");
    }
    let records = format!("SELECT count(*) FROM {tables}records");
    let records = S::numbers(&mut tx, records).await;
    assert_eq!(records.expect("the table is there"), [0]);
    tx.rollback().await.expect("it goes on");

    assert_eq!(ours(place(shop, &idem, "k", 7).await), Ok(7));
    assert_eq!(shop.orders().await, [7]);
}

#[tokio::test]
async fn a_transaction_in_another_file_of_sqlite_is_refused() {
    let (shop, other) = (SqliteShop::new().await, SqliteShop::new().await);
    is_refused_elsewhere(&shop, other.pool(), "idempotent_").await;
}

/// Makes another database on the server of a shop: its name and URL.
async fn beside<S: Remote>(shop: &S) -> (String, String) {
    let name = format!("{}elsewhere", shop.prefix());
    let mut connection = shop.pool().acquire().await.expect("a connection");
    let create = S::run(&mut connection, format!("CREATE DATABASE {name}")).await;
    create.expect("a database");
    let url = servers::url(S::URL);
    let (server, _) = url.rsplit_once('/').expect("the URL names a database");
    let url = format!("{server}/{name}");
    (name, url)
}

async fn drops<S: Shop>(shop: &S, name: &str) {
    let mut connection = shop.pool().acquire().await.expect("a connection");
    let dropped = S::run(&mut connection, format!("DROP DATABASE {name}")).await;
    dropped.expect("it is gone");
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_transaction_in_another_database_of_postgres_is_refused() {
    let shop = PostgresShop::new().await;
    let (name, url) = beside(&shop).await;
    let other = PgPool::connect(&url).await.expect("the server answers");
    let there = PostgresStore::builder().table_prefix(shop.prefix());
    let there = there.pool(other.clone()).expect("a store");
    there.migrate().await.expect("tables");
    is_refused_elsewhere(&shop, &other, shop.prefix()).await;
    drops(&shop, &format!("{name} WITH (FORCE)")).await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn a_transaction_in_another_database_of_mariadb_is_refused() {
    let shop = MariaDbShop::new().await;
    let (name, url) = beside(&shop).await;
    let other = MySqlPool::connect(&url).await.expect("the server answers");
    let there = MySqlStore::builder().table_prefix(shop.prefix());
    let there = there.pool(other.clone()).expect("a store");
    there.migrate().await.expect("tables");
    is_refused_elsewhere(&shop, &other, shop.prefix()).await;
    drops(&shop, &name).await;
}

async fn id(store: &SqliteStore, pool: &SqlitePool) -> String {
    store.check_schema().await.expect("tables");
    let id = "SELECT store FROM idempotent_schema WHERE version = 1";
    sqlx::query_scalar(id).fetch_one(pool).await.expect("an id")
}

/// Tables that people make themselves have an id, too, and no two databases the same.
#[tokio::test]
async fn each_database_draws_its_own_id_once() -> Result<(), StoreError> {
    let mut ids = Vec::new();
    for _ in 0..2 {
        let pool = SqlitePool::connect("sqlite::memory:")
            .await
            .expect("memory");
        let store = SqliteStore::new(pool.clone());
        let ddl = sqlx::raw_sql(AssertSqlSafe(store.ddl()))
            .execute(&pool)
            .await;
        ddl.expect("the statements are right");
        let drawn = id(&store, &pool).await;
        assert_eq!(drawn.len(), 32, "{drawn}");
        store.migrate().await?;
        assert_eq!(id(&store, &pool).await, drawn, "once");
        ids.push(drawn);
    }
    assert_ne!(ids[0], ids[1]);
    Ok(())
}
