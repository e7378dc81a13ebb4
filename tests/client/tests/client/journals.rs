//! What a journal keeps, whichever it is, and what its file holds.

use std::{
    sync::Arc,
    task::{Context, Waker},
    time::Duration,
};

use bytes::Bytes;
use idempotent_client::{
    ClientError, ClientJournal, ClientKey, IdempotencyKeys, MemoryJournal, Profile, Resend,
    SqliteJournal,
    journal::{Ending as CallSummary, Entry, EntryId},
};
use idempotent_runtime::{StoreErrorKind, record::Time};
use reqwest_middleware::ClientBuilder;

use crate::kit::{Ending as _, Pauses, Server, answer, builder, unfinished};

/// What a journal of one's own must do as well.
#[tokio::test]
async fn every_journal_keeps_the_contract() {
    let folder = tempfile::tempdir().expect("a folder");
    let sqlite = SqliteJournal::open(folder.path().join("calls.db"))
        .await
        .expect("a journal");
    sqlite.migrate().await.expect("it is there already");
    let shared: Arc<dyn ClientJournal> = Arc::new(MemoryJournal::new());
    let journals: [Arc<dyn ClientJournal>; 3] = [
        Arc::new(MemoryJournal::new()),
        Arc::new(sqlite),
        Arc::new(shared),
    ];
    for journal in journals {
        let entry = |key: &str, created| Entry {
            id: EntryId {
                origin: "https://api.example.com".into(),
                account: "acct_1".into(),
                key: ClientKey::new(key).expect("a key"),
            },
            method: http::Method::POST,
            url: "https://api.example.com/pay?a=1".parse().expect("a URL"),
            headers: [
                (http::header::ACCEPT, "a".parse().expect("a value")),
                (http::header::ACCEPT, "b".parse().expect("a value")),
            ]
            .into_iter()
            .collect(),
            caller: Some([8; 32]),
            begun: Some([1; 16]),
            digest: Some([7; 32]),
            body: Some(Bytes::from_static(b"\0\xff")),
            created: Time::from_micros(created),
            deadline: Time::from_micros(created + 5),
            ending: None,
        };
        let (old, new) = (entry("b", 1), entry("a", 2));
        let stream = Entry {
            digest: None,
            body: None,
            ..entry("c", 3)
        };
        for fresh in [&new, &old, &stream] {
            assert_eq!(journal.begin(fresh).await, Ok(None), "{journal:?}");
        }
        let mut of_another_account = new.clone();
        of_another_account.id.account = "acct_2".into();
        assert_eq!(journal.begin(&of_another_account).await, Ok(None));
        let forgotten = journal.forget(&of_another_account.id).await;
        forgotten.expect("only that one is forgotten");
        let other = Entry {
            body: None,
            ..new.clone()
        };
        assert_eq!(journal.begin(&other).await, Ok(Some(new.clone())));
        let open = readable(&journal, 2).await;
        assert_eq!(open, [old.clone(), new.clone()]);

        journal
            .finish(&old.id, &[9; 32], &CallSummary::Burned)
            .await
            .expect("it is written");
        journal
            .finish(&new.id, &[9; 32], &CallSummary::Gone)
            .await
            .expect("it is written");
        let standing = journal
            .begin(&old)
            .await
            .expect("an answer")
            .expect("it stands");
        assert_eq!(standing.ending, Some(CallSummary::Burned));
        assert_eq!(standing.caller, Some([9; 32]), "who was told");
        assert_eq!(standing.body, None, "nobody sends it any more");
        assert_eq!(readable(&journal, 9).await, std::slice::from_ref(&stream));

        let withdrawn = journal.withdraw(&old.id, Some(&[1; 16])).await;
        assert_eq!(withdrawn, Ok(false), "what is over stays");
        let by_another = Entry {
            begun: Some([2; 16]),
            ..old.clone()
        };
        let over = journal.begin(&by_another).await.expect("an answer");
        let over = over.expect("it stands");
        assert_eq!(
            (over.ending, over.begun),
            (Some(CallSummary::Burned), old.begun)
        );
        let take_up = async |id, seen: Option<[u8; 16]>| {
            let taken_up = journal.take_up(id, seen.as_ref(), &[2; 16]).await;
            taken_up.expect("an answer")
        };
        assert!(!take_up(&old.id, old.begun).await, "it is over");

        let by_another = Entry {
            begun: Some([2; 16]),
            ..stream.clone()
        };
        let standing = journal.begin(&by_another).await;
        assert_eq!(standing, Ok(Some(stream.clone())), "nobody took it up");
        for unseen in [None, Some([3; 16])] {
            assert!(!take_up(&stream.id, unseen).await, "it was begun otherwise");
        }
        assert!(take_up(&stream.id, stream.begun).await);
        assert!(!take_up(&stream.id, stream.begun).await, "only once");
        let taken_up = by_another;
        let withdrawn = journal.withdraw(&stream.id, Some(&[1; 16])).await;
        assert_eq!(withdrawn, Ok(false), "it is somebody else's now");
        assert_eq!(journal.find(&stream.id).await, Ok(Some(taken_up.clone())));
        assert_eq!(readable(&journal, 9).await, std::slice::from_ref(&taken_up));
        let withdrawn = journal.withdraw(&stream.id, Some(&[2; 16])).await;
        assert_eq!(withdrawn, Ok(true));
        assert_eq!(journal.find(&stream.id).await, Ok(None));
        assert_eq!(journal.begin(&stream).await, Ok(None));

        assert_eq!(journal.purge(Time::from_micros(2), 9).await, Ok(1));
        assert_eq!(journal.purge(Time::from_micros(9), 9).await, Ok(1));
        assert_eq!(
            journal.purge(Time::from_micros(9), 9).await,
            Ok(0),
            "what is open stays"
        );
        journal.forget(&stream.id).await.expect("it is forgotten");
        assert_eq!(journal.begin(&stream).await, Ok(None));

        let of_an_earlier_release = Entry {
            begun: None,
            ..entry("d", 4)
        };
        let begun = journal.begin(&of_an_earlier_release).await;
        assert_eq!(begun, Ok(None));
        assert!(take_up(&of_an_earlier_release.id, None).await);
        assert!(!take_up(&of_an_earlier_release.id, None).await, "only once");
        let withdrawn = journal.withdraw(&of_an_earlier_release.id, None).await;
        assert_eq!(withdrawn, Ok(false), "it is somebody's now");
        let untouched = Entry {
            begun: None,
            ..entry("e", 5)
        };
        assert_eq!(journal.begin(&untouched).await, Ok(None));
        let withdrawn = journal.withdraw(&untouched.id, Some(&[1; 16])).await;
        assert_eq!(withdrawn, Ok(false), "it was not begun by that");
        let withdrawn = journal.withdraw(&untouched.id, None).await;
        assert_eq!(withdrawn, Ok(true));
    }
}

