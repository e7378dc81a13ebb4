//! The contents of a journal's file: one of an earlier release is read, and so is a damaged one.

use bytes::Bytes;
use idempotent_client::{
    ClientJournal as _, ClientKey, IdempotencyKeys, Profile, SqliteJournal,
    journal::{Ending as CallSummary, Entry, EntryId},
};
use idempotent_runtime::{StoreErrorKind, record::Time};

use super::{call, readable};

/// The contents of a file are a promise: a journal of an earlier release must be read.
#[tokio::test]
async fn cl08_a_journal_of_the_first_release_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("calls.db");
    let url = format!("sqlite:{}?mode=rwc", file.display());
    let pool = sqlx::SqlitePool::connect(&url).await.expect("a file");
    sqlx::raw_sql(FIRST_RELEASE)
        .execute(&pool)
        .await
        .expect("it is written");
    pool.close().await;

    let journal = SqliteJournal::open(&file).await.expect("a journal");

    let open = readable(&journal, 9).await;
    assert_eq!(open.len(), 1);
    let entry = &open[0];
    assert_eq!(entry.id.origin, "https://api.example.com");
    assert_eq!(entry.id.key.as_str(), "k");
    assert_eq!((entry.method.as_str(), entry.url.path()), ("POST", "/pay"));
    assert_eq!(entry.headers["content-type"], "text/plain");
    assert_eq!((entry.id.account.as_str(), entry.caller), ("", None));
    assert_eq!(entry.begun, None);
    assert_eq!(entry.digest, Some([7; 32]));
    assert_eq!(entry.body.as_deref(), Some(&b"pay"[..]));
    assert_eq!(entry.created, Time::from_micros(1_000));
    assert_eq!(entry.deadline, Time::from_micros(2_000));

    let over = Entry {
        id: EntryId {
            key: ClientKey::new("over").expect("a key"),
            ..entry.id.clone()
        },
        ..entry.clone()
    };
    let over = journal.begin(&over).await.expect("an answer");
    let over = over.expect("it stands");
    let answered = CallSummary::Answered {
        status: http::StatusCode::CREATED,
        headers: [(http::header::ETAG, "e".parse().expect("a value"))]
            .into_iter()
            .collect(),
        body: Some(Bytes::from_static(b"receipt")),
    };
    assert!(over.ending == Some(answered), "{over:?}");
}

/// A test suite empties all tables between its tests. Where calls are left, they are not lost.
#[tokio::test]
async fn mend_32_the_next_start_works_where_all_tables_were_emptied() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("calls.db");
    let body = Bytes::from_static(b"pay");
    let url = format!("sqlite:{}?mode=rwc", file.display());
    let pool = sqlx::SqlitePool::connect(&url).await.expect("a file");
    for round in 0..2 {
        let journal = SqliteJournal::open(&file).await.expect("a journal");
        let begun = journal.begin(&call(round, &body)).await;
        assert_eq!(begun, Ok(None));
        sqlx::raw_sql("DELETE FROM idempotent_calls_schema; DELETE FROM idempotent_calls")
            .execute(&pool)
            .await
            .expect("they are emptied");
    }
    let journal = SqliteJournal::open(&file).await.expect("a journal");
    assert_eq!(journal.begin(&call(2, &body)).await, Ok(None));
    sqlx::raw_sql("DELETE FROM idempotent_calls_schema")
        .execute(&pool)
        .await
        .expect("it is emptied");
    let refused = SqliteJournal::open(&file).await.map(drop);
    let refused = refused.expect_err("a call stands");
    assert_eq!(refused.kind(), StoreErrorKind::Schema);
    assert_eq!(readable(&journal, 9).await.len(), 1, "it is not lost");
}

/// A damaged entry is a call that may have been sent, and the others must be sent again.
#[tokio::test]
async fn cl08_a_damaged_entry_is_named_and_keeps_no_other_one_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("calls.db");
    let journal = SqliteJournal::open(&file).await.expect("a journal");
    let body = Bytes::from_static(b"pay");
    for number in 0..4 {
        let begun = journal.begin(&call(number, &body)).await;
        assert_eq!(begun, Ok(None));
    }
    let pool = sqlx::SqlitePool::connect(&format!("sqlite:{}", file.display())).await;
    let damage = "UPDATE idempotent_calls SET url = 'nowhere' WHERE call_key = '0';
         UPDATE idempotent_calls SET call_key = CAST(x'ff' AS TEXT) WHERE call_key = '2'";
    let damaged = sqlx::raw_sql(damage).execute(&pool.expect("a file")).await;
    assert_eq!(damaged.expect("it is written").rows_affected(), 2);

    let open = journal.unfinished(9).await.expect("a list");

    let [Err(url), Ok(one), Err(key), Ok(three)] = &open[..] else {
        panic!("oldest first, and each in its place: {open:?}")
    };
    assert_eq!(one, &call(1, &body));
    assert_eq!(three, &call(3, &body));
    assert_eq!(url.place, "row 1 of `idempotent_calls`");
    assert_eq!(key.place, "row 3 of `idempotent_calls`");
    for damaged in [url, key] {
        assert_eq!(damaged.source.kind(), StoreErrorKind::Corrupt);
    }
    assert_eq!(key.id, None);
    let id = url.id.as_ref().expect("that much can be read");
    assert_eq!(**id, call(0, &body).id);
    journal.forget(id).await.expect("it is taken out");
    let left = journal.unfinished(9).await.expect("a list");
    assert_eq!(left, &open[1..]);

    let keys = IdempotencyKeys::builder(Profile::ietf()).journal(journal);
    let (_, keys) = keys.build(reqwest::Client::builder()).expect("a client");
    let calls = keys.unfinished(9).await.expect("a list");
    let [Ok(one), Err(told), Ok(three)] = &calls[..] else {
        panic!("whoever sends them again is told, too: {calls:?}")
    };
    assert_eq!((one.key().as_str(), three.key().as_str()), ("1", "3"));
    assert_eq!(told, key);
}

const FIRST_RELEASE: &str = "
CREATE TABLE idempotent_calls_schema (version INTEGER NOT NULL PRIMARY KEY) STRICT;
CREATE TABLE idempotent_calls (
    origin TEXT NOT NULL,
    call_key TEXT NOT NULL,
    method TEXT NOT NULL,
    url TEXT NOT NULL,
    headers BLOB NOT NULL,
    digest BLOB,
    body BLOB,
    created INTEGER NOT NULL,
    deadline INTEGER NOT NULL,
    ending INTEGER,
    status INTEGER,
    answer_headers BLOB,
    answer_body BLOB,
    PRIMARY KEY (origin, call_key)
) STRICT;
CREATE INDEX idempotent_calls_open ON idempotent_calls (created) WHERE ending IS NULL;
CREATE INDEX idempotent_calls_over ON idempotent_calls (created) WHERE ending IS NOT NULL;
INSERT INTO idempotent_calls_schema VALUES (1);
INSERT INTO idempotent_calls VALUES (
    'https://api.example.com', 'k', 'POST', 'https://api.example.com/pay',
    x'0c636f6e74656e742d747970650a746578742f706c61696e',
    x'0707070707070707070707070707070707070707070707070707070707070707',
    x'706179', 1000, 2000, NULL, NULL, NULL, NULL
);
INSERT INTO idempotent_calls VALUES (
    'https://api.example.com', 'over', 'POST', 'https://api.example.com/pay', x'', NULL, NULL,
    500, 2000, 0, 201, x'04657461670165', x'72656365697074'
);
";
