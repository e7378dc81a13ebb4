//! What the SQLite store withstands: a typed error each, and no panic.

use std::{
    future::Future,
    path::{Path, PathBuf},
    pin::pin,
    process::Command,
    sync::Arc,
    task::{Context, Waker},
    time::Duration,
};

use idempotent_runtime::{
    fingerprint::{ArgumentDigests, Fingerprint, Fingerprinted},
    identity::RecordId,
    policy::OnCrash,
    record::{
        AttemptId, Draft, FencingToken, Holder, Moment, RawOutcome, State, Subject, TokenRule,
        Version,
    },
    store::{SqliteStore, Store, StoreError, StoreErrorKind, Swap},
};
use sqlx::{
    AssertSqlSafe, Connection, Executor, SqliteConnection, SqlitePool,
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};
use tempfile::TempDir;

const ID: RecordId = RecordId::from_bytes([7; 32]);
const HOUR: Duration = Duration::from_secs(3600);

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn claim() -> Draft {
    Draft {
        version: Version::random(),
        subject: Some(Arc::new(Subject {
            operation: "test.charge".into(),
            scope: b"tenant".to_vec(),
            key: b"key".to_vec(),
            fingerprint: Fingerprinted::stored(
                Fingerprint::from_bytes([1; 32]),
                ArgumentDigests::from_bytes(&[1]).expect("no arguments"),
            ),
        })),
        state: State::Running,
        token: TokenRule::Above(FencingToken::from_u64(0)),
        attempt: 1,
        attempt_id: AttemptId::random(),
        holder: Holder {
            label: "host:1".into(),
            trace_parent: None,
        },
        on_crash: OnCrash::Rerun,
        lease: Moment::In(HOUR),
        expires: Moment::In(HOUR),
        outcome: None,
    }
}

fn completion(of: &Draft, bytes: Vec<u8>) -> Draft {
    Draft {
        version: Version::random(),
        subject: None,
        state: State::Done,
        token: TokenRule::Keep,
        outcome: Some(RawOutcome::value(bytes)),
        ..of.clone()
    }
}

fn kind<T>(answer: Result<T, StoreError>) -> Option<StoreErrorKind> {
    answer.err().map(|error| {
        assert!(
            std::error::Error::source(&error).is_some(),
            "{error} has no source"
        );
        error.kind()
    })
}

fn is_applied(answer: Result<Swap, StoreError>) -> bool {
    matches!(answer.expect("a swap is answered"), Swap::Applied(_))
}

async fn side(path: &Path) -> SqliteConnection {
    SqliteConnection::connect(&format!("sqlite:{}", path.display()))
        .await
        .expect("the file opens")
}

async fn pool(path: &Path) -> SqlitePool {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true);
    SqlitePoolOptions::new()
        .max_connections(1)
        .connect_with(options)
        .await
        .expect("the pool opens")
}

/// Runs statements that a test makes up.
async fn run(connection: &mut SqliteConnection, statements: impl Into<String>) {
    connection
        .execute(AssertSqlSafe(statements.into()))
        .await
        .expect("the statements run");
}

/// A file with one claim in it.
async fn claimed(folder: &TempDir) -> (PathBuf, SqliteStore, Draft) {
    let path = folder.path().join("records.db");
    let store = SqliteStore::open(&path).await.expect("the file opens");
    let draft = claim();
    assert!(is_applied(store.swap(&ID, None, &draft).await));
    (path, store, draft)
}

#[tokio::test]
async fn e17_a_file_that_may_only_be_read_answers_looks_and_denies_writes() {
    let folder = folder();
    let (path, _writer, draft) = claimed(&folder).await;
    let url = format!("sqlite:{}?mode=ro", path.display());
    let store = SqliteStore::builder()
        .connect_url(&url)
        .await
        .expect("a current file needs no write to open");

    assert!(
        store
            .load(&ID)
            .await
            .expect("a look is answered")
            .record
            .is_some()
    );
    let duplicate = store.swap(&ID, None, &claim()).await;
    assert!(!is_applied(duplicate), "a replay is a look");
    let other = RecordId::from_bytes([8; 32]);
    assert_eq!(
        kind(store.swap(&other, None, &claim()).await),
        Some(StoreErrorKind::Denied)
    );
    let ending = completion(&draft, vec![]);
    assert_eq!(
        kind(store.swap(&ID, Some(draft.version), &ending).await),
        Some(StoreErrorKind::Denied)
    );
    assert_eq!(kind(store.purge(1).await), Some(StoreErrorKind::Denied));

    let empty = folder.path().join("empty.db");
    std::fs::write(&empty, b"").expect("the file is made");
    let url = format!("sqlite:{}?mode=ro", empty.display());
    assert_eq!(
        kind(SqliteStore::builder().connect_url(&url).await),
        Some(StoreErrorKind::Denied)
    );
}

