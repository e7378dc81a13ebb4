//! Metrics, by the facade `metrics` 0.24.
//!
//! [`MetricsObserver`] counts and measures what a handle does. The program installs a recorder
//! first, such as that of `metrics-exporter-prometheus`. [The guide](crate::guide::metrics) has a
//! listing and the table of all metrics.

pub(crate) mod family;
mod handles;
pub(crate) mod recorder;
mod table;
#[cfg(test)]
mod tests;

use metrics::Recorder;

pub use self::table::{METRICS, Metric, MetricKind};
use self::{handles::Handles, recorder::Source};
use crate::{
    observe::{
        CallEvent, FrontEndEvent, Observer, OutboxEvent, Purged, RecordChange, RecordEvent, Sample,
        StepEvent, StepOutcome,
    },
    store::StoreEvent,
    value::opaque,
};

/// The bounds of the histograms, in seconds.
const BUCKETS: [f64; 17] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0,
    30.0, 60.0,
];

/// Counts and measures what a handle does, for a recorder of `metrics`.
///
/// Several handles of a process may each have one: the counts add up. The gauges do not, so start
/// one [sampler](crate::Idempotency::sampler) in a process.
///
/// # Examples
///
/// ```
/// use idempotent_runtime::{Idempotency, MemoryStore, metrics::MetricsObserver};
///
/// # fn main() -> Result<(), idempotent_runtime::Error> {
/// # let store = MemoryStore::new();
/// let idem = Idempotency::builder(store)
///     .observer(MetricsObserver::new())
///     .build()?;
/// # let _ = idem;
/// # Ok(()) }
/// ```
pub struct MetricsObserver(Handles);

opaque!(MetricsObserver);

impl Default for MetricsObserver {
    fn default() -> Self {
        Self::new()
    }
}

impl MetricsObserver {
    /// Takes the recorder that is installed when a metric is first counted. It warns, once in a
    /// process, if there is none now: what is counted before one is installed is lost for good.
    #[must_use]
    pub fn new() -> Self {
        let source = Source::Installed;
        source.warn_if_missing();
        Self(Handles::new(source))
    }

    /// Takes this recorder, and not the one that is installed.
    #[must_use]
    pub fn with_recorder(recorder: impl Recorder + Send + Sync + 'static) -> Self {
        Self(Handles::new(Source::Own(Box::new(recorder))))
    }

    /// Returns the bounds for histograms, in seconds, from 0.5 ms to 60 s. Give them to the
    /// recorder. Without bounds, Prometheus shows a histogram as a summary, and the summaries of
    /// several processes cannot be added up.
    #[must_use]
    pub fn buckets() -> &'static [f64] {
        &BUCKETS
    }
}

impl Observer for MetricsObserver {
    fn transition(&self, transition: &RecordEvent<'_>) {
        let of = |using: fn(&handles::Operation)| {
            self.0.operation(transition.operation, |it, _| using(it));
        };
        match transition.change {
            RecordChange::TakenOver | RecordChange::Reconciling | RecordChange::Passed => {
                of(|it| it.takeovers.increment(1));
            }
            RecordChange::LeaseLost => of(|it| it.leases_lost.increment(1)),
            RecordChange::NotYetRecorded => of(|it| it.completions_retried.increment(1)),
            _ => {}
        }
    }

    fn answered(&self, answered: &CallEvent<'_>) {
        self.0.call(answered);
    }

    fn front_end(&self, event: &FrontEndEvent<'_>) {
        match event.front_end {
            "consumer" => self.0.consumer_message(event.operation, event.kind),
            "sequence" => self.0.sequence_number(event.operation, event.kind),
            _ => {}
        }
    }

    fn step(&self, event: &StepEvent<'_>) {
        let metric = match event.outcome {
            StepOutcome::Undone | StepOutcome::NotUndone => &table::UNDOS,
            _ => &table::STEPS,
        };
        self.0.step(metric, event);
    }

    fn outbox(&self, event: &OutboxEvent<'_>) {
        if let OutboxEvent::Sent {
            topic,
            messages,
            elapsed,
        } = event
        {
            self.0.published(topic, *messages, *elapsed);
        }
    }

    fn store(&self, event: &StoreEvent) {
        self.0.store(event);
    }

    fn wants_store_events(&self) -> bool {
        true
    }

    fn sampled(&self, sample: &Sample<'_>) {
        self.0.sampled(sample);
    }

    fn purged(&self, purged: &Purged<'_>) {
        self.0.purged.increment(purged.deleted);
    }
}
