//! The golden files of the journal: every text that is sent while all that it does is done.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use expect_test::{ExpectFile, expect_file};
use http::{HeaderMap, Method, StatusCode};
use sqlx::{AssertSqlSafe, Executor as _, Row as _, SqlitePool, sqlite::SqlitePoolOptions};

use super::super::{
    SqliteJournal,
    rows::{ANSWERED, BURNED, GONE},
    schema,
};
use crate::{
    journal::{ClientJournal, Ending, Entry, EntryId},
    key::ClientKey,
};
use idempotent_runtime::{__client::chosen, Time};

static SENT: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Notes a text that is sent.
pub(in super::super) fn note(text: &str) {
    let mut sent = SENT.lock().unwrap_or_else(PoisonError::into_inner);
    sent.push(text.to_owned());
}

/// Compares the texts that were sent for tables of this prefix with a file, each once.
fn compare(prefix: &str, file: ExpectFile) {
    let sent = SENT.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut seen, mut golden) = (BTreeSet::new(), String::new());
    for text in sent.iter().filter(|text| text.contains(prefix)) {
        if seen.insert(text) {
            golden += &format!("-- {}\n{text}\n", seen.len());
        }
    }
    file.assert_eq(&golden);
}

async fn pool() -> SqlitePool {
    let options = SqlitePoolOptions::new().max_connections(1);
    let pool = options.connect("sqlite::memory:").await;
    pool.expect("a database in memory")
}

fn entry(key: &str) -> Entry {
    Entry {
        id: EntryId {
            origin: "https://api.example.com".into(),
            account: String::new(),
            key: ClientKey::new(key).expect("a key"),
        },
        method: Method::POST,
        url: "https://api.example.com/pay".parse().expect("a URL"),
        headers: HeaderMap::new(),
        caller: None,
        begun: None,
        digest: None,
        body: None,
        created: Time::from_micros(0),
        deadline: Time::from_micros(1),
        ending: None,
    }
}

#[tokio::test]
async fn golden_statements_of_the_journal_are_the_same_bytes() {
    let journal = SqliteJournal::new(pool().await, "goldencalls_").expect("a prefix");
    journal.migrate().await.expect("the tables are made");
    let (one, other) = (entry("1"), entry("2"));
    assert_eq!(journal.begin(&one).await, Ok(None));
    assert_eq!(journal.begin(&one).await, Ok(Some(one.clone())));
    assert_eq!(journal.begin(&other).await, Ok(None));
    let begun = [1; 16];
    assert_eq!(journal.take_up(&one.id, None, &begun).await, Ok(true));
    let again = journal.take_up(&one.id, Some(&begun), &begun).await;
    assert_eq!(again, Ok(true));
    let listed = journal.unfinished(10).await.expect("a list");
    assert_eq!(listed.len(), 2);
    let answered = Ending::Answered {
        status: StatusCode::OK,
        headers: HeaderMap::new(),
        body: Some(Bytes::from_static(b"paid")),
    };
    for ending in [answered, Ending::Gone, Ending::Burned] {
        let finished = journal.finish(&one.id, &[2; 32], &ending).await;
        finished.expect("it is finished");
    }
    assert_eq!(journal.withdraw(&other.id, Some(&begun)).await, Ok(false));
    assert_eq!(journal.withdraw(&other.id, None).await, Ok(true));
    journal.forget(&other.id).await.expect("it is deleted");
    assert_eq!(journal.purge(Time::from_micros(9), 10).await, Ok(1));
    compare("goldencalls_", expect_file!["golden/statements.sql"]);
}

#[tokio::test]
async fn golden_migrations_of_the_journal_are_the_same_bytes() {
    let pool = pool().await;
    let journal = SqliteJournal::new(pool.clone(), "goldenschema_").expect("a prefix");
    // The second one has nothing to do.
    for _ in 0..2 {
        journal.migrate().await.expect("the tables are made");
        let steps = "SELECT count(*), max(version) FROM goldenschema_calls_schema";
        let row = sqlx::query(steps).fetch_one(&pool).await.expect("a row");
        let found: (i64, i64) = (row.get(0), row.get(1));
        assert_eq!(found, (3, 3));
    }
    let emptied = sqlx::query("DELETE FROM goldenschema_calls_schema");
    emptied.execute(&pool).await.expect("it is emptied");
    // An empty table of calls is dropped, and made anew.
    journal.migrate().await.expect("the tables are made");
    compare("goldenschema_", expect_file!["golden/migrations.sql"]);
}

#[test]
fn golden_steps_of_the_journal_have_the_same_numbers() {
    let prefix = chosen("golden_", "beginning a test").expect("a prefix");
    let mut golden = format!("-- lock\n{}\n", schema::LOCK);
    for (version, step) in (1..).zip(schema::steps(&prefix)) {
        let usable_from = step.usable_from;
        golden += &format!(
            "-- step {version}, usable from {usable_from}\n{}\n",
            step.text
        );
    }
    golden += &format!("-- endings\n{ANSWERED}, {GONE}, {BURNED}\n");
    expect_file!["golden/steps.sql"].assert_eq(&golden);
}

#[tokio::test]
async fn golden_sessions_of_the_journal_have_the_same_settings() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let journal = SqliteJournal::open(folder.path().join("calls.db")).await;
    let connections = journal.expect("it opens").connections;
    let mut connection = connections.acquire("testing").await.expect("one");
    let mut golden = String::new();
    for name in [
        "journal_mode",
        "synchronous",
        "busy_timeout",
        "foreign_keys",
    ] {
        let query = AssertSqlSafe(format!("PRAGMA {name}"));
        let row = connection.fetch_one(query).await.expect("it is read");
        let value: String = row.get_unchecked(0);
        golden += &format!("-- {name}\n{value}\n");
    }
    expect_file!["golden/sessions.sql"].assert_eq(&golden);
}