#[tokio::test]
async fn a_file_that_somebody_locks_is_busy_until_the_lock_is_gone() {
    let folder = folder();
    let (path, _, draft) = claimed(&folder).await;
    let soon = SqliteStore::builder().busy_timeout(Duration::from_millis(20));
    let store = soon.clone().open(&path).await.expect("the file opens");
    let mut other = side(&path).await;
    run(&mut other, "BEGIN IMMEDIATE").await;

    let answer = store
        .swap(&RecordId::from_bytes([8; 32]), None, &claim())
        .await;
    assert!(answer.as_ref().is_err_and(StoreError::is_transient));
    assert_eq!(kind(answer), Some(StoreErrorKind::Busy));
    let ending = completion(&draft, vec![]);
    assert_eq!(
        kind(store.swap(&ID, Some(draft.version), &ending).await),
        Some(StoreErrorKind::Busy)
    );
    assert!(
        store
            .load(&ID)
            .await
            .expect("a look needs no lock")
            .record
            .is_some()
    );
    let duplicate = store.swap(&ID, None, &claim()).await;
    assert!(!is_applied(duplicate), "a replay needs no lock");
    soon.open(&path)
        .await
        .expect("a current file needs no lock to open");

    run(&mut other, "ROLLBACK").await;
    assert!(is_applied(
        store.swap(&ID, Some(draft.version), &ending).await
    ));
}

#[tokio::test]
async fn a_full_file_refuses_the_outcome_and_keeps_the_claim() {
    let folder = folder();
    let path = folder.path().join("records.db");
    let pool = pool(&path).await;
    let store = SqliteStore::new(pool.clone());
    store.migrate().await.expect("the tables are made");
    let draft = claim();
    assert!(is_applied(store.swap(&ID, None, &draft).await));
    run(
        &mut pool.acquire().await.expect("a connection"),
        "PRAGMA max_page_count = 20",
    )
    .await;

    let ending = completion(&draft, vec![7; 1 << 20]);
    assert_eq!(
        kind(store.swap(&ID, Some(draft.version), &ending).await),
        Some(StoreErrorKind::Full)
    );
    let stands = store
        .load(&ID)
        .await
        .expect("a look is answered")
        .record
        .expect("the claim stands");
    assert_eq!(
        (stands.state, stands.version),
        (State::Running, draft.version)
    );

    run(
        &mut pool.acquire().await.expect("a connection"),
        "PRAGMA max_page_count = 100000",
    )
    .await;
    assert!(is_applied(
        store.swap(&ID, Some(draft.version), &ending).await
    ));
}

#[tokio::test]
async fn f27_tables_of_a_newer_release_are_left_alone() {
    let folder = folder();
    let (path, store, _) = claimed(&folder).await;
    run(
        &mut side(&path).await,
        "INSERT INTO idempotent_schema VALUES (99, 0)",
    )
    .await;

    let error = SqliteStore::open(&path)
        .await
        .expect_err("a newer schema is refused");
    assert_eq!(error.kind(), StoreErrorKind::Schema);
    let source = std::error::Error::source(&error).map(ToString::to_string);
    assert_eq!(
        source.as_deref(),
        Some("the schema has version 99, this build knows 1: a newer release wrote it")
    );
    assert_eq!(
        kind(store.check_schema().await),
        Some(StoreErrorKind::Schema)
    );
}

