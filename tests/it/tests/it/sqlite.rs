//! The faults that the SQLite store withstands: a typed error each, and no panic.

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
    identity::RecordId,
    record::{Draft, Moment, State, Version},
    store::{SqliteStore, Store, StoreError, StoreErrorKind, Swap},
};
use sqlx::{
    AssertSqlSafe, Connection, Executor, SqliteConnection, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteLockingMode, SqlitePoolOptions},
};
use tempfile::TempDir;

use crate::harness::{applied, claim, completion, heartbeat, only};

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

/// The same, in a connection of a pool.
async fn run_in(pool: &SqlitePool, statements: impl Into<String>) {
    run(&mut pool.acquire().await.expect("a connection"), statements).await;
}

/// A new file.
async fn opened(folder: &TempDir) -> (PathBuf, SqliteStore) {
    let path = folder.path().join("records.db");
    let store = SqliteStore::open(&path).await.expect("the file opens");
    (path, store)
}

/// A file with one claim in it.
async fn claimed(folder: &TempDir) -> (PathBuf, SqliteStore, Draft) {
    let ((path, store), draft) = (opened(folder).await, claim());
    applied(&store, &ID, None, &draft).await;
    (path, store, draft)
}

/// Leaves a record with this outcome, and gives the claim that was there before.
async fn finished(store: &SqliteStore, id: &RecordId, outcome: Vec<u8>) -> Draft {
    let draft = claim();
    applied(store, id, None, &draft).await;
    let ending = completion(&draft, outcome);
    applied(store, id, Some(draft.version), &ending).await;
    draft
}

/// The store that heartbeats use, where they have a connection of their own.
async fn of_heartbeats(store: &SqliteStore) -> Arc<dyn Store> {
    let own = store.for_heartbeats().await.expect("a connection");
    own.expect("there is room for two")
}
