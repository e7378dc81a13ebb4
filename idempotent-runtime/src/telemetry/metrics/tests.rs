use std::time::Duration;

use metrics_exporter_prometheus::PrometheusBuilder;

use super::*;
use crate::{
    observe::CallOutcome,
    store::{StoreAction, StoreErrorKind},
};

/// The observer, and what Prometheus would read.
fn observer() -> (MetricsObserver, impl Fn() -> String) {
    let builder = PrometheusBuilder::new().with_recommended_naming(true);
    let builder = builder.set_buckets(MetricsObserver::buckets());
    let recorder = builder.expect("there are bounds").build_recorder();
    let handle = recorder.handle();
    (MetricsObserver::with_recorder(recorder), move || {
        handle.render()
    })
}

fn ended(operation: &str) -> CallEvent<'_> {
    CallEvent {
        operation,
        route: None,
        id: None,
        outcome: CallOutcome::Executed,
        elapsed: Duration::from_millis(3),
        waited: Duration::ZERO,
        attempt: Some(1),
        store_error: None,
    }
}

#[test]
fn the_names_in_prometheus_are_those_of_the_table() {
    let (observer, render) = observer();
    for outcome in CallOutcome::ALL {
        observer.answered(&CallEvent {
            outcome,
            waited: Duration::from_secs(1),
            ..ended("orders.place")
        });
    }
    observer.store(&StoreEvent {
        store: "postgres",
        action: StoreAction::Claim,
        elapsed: Duration::from_millis(1),
        error_kind: Some(StoreErrorKind::Busy),
    });
    let rendered = render();
    let metrics = METRICS
        .iter()
        .filter(|it| rendered.contains(&format!("# TYPE {} ", it.prometheus())));
    let shown: Vec<_> = metrics.map(|it| it.name).collect();
    for name in [
        "idempotent.calls",
        "idempotent.call.duration",
        "idempotent.wait.duration",
        "idempotent.takeovers",
        "idempotent.leases.lost",
        "idempotent.completions.retried",
        "idempotent.store.duration",
        "idempotent.purged",
    ] {
        assert!(shown.contains(&name), "{name} in {rendered}");
    }
    assert!(rendered.contains(
        r#"idempotent_store_duration_seconds_bucket{store="postgres",action="claim",error="busy",le="0.001"} 1"#
    ), "{rendered}");
    for outcome in CallOutcome::ALL {
        let name = outcome.name();
        let line =
            format!(r#"idempotent_calls_total{{operation="orders.place",outcome="{name}"}} 1"#);
        assert!(rendered.contains(&line), "{line} in {rendered}");
    }
}

#[test]
fn a_call_of_a_layer_has_its_route() {
    let (observer, render) = observer();
    let route = Some("/orders/{id}");
    observer.answered(&CallEvent {
        route,
        ..ended("http")
    });
    let line =
        r#"idempotent_calls_total{operation="http",outcome="executed",route="/orders/{id}"} 1"#;
    assert!(render().contains(line), "{}", render());
}

#[test]
fn values_of_a_label_beyond_the_first_200_are_other() {
    let (observer, render) = observer();
    for number in 0..300 {
        observer.answered(&ended(&format!("operation {number}")));
        observer.answered(&ended(&format!("operation {number}")));
    }
    let rendered = render();
    let calls = rendered
        .lines()
        .filter(|line| line.starts_with("idempotent_calls_total") && line.contains("executed"));
    assert_eq!(calls.count(), 201);
    let other = r#"idempotent_calls_total{operation="other",outcome="executed"} 200"#;
    assert!(rendered.contains(other), "{rendered}");
    assert!(
        rendered.contains(r#"{operation="operation 199",outcome="executed"} 2"#),
        "{rendered}"
    );
}

#[test]
fn threads_that_meet_a_value_at_once_count_into_one_handle() {
    let (observer, render) = observer();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for number in 0..300 {
                    observer.answered(&ended(&format!("operation {number}")));
                }
            });
        }
    });
    let rendered = render();
    let lines = rendered.lines();
    let calls =
        lines.filter(|it| it.starts_with("idempotent_calls_total") && it.contains("executed"));
    let counts: Vec<u64> = calls
        .map(|line| line.rsplit_once(' ').expect("a value").1)
        .map(|value| value.parse().expect("a number"))
        .collect();
    assert_eq!((counts.len(), counts.iter().sum()), (201, 1_200));
    let whole = counts.iter().filter(|count| **count == 4);
    assert_eq!(whole.count(), 200, "{rendered}");
}

#[test]
fn the_guide_has_the_table_of_all_metrics() {
    let guide = include_str!("../../guide/metrics.md");
    for metric in METRICS {
        let labels = metric.labels.join("`, `");
        let labels = if labels.is_empty() {
            String::new()
        } else {
            format!("`{labels}`")
        };
        let kind = format!("{:?}", metric.kind).to_lowercase();
        let unit = if metric.is_seconds { "seconds" } else { "" };
        let (name, prometheus, help) = (metric.name, metric.prometheus(), metric.help);
        let row = format!("| `{name}` | `{prometheus}` | {kind} | {unit} | {labels} | {help} |");
        assert!(guide.contains(&row), "the guide lacks: {row}");
    }
    let rows = guide
        .lines()
        .filter(|line| line.starts_with("| `idempotent."));
    assert_eq!(rows.count(), METRICS.len());
}
