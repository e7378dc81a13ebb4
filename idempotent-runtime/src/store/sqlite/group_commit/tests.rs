//! The writes of callers that wait for one connection, and the answer that each caller gets.

mod abandoned;
mod failures;
mod runtimes;
mod together;

use std::{
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use sqlx::{ConnectOptions, SqliteConnection, sqlite::SqliteConnectOptions};
use tempfile::TempDir;
use tokio::task::{JoinHandle, yield_now};

use super::*;
use crate::{
    record::draft::tests::{self, completion},
    store::{Store, sqlite::SqliteStore},
};

fn id(number: usize) -> RecordId {
    RecordId::from_bytes([u8::try_from(number).expect("few"); 32])
}

fn claim() -> Draft {
    tests::claim(b"key")
}

/// A write: the version that it is over, and the draft that it puts.
type Job = (Option<Version>, Draft);

fn some_claims(number: usize) -> Vec<Job> {
    (0..number).map(|_| (None, claim())).collect()
}

/// The completions of these claims, by their numbers.
fn completions(claims: &[Job], outcome: impl Fn(usize) -> Vec<u8>) -> Vec<Job> {
    let complete = |(number, (_, claim)): (usize, &Job)| {
        (Some(claim.version), completion(claim, outcome(number)))
    };
    claims.iter().enumerate().map(complete).collect()
}

/// A store in a file whose one connection is in a test's hands, until it lets go.
struct Held {
    store: SqliteStore,
    folder: TempDir,
}

type Writing = JoinHandle<Result<Swap, StoreError>>;

impl Held {
    async fn new() -> Self {
        Self::waiting(Duration::from_millis(50)).await
    }

    /// Waits as long as a test lasts for a lock that another connection has on the file.
    async fn patient() -> Self {
        Self::waiting(PATIENCE).await
    }

    async fn waiting(busy: Duration) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = SqliteStore::builder().busy_timeout(busy);
        let store = store.open(folder.path().join("records.db")).await;
        Self {
            store: store.expect("the file opens"),
            folder,
        }
    }

    fn path(&self) -> impl AsRef<Path> {
        self.folder.path().join("records.db")
    }

    async fn connection(&self) -> Lent {
        let acquired = self.store.inner.connections.acquire("testing").await;
        acquired.expect("nobody else has it")
    }

    fn write(&self, number: usize, seen: Option<Version>, next: &Draft) -> Writing {
        let (store, next) = (self.store.clone(), next.clone());
        tokio::spawn(async move { store.swap(&id(number), seen, &next).await })
    }

    async fn are_queued(&self, writes: usize) {
        self.has(|queued| queued >= writes).await;
    }

    async fn is_empty(&self) {
        self.has(|queued| queued == 0).await;
    }

    async fn has(&self, enough: impl Fn(usize) -> bool) {
        let queue = self.store.inner.queue.as_ref().expect("it is a file");
        let looks = async {
            while !enough(queue.lock().len()) {
                yield_now().await;
            }
        };
        timeout(PATIENCE, looks).await.expect("so many are in line");
    }

    /// Puts these into the queue, one behind the other.
    async fn queue(&self, writes: &[Job]) -> Vec<Writing> {
        let mut writing = Vec::new();
        for (number, (seen, next)) in writes.iter().enumerate() {
            writing.push(self.write(number, *seen, next));
            self.are_queued(number + 1).await;
        }
        writing
    }

    async fn queue_these<const N: usize>(&self, writes: &[Job]) -> [Writing; N] {
        let writing = self.queue(writes).await;
        writing.try_into().expect("so many are written")
    }

    /// Lets these be written while they wait in the queue, and counts the commits.
    async fn all(&self, writes: &[Job]) -> (Vec<SwapAnswer>, usize) {
        let commits = Arc::new(AtomicUsize::new(0));
        let mut connection = self.connection().await;
        count_commits(&mut connection, &commits).await;
        let writing = self.queue(writes).await;
        drop(connection);
        let mut answers = Vec::new();
        for write in writing {
            answers.push(write.await.expect("no panic"));
        }
        (answers, commits.load(Ordering::SeqCst))
    }

    /// So many claims that stand.
    async fn claimed(&self, number: usize) -> Vec<Job> {
        let claims = some_claims(number);
        self.all(&claims).await;
        claims
    }

    async fn side(&self) -> SqliteConnection {
        let options = SqliteConnectOptions::new().filename(self.path());
        options.connect().await.expect("the file is there")
    }
}

/// Lets an outcome of one byte, 2, fail.
async fn refuse_two(side: &mut SqliteConnection) {
    let trigger = "CREATE TRIGGER refuses BEFORE UPDATE ON idempotent_records WHEN NEW.outcome = x'02' BEGIN SELECT RAISE(ABORT, 'no room'); END";
    side.execute(trigger).await.expect("nobody has the file");
}

async fn count_commits(connection: &mut SqliteConnection, commits: &Arc<AtomicUsize>) {
    let commits = Arc::clone(commits);
    let handle = connection.lock_handle().await;
    handle
        .expect("the connection is alive")
        .set_commit_hook(move || {
            commits.fetch_add(1, Ordering::SeqCst);
            true
        });
}

fn are_applied(answers: &[SwapAnswer]) -> bool {
    let is_applied = |answer: &SwapAnswer| matches!(answer, Ok(Swap::Applied(_)));
    answers.iter().all(is_applied)
}

fn have_failed(answers: &[SwapAnswer], kind: StoreErrorKind) -> bool {
    let has_failed = |answer: &SwapAnswer| matches!(answer, Err(error) if error.kind() == kind);
    answers.iter().all(has_failed)
}

async fn give_up(writing: Writing) {
    writing.abort();
    assert!(writing.await.is_err());
}
