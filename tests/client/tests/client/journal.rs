//! What outlives a call, a task and a process.

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use async_trait::async_trait;
use bytes::Bytes;
use idempotent_runtime::{
    StoreError, StoreErrorKind,
    client::{
        Call, ClientError, ClientJournal, Intent, Key, MemoryJournal, Origin, Resend,
        SqliteJournal, Why,
        journal::{Ending as Ended, Entry, EntryId},
    },
    clock::Clock,
    record::Time,
    testing::{Gate, ManualClock},
};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};

use crate::kit::{Ending, Pauses, Server, Step, answer, builder, lock, outcome, patient, problem};

const HOUR: Duration = Duration::from_secs(3_600);

/// One life of a program.
struct Process {
    client: ClientWithMiddleware,
    keys: idempotent_runtime::client::IdempotencyKeys,
}

async fn process(file: &Path, clock: &ManualClock) -> Process {
    let journal = SqliteJournal::open(file).await.expect("a journal");
    process_with(journal, clock)
}

fn process_with(journal: impl ClientJournal, clock: &ManualClock) -> Process {
    let keys = builder(&Pauses::default())
        .limits(patient().attempts(1))
        .journal(journal)
        .clock(clock.clone());
    let (http, keys) = keys.build(reqwest::Client::builder()).expect("a client");
    let client = ClientBuilder::new(http).with(keys.clone()).build();
    Process { client, keys }
}

fn wish() -> Call {
    Call::new().intent(Intent::new("payments.charge", "order-42"))
}

#[tokio::test]
async fn c08_a_restart_sends_the_same_bytes_with_the_same_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("calls.db");
    let clock = ManualClock::new();
    let server = Server::doing([Step::Cut, answer(201).into()]).await;

    let first = process(&file, &clock).await;
    let call = first.client.post(server.url("/pay?now")).body("pay");
    let call = call
        .header("content-type", "text/plain")
        .bearer_auth("secret");
    assert!(call.send().await.is_err());
    drop(first);

    let second = process(&file, &clock).await;
    let open = second.keys.unfinished(9).await.expect("a list");
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].resend(), Resend::Possible);
    let call = open[0].request(&second.client).expect("it can be sent");
    let response = call.send().await.expect("an answer");

    assert_eq!(response.status(), 201);
    let seen = server.seen();
    assert_eq!(seen[0].keys(), seen[1].keys());
    assert_eq!(seen[0].body, seen[1].body);
    assert_eq!(
        (&seen[0].method, &seen[0].path),
        (&seen[1].method, &seen[1].path)
    );
    assert_eq!(seen[1].headers["content-type"], "text/plain");
    assert!(
        !seen[1].headers.contains_key("authorization"),
        "it was never written down"
    );
    let bytes = std::fs::read(&file).expect("the file");
    assert!(!bytes.windows(6).any(|piece| piece == b"secret"));
    assert!(second.keys.unfinished(9).await.expect("a list").is_empty());
}

#[tokio::test]
async fn c08_a_body_that_is_not_kept_is_reported_and_an_intent_resumes_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("calls.db");
    let clock = ManualClock::new();
    let server = Server::doing([Step::Cut]).await;
    let journal = SqliteJournal::open(&file).await.expect("a journal");
    let keys = builder(&Pauses::default())
        .limits(patient().attempts(1))
        .clock(clock.clone());
    let keys = keys.journal(journal).longest_kept_body(2);
    let (http, keys) = keys.build(reqwest::Client::builder()).expect("a client");
    let client = ClientBuilder::new(http).with(keys.clone()).build();
    let call = || {
        client
            .post(server.url("/pay"))
            .body("pay")
            .with_extension(wish())
    };
    assert!(call().send().await.is_err());

    let open = keys.unfinished(9).await.expect("a list");
    assert_eq!(open[0].resend(), Resend::BodyNotKept);
    assert!(open[0].request(&client).is_none());

    call().send().await.expect("an answer");
    let keys = server.keys();
    assert_eq!(keys[0], keys[1]);
}

/// Looks at the server and the journal in the order in which things happen.
#[derive(Clone, Debug, Default)]
struct Watched {
    inner: Arc<MemoryJournal>,
    begun: Arc<Mutex<Vec<Entry>>>,
    fails: bool,
}

#[async_trait]
impl ClientJournal for Watched {
    async fn begin(&self, entry: &Entry) -> Result<Option<Entry>, StoreError> {
        if self.fails {
            return Err(StoreError::new(StoreErrorKind::Full, "writing"));
        }
        lock(&self.begun).push(entry.clone());
        self.inner.begin(entry).await
    }

