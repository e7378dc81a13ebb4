//! Observers, metrics and log lines: how calls go, for people outside of the process.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
    time::Duration,
};

use idempotent_client::{
    ClientCall, ClientKey, ClientObserver, IdempotencyKeys, MemoryJournal, Profile, StopReason,
    journal::{ClientJournal, SqliteJournal},
    metrics::{METRICS, MetricsObserver},
    observe::{AttemptEvent, CallEnd, CallEnded, OpenCalls},
};
use idempotent_runtime::testing::Gate;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

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
            panic!("it panics");
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

fn prometheus() -> (MetricsObserver, PrometheusHandle) {
    let builder = PrometheusBuilder::new().with_recommended_naming(true);
    let recorder = builder.build_recorder();
    let handle = recorder.handle();
    (MetricsObserver::with_recorder(recorder), handle)
}

#[tokio::test]
async fn each_metric_of_the_table_has_the_right_value() {
    let server = Server::doing([Step::Answer(answer(500)), Step::Cut, Step::Cut]).await;
    let (observer, prometheus) = prometheus();
    let keys = builder(&Pauses::default());
    let keys = keys.limits(patient().attempts(2)).observer(observer);
    let process = Process::of(keys);
    let _unknown = process.charge(&server).send().await;
    let key = ClientKey::new("given").expect("a key");
    let call = ClientCall::new().key(key);
    let answered = process.post(&server).with_extension(call).send().await;
    answered.expect("an answer");
    // A pause that is longer than any of a call is never over.
    let sampler = process.keys.sample(Duration::from_secs(100));
    while !prometheus.render().contains("open_calls_oldest") {
        tokio::task::yield_now().await;
    }

    let shown = prometheus.render();

    let of = server.url("");
    for line in [
        format!(r#"calls_total{{server="{of}",outcome="unknown"}} 1"#),
        format!(r#"calls_total{{server="{of}",outcome="answered"}} 1"#),
        format!(r#"call_duration_seconds_count{{server="{of}",outcome="unknown"}} 1"#),
        format!(r#"attempts_total{{server="{of}",result="5xx"}} 1"#),
        format!(r#"attempts_total{{server="{of}",result="lost"}} 2"#),
        format!(r#"attempts_total{{server="{of}",result="2xx"}} 1"#),
        format!(r#"resends_total{{server="{of}"}} 2"#),
        "open_calls 1".to_owned(),
        "open_calls_is_capped 0".to_owned(),
        "open_calls_oldest_age_seconds 0".to_owned(),
    ] {
        let line = format!("idempotent_client_{line}");
        assert!(shown.contains(&line), "{line} in {shown}");
    }
    for metric in METRICS {
        let name = metric.prometheus();
        assert!(shown.contains(&name), "{name} in {shown}");
    }
    assert!(!shown.contains("given"), "no label is ever a key: {shown}");
    drop(sampler);
    while !prometheus.render().contains("open_calls NaN") {
        tokio::task::yield_now().await;
    }
}

#[test]
fn the_table_of_the_manual_is_that_of_the_code() {
    let manual = include_str!("../../../../idempotent-client/src/client.md");
    let rows: Vec<_> = manual
        .lines()
        .filter(|it| it.starts_with("| `idempotent.client."))
        .collect();
    let table: Vec<_> = METRICS.iter().map(row).collect();
    assert_eq!(rows, table);
    for end in CallEnd::ALL {
        let name = format!("`{}`", end.name());
        assert!(manual.contains(&name), "{name}");
    }
}

/// A row of the table.
fn row(metric: &idempotent_runtime::metrics::Metric) -> String {
    let labels: Vec<_> = metric.labels.iter().map(|it| format!("`{it}`")).collect();
    let labels = labels.join(", ");
    let unit = if metric.is_seconds { "seconds" } else { "" };
    let kind = format!("{:?}", metric.kind).to_lowercase();
    let (name, shown, help) = (metric.name, metric.prometheus(), metric.help);
    format!("| `{name}` | `{shown}` | {kind} | {unit} | {labels} | {help} |")
}

#[tokio::test]
async fn journals_count_their_open_calls() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = SqliteJournal::open(folder.path().join("calls.db")).await;
    let file: Arc<dyn ClientJournal> = Arc::new(file.expect("a file"));
    let memory: Arc<dyn ClientJournal> = Arc::new(MemoryJournal::new());
    for journal in [file, memory] {
        let none = journal.count_unfinished(9).await.expect("a count");
        assert_eq!(none, (0, None));
        let server = Server::doing([Step::Answer(answer(201)), Step::Cut, Step::Cut, Step::Cut]);
        let server = server.await;
        let keys = builder(&Pauses::default());
        let keys = keys
            .limits(patient().attempts(1))
            .journal(Arc::clone(&journal));
        let process = Process::of(keys);
        for number in 1..=4 {
            let key = ClientKey::new(format!("key {number}")).expect("a key");
            let call = ClientCall::new().key(key);
            let _three_are_lost = process.post(&server).with_extension(call).send().await;
        }
        let listed = journal.unfinished(9).await.expect("a list");
        let oldest = listed.iter().flatten().map(|it| it.created).min();
        let count = journal.count_unfinished(9).await.expect("a count");
        assert_eq!(count, (3, oldest));
        let count = journal.count_unfinished(2).await.expect("a count");
        assert_eq!(count, (2, oldest));
    }
}

#[tokio::test]
async fn a_reading_is_not_shown_for_ever() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("calls.db");
    let journal = SqliteJournal::open(&path).await.expect("a file");
    let notes = Notes::default();
    let keys = IdempotencyKeys::builder(Profile::ietf());
    let process = Process::of(keys.journal(journal).observer(notes.clone()));
    let _sampler = process.keys.sample(Duration::from_millis(100));
    notes.arrives("open: Some(0)").await;

    std::fs::remove_file(path).expect("it was there");

    notes.arrives("open: None").await;
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
