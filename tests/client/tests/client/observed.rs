//! Observers and log lines: how calls go, for people outside of the process.

mod counted;

use std::{
    io::{self, Write},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use async_trait::async_trait;
use http::Extensions;
use idempotent_client::{
    ClientObserver, MemoryJournal, StopReason,
    observe::{AttemptEvent, CallEnded, OpenCalls},
};
use idempotent_runtime::testing::Gate;
use reqwest_middleware::{ClientWithMiddleware, Middleware, Next};
use tokio::sync::Notify;

use crate::kit::{Pauses, Process, Server, Step, answer, builder, lock, nobody, patient};

/// Writes down every event, as a line.
#[derive(Clone, Default)]
struct Notes(Arc<Noted>);

#[derive(Default)]
struct Noted {
    lines: Mutex<Vec<String>>,
    changed: Notify,
}

impl Notes {
    fn add(&self, line: String) {
        lock(&self.0.lines).push(line);
        self.0.changed.notify_one();
    }

    fn taken(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.0.lines))
    }

    /// Waits until the newest event is this one.
    async fn arrives(&self, event: &str) {
        while lock(&self.0.lines).last().is_none_or(|it| it != event) {
            self.0.changed.notified().await;
        }
    }
}

impl ClientObserver for Notes {
    fn attempt(&self, event: &AttemptEvent<'_>) {
        let again = event.resend_in.map_or("", |_| ", and again");
        self.add(format!(
            "attempt {}: {}{again}",
            event.number,
            event.result.name()
        ));
    }

    fn ended(&self, event: &CallEnded<'_>) {
        let resumed = if event.resumed { ", resumed" } else { "" };
        let reason = event.reason.map_or(String::new(), |it| format!(", {it:?}"));
        let (end, attempts) = (event.end.name(), event.attempts);
        self.add(format!("{end} after {attempts}{resumed}{reason}"));
    }

    fn open_calls(&self, reading: Option<&OpenCalls>) {
        self.add(format!("open: {:?}", reading.map(|it| it.calls)));
    }
}

/// A client that sends each call at most so often, and what is noted of it.
fn process(attempts: u32, journal: &Arc<MemoryJournal>) -> (Process, Notes) {
    let notes = Notes::default();
    let keys = builder(&Pauses::default())
        .limits(patient().attempts(attempts))
        .journal(Arc::clone(journal))
        .observer(notes.clone());
    (Process::of(keys), notes)
}

#[tokio::test]
async fn each_attempt_and_the_end_of_a_call_are_told() {
    let replay = answer(201).with("idempotent-replayed", "true");
    let server = Server::doing([
        Step::Answer(answer(500)),
        Step::Cut,
        Step::Answer(answer(201)),
        Step::Answer(replay),
    ]);
    let server = server.await;
    let (process, notes) = process(9, &Arc::default());

    process.charge(&server).send().await.expect("an answer");

    let events = [
        "attempt 1: 5xx, and again",
        "attempt 2: lost, and again",
        "attempt 3: 2xx",
        "answered after 3",
    ];
    assert_eq!(notes.taken(), events);
    process.charge(&server).send().await.expect("an answer");
    assert_eq!(notes.taken(), ["from_journal after 0"]);
    process.post(&server).send().await.expect("an answer");
    assert_eq!(notes.taken(), ["attempt 1: 2xx", "replayed after 1"]);
}

#[tokio::test]
async fn a_call_without_an_answer_tells_why() {
    let (process, notes) = process(1, &Arc::default());
    let away = format!("http://{}/pay", nobody().await);
    let _not_sent = process.client.post(away).body("pay").send().await;
    assert_eq!(
        notes.taken(),
        ["attempt 1: not_sent", "exhausted after 1, Attempts"]
    );

    let server = Server::doing([Step::Cut, Step::Hang]).await;
    let _unknown = process.post(&server).send().await;
    let unknown = format!("unknown after 1, {:?}", StopReason::Attempts);
    assert_eq!(notes.taken(), ["attempt 1: lost", &*unknown]);

    let silent = process.charge(&server).send();
    let waiting = server.await_requests(2);
    tokio::select! { _ = silent => panic!("it hangs"), () = waiting => {} }
    assert_eq!(notes.taken(), ["dropped after 1"]);

    let refused = process.post(&server).header("idempotency-key", "");
    let _refused = refused.send().await;
    assert_eq!(notes.taken(), ["refused after 0"]);
}

#[tokio::test]
async fn two_calls_with_one_key_at_once_are_told_apart() {
    let gate = Gate::new();
    let server = Server::doing([Step::Behind(gate.clone())]).await;
    let (process, notes) = process(1, &Arc::default());
    let first = process.charge(&server).send();
    let second = async {
        server.await_requests(1).await;
        let refused = process.charge(&server).send().await;
        gate.open();
        refused.map(drop)
    };
    let (first, second) = tokio::join!(first, second);
    assert!(first.is_ok() && second.is_err());
    let events = ["refused after 0", "attempt 1: 2xx", "answered after 1"];
    assert_eq!(notes.taken(), events);
}

