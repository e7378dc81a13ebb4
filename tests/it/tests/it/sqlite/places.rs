//! The places where a store may be, and those that are refused.

use super::*;

#[tokio::test]
async fn f25_what_is_no_database_or_no_place_for_one_is_said_at_construction() {
    let folder = folder();
    let text = folder.path().join("notes.txt");
    std::fs::write(
        &text,
        "no database at all, but long enough to look like the header of one".repeat(20),
    )
    .expect("the file is written");
    let answer = SqliteStore::open(&text).await;
    assert_eq!(kind(answer), Some(StoreErrorKind::Corrupt));
    for nowhere in [
        folder.path().join("missing/records.db"),
        folder.path().to_path_buf(),
        "".into(),
        "a\0b".into(),
    ] {
        assert_eq!(
            kind(SqliteStore::open(&nowhere).await),
            Some(StoreErrorKind::Configuration),
            "{nowhere:?}"
        );
    }
    let urls = [
        "",
        "records.db",
        "postgres://host/db",
        "sqlite:",
        "sqlite://",
        "sqlite:x?mode=sometimes",
        "sqlite:x?colour=red",
        "sqlite:/nowhere/at/all.db",
        "sqlite:/nowhere.db?mode=rw",
        "sqlite:%ff",
    ];
    for url in urls {
        let answer = SqliteStore::builder().connect_url(url).await;
        assert_eq!(kind(answer), Some(StoreErrorKind::Configuration), "{url}");
    }
    let eternal = SqliteStore::builder().busy_timeout(Duration::MAX);
    let answer = eternal.in_memory().await;
    assert_eq!(kind(answer), Some(StoreErrorKind::Configuration));
}

#[tokio::test]
async fn f25_a_url_names_a_file_or_memory() {
    let folder = folder();
    let path = folder.path().join("records.db");
    for url in [
        format!("sqlite:{}", path.display()),
        format!("sqlite://{}?mode=rw", path.display()),
    ] {
        let store = SqliteStore::builder().connect_url(&url).await;
        let store = store.expect("the URL is right");
        store.check_schema().await.expect("the tables are right");
    }
    let memory = SqliteStore::builder().connect_url("sqlite::memory:").await;
    let memory = memory.expect("the URL is right");
    assert!(is_applied(memory.swap(&ID, None, &claim()).await));
}

#[tokio::test]
async fn f23_an_unsafe_prefix_is_refused_and_two_prefixes_do_not_meet() {
    let folder = folder();
    let path = folder.path().join("records.db");
    for bad in [
        "",
        "a b",
        "x; DROP TABLE t; --",
        "1x",
        "a\"b",
        "sqlite_",
        "ä",
        &"x".repeat(41),
    ] {
        let answer = SqliteStore::builder().table_prefix(bad).open(&path).await;
        assert_eq!(kind(answer), Some(StoreErrorKind::Configuration), "{bad}");
    }
    let open = async |prefix| {
        SqliteStore::builder()
            .table_prefix(prefix)
            .open(&path)
            .await
            .expect("the prefix is safe")
    };
    let (orders, refunds) = (open("orders_").await, open("Refunds2_").await);
    assert!(is_applied(orders.swap(&ID, None, &claim()).await));
    assert!(!stands(&refunds).await);
    assert!(is_applied(refunds.swap(&ID, None, &claim()).await));
}

#[tokio::test]
async fn f24_the_pool_of_the_application_stays_open() {
    let folder = folder();
    let pool = pool(&folder.path().join("records.db")).await;
    let store = SqliteStore::new(pool.clone());
    store.migrate().await.expect("the tables are made");
    let heartbeats = of_heartbeats(&store).await;
    assert!(is_applied(heartbeats.swap(&ID, None, &claim()).await));
    drop((store, heartbeats));

    assert!(!pool.is_closed());
    let (count,): (i64,) = sqlx::query_as("SELECT count(*) FROM idempotent_records")
        .fetch_one(&pool)
        .await
        .expect("the pool answers");
    assert_eq!(count, 1);

    let store = SqliteStore::new(pool.clone());
    pool.close().await;
    let answer = store.load(&ID).await;
    assert_eq!(kind(answer), Some(StoreErrorKind::Unavailable));
}