    async fn finish(&self, id: &EntryId, ending: &Ended) -> Result<(), StoreError> {
        self.inner.finish(id, ending).await
    }

    async fn forget(&self, id: &EntryId) -> Result<(), StoreError> {
        self.inner.forget(id).await
    }

    async fn unfinished(&self, limit: u32) -> Result<Vec<Entry>, StoreError> {
        self.inner.unfinished(limit).await
    }

    async fn purge(&self, before: Time, limit: u32) -> Result<u64, StoreError> {
        self.inner.purge(before, limit).await
    }
}

#[tokio::test]
async fn c09_the_journal_is_written_before_the_first_byte_leaves() {
    let clock = ManualClock::new();
    let server = Server::doing([Step::Hang]).await;
    let journal = Watched::default();
    let process = process_with(journal.clone(), &clock);
    let call = process.client.post(server.url("/pay")).body("pay");
    let call = tokio::spawn(call.send());
    server.await_requests(1).await;
    let begun = lock(&journal.begun).clone();
    call.abort();

    let entry = &begun[0];
    let sent = server.keys()[0].clone().expect("a key");
    assert_eq!(sent, format!("\"{}\"", entry.id.key.as_str()));
    assert_eq!(entry.method, "POST");
    assert_eq!(entry.url.as_str(), server.url("/pay"));
    assert_eq!(entry.body.as_deref(), Some(&b"pay"[..]));
    assert!(entry.digest.is_some());
    assert_eq!(entry.created, Clock::now(&clock));
    assert_eq!(entry.deadline.since(entry.created), HOUR);
}

#[tokio::test]
async fn c09_where_the_journal_fails_nothing_is_sent() {
    let server = Server::doing([answer(201)]).await;
    let journal = Watched {
        fails: true,
        ..Watched::default()
    };
    let process = process_with(journal, &ManualClock::new());
    let ended = process
        .client
        .post(server.url("/pay"))
        .body("pay")
        .send()
        .await;
    assert!(matches!(ended.ending(), ClientError::Journal { .. }));
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn c10_another_body_under_the_same_intent_is_refused_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("calls.db");
    let clock = ManualClock::new();
    for first in [Step::Cut, answer(201).into()] {
        let server = Server::doing([first]).await;
        let one = process(&file, &clock).await;
        let _ = one
            .client
            .post(server.url("/pay"))
            .body("pay")
            .with_extension(wish())
            .send()
            .await;
        let two = process(&file, &clock).await;
        let ended = two
            .client
            .post(server.url("/pay"))
            .body("other")
            .with_extension(wish());
        let ended = ended.send().await;
        assert!(matches!(
            ended.ending(),
            ClientError::KeyReusedLocally { .. }
        ));
        assert_eq!(server.seen().len(), 1);
    }
}

