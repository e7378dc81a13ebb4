//! Metrics of the client, and its sampler.

use std::{sync::Arc, time::Duration};

use idempotent_client::{
    ClientCall, ClientKey, IdempotencyKeys, MemoryJournal, Profile,
    journal::{ClientJournal, SqliteJournal},
    metrics::{METRICS, MetricsObserver},
    observe::CallEnd,
};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use super::Notes;
use crate::kit::{Pauses, Process, Server, Step, answer, builder, patient};

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
    let manual = include_str!("../../../../../idempotent-client/src/client.md");
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
