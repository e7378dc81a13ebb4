use std::{
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use sqlx::{ConnectOptions, SqliteConnection, sqlite::SqliteConnectOptions};
use tempfile::TempDir;
use tokio::{
    runtime::{Handle, Runtime},
    task::{JoinHandle, yield_now},
};

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

fn some_claims(number: usize) -> Vec<(Option<Version>, Draft)> {
    (0..number).map(|_| (None, claim())).collect()
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

    /// Waits for as long as a test lasts for a lock that somebody else has on the file.
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

    async fn are_in_line(&self, writes: usize) {
        self.has(|in_line| in_line >= writes).await;
    }

    async fn is_empty(&self) {
        self.has(|in_line| in_line == 0).await;
    }

    async fn has(&self, enough: impl Fn(usize) -> bool) {
        let line = self.store.inner.line.as_ref().expect("it is a file");
        let looks = async {
            while !enough(line.lock().len()) {
                yield_now().await;
            }
        };
        timeout(PATIENCE, looks).await.expect("so many are in line");
    }

    /// Lets these be written while they stand in line, and counts the commits.
    async fn all(&self, writes: &[(Option<Version>, Draft)]) -> (Vec<Answer>, usize) {
        let commits = Arc::new(AtomicUsize::new(0));
        let mut connection = self.connection().await;
        count_commits(&mut connection, &commits).await;
        let mut writing = Vec::new();
        for (number, (seen, next)) in writes.iter().enumerate() {
            writing.push(self.write(number, *seen, next));
            self.are_in_line(number + 1).await;
        }
        drop(connection);
        let mut answers = Vec::new();
        for write in writing {
            answers.push(write.await.expect("no panic"));
        }
        (answers, commits.load(Ordering::SeqCst))
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

fn are_applied(answers: &[Answer]) -> bool {
    let is_applied = |answer: &Answer| matches!(answer, Ok(Swap::Applied(_)));
    answers.iter().all(is_applied)
}

#[tokio::test]
async fn writes_that_stand_in_line_stand_after_one_commit() {
    let held = Held::new().await;
    let claims = some_claims(6);
    let (answers, commits) = held.all(&claims).await;
    assert!(are_applied(&answers), "{answers:?}");
    assert_eq!(commits, 1);

    let complete = |(_, claim): &(_, Draft)| (Some(claim.version), completion(claim, vec![1]));
    let completions: Vec<_> = claims.iter().map(complete).collect();
    let (answers, commits) = held.all(&completions).await;
    assert!(are_applied(&answers), "{answers:?}");
    assert_eq!(commits, 1);

    for (number, (_, completion)) in completions.iter().enumerate() {
        let stands = held.store.load(&id(number)).await.expect("it is read");
        let stands = stands.record.expect("it was written");
        assert_eq!(
            (stands.version, &stands.outcome),
            (completion.version, &completion.outcome)
        );
    }
}

#[tokio::test]
async fn claims_and_completions_that_stand_in_line_stand_after_a_commit_each() {
    let held = Held::new().await;
    let claims = some_claims(2);
    held.all(&claims).await;
    let [first, second] = [0, 1].map(|number: usize| {
        let (_, claim) = &claims[number];
        (Some(claim.version), completion(claim, vec![1]))
    });

    let mixed = [first, second, (None, claim()), (None, claim())];
    let (answers, commits) = held.all(&mixed).await;
    assert!(are_applied(&answers), "{answers:?}");
    assert_eq!(commits, 2);
}

#[tokio::test]
async fn more_than_fit_into_one_message_stand_after_several() {
    let held = Held::new().await;
    let claims = some_claims(2 * MOST_TOGETHER + 1);
    let (answers, commits) = held.all(&claims).await;
    assert!(are_applied(&answers), "{answers:?}");
    assert_eq!(commits, 3);
}

/// The file is locked while they are written.
#[tokio::test]
async fn outcomes_that_are_large_stand_alone() {
    let held = Held::new().await;
    let claims = some_claims(4);
    held.all(&claims).await;
    let outcomes = [1, 1, MOST_BYTES, 1].map(|bytes| vec![7; bytes]);
    let complete = |((_, claim), outcome): (&(_, Draft), Vec<u8>)| {
        (Some(claim.version), completion(claim, outcome))
    };
    let completions: Vec<_> = claims.iter().zip(outcomes).map(complete).collect();
    let (answers, commits) = held.all(&completions).await;
    assert!(are_applied(&answers), "{answers:?}");
    assert_eq!(commits, 2);
}

/// One that is closed takes them along.
#[tokio::test]
async fn databases_that_are_no_files_have_no_line() {
    let memory = SqliteStore::in_memory().await;
    assert!(memory.expect("memory").inner.line.is_none());
    let urls = [
        "sqlite::memory:",
        "sqlite:%3Amemory%3A",
        "sqlite:file::memory:",
        "sqlite:line?mode=memory",
        "sqlite:line?vfs=memdb",
        "sqlite:file:",
    ];
    for url in urls {
        let store = SqliteStore::builder().connect_url(url).await;
        let store = store.unwrap_or_else(|error| panic!("{url}: {error:?}"));
        assert!(store.inner.line.is_none(), "{url}");
    }
    let store = SqliteStore::open(":memory:").await.expect("memory");
    assert!(store.inner.line.is_none());
    assert!(Held::new().await.store.inner.line.is_some());
}

/// Nobody else would.
#[tokio::test]
async fn who_waits_for_a_record_is_woken_where_its_writer_went_away() {
    let held = Held::patient().await;
    let claims = [(None, claim()), (None, claim())];
    held.all(&claims).await;
    let complete = |(_, claim): &(_, Draft)| (Some(claim.version), completion(claim, vec![1]));
    let completions = claims.each_ref().map(complete);
    let mut side = held.side().await;
    let connection = held.connection().await;
    let [goes_away, stays] = [0, 1].map(|number| {
        let (seen, next) = &completions[number];
        held.write(number, *seen, next)
    });
    held.are_in_line(2).await;
    side.execute("BEGIN IMMEDIATE").await.expect("it is free");
    drop(connection);
    held.is_empty().await;
    goes_away.abort();
    assert!(goes_away.await.is_err());
    let waiters = Arc::clone(&held.store.inner.waiters);
    let waiter = waiters.register(&id(0));
    side.execute("COMMIT").await.expect("it has the lock");

    assert!(are_applied(&[stays.await.expect("no panic")]));
    let woken = timeout(PATIENCE / 3, waiter).await;
    woken.expect("it is woken");
}

#[tokio::test]
async fn a_write_that_fails_takes_no_other_one_with_it() {
    let held = Held::new().await;
    let claims = some_claims(4);
    held.all(&claims).await;
    let mut side = held.side().await;
    refuse_two(&mut side).await;

    let complete = |(number, (_, claim)): (usize, &(_, Draft))| {
        let outcome = u8::from(number == 2) + 1;
        (Some(claim.version), completion(claim, vec![outcome]))
    };
    let completions: Vec<_> = claims.iter().enumerate().map(complete).collect();
    let (answers, _) = held.all(&completions).await;

    for (number, answer) in answers.iter().enumerate() {
        let is_applied = matches!(answer, Ok(Swap::Applied(_)));
        assert_eq!(is_applied, number != 2, "{number}: {answer:?}");
    }
    let mut connection = held.connection().await;
    let begun = connection.execute("BEGIN; COMMIT").await;
    begun.expect("no transaction was left open");
}

#[tokio::test]
async fn a_table_that_is_gone_is_told_to_everybody_in_line() {
    let held = Held::new().await;
    let mut side = held.side().await;
    let rename = "ALTER TABLE idempotent_records RENAME TO elsewhere";
    side.execute(rename).await.expect("nobody has the file");

    let claims = some_claims(3);
    let (answers, _) = held.all(&claims).await;

    for answer in &answers {
        let kind = answer.as_ref().map_err(StoreError::kind);
        assert_eq!(kind.err(), Some(StoreErrorKind::Schema), "{answer:?}");
    }
    let rename = "ALTER TABLE elsewhere RENAME TO idempotent_records";
    side.execute(rename).await.expect("nobody has the file");
    let (answers, _) = held.all(&claims).await;
    assert!(are_applied(&answers), "{answers:?}");
}

#[tokio::test]
async fn what_stands_is_told_while_somebody_else_has_the_file_locked() {
    let held = Held::new().await;
    let claims = some_claims(3);
    held.all(&claims).await;
    let mut side = held.side().await;
    side.execute("BEGIN IMMEDIATE").await.expect("it is free");

    let others = some_claims(3);
    let (answers, _) = held.all(&others).await;

    for (answer, (_, claim)) in answers.iter().zip(&claims) {
        let Ok(Swap::Refused(snapshot)) = answer else {
            panic!("{answer:?}")
        };
        let stands = snapshot.record.as_ref().expect("it was written");
        assert_eq!(stands.version, claim.version);
    }
}

#[tokio::test]
async fn a_file_that_stays_locked_is_told_to_everybody_in_line() {
    let held = Held::new().await;
    let mut side = held.side().await;
    side.execute("BEGIN IMMEDIATE").await.expect("it is free");

    let claims = some_claims(3);
    let (answers, _) = held.all(&claims).await;
    for answer in &answers {
        let kind = answer.as_ref().map_err(StoreError::kind);
        assert_eq!(kind.err(), Some(StoreErrorKind::Busy), "{answer:?}");
    }

    side.execute("COMMIT").await.expect("it has the lock");
    let (answers, _) = held.all(&claims).await;
    assert!(are_applied(&answers), "{answers:?}");
}

#[tokio::test]
async fn what_its_caller_gave_up_in_line_is_not_written() {
    let held = Held::new().await;
    let connection = held.connection().await;
    let given_up = held.write(0, None, &claim());
    held.are_in_line(1).await;
    let waits = held.write(1, None, &claim());
    held.are_in_line(2).await;
    given_up.abort();
    assert!(given_up.await.is_err());

    drop(connection);

    assert!(are_applied(&[waits.await.expect("no panic")]));
    let stands = held.store.load(&id(0)).await.expect("it is read");
    assert_eq!(stands.record, None);
}

#[tokio::test]
async fn what_its_caller_gave_up_is_not_written_when_others_have_failed() {
    let held = Held::patient().await;
    let claims = some_claims(3);
    held.all(&claims).await;
    let mut side = held.side().await;
    refuse_two(&mut side).await;
    let connection = held.connection().await;
    let mut writing = Vec::new();
    for (number, (_, claim)) in claims.iter().enumerate() {
        let completion = completion(claim, vec![u8::from(number == 0) + 1]);
        writing.push(held.write(number, Some(claim.version), &completion));
        held.are_in_line(number + 1).await;
    }
    side.execute("BEGIN IMMEDIATE").await.expect("it is free");

    drop(connection);
    held.is_empty().await;
    let given_up = writing.pop().expect("there are three");
    given_up.abort();
    assert!(given_up.await.is_err());
    side.execute("COMMIT").await.expect("it has the lock");

    let stays = writing.pop().expect("there are two");
    assert!(are_applied(&[stays.await.expect("no panic")]));
    let fails = writing.pop().expect("there is one");
    assert!(!are_applied(&[fails.await.expect("no panic")]));
    // Whoever has the connection after those has it after all of them.
    drop(held.connection().await);
    let stands = held.store.load(&id(2)).await.expect("it is read");
    let stands = stands.record.expect("it was claimed");
    assert_eq!(stands.version, claims[2].1.version);
}

/// Others wait for what the one in front of them began.
#[tokio::test]
async fn who_goes_away_while_it_writes_for_others_takes_nothing_along() {
    let held = Held::patient().await;
    let mut side = held.side().await;
    let commits = Arc::new(AtomicUsize::new(0));
    let mut connection = held.connection().await;
    count_commits(&mut connection, &commits).await;
    let goes_away = held.write(0, None, &claim());
    held.are_in_line(1).await;
    let waits = held.write(1, None, &claim());
    held.are_in_line(2).await;
    side.execute("BEGIN IMMEDIATE").await.expect("it is free");

    drop(connection);
    held.is_empty().await;
    goes_away.abort();
    assert!(goes_away.await.is_err());
    side.execute("COMMIT").await.expect("it has the lock");

    assert!(are_applied(&[waits.await.expect("no panic")]));
    let commits = commits.load(Ordering::SeqCst);
    assert_eq!(commits, 1, "the one that waited did not write alone");
    let stands = held.store.load(&id(0)).await.expect("it is read");
    assert!(stands.record.is_some());
}

/// A runtime that ends takes its tasks along, and one of them may be in the middle of what others wait for.
#[test]
fn who_stands_in_line_behind_a_runtime_that_ends_is_told_that_nobody_knows() {
    let (ends, stays) = (threaded(), threaded());
    let held = stays.block_on(Held::patient());
    let claims = [(None, claim()), (None, claim())];
    stays.block_on(held.all(&claims));
    let complete = |(_, claim): &(_, Draft)| (Some(claim.version), completion(claim, vec![1]));
    let completions = claims.each_ref().map(complete);
    let mut side = stays.block_on(held.side());
    let connection = stays.block_on(held.connection());
    let write = |number: usize, runtime: &Runtime| {
        let _runtime = runtime.enter();
        let (seen, next) = &completions[number];
        let writing = held.write(number, *seen, next);
        stays.block_on(held.are_in_line(number + 1));
        settle(runtime.handle(), &stays);
        writing
    };
    write(0, &ends);
    let waiting = write(1, &stays);
    let locked = stays.block_on(side.execute("BEGIN IMMEDIATE"));
    locked.expect("it is free");

    drop(connection);
    stays.block_on(held.is_empty());
    // The one thread has sent the message by the time it does this.
    settle(ends.handle(), &stays);
    ends.shutdown_timeout(PATIENCE);
    let released = stays.block_on(side.execute("COMMIT"));
    released.expect("it has the lock");

    let answer = stays.block_on(waiting).expect("no panic");
    let kind = answer.map_err(|error| error.kind());
    assert_eq!(kind.err(), Some(StoreErrorKind::Unavailable));
    let (seen, next) = &completions[1];
    let again = stays.block_on(held.store.swap(&id(1), *seen, next));
    assert!(are_applied(&[again]));
    let committed = "SELECT id FROM idempotent_records WHERE outcome IS NOT NULL";
    let committed = stays.block_on(side.fetch_all(committed));
    assert_eq!(committed.expect("it is read").len(), 1);
}

/// A thread with a runtime of its own drives that for as long as its own call lasts, and no longer.
#[test]
fn nobody_waits_for_a_runtime_whose_call_was_answered() {
    each_is_answered_behind_one_that(false);
}

#[test]
fn nobody_waits_for_a_runtime_whose_call_was_replayed() {
    each_is_answered_behind_one_that(true);
}

fn each_is_answered_behind_one_that(stands: bool) {
    let current = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().expect("a runtime")
    };
    let (idle, stays) = (current(), threaded());
    let held = stays.block_on(Held::new());
    if stands {
        stays.block_on(held.all(&[(None, claim())]));
    }
    let connection = stays.block_on(held.connection());
    let others = 2 * MOST_TOGETHER;
    let waiting: Vec<_> = thread::scope(|scope| {
        let first = scope.spawn(|| idle.block_on(held.store.swap(&id(0), None, &claim())));
        stays.block_on(held.are_in_line(1));
        settle(idle.handle(), &stays);
        let mut waiting = Vec::new();
        for number in 1..=others {
            let _stays = stays.enter();
            waiting.push(held.write(number, None, &claim()));
            stays.block_on(held.are_in_line(number + 1));
        }
        drop(connection);
        let answer = first.join().expect("no panic");
        assert_eq!(are_applied(&[answer]), !stands);
        waiting
    });

    for answer in waiting {
        let answer = stays.block_on(async { timeout(PATIENCE / 3, answer).await });
        let answer = answer.expect("nobody waits").expect("no panic");
        assert!(are_applied(&[answer]));
    }
    drop(idle);
}

/// Lets the one thread of a runtime come to an end with what it does, from another runtime.
fn settle(runtime: &Handle, other: &Runtime) {
    let settled = runtime.spawn(async {});
    other.block_on(settled).expect("no panic");
}

fn threaded() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let builder = builder.worker_threads(1).enable_all();
    builder.build().expect("a runtime")
}