#[tokio::test]
async fn c11_what_is_done_is_answered_by_the_journal() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("calls.db");
    let clock = ManualClock::new();
    let done = answer(201)
        .with("content-type", "text/plain")
        .with("set-cookie", "s=1")
        .body("receipt");
    let server = Server::doing([done]).await;
    for origin in [Origin::Server, Origin::Journal, Origin::Journal] {
        let process = process(&file, &clock).await;
        let call = process
            .client
            .post(server.url("/pay"))
            .body("pay")
            .with_extension(wish());
        let response = call.send().await.expect("an answer");
        assert_eq!(response.status(), 201);
        assert_eq!(outcome(&response).origin, origin);
        assert_eq!(outcome(&response).replayed, origin == Origin::Journal);
        assert_eq!(response.headers()["content-type"], "text/plain");
        assert_eq!(
            response.headers().contains_key("set-cookie"),
            origin == Origin::Server
        );
        assert_eq!(response.text().await.expect("a body"), "receipt");
    }
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn c11_a_response_that_is_not_kept_is_not_asked_for_again() {
    let server = Server::doing([answer(201).body("a long receipt")]).await;
    let keys = builder(&Pauses::default()).longest_kept_body(4);
    let client = keys.client(reqwest::Client::builder()).expect("a client");
    let call = || {
        client
            .post(server.url("/pay"))
            .body("pay")
            .with_extension(wish())
            .send()
    };
    call().await.expect("an answer");
    assert!(matches!(
        call().await.ending(),
        ClientError::ResultGone { .. }
    ));
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn c33_a_dropped_call_sends_nothing_more_and_stays_in_the_journal() {
    let clock = ManualClock::new();
    let gate = Gate::new();
    let server = Server::doing([Step::Cut]).await;
    let keys = builder(&Pauses::behind(&gate))
        .journal(Watched::default())
        .clock(clock.clone());
    let (http, keys) = keys.build(reqwest::Client::builder()).expect("a client");
    let client = ClientBuilder::new(http).with(keys.clone()).build();
    let call = tokio::spawn(client.post(server.url("/pay")).body("pay").send());
    gate.arrived(1).await;
    assert!(
        keys.unfinished(9).await.expect("a list").is_empty(),
        "it is being made"
    );

    call.abort();
    assert!(call.await.is_err());
    gate.open();

    let open = keys.unfinished(9).await.expect("a list");
    assert_eq!(open.len(), 1);
    let sent = server.keys()[0].clone().expect("a key");
    assert_eq!(sent, format!("\"{}\"", open[0].key().as_str()));
    // The next request of this client is the next that the server sees.
    open[0]
        .request(&client)
        .expect("it can be sent")
        .send()
        .await
        .expect("an answer");
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn c36_an_old_key_is_never_sent_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("calls.db");
    let clock = ManualClock::new();
    let server = Server::doing([Step::Cut]).await;
    let process = process(&file, &clock).await;
    let call = || {
        process
            .client
            .post(server.url("/pay"))
            .body("pay")
            .with_extension(wish())
            .send()
    };
    assert!(call().await.is_err());

    clock.advance(24 * HOUR - Duration::from_secs(300));
    let open = process.keys.unfinished(9).await.expect("a list");
    assert_eq!(open[0].resend(), Resend::TooOld);
    assert!(open[0].request(&process.client).is_none());
    let ended = call().await;
    assert!(matches!(
        ended.ending(),
        ClientError::Unknown { why: Why::Age, .. }
    ));
    assert_eq!(server.seen().len(), 1);
}

/// A key does not get old between two attempts without anybody noticing.
#[tokio::test]
async fn c36_a_key_that_gets_old_on_the_way_is_not_sent_again() {
    let server = Server::doing([answer(500), answer(500)]).await;
    let profile =
        idempotent_runtime::client::Profile::ietf().retention(Duration::from_millis(1_400));
    let keys = idempotent_runtime::client::IdempotencyKeys::builder(profile)
        .limits(patient())
        .timer(Pauses::default());
    let client = keys.client(reqwest::Client::builder()).expect("a client");
    let ended = client.post(server.url("/pay")).body("pay").send().await;
    let ClientError::Unknown {
        why: Why::Age,
        call,
        ..
    } = ended.ending()
    else {
        panic!("{ended:?}")
    };
    assert_eq!(call.attempts, 2);
}

#[tokio::test]
async fn c36_an_intent_that_no_journal_saw_is_as_old_as_it_says() {
    let server = Server::doing([answer(201)]).await;
    let clock = ManualClock::new();
    let process = process_with(MemoryJournal::new(), &clock);
    let now = Clock::now(&clock).as_micros().unsigned_abs();
    let began = UNIX_EPOCH + Duration::from_micros(now) - 25 * HOUR;
    let old = Intent::new("payments.charge", "order-42").begun(began);
    let call = process.client.post(server.url("/pay")).body("pay");
    let ended = call.with_extension(Call::new().intent(old)).send().await;
    assert!(matches!(
        ended.ending(),
        ClientError::Unknown { why: Why::Age, .. }
    ));
    assert!(server.seen().is_empty());
    assert!(SystemTime::now() > began);
}

#[tokio::test]
async fn c40_one_intent_is_sent_by_one_task_at_a_time() {
    let gate = Gate::new();
    let server = Server::doing([Step::Behind(gate.clone())]).await;
    let process = process_with(MemoryJournal::new(), &ManualClock::new());
    let call = || {
        process
            .client
            .post(server.url("/pay"))
            .body("pay")
            .with_extension(wish())
            .send()
    };
    let first = tokio::spawn(call());
    gate.arrived(1).await;

    assert!(matches!(
        call().await.ending(),
        ClientError::InFlight { .. }
    ));
    gate.open();
    assert_eq!(
        first.await.expect("it ends").expect("an answer").status(),
        200
    );
    assert_eq!(
        outcome(&call().await.expect("an answer")).origin,
        Origin::Journal
    );
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn c37_what_is_gone_is_remembered() {
    let server = Server::doing([problem(409, "idempotency-result-expired")]).await;
    let process = process_with(MemoryJournal::new(), &ManualClock::new());
    for _ in 0..2 {
        let call = process
            .client
            .post(server.url("/pay"))
            .body("pay")
            .with_extension(wish());
        assert!(matches!(
            call.send().await.ending(),
            ClientError::ResultGone { .. }
        ));
    }
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn c20_what_was_never_sent_is_not_left_open() {
    let process = process_with(MemoryJournal::new(), &ManualClock::new());
    let call = process.client.post("ftp://api.example.com/pay").body("pay");
    assert!(call.send().await.is_err());
    assert!(process.keys.unfinished(9).await.expect("a list").is_empty());
}

/// What an attempt of an earlier process may have done is not forgotten because this one did nothing.
#[tokio::test]
async fn c08_what_an_earlier_process_may_have_done_stays_unknown() {
    let clock = ManualClock::new();
    let server = Server::doing([Step::Cut, answer(401).into()]).await;
    let process = process_with(MemoryJournal::new(), &clock);
    let call = || {
        process
            .client
            .post(server.url("/pay"))
            .body("pay")
            .with_extension(wish())
            .send()
    };
    assert!(call().await.is_err());
    assert_eq!(call().await.expect("an answer").status(), 401);
    assert_eq!(process.keys.unfinished(9).await.expect("a list").len(), 1);
}

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
                key: Key::new(key).expect("a key"),
            },
            method: http::Method::POST,
            url: "https://api.example.com/pay?a=1".parse().expect("a URL"),
            headers: [
                (http::header::ACCEPT, "a".parse().expect("a value")),
                (http::header::ACCEPT, "b".parse().expect("a value")),
            ]
            .into_iter()
            .collect(),
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
        let other = Entry {
            body: None,
            ..new.clone()
        };
        assert_eq!(journal.begin(&other).await, Ok(Some(new.clone())));
        let open = journal.unfinished(2).await.expect("a list");
        assert_eq!(open, [old.clone(), new.clone()]);

        journal
            .finish(&old.id, &Ended::Burned)
            .await
            .expect("it is written");
        journal
            .finish(&new.id, &Ended::Gone)
            .await
            .expect("it is written");
        let standing = journal
            .begin(&old)
            .await
            .expect("an answer")
            .expect("it stands");
        assert_eq!(standing.ending, Some(Ended::Burned));
        assert_eq!(
            journal.unfinished(9).await.expect("a list"),
            std::slice::from_ref(&stream)
        );

        assert_eq!(journal.purge(Time::from_micros(2), 9).await, Ok(1));
        assert_eq!(journal.purge(Time::from_micros(9), 9).await, Ok(1));
        assert_eq!(
            journal.purge(Time::from_micros(9), 9).await,
            Ok(0),
            "what is open stays"
        );
        journal.forget(&stream.id).await.expect("it is forgotten");
        assert_eq!(journal.begin(&stream).await, Ok(None));
    }
}