#[tokio::test]
async fn f27_missing_tables_ask_for_a_migration_which_can_run_again() {
    let folder = folder();
    let store = SqliteStore::new(pool(&folder.path().join("records.db")).await);

    assert_eq!(kind(store.load(&ID).await), Some(StoreErrorKind::Schema));
    assert_eq!(
        kind(store.swap(&ID, None, &claim()).await),
        Some(StoreErrorKind::Schema)
    );
    assert_eq!(
        kind(store.check_schema().await),
        Some(StoreErrorKind::Schema)
    );

    for _ in 0..3 {
        store.migrate().await.expect("the tables are made");
        store.check_schema().await.expect("the tables are right");
    }
    assert!(is_applied(store.swap(&ID, None, &claim()).await));
    store.migrate().await.expect("live records do not mind");
    assert!(
        store
            .load(&ID)
            .await
            .expect("a look is answered")
            .record
            .is_some()
    );
}

#[tokio::test]
async fn the_statements_as_text_make_the_tables_that_the_migrator_makes() {
    let folder = folder();
    let (by_hand, migrated) = (
        folder.path().join("hand.db"),
        folder.path().join("migrated.db"),
    );
    let pool = pool(&by_hand).await;
    let store = SqliteStore::new(pool.clone());
    run(
        &mut pool.acquire().await.expect("a connection"),
        store.ddl(),
    )
    .await;
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

/// Every column, with values that do not belong there, in a table without a single constraint.
#[tokio::test]
async fn f20_f21_damaged_rows_are_a_typed_error() {
    let folder = folder();
    let path = folder.path().join("records.db");
    let pool = pool(&path).await;
    let store = SqliteStore::builder()
        .table_prefix("lax_")
        .pool(pool.clone())
        .expect("a safe prefix");
    let columns = [
        "id",
        "version",
        "operation",
        "scope",
        "call_key",
        "fingerprint",
        "digests",
        "state",
        "token",
        "attempt",
        "attempt_id",
        "holder",
        "trace_parent",
        "on_crash",
        "lease_end",
        "created",
        "finished",
        "expires",
        "outcome_kind",
        "outcome_schema",
        "outcome",
    ];
    let mut connection = pool.acquire().await.expect("a connection");
    run(
        &mut connection,
        format!(
            "CREATE TABLE lax_records ({}, purge_from, UNIQUE (id))",
            columns.join(", ")
        ),
    )
    .await;
    drop(connection);

    let blob = ["NULL", "x''", "x'00'", "x'ff00ff'", "17", "zeroblob(33)"];
    let number = [
        "NULL",
        "-1",
        "99",
        "x'01'",
        "'text'",
        "9223372036854775807",
        "1e300",
    ];
    let text = ["NULL", "CAST(x'ff80' AS TEXT)"];
    let time = ["NULL", "x'01'", "'text'", "1e300"];
    let damages: [(&str, &[&str]); 18] = [
        ("version", &blob),
        ("operation", &text),
        ("scope", &["NULL", "17"]),
        ("call_key", &["NULL", "17"]),
        ("fingerprint", &blob),
        ("digests", &["NULL", "x''", "x'09'", "x'01ff'"]),
        ("state", &number),
        ("token", &["NULL", "-1", "x'01'", "'text'"]),
        ("attempt", &["NULL", "-1", "4294967296", "x'01'"]),
        ("attempt_id", &blob),
        ("holder", &text),
        ("trace_parent", &["CAST(x'ff80' AS TEXT)"]),
        ("on_crash", &number),
        ("lease_end", &time),
        ("created", &time),
        ("finished", &["x'01'", "'text'"]),
        ("expires", &time),
        ("outcome_kind", &["0", "4", "-1", "x'01'", "256"]),
    ];
    let outcomes: [(&str, &[&str]); 2] = [
        ("outcome_schema", &["NULL", "-1", "4294967296"]),
        ("outcome", &["NULL", "17"]),
    ];
    for (column, values) in damages.into_iter().chain(outcomes) {
        for value in values {
            let about = format!("{column} = {value}");
            let mut connection = pool.acquire().await.expect("a connection");
            run(&mut connection, "DELETE FROM lax_records").await;
            drop(connection);
            let draft = claim();
            assert!(is_applied(store.swap(&ID, None, &draft).await));
            assert!(is_applied(
                store
                    .swap(&ID, Some(draft.version), &completion(&draft, vec![1, 2]))
                    .await
            ));
            let mut connection = pool.acquire().await.expect("a connection");
            run(
                &mut connection,
                format!("UPDATE lax_records SET {column} = {value}"),
            )
            .await;
            drop(connection);

            assert_eq!(
                kind(store.load(&ID).await),
                Some(StoreErrorKind::Corrupt),
                "{about}"
            );
            assert_eq!(
                kind(store.swap(&ID, None, &claim()).await),
                Some(StoreErrorKind::Corrupt),
                "{about}"
            );
            let stale = completion(&draft, vec![]);
            let answer = store.swap(&ID, Some(Version::random()), &stale).await;
            assert_eq!(kind(answer), Some(StoreErrorKind::Corrupt), "{about}");
            assert_eq!(
                kind(store.scan(None, 10).await),
                Some(StoreErrorKind::Corrupt),
                "{about}"
            );
        }
    }
}

#[tokio::test]
async fn f20_a_damaged_file_is_a_typed_error() {
    let folder = folder();
    let path = folder.path().join("records.db");
    let store = SqliteStore::open(&path).await.expect("the file opens");
    let ids: Vec<_> = (0..200)
        .map(|number| RecordId::from_bytes([number; 32]))
        .collect();
    for id in &ids {
        let draft = claim();
        assert!(is_applied(store.swap(id, None, &draft).await));
        assert!(is_applied(
            store
                .swap(id, Some(draft.version), &completion(&draft, vec![3; 5000]))
                .await
        ));
    }
    run(&mut side(&path).await, "PRAGMA wal_checkpoint(TRUNCATE)").await;
    drop(store);
    let whole = std::fs::read(&path).expect("the file is read");

    let scribbled = |from: usize| {
        let mut bytes = whole.clone();
        for (place, byte) in bytes.iter_mut().enumerate().skip(from) {
            *byte ^= u8::try_from(place % 251).unwrap_or(1) | 1;
        }
        bytes
    };
    let damages = [
        scribbled(100),
        scribbled(4096 * 3),
        scribbled(whole.len() / 2),
        whole[..whole.len() / 3].to_vec(),
        whole[..5000].to_vec(),
    ];
    for (number, damage) in damages.into_iter().enumerate() {
        let path = folder.path().join(format!("damaged-{number}.db"));
        std::fs::write(&path, damage).expect("the file is written");
        let mut kinds = Vec::new();
        match SqliteStore::open(&path).await {
            Err(error) => kinds.push(error.kind()),
            Ok(store) => {
                for id in &ids {
                    kinds.extend(store.load(id).await.err().map(|error| error.kind()));
                }
                kinds.extend(
                    store
                        .scan(None, u32::MAX)
                        .await
                        .err()
                        .map(|error| error.kind()),
                );
            }
        }
        assert!(!kinds.is_empty(), "damage {number} is found");
        let known = [StoreErrorKind::Corrupt, StoreErrorKind::Schema];
        assert!(
            kinds.iter().all(|kind| known.contains(kind)),
            "damage {number}: {kinds:?}"
        );
    }
}

#[tokio::test]
async fn f25_what_is_no_database_or_no_place_for_one_is_said_at_construction() {
    let folder = folder();
    let text = folder.path().join("notes.txt");
    std::fs::write(
        &text,
        "no database at all, but long enough to look like the header of one".repeat(20),
    )
    .expect("the file is written");
    assert_eq!(
        kind(SqliteStore::open(&text).await),
        Some(StoreErrorKind::Corrupt)
    );
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
    assert_eq!(
        kind(eternal.in_memory().await),
        Some(StoreErrorKind::Configuration)
    );
}

#[tokio::test]
async fn f25_a_url_names_a_file_or_memory() {
    let folder = folder();
    let path = folder.path().join("records.db");
    for url in [
        format!("sqlite:{}", path.display()),
        format!("sqlite://{}?mode=rw", path.display()),
    ] {
        let store = SqliteStore::builder()
            .connect_url(&url)
            .await
            .expect("the URL is right");
        store.check_schema().await.expect("the tables are right");
    }
    let memory = SqliteStore::builder()
        .connect_url("sqlite::memory:")
        .await
        .expect("the URL is right");
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
    assert!(
        refunds
            .load(&ID)
            .await
            .expect("a look is answered")
            .record
            .is_none()
    );
    assert!(is_applied(refunds.swap(&ID, None, &claim()).await));
}

#[tokio::test]
async fn f24_the_pool_of_the_application_stays_open() {
    let folder = folder();
    let pool = pool(&folder.path().join("records.db")).await;
    let store = SqliteStore::new(pool.clone());
    store.migrate().await.expect("the tables are made");
    let heartbeats = store
        .for_heartbeats()
        .await
        .expect("a connection")
        .expect("a file has room for two");
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
    assert_eq!(
        kind(store.load(&ID).await),
        Some(StoreErrorKind::Unavailable)
    );
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
        let migrator = sqlx::migrate::Migrator::new(migrations.as_path())
            .await
            .expect("migrations are read");
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
    assert!(
        store
            .load(&ID)
            .await
            .expect("a look is answered")
            .record
            .is_some()
    );
}

const CHILD: &str = "IT_SQLITE_FIRST_START";

/// What each of eight processes does, of which none has made the file.
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
                    .args(["--exact", "sqlite::a_first_start", "--test-threads=1"])
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
        assert_eq!(
            store
                .scan(None, 100)
                .await
                .expect("a scan is answered")
                .len(),
            8
        );
    }
}