/// The open calls of a journal, each of which can be read.
async fn readable(journal: &impl ClientJournal, limit: u32) -> Vec<Entry> {
    let open = journal.unfinished(limit).await.expect("a list");
    let open = open.into_iter();
    open.map(|entry| entry.expect("it can be read")).collect()
}

fn call(number: usize, body: &Bytes) -> Entry {
    Entry {
        id: EntryId {
            origin: "https://api.example.com".into(),
            account: String::new(),
            key: ClientKey::new(number.to_string()).expect("a key"),
        },
        method: http::Method::POST,
        url: "https://api.example.com/pay".parse().expect("a URL"),
        headers: http::HeaderMap::new(),
        caller: Some([8; 32]),
        begun: Some([1; 16]),
        digest: Some([7; 32]),
        body: Some(body.clone()),
        created: Time::from_micros(i64::try_from(number).expect("it is small")),
        deadline: Time::from_micros(i64::MAX),
        ending: None,
    }
}

/// As where a loop takes its calls from a buffered stream, and makes another one before it asks for the next.
#[tokio::test]
async fn a_call_that_nobody_polls_keeps_no_other_one_from_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = SqliteJournal::open(folder.path().join("calls.db")).await;
    let journal = journal.expect("a journal");
    let (alone, other) = (call(1, &Bytes::new()), call(2, &Bytes::new()));
    let mut beginning = journal.begin(&alone);
    let mut context = Context::from_waker(Waker::noop());
    assert!(beginning.as_mut().poll(&mut context).is_pending());

    let beside = tokio::time::timeout(Duration::from_secs(10), journal.begin(&other)).await;

    assert_eq!(beside.expect("in time"), Ok(None));
    assert_eq!(beginning.await, Ok(None));
}

