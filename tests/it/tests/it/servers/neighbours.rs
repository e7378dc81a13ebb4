//! An application that keeps tables of its own in the same database, and migrates them by itself,
//! while calls are under way.

use std::{fs, path::PathBuf};

use idempotent_runtime::{
    Error, Idempotency, OnCrash, StoreError,
    store::{MySqlStore, PostgresStore, Store},
};
use sqlx::{
    AssertSqlSafe, Connection, Database, MySqlConnection, MySqlPool, PgConnection, PgPool, Pool,
    migrate::{Migrate, Migrator},
    mysql::MySqlConnectOptions,
    postgres::PgConnectOptions,
};
use tempfile::TempDir;

use super::{prefix, url};
use crate::answers::is_uncertain;

/// The application's migrations, to which every release adds one.
struct Releases {
    folder: TempDir,
    count: u32,
}

impl Releases {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            count: 0,
        }
    }

    /// Makes one more table, and notes in the oldest that it did.
    async fn next<D: Database>(&mut self, pool: &Pool<D>)
    where
        D::Connection: Migrate,
    {
        self.count += 1;
        let table = format!(
            "CREATE TABLE orders_{} (id BIGINT PRIMARY KEY);",
            self.count
        );
        let note = format!("INSERT INTO orders_1 VALUES ({});", self.count);
        fs::write(self.file(), table + &note).expect("a migration");
        let migrator = Migrator::new(self.folder.path()).await;
        let run = migrator.expect("migrations are read").run(pool).await;
        run.expect("the application's migrations run");
    }

    fn file(&self) -> PathBuf {
        let count = self.count;
        self.folder.path().join(format!("{count}_orders.sql"))
    }
}

/// Migrates both, again and again, around a record in each state and a call that is under way.
async fn migrate_side_by_side<D: Database, S: Store + Clone>(
    pool: &Pool<D>,
    store: S,
    migrate: impl AsyncFn(S) -> Result<(), StoreError>,
) where
    D::Connection: Migrate,
{
    let mut releases = Releases::new();
    releases.next(pool).await;
    migrate(store.clone()).await.expect("the tables are made");
    let idem = Idempotency::new(store.clone());
    let done = |key: &'static str, value: u32| {
        let call = idem.call("charge").key(key).on_crash(OnCrash::Uncertain);
        call.run(move |_| async move { Ok::<_, Error>(value) })
    };
    assert_eq!(done("before", 1).await, Ok(1));
    let dropped = idem.call("charge").key("nobody knows");
    let dropped = dropped.on_crash(OnCrash::Uncertain);
    let dropped = tokio::spawn(dropped.run(|_| async { panic!("it dies") as Result<u32, Error> }));
    assert!(dropped.await.is_err(), "its body ran");

    let during = idem.call("charge").key("during").run(async |_| {
        for _ in 0..3 {
            releases.next(pool).await;
            let migrated = migrate(store.clone()).await;
            migrated.expect("there is nothing to do");
        }
        assert_eq!(done("before", 2).await, Ok(1));
        Ok::<u32, Error>(1)
    });
    assert_eq!(during.await, Ok(1));

    let other = Idempotency::new(store);
    let call = |key: &'static str| other.call("charge").key(key).run(|_| async { Ok(3) });
    for key in ["before", "during"] {
        assert_eq!(call(key).await, Ok::<_, Error>(1), "{key}");
    }
    let uncertain = call("nobody knows").await;
    assert!(is_uncertain(&uncertain), "{uncertain:?}");
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn f27_an_application_in_the_same_postgres_migrates_by_itself() {
    let (url, name) = (url("IDEMPOTENT_TEST_POSTGRES_URL"), prefix());
    let mut side = PgConnection::connect(&url).await.expect("a connection");
    let create = sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}")));
    create.execute(&mut side).await.expect("a database");
    let there = url.parse::<PgConnectOptions>().expect("a URL");
    let pool = PgPool::connect_with(there.database(&name)).await;
    let pool = pool.expect("the server answers");

    let store = PostgresStore::new(pool.clone());
    let migrate = async |store: PostgresStore| {
        store.migrate().await?;
        store.check_schema().await
    };
    crate::harness::in_time(migrate_side_by_side(&pool, store, migrate)).await;

    let drop = format!("DROP DATABASE {name} WITH (FORCE)");
    let dropped = sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut side).await;
    dropped.expect("it is gone");
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn f27_an_application_in_the_same_mariadb_migrates_by_itself() {
    let (url, name) = (url("IDEMPOTENT_TEST_MARIADB_URL"), prefix());
    let mut side = MySqlConnection::connect(&url).await.expect("a connection");
    let create = sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}")));
    create.execute(&mut side).await.expect("a database");
    let there = url.parse::<MySqlConnectOptions>().expect("a URL");
    let pool = MySqlPool::connect_with(there.database(&name)).await;
    let pool = pool.expect("the server answers");

    let store = MySqlStore::new(pool.clone());
    let migrate = async |store: MySqlStore| {
        store.migrate().await?;
        store.check_schema().await
    };
    crate::harness::in_time(migrate_side_by_side(&pool, store, migrate)).await;

    let drop = format!("DROP DATABASE {name}");
    let dropped = sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut side).await;
    dropped.expect("it is gone");
}
