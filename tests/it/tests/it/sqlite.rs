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
    task::{Context, Waker},
    time::Duration,
};

use idempotent_runtime::{
    identity::RecordId,
    record::{Draft, Moment, State, TokenRule, Version},
    store::{SqliteStore, Store, StoreError, StoreErrorKind, Swap},
};
use sqlx::{
    AssertSqlSafe, Connection, Executor, SqliteConnection, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteLockingMode, SqlitePoolOptions},
};
use tempfile::TempDir;

use crate::harness::{claim, completion};

const HOUR: Duration = Duration::from_secs(3600);
const ID: RecordId = RecordId::from_bytes([7; 32]);

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
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

async fn stands(store: &dyn Store) -> bool {
    let looked = store.load(&ID).await;
    looked.expect("a look is answered").record.is_some()
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
    let options = SqliteConnectOptions::new().filename(path);
    let options = options.create_if_missing(true);
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