#[tokio::test]
async fn what_is_in_memory_is_shared_by_clones_and_heartbeats_and_nobody_else() {
    let store = SqliteStore::in_memory().await.expect("memory opens");
    let stranger = SqliteStore::in_memory().await.expect("memory opens");
    assert!(is_applied(store.swap(&ID, None, &claim()).await));

    let heartbeats = store
        .for_heartbeats()
        .await
        .expect("a connection")
        .expect("a named memory has room for two");
    assert!(
        heartbeats
            .load(&ID)
            .await
            .expect("a look is answered")
            .record
            .is_some()
    );
    assert!(
        store
            .clone()
            .load(&ID)
            .await
            .expect("a look is answered")
            .record
            .is_some()
    );
    assert!(
        stranger
            .load(&ID)
            .await
            .expect("a look is answered")
            .record
            .is_none()
    );
    drop(store);
    assert!(
        heartbeats
            .load(&ID)
            .await
            .expect("a look is answered")
            .record
            .is_some()
    );

    let private = SqlitePoolOptions::new()
        .max_connections(1)
        .connect_with(SqliteConnectOptions::new())
        .await
        .expect("memory opens");
    assert!(
        SqliteStore::new(private)
            .for_heartbeats()
            .await
            .expect("is answered")
            .is_none()
    );
}

