//! What the SQLite store withstands: a typed error each, and no panic.

mod connections;
mod faults;
mod places;
mod schema;

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