/// A server that is down for long fills no memory, and no call is forgotten because of it.
#[tokio::test]
async fn cl09_the_memory_for_unfinished_calls_is_bounded() {
    const MOST: usize = 10_000;
    let journal = MemoryJournal::new();
    let body = Bytes::from(vec![b'x'; 60_000]);
    for number in 0..MOST {
        let begun = journal.begin(&call(number, &body)).await;
        assert_eq!(begun, Ok(None));
    }
    let open = readable(&journal, u32::MAX).await;
    assert_eq!(open.len(), MOST, "they are known");
    let kept: Vec<_> = open.iter().map(|entry| entry.body.is_some()).collect();
    let bodies = kept.iter().filter(|kept| **kept).count();
    assert!(bodies * body.len() <= 16 << 20, "{bodies} bodies");
    assert!(bodies > 100, "{bodies} bodies");
    assert!(kept.is_sorted(), "the oldest lost theirs");

    let full = journal.begin(&call(MOST, &body)).await;
    assert_eq!(full.expect_err("no room").kind(), StoreErrorKind::Full);
    let first = &open[0].id;
    let finished = journal.finish(first, &[8; 32], &CallSummary::Gone).await;
    finished.expect("it is written");
    assert_eq!(journal.begin(&call(MOST, &body)).await, Ok(None));
    let again = journal.begin(&call(1, &body)).await.expect("an answer");
    assert!(again.is_some(), "what is unfinished is never forgotten");
}

/// Written in another way, it would be another key to a server that takes keys as they stand.
#[tokio::test]
async fn cl09_what_is_dropped_of_a_call_leaves_its_key_as_it_was_written() {
    let journal = MemoryJournal::new();
    let body = Bytes::from(vec![b'x'; 60_000]);
    let mut key = http::HeaderValue::from_static("order-42");
    key.set_sensitive(true);
    let mut oldest = call(0, &body);
    oldest.headers.insert("idempotency-key", key.clone());
    let version = http::HeaderValue::from_static("1");
    oldest.headers.insert("x-version", version);
    assert_eq!(journal.begin(&oldest).await, Ok(None));
    for number in 1..500 {
        let begun = journal.begin(&call(number, &body)).await;
        assert_eq!(begun, Ok(None));
    }
    let standing = journal.find(&oldest.id).await.expect("an answer");
    let standing = standing.expect("it is known");
    assert_eq!(standing.body, None);
    let key = http::HeaderMap::from_iter([("idempotency-key".parse().expect("a name"), key)]);
    assert_eq!(standing.headers, key);
}

/// What is too old to be sent again would be sent as new if it was forgotten by itself, so somebody has to say that.
#[tokio::test]
async fn cl36_a_journal_full_of_old_calls_takes_new_ones_when_somebody_makes_room() {
    let journal = Arc::new(MemoryJournal::new());
    for number in 0..10_000 {
        let begun = journal.begin(&call(number, &Bytes::new())).await;
        assert_eq!(begun, Ok(None));
    }
    let server = Server::doing([answer(201)]).await;
    let keys = builder(&Pauses::default()).journal(journal);
    let (http, keys) = keys.build(reqwest::Client::builder()).expect("a client");
    let client = ClientBuilder::new(http).with(keys.clone()).build();
    let ask = || client.post(server.url("/pay")).body("pay").send();
    let refused = ask().await;
    let ClientError::Journal { source, .. } = refused.ending() else {
        panic!("{refused:?}")
    };
    assert_eq!(source.kind(), StoreErrorKind::Full);
    assert!(server.seen().is_empty());

    let oldest = keys.unfinished(1).await.expect("a list").remove(0);
    let oldest = oldest.expect("it can be read");
    assert_eq!(oldest.replay_plan(), Resend::TooOld);
    assert_eq!(keys.forget(&oldest).await, Ok(true));

    assert_eq!(ask().await.expect("an answer").status(), 201);
}