#[tokio::test]
async fn an_entry_that_is_resumed_is_told_and_logged_once() {
    let log = Log::default();
    let _logging = log.watch();
    let server = Server::doing([Step::Cut, Step::Cut]).await;
    let journal = Arc::default();
    let (before, _) = process(1, &journal);
    let _lost = before.charge(&server).send().await;
    assert_eq!(log.lines("it is unknown whether the call took effect"), 1);
    assert_eq!(log.lines("is sent again with its key"), 0, "{log:?}");

    let (after, notes) = process(2, &journal);
    let open = after.keys.unfinished(9).await.expect("a list");
    for call in open {
        let request = call.expect("it can be read").request(&after.client);
        let sent = request.expect("it can be sent").send().await;
        sent.expect("an answer");
    }

    let events = [
        "attempt 1: lost, and again",
        "attempt 2: 2xx",
        "answered after 2, resumed",
    ];
    assert_eq!(notes.taken(), events);
    assert_eq!(log.lines("is sent again with its key"), 1, "{log:?}");
    assert_eq!(log.lines("it is unknown whether the call took effect"), 1);
}

#[tokio::test]
async fn an_observer_that_panics_changes_nothing() {
    struct Panics;
    impl ClientObserver for Panics {
        fn attempt(&self, _: &AttemptEvent<'_>) {
            panic!("it panics");
        }

        fn ended(&self, _: &CallEnded<'_>) {
            std::panic::panic_any(Bomb);
        }
    }
    /// Panics once more when it is dropped.
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("it panics again");
        }
    }
    let notes = Notes::default();
    let keys = builder(&Pauses::default());
    let process = Process::of(keys.observer(Panics).observer(notes.clone()));
    let server = Server::doing([answer(201)]).await;

    let answered = process.post(&server).send().await;

    assert_eq!(answered.expect("an answer").status(), 201);
    assert_eq!(notes.taken(), ["attempt 1: 2xx", "answered after 1"]);
}

/// Fetches a token by a client of its own before it sends anything.
struct Token(ClientWithMiddleware, String);

#[async_trait]
impl Middleware for Token {
    async fn handle(
        &self,
        request: reqwest::Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        self.0.post(&self.1).send().await?;
        next.run(request, extensions).await
    }
}

#[tokio::test]
async fn the_end_of_a_call_inside_is_not_taken_for_that_of_the_call() {
    let server = Server::doing([Step::Cut]).await;
    let (inside, inner) = process(1, &Arc::default());
    let token = Token(inside.client, server.url("/token"));
    let notes = Notes::default();
    let keys = builder(&Pauses::default()).observer(notes.clone());
    let outside = Process::around(keys, token);

    let failed = outside.client.get(server.url("/read")).send().await;

    assert!(failed.is_err());
    let unknown = format!("unknown after 1, {:?}", StopReason::Attempts);
    assert_eq!(inner.taken(), ["attempt 1: lost", &*unknown]);
    assert_eq!(notes.taken(), ["attempt 1: failed", "failed after 1"]);
}

/// A subscriber that panics once it is gone, as one does that keeps something for a thread which
/// ends.
struct Gone(Arc<AtomicBool>);

impl Gone {
    fn check(&self) {
        assert!(!self.0.load(Ordering::Relaxed), "it is gone");
    }
}

impl tracing::Subscriber for Gone {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {
        self.check();
    }

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {
        self.check();
    }

    fn enter(&self, _: &tracing::span::Id) {
        self.check();
    }

    fn exit(&self, _: &tracing::span::Id) {
        self.check();
    }

    fn try_close(&self, _: tracing::span::Id) -> bool {
        self.check();
        true
    }
}

#[tokio::test]
async fn a_call_may_be_dropped_after_its_subscriber() {
    let is_gone = Arc::new(AtomicBool::new(false));
    let _subscriber = tracing::subscriber::set_default(Gone(Arc::clone(&is_gone)));
    let server = Server::doing([Step::Hang]).await;
    let (process, notes) = process(1, &Arc::default());
    let mut silent = Box::pin(process.charge(&server).send());
    let waiting = server.await_requests(1);
    tokio::select! { _ = &mut silent => panic!("it hangs"), () = waiting => {} }
    is_gone.store(true, Ordering::Relaxed);

    drop(silent);

    assert_eq!(notes.taken(), ["dropped after 1"]);
    is_gone.store(false, Ordering::Relaxed);
}

/// The log of this thread, from INFO up.
#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn watch(&self) -> tracing::subscriber::DefaultGuard {
        let log = self.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::INFO)
            .with_writer(move || log.clone())
            .finish();
        tracing::subscriber::set_default(subscriber)
    }

    fn lines(&self, text: &str) -> usize {
        let log = String::from_utf8(lock(&self.0).clone()).expect("text");
        log.lines().filter(|it| it.contains(text)).count()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        lock(&self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