/// The future that has the store's one connection is never polled again, as when user code blocks its runtime.
#[tokio::test]
async fn a_blocked_caller_does_not_keep_heartbeats_from_the_file() {
    let folder = folder();
    let (_, store, draft) = claimed(&folder).await;
    let mut blocked = pin!(store.load(&ID));
    let mut context = Context::from_waker(Waker::noop());
    assert!(blocked.as_mut().poll(&mut context).is_pending());

    let heartbeats = store
        .for_heartbeats()
        .await
        .expect("a connection")
        .expect("a file has room for two");
    let beat = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let beat = Draft {
            version: Version::random(),
            subject: None,
            token: TokenRule::Keep,
            ..draft.clone()
        };
        runtime.block_on(heartbeats.swap(&ID, Some(draft.version), &beat))
    });
    assert!(is_applied(beat.join().expect("the thread ends")));
    assert!(blocked.await.expect("a look is answered").record.is_some());
}

/// A future of the store may be dropped at any await: what it asked for is applied whole or not at all, and the next
/// caller finds a working connection.
#[tokio::test]
async fn c05_a_dropped_call_leaves_a_working_store() {
    let folder = folder();
    let path = folder.path().join("records.db");
    for pooled in [false, true] {
        let store = if pooled {
            SqliteStore::new(pool(&path).await)
        } else {
            SqliteStore::open(&path).await.expect("the file opens")
        };
        for polls in 0..12_u8 {
            let id = RecordId::from_bytes([100 * u8::from(pooled) + polls; 32]);
            let draft = claim();
            {
                let mut swap = pin!(store.swap(&id, None, &draft));
                for _ in 0..polls {
                    let mut context = Context::from_waker(Waker::noop());
                    if swap.as_mut().poll(&mut context).is_ready() {
                        break;
                    }
                    tokio::task::yield_now().await;
                }
            }
            match store
                .swap(&id, None, &draft)
                .await
                .expect("the connection works")
            {
                Swap::Applied(_) => {}
                Swap::Refused(snapshot) => {
                    let record = snapshot.record.expect("what was applied stands");
                    assert_eq!(record.attempt_id, draft.attempt_id);
                }
            }
        }
    }
}
