//! Stores that are opened, and refused, by one line.

use std::time::Duration;

use idempotent_runtime::{
    MemoryStore, OnCrash, Store, StoreError, StoreErrorKind,
    store::{MySqlStore, PostgresStore, RedisStore, SqliteStore},
};
use sqlx::{Connection as _, Executor as _, sqlite::SqlitePoolOptions};

use super::*;
use crate::{
    harness::Said,
    servers::{prefix, url},
};

/// Calls an operation of its own twice on a handle that was made by one line.
async fn is_replayed(idem: Result<Idempotency, Error>) {
    let idem = idem.expect("the server is there");
    let key = prefix();
    let call = |value| {
        let call = idem.call("first_hour.opened").key(&key);
        call.run(move |_| async move { Ok::<u64, Error>(value) })
    };
    assert_eq!((call(1).await, call(2).await), (Ok(1), Ok(1)));
}

#[tokio::test]
async fn first_hour_05_a_clone_of_the_memory_store_is_the_same_store() {
    let store = MemoryStore::new();
    let call = |store: &MemoryStore, value| {
        let idem = Idempotency::new(store.clone());
        async move {
            let call = idem.call("first_hour.cloned").key("k");
            call.run(move |_| async move { Ok::<u64, Error>(value) })
                .await
        }
    };
    assert_eq!(
        (call(&store, 1).await, call(&store, 2).await),
        (Ok(1), Ok(1))
    );
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn first_hour_05_each_server_by_one_line() {
    let own = prefix();
    let postgres = url("IDEMPOTENT_TEST_POSTGRES_URL");
    let connection = sqlx::PgConnection::connect(&postgres).await;
    let mut connection = connection.expect("a server");
    let schema = sqlx::AssertSqlSafe(format!("CREATE SCHEMA {own}"));
    connection
        .execute(sqlx::raw_sql(schema))
        .await
        .expect("a schema");
    let postgres = format!("{postgres}?options=-csearch_path%3D{own}");
    is_replayed(Idempotency::postgres(&postgres).await).await;

    let mariadb = url("IDEMPOTENT_TEST_MARIADB_URL");
    let connection = sqlx::MySqlConnection::connect(&mariadb).await;
    let mut connection = connection.expect("a server");
    let database = sqlx::AssertSqlSafe(format!("CREATE DATABASE {own}"));
    connection
        .execute(sqlx::raw_sql(database))
        .await
        .expect("a database");
    let (server, _) = mariadb.rsplit_once('/').expect("a URL");
    is_replayed(Idempotency::mysql(&format!("{server}/{own}")).await).await;

    is_replayed(Idempotency::redis(&url("IDEMPOTENT_TEST_REDIS_URL")).await).await;
}

#[tokio::test]
async fn first_hour_06_a_path_that_reads_as_a_url_is_one_or_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("records.db");
    for (place, file) in [
        ("sqlite::memory:".to_owned(), None),
        (format!("sqlite:{}", path.display()), Some(&path)),
    ] {
        let before = std::fs::read_dir(".").expect("a folder").count();
        is_replayed(Idempotency::sqlite(&place).await).await;
        assert_eq!(
            std::fs::read_dir(".").expect("a folder").count(),
            before,
            "{place}"
        );
        assert!(file.is_none_or(|file| file.exists()), "{place}");
    }
    for url in [
        "postgres://u:secret@host/db",
        "file:///tmp/x.db",
        "file:x.db?mode=memory",
        "http://x",
    ] {
        let refused = SqliteStore::open(url).await.expect_err("it is no file");
        assert_eq!(refused.kind(), StoreErrorKind::Configuration, "{url}");
        assert!(
            !format!("{refused}{refused:?}").contains("secret"),
            "{refused:?}"
        );
    }
    let odd = folder.path().join("http://x.db");
    std::fs::create_dir(folder.path().join("http:")).expect("a folder");
    assert!(
        SqliteStore::open(&odd).await.is_ok(),
        "a whole path is no URL"
    );
}

