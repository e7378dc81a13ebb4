//! Journals in SQLite files that are locked, in use, or gone.

use std::{error::Error as _, path::PathBuf, time::Duration};

use idempotent_client::{
    ClientError, ClientJournal, IdempotencyKeys, Profile, SqliteJournal, journal::JournalFileGone,
};
use idempotent_runtime::{StoreErrorKind, testing::Gate};
use sqlx::{
    Connection as _, SqliteConnection, SqlitePool,
    pool::PoolConnection,
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::Late;
use crate::kit::{Ending, Process, Server, Step, answer, outcome, wish};

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(3_600);

struct File {
    folder: TempDir,
    pool: SqlitePool,
    journal: SqliteJournal,
}

impl File {
    /// Waits for long, for a connection and for a lock.
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let options = SqliteConnectOptions::new()
            .filename(folder.path().join("calls.db"))
            .create_if_missing(true)
            .busy_timeout(LONG);
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            .acquire_timeout(LONG);
        let pool = pool.connect_with(options).await.expect("a file");
        let journal = SqliteJournal::new(pool.clone(), "idempotent_").expect("a journal");
        journal.migrate().await.expect("it has its tables");
        Self {
            folder,
            pool,
            journal,
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("calls.db")
    }

    /// Keeps the journal from its file until it is dropped.
    async fn block(&self, blocked: Blocked) -> (Option<PoolConnection<sqlx::Sqlite>>, Lock) {
        match blocked {
            Blocked::ByThePool => (Some(self.pool.acquire().await.expect("it is free")), None),
            Blocked::ByALock => {
                let path = self.path();
                let other = SqliteConnection::connect(&format!("sqlite:{}", path.display())).await;
                let mut other = other.expect("a connection");
                let locking = sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await;
                locking.expect("it is free");
                (None, Some(other))
            }
        }
    }
}

type Lock = Option<SqliteConnection>;

#[derive(Clone, Copy, Debug)]
enum Blocked {
    ByThePool,
    ByALock,
}

#[tokio::test]
async fn mend_38_a_call_ends_at_its_deadline_though_the_file_cannot_be_written() {
    for blocked in [Blocked::ByThePool, Blocked::ByALock] {
        let file = File::new().await;
        let server = Server::doing([answer(201)]).await;
        let late = Late::of(file.journal.clone(), 1);
        let _block = file.block(blocked).await;

        let ended = late.ends(late.ask(&server, wish())).await;

        let ended = ended.ending();
        assert!(matches!(ended, ClientError::Journal { .. }), "{ended:?}");
        assert!(server.seen().is_empty(), "{blocked:?}");
    }
}

#[tokio::test]
async fn mend_38_an_answer_is_handed_on_though_the_file_cannot_be_written() {
    for blocked in [Blocked::ByThePool, Blocked::ByALock] {
        let file = File::new().await;
        let gate = Gate::new();
        let server = Server::doing([Step::Behind(gate.clone())]).await;
        let late = Late::of(file.journal.clone(), 3);
        let call = late.ask(&server, wish());
        server.await_requests(1).await;
        let _block = file.block(blocked).await;
        gate.open();

        let ended = late.ends(call).await;

        let response = ended.expect("an answer");
        assert!(outcome(&response).unrecorded, "{blocked:?}");
    }
}

pub(super) fn runtime() -> Runtime {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().expect("a runtime")
}

#[test]
fn mend_38_a_locked_file_keeps_no_runtime_from_its_end() {
    let outside = runtime();
    let file = outside.block_on(File::new());
    let _block = outside.block_on(file.block(Blocked::ByALock));
    let runtime = runtime();
    runtime.block_on(async {
        let server = Server::doing([answer(201)]).await;
        let late = Late::of(file.journal.clone(), 1);
        drop(late.ends(late.ask(&server, wish())).await);
    });
    drop(file);

    let (ended, end) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        drop(runtime);
        ended.send(())
    });

    let end = end.recv_timeout(Duration::from_secs(20));
    end.expect("it ends while the file is locked");
}