#[tokio::test]
async fn cl36_what_is_over_is_known_when_its_answer_is_dropped() {
    let journal = MemoryJournal::new();
    let body = Bytes::from(vec![b'x'; 60_000]);
    let answered = CallSummary::Answered {
        status: http::StatusCode::CREATED,
        headers: http::HeaderMap::new(),
        body: Some(body.clone()),
    };
    let sent = Bytes::from_static(b"pay");
    for number in 0..1_500 {
        let begun = journal.begin(&call(number, &sent)).await;
        assert_eq!(begun, Ok(None));
    }
    for number in 0..1_500 {
        let call = call(number, &sent);
        let finished = journal.finish(&call.id, &[8; 32], &answered).await;
        finished.expect("it is written");
    }
    let mut kept = 0;
    for number in 0..1_500 {
        let standing = journal.begin(&call(number, &sent)).await;
        let standing = standing.expect("an answer").expect("it is known");
        assert_eq!(standing.body, None, "nobody needs it any more");
        let Some(CallSummary::Answered { body, .. }) = standing.ending else {
            panic!("it ended")
        };
        kept += body.map_or(0, |body| body.len());
    }
    assert!(kept <= 16 << 20, "{kept} bytes");
    assert!(kept > 0);
}

/// What stands in a file is a promise: a journal of an earlier release must be read.
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
    let over = journal
        .begin(&over)
        .await
        .expect("an answer")
        .expect("it stands");
    let answered = CallSummary::Answered {
        status: http::StatusCode::CREATED,
        headers: [(http::header::ETAG, "e".parse().expect("a value"))]
            .into_iter()
            .collect(),
        body: Some(Bytes::from_static(b"receipt")),
    };
    assert!(over.ending == Some(answered), "{over:?}");
}

/// Nothing tells its begin from another one but that it has none.
#[tokio::test]
async fn cl08_a_call_of_an_earlier_release_is_forgotten_only_as_it_was_listed() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = SqliteJournal::open(folder.path().join("calls.db")).await;
    let journals: [Arc<dyn ClientJournal>; 2] = [
        Arc::new(MemoryJournal::new()),
        Arc::new(file.expect("a journal")),
    ];
    for journal in journals {
        let keys = builder(&Pauses::default()).journal(Arc::clone(&journal));
        let (_, keys) = keys.build(reqwest::Client::builder()).expect("a client");
        for number in 0..3 {
            let entry = Entry {
                begun: None,
                ..call(number, &Bytes::new())
            };
            assert_eq!(journal.begin(&entry).await, Ok(None));
        }
        let listed = unfinished(&keys).await;
        let [taken_up, over, untouched] = &listed[..] else {
            panic!("three calls are open: {listed:?}")
        };
        let id = |number| call(number, &Bytes::new()).id;
        assert_eq!(journal.take_up(&id(0), None, &[2; 16]).await, Ok(true));
        let finished = journal.finish(&id(1), &[8; 32], &CallSummary::Gone).await;
        finished.expect("it is written");

        assert_eq!(keys.forget(taken_up).await, Ok(false));
        assert_eq!(keys.forget(over).await, Ok(false));
        assert_eq!(keys.forget(untouched).await, Ok(true));

        let stands = async |number| journal.find(&id(number)).await.expect("an answer");
        assert!(stands(0).await.is_some(), "it may have been sent since");
        assert!(stands(1).await.is_some(), "it is known how it ended");
        assert_eq!(stands(2).await, None);
    }
}

/// What was damaged is a call that may have been sent, and the others must be sent again.
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
