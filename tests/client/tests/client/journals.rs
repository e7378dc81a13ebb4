//! The entries that a journal keeps, whichever journal it is.

use std::{
    sync::Arc,
    task::{Context, Waker},
    time::Duration,
};

use bytes::Bytes;
use idempotent_client::{
    ClientError, ClientJournal, ClientKey, MemoryJournal, Resend, SqliteJournal,
    journal::{Ending as CallSummary, Entry, EntryId},
};
use idempotent_runtime::{StoreErrorKind, record::Time};

use crate::{
    journal::journals,
    kit::{Ending as _, Pauses, Process, Server, answer, builder, unfinished},
};

mod file;

/// The contract that a journal of one's own must keep as well.
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
        calls_are_begun(&journal).await;
        calls_end(&journal).await;
        an_open_call_is_taken_up_once(&journal).await;
        what_is_over_can_be_purged(&journal).await;
        calls_of_an_earlier_release_are_told_apart(&journal).await;
    }
}

fn entry(key: &str, created: i64) -> Entry {
    Entry {
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
    }
}

fn old() -> Entry {
    entry("b", 1)
}

fn new() -> Entry {
    entry("a", 2)
}

fn stream() -> Entry {
    Entry {
        digest: None,
        body: None,
        ..entry("c", 3)
    }
}

async fn calls_are_begun(journal: &Arc<dyn ClientJournal>) {
    for fresh in [&new(), &old(), &stream()] {
        assert_eq!(journal.begin(fresh).await, Ok(None), "{journal:?}");
    }
    let mut of_another_account = new();
    of_another_account.id.account = "acct_2".into();
    assert_eq!(journal.begin(&of_another_account).await, Ok(None));
    let forgotten = journal.forget(&of_another_account.id).await;
    forgotten.expect("only that one is forgotten");
    let other = Entry {
        body: None,
        ..new()
    };
    assert_eq!(journal.begin(&other).await, Ok(Some(new())));
    assert_eq!(readable(journal, 2).await, [old(), new()]);
}

async fn calls_end(journal: &Arc<dyn ClientJournal>) {
    let old = old();
    for (id, ending) in [
        (&old.id, CallSummary::Burned),
        (&new().id, CallSummary::Gone),
    ] {
        let finished = journal.finish(id, &[9; 32], &ending).await;
        finished.expect("it is written");
    }
    let standing = journal.begin(&old).await.expect("an answer");
    let standing = standing.expect("it stands");
    assert_eq!(standing.ending, Some(CallSummary::Burned));
    assert_eq!(standing.caller, Some([9; 32]), "who was told");
    assert_eq!(standing.body, None, "nobody sends it any more");
    assert_eq!(readable(journal, 9).await, [stream()]);

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
    let taken_up = take_up(journal, &old.id, old.begun).await;
    assert!(!taken_up, "it is over");
}

async fn take_up(journal: &Arc<dyn ClientJournal>, id: &EntryId, seen: Option<[u8; 16]>) -> bool {
    let taken_up = journal.take_up(id, seen.as_ref(), &[2; 16]).await;
    taken_up.expect("an answer")
}

async fn an_open_call_is_taken_up_once(journal: &Arc<dyn ClientJournal>) {
    let stream = stream();
    let by_another = Entry {
        begun: Some([2; 16]),
        ..stream.clone()
    };
    let standing = journal.begin(&by_another).await;
    assert_eq!(standing, Ok(Some(stream.clone())), "nobody took it up");
    for unseen in [None, Some([3; 16])] {
        let taken_up = take_up(journal, &stream.id, unseen).await;
        assert!(!taken_up, "it was begun otherwise");
    }
    assert!(take_up(journal, &stream.id, stream.begun).await);
    assert!(
        !take_up(journal, &stream.id, stream.begun).await,
        "only once"
    );
    let taken_up = by_another;
    let withdrawn = journal.withdraw(&stream.id, Some(&[1; 16])).await;
    assert_eq!(withdrawn, Ok(false), "it is somebody else's now");
    assert_eq!(journal.find(&stream.id).await, Ok(Some(taken_up.clone())));
    assert_eq!(readable(journal, 9).await, [taken_up]);
    let withdrawn = journal.withdraw(&stream.id, Some(&[2; 16])).await;
    assert_eq!(withdrawn, Ok(true));
    assert_eq!(journal.find(&stream.id).await, Ok(None));
    assert_eq!(journal.begin(&stream).await, Ok(None));
}

async fn what_is_over_can_be_purged(journal: &Arc<dyn ClientJournal>) {
    assert_eq!(journal.purge(Time::from_micros(2), 9).await, Ok(1));
    assert_eq!(journal.purge(Time::from_micros(9), 9).await, Ok(1));
    let purged = journal.purge(Time::from_micros(9), 9).await;
    assert_eq!(purged, Ok(0), "what is open stays");
    let forgotten = journal.forget(&stream().id).await;
    forgotten.expect("it is forgotten");
    assert_eq!(journal.begin(&stream()).await, Ok(None));
}

async fn calls_of_an_earlier_release_are_told_apart(journal: &Arc<dyn ClientJournal>) {
    let [taken_up, untouched] = [entry("d", 4), entry("e", 5)].map(|entry| Entry {
        begun: None,
        ..entry
    });
    for earlier in [&taken_up, &untouched] {
        assert_eq!(journal.begin(earlier).await, Ok(None));
    }
    assert!(take_up(journal, &taken_up.id, None).await);
    assert!(!take_up(journal, &taken_up.id, None).await, "only once");
    let withdrawn = journal.withdraw(&taken_up.id, None).await;
    assert_eq!(withdrawn, Ok(false), "it is somebody's now");
    let withdrawn = journal.withdraw(&untouched.id, Some(&[1; 16])).await;
    assert_eq!(withdrawn, Ok(false), "it was not begun by that");
    let withdrawn = journal.withdraw(&untouched.id, None).await;
    assert_eq!(withdrawn, Ok(true));
}

/// The open calls of a journal, each of which can be read.
async fn readable(journal: &impl ClientJournal, limit: u32) -> Vec<Entry> {
    let open = journal.unfinished(limit).await.expect("a list");
    let open = open.into_iter();
    open.map(|entry| entry.expect("it can be read")).collect()
}

fn call(number: usize, body: &Bytes) -> Entry {
    let created = i64::try_from(number).expect("it is small");
    let entry = entry(&number.to_string(), created);
    Entry {
        id: EntryId {
            account: String::new(),
            ..entry.id
        },
        headers: http::HeaderMap::new(),
        body: Some(body.clone()),
        deadline: Time::from_micros(i64::MAX),
        ..entry
    }
}

/// As when a loop takes its calls from a buffered stream, and makes another one before it asks for
/// the next.
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

/// A call that is too old to be sent again would be sent as new if it was forgotten by itself. So
/// an operator has to say that it may be forgotten.
#[tokio::test]
async fn cl36_a_journal_full_of_old_calls_takes_new_ones_when_somebody_makes_room() {
    let journal = Arc::new(MemoryJournal::new());
    for number in 0..10_000 {
        let begun = journal.begin(&call(number, &Bytes::new())).await;
        assert_eq!(begun, Ok(None));
    }
    let server = Server::doing([answer(201)]).await;
    let keys = builder(&Pauses::default()).journal(journal);
    let Process { client, keys } = Process::of(keys);
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

/// Only its missing begin tells it from another one.
#[tokio::test]
async fn cl08_a_call_of_an_earlier_release_is_forgotten_only_as_it_was_listed() {
    let folder = tempfile::tempdir().expect("a folder");
    for journal in journals(&folder).await {
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