/// What stands in a file is a promise: a journal of an earlier release must be read.
#[tokio::test]
async fn c08_a_journal_of_the_first_release_is_read() {
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

    let open = journal.unfinished(9).await.expect("a list");
    assert_eq!(open.len(), 1);
    let entry = &open[0];
    assert_eq!(entry.id.origin, "https://api.example.com");
    assert_eq!(entry.id.key.as_str(), "k");
    assert_eq!((entry.method.as_str(), entry.url.path()), ("POST", "/pay"));
    assert_eq!(entry.headers["content-type"], "text/plain");
    assert_eq!(entry.digest, Some([7; 32]));
    assert_eq!(entry.body.as_deref(), Some(&b"pay"[..]));
    assert_eq!(entry.created, Time::from_micros(1_000));
    assert_eq!(entry.deadline, Time::from_micros(2_000));

    let over = Entry {
        id: EntryId {
            key: Key::new("over").expect("a key"),
            ..entry.id.clone()
        },
        ..entry.clone()
    };
    let over = journal
        .begin(&over)
        .await
        .expect("an answer")
        .expect("it stands");
    let answered = Ended::Answered {
        status: http::StatusCode::CREATED,
        headers: [(http::header::ETAG, "e".parse().expect("a value"))]
            .into_iter()
            .collect(),
        body: Some(Bytes::from_static(b"receipt")),
    };
    assert!(over.ending == Some(answered), "{over:?}");
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