/// A caller is told of a journal that fails as of one that is silent.
#[tokio::test]
async fn mend_38_an_answer_that_the_journal_refuses_is_handed_on_with_a_note() {
    let file = File::new().await;
    let refusing = "CREATE TRIGGER no_endings BEFORE UPDATE ON idempotent_calls
         BEGIN SELECT RAISE(ABORT, 'no'); END";
    let made = sqlx::raw_sql(refusing).execute(&file.pool).await;
    made.expect("a trigger");
    let server = Server::doing([answer(201)]).await;

    let answered = process(&file.journal).charge(&server).send().await;

    assert!(outcome(&answered.expect("an answer")).unrecorded);
}

fn process(journal: &SqliteJournal) -> Process {
    Process::of(IdempotencyKeys::builder(Profile::ietf()).journal(journal.clone()))
}

/// A way in which a file goes.
#[cfg(unix)]
#[derive(Clone, Copy, Debug)]
enum Gone {
    Deleted,
    Replaced,
}

#[cfg(unix)]
impl Gone {
    fn happens_to(self, file: &File) {
        if let Gone::Replaced = self {
            let copy = file.folder.path().join("copy.db");
            std::fs::copy(file.path(), &copy).expect("a copy");
            std::fs::rename(&copy, file.path()).expect("it takes the place");
        } else {
            std::fs::remove_file(file.path()).expect("it is deleted");
        }
    }
}

#[cfg(unix)]
async fn opened(file: &File) -> [SqliteJournal; 2] {
    let opened = SqliteJournal::open(file.path()).await;
    [file.journal.clone(), opened.expect("a journal")]
}

/// SQLite goes on with a file that has no name any more, and all of it is lost with the process.
#[cfg(unix)]
#[tokio::test]
async fn mend_38_a_file_that_was_deleted_or_replaced_takes_no_more_calls() {
    for gone in [Gone::Deleted, Gone::Replaced] {
        for which in 0..2 {
            let file = File::new().await;
            let journal = opened(&file).await[which].clone();
            let server = Server::doing([answer(201), answer(201)]).await;
            let client = process(&journal);
            client.post(&server).send().await.expect("an answer");
            gone.happens_to(&file);

            for _ in 0..2 {
                let ended = client.charge(&server).send().await;

                let ClientError::Journal { source, .. } = ended.ending() else {
                    panic!("{ended:?}")
                };
                assert_eq!(source.kind(), StoreErrorKind::Configuration);
                let cause = source.source().expect("a cause");
                let cause: &JournalFileGone = cause.downcast_ref().expect("that it is gone");
                assert_eq!(cause.path.file_name(), file.path().file_name());
            }
            assert!(journal.unfinished(9).await.is_err(), "{gone:?}");
            assert!(journal.migrate().await.is_err(), "{gone:?}");
            assert_eq!(server.seen().len(), 1, "{gone:?}");
            assert_eq!(file.path().exists(), matches!(gone, Gone::Replaced));
            let again = SqliteJournal::open(file.path()).await;
            let again = process(&again.expect("a new one"));
            again.charge(&server).send().await.expect("an answer");
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn mend_38_an_answer_is_handed_on_with_a_note_if_the_file_is_gone_by_then() {
    for gone in [Gone::Deleted, Gone::Replaced] {
        for which in 0..2 {
            let file = File::new().await;
            let journal = opened(&file).await[which].clone();
            let gate = Gate::new();
            let server = Server::doing([Step::Behind(gate.clone())]).await;
            let client = process(&journal);
            let call = tokio::spawn(client.charge(&server).send());
            server.await_requests(1).await;
            gone.happens_to(&file);
            gate.open();

            let answered = call.await.expect("no panic");

            let response = answered.expect("an answer");
            assert!(outcome(&response).unrecorded, "{gone:?}");
        }
    }
}
