//! The tables, and who makes them.

use super::*;
use crate::harness::says_that_it_is_missing;

#[tokio::test]
async fn f27_tables_of_a_newer_release_are_left_alone() {
    let folder = folder();
    let (path, store, _) = claimed(&folder).await;
    let newer = "INSERT INTO idempotent_schema (version, applied, usable_from) VALUES (99, 0, 99)";
    run(&mut side(&path).await, newer).await;

    let error = SqliteStore::open(&path)
        .await
        .expect_err("a newer schema is refused");
    assert_eq!(error.kind(), StoreErrorKind::Schema);
    let source = std::error::Error::source(&error).map(ToString::to_string);
    assert_eq!(
        source.as_deref(),
        Some(
            "the schema has version 99, this build knows 3: a newer release wrote it, for builds that know 99 or more"
        )
    );
    let answer = store.check_schema().await;
    assert_eq!(kind(answer), Some(StoreErrorKind::Schema));
}

#[tokio::test]
async fn a_table_of_records_or_steps_that_is_gone_is_named() {
    let folder = folder();
    let (path, store, _) = claimed(&folder).await;
    for table in ["idempotent_steps", "idempotent_records"] {
        run(&mut side(&path).await, &format!("DROP TABLE {table}")).await;

        for refused in [
            store.check_schema().await,
            store.migrate().await,
            SqliteStore::open(&path).await.map(drop),
        ] {
            says_that_it_is_missing(refused, table);
        }
    }
}

#[tokio::test]
async fn f27_missing_tables_ask_for_a_migration_which_can_run_again() {
    let folder = folder();
    let store = SqliteStore::new(pool(&folder.path().join("records.db")).await);

    assert_eq!(kind(store.load(&ID).await), Some(StoreErrorKind::Schema));
    let answer = store.swap(&ID, None, &claim()).await;
    assert_eq!(kind(answer), Some(StoreErrorKind::Schema));
    let answer = store.check_schema().await;
    assert_eq!(kind(answer), Some(StoreErrorKind::Schema));

    for _ in 0..3 {
        store.migrate().await.expect("the tables are made");
        store.check_schema().await.expect("the tables are right");
    }
    assert!(is_applied(store.swap(&ID, None, &claim()).await));
    store.migrate().await.expect("live records do not mind");
    assert!(stands(&store).await);
}

#[tokio::test]
async fn the_statements_as_text_make_the_tables_that_the_migrator_makes() {
    let folder = folder();
    let [by_hand, migrated] = ["hand.db", "migrated.db"].map(|name| folder.path().join(name));
    let pool = pool(&by_hand).await;
    let store = SqliteStore::new(pool.clone());
    run_in(&pool, store.ddl()).await;
    store.check_schema().await.expect("the tables are right");
    SqliteStore::open(&migrated).await.expect("the file opens");

    let tables = async |path: &Path| {
        sqlx::query_as::<_, (String, Option<String>)>(
            "SELECT name, sql FROM sqlite_master ORDER BY name",
        )
        .fetch_all(&mut side(path).await)
        .await
        .expect("the schema is read")
    };
    assert_eq!(tables(&by_hand).await, tables(&migrated).await);
}

#[tokio::test]
async fn migrations_of_the_application_in_the_same_file_keep_working() {
    let folder = folder();
    let migrations = folder.path().join("migrations");
    std::fs::create_dir(&migrations).expect("a folder");
    let write =
        |name: &str, text: &str| std::fs::write(migrations.join(name), text).expect("a migration");
    write(
        "1_orders.sql",
        "CREATE TABLE orders (id INTEGER PRIMARY KEY)",
    );
    let migrate = async |pool: &SqlitePool| {
        let migrator = sqlx::migrate::Migrator::new(migrations.as_path()).await;
        let migrator = migrator.expect("migrations are read");
        migrator.run(pool).await.expect("migrations run");
    };
    let pool = pool(&folder.path().join("app.db")).await;
    migrate(&pool).await;
    let store = SqliteStore::new(pool.clone());
    store.migrate().await.expect("the tables are made");
    assert!(is_applied(store.swap(&ID, None, &claim()).await));

    migrate(&pool).await;
    write("2_lines.sql", "CREATE TABLE lines (id INTEGER PRIMARY KEY)");
    migrate(&pool).await;
    store.migrate().await.expect("nothing is left to do");
    store.check_schema().await.expect("the tables are right");
    assert!(stands(&store).await);
}

const CHILD: &str = "IT_SQLITE_FIRST_START";

/// The work of each of eight processes, none of which has made the file.
#[tokio::test]
async fn a_first_start() {
    let Ok(place) = std::env::var(CHILD) else {
        return;
    };
    let (number, path) = place.split_once(':').expect("a number and a path");
    let store = SqliteStore::open(path).await.expect("the file opens");
    let id = RecordId::from_bytes([number.parse().expect("a number"); 32]);
    assert!(is_applied(store.swap(&id, None, &claim()).await));
    store.check_schema().await.expect("the tables are right");
}

#[tokio::test]
async fn f27_eight_first_starts_at_once_all_succeed() {
    for round in 0..3 {
        let folder = folder();
        let path = folder.path().join("records.db");
        let children: Vec<_> = (1..=8)
            .map(|number| {
                Command::new(std::env::current_exe().expect("this test's path"))
                    .args([
                        "--exact",
                        "sqlite::schema::a_first_start",
                        "--test-threads=1",
                    ])
                    .env(CHILD, format!("{number}:{}", path.display()))
                    .stdout(std::process::Stdio::piped())
                    .stderr(std::process::Stdio::piped())
                    .spawn()
                    .expect("a process starts")
            })
            .collect();
        for child in children {
            let output = child.wait_with_output().expect("the process ends");
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(
                output.status.success() && said.contains("1 passed"),
                "round {round}: {said}"
            );
        }
        let store = SqliteStore::open(&path).await.expect("the file opens");
        let listed = store.scan(None, 100).await;
        assert_eq!(listed.expect("a scan is answered").len(), 8);
    }
}

/// Else every purge would look again at all records that must be settled.
#[tokio::test]
async fn what_must_be_settled_stands_behind_what_a_purge_looks_at() {
    let folder = folder();
    let (path, store, claim) = claimed(&folder).await;
    let mut side = side(&path).await;
    let mut seen = claim;
    for (state, expires, is_behind) in [
        (State::Uncertain, Moment::Keep, true),
        (State::Running, Moment::Keep, false),
        (State::Undoing, Moment::In(HOUR), true),
        (State::Running, Moment::Keep, false),
        (State::Parked, Moment::In(HOUR), true),
        (State::Done, Moment::In(HOUR), false),
    ] {
        let next = Draft {
            state,
            lease: Moment::Keep,
            expires,
            ..heartbeat(&seen)
        };
        applied(&store, &ID, Some(seen.version), &next).await;
        seen = next;

        let (purge_from, expires): (i64, i64) =
            sqlx::query_as("SELECT purge_from, expires FROM idempotent_records")
                .fetch_one(&mut side)
                .await
                .expect("the record is there");
        assert_eq!(purge_from == i64::MAX, is_behind, "{state:?}");
        assert!(is_behind || purge_from <= expires, "{state:?}");
    }
}