#[tokio::test]
async fn first_hour_06_an_error_of_opening_names_the_place_and_no_password() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("missing/records.db");
    let file = Idempotency::sqlite(&missing).await.expect_err("no folder");
    assert!(
        file.to_string().contains(&missing.display().to_string()),
        "{file}"
    );
    for typo in ["sqlite://u:secret@h/x.db", "nowhere/postgres:u:secret@h/db"] {
        let file = Idempotency::sqlite(typo).await.expect_err("no folder");
        assert!(!file.to_string().contains("secret"), "{file}");
    }
    let is_unsaid = |error: Option<StoreError>| {
        let error = Error::from(error.expect("nobody listens there"));
        let said = format!("{error} {error:?}");
        assert!(error.to_string().contains("127.0.0.1:1"), "{error}");
        assert!(error.to_string().contains("the store"), "{error}");
        assert!(!said.contains("secret"), "{said}");
    };
    let soon = Duration::from_secs(1);
    let postgres = PostgresStore::builder().connect_timeout(soon);
    is_unsaid(
        postgres
            .connect("postgres://u:secret@127.0.0.1:1/db")
            .await
            .err(),
    );
    let mysql = MySqlStore::builder().connect_timeout(soon);
    is_unsaid(mysql.connect("mysql://u:secret@127.0.0.1:1/db").await.err());
    let redis = RedisStore::builder().connect_timeout(soon);
    is_unsaid(redis.connect("redis://u:secret@127.0.0.1:1/0").await.err());
}

#[tokio::test]
async fn first_hour_07_a_caller_that_holds_the_last_connection_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = format!(
        "sqlite:{}?mode=rwc",
        folder.path().join("records.db").display()
    );
    let pool = SqlitePoolOptions::new().max_connections(1);
    let pool = pool
        .acquire_timeout(Duration::from_secs(3))
        .connect(&place)
        .await;
    let pool = pool.expect("a file");
    let store = SqliteStore::new(pool.clone());
    store.migrate().await.expect("its tables are made");
    let held = pool.acquire().await.expect("it is the only one");
    // The store waits in a task of its own, on this thread.
    let said = Said::default();
    let writer = said.clone();
    let lines = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone());
    let listening = tracing::subscriber::set_default(lines.finish());
    let answer = store.load(&RecordId::from_bytes([7; 32])).await;
    drop((listening, held));
    let said = said.text();
    assert_eq!(
        answer.err().map(|error| error.kind()),
        Some(StoreErrorKind::Unavailable)
    );
    assert_eq!(said.matches("WARN").count(), 1, "{said}");
    for part in [
        "pool has no free connection",
        "max_connections=1",
        "one connection more",
    ] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
}

#[idempotent(name = "first_hour.once", key = order, on_crash = uncertain)]
async fn once(order: u64) -> Result<u64, Error> {
    Ok(order)
}

/// A store that may forget, as Redis does.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test"]
async fn first_hour_08_redis_refuses_at_most_once_before_a_call_is_made() {
    let url = url("IDEMPOTENT_TEST_REDIS_URL");
    let store = || async { RedisStore::connect(&url).await.expect("a server") };
    let is_refused = |refused: Option<Error>| {
        let is_said = |error: &StoreError| error.kind() == StoreErrorKind::Configuration;
        assert!(
            matches!(&refused, Some(Error::Store(error)) if is_said(error)),
            "{refused:?}"
        );
    };
    let builder = Idempotency::builder(store().await).on_crash(OnCrash::Uncertain);
    is_refused(builder.build().err());

    let (tested, redis) = (Idempotency::memory(), Idempotency::new(store().await));
    assert_eq!(tested.enter(once(1)).await, Ok(1));
    is_refused(redis.check_operations(&tested.operations()).err());
    assert_eq!(tested.check_operations(&tested.operations()), Ok(()));
    is_refused(redis.enter(once(1)).await.err());
    let seen = redis.operations().iter().any(|operation| operation.is_seen);
    assert!(!seen, "nothing is protected by it");
}
