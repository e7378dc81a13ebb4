//! Metrics, by the facade `metrics` 0.24. [The manual](crate#what-operators-see) has their table.

use std::sync::{Arc, OnceLock};

use idempotent_runtime::{
    __client::{Family, Shown, Source, made},
    metrics::{Metric, MetricKind},
};
use metrics::{Counter, Gauge, Histogram, Recorder};

use crate::observe::{AttemptEvent, AttemptResult, CallEnd, CallEnded, ClientObserver, OpenCalls};

/// All metrics, in the order of the table in [the manual](crate#what-operators-see).
pub const METRICS: &[Metric] = &[
    CALLS,
    CALL_DURATION,
    ATTEMPTS,
    RESENDS,
    OPEN_CALLS,
    OPEN_CALLS_ARE_CAPPED,
    OLDEST_AGE,
];

const CALLS: Metric = Metric::new(
    MetricKind::Counter,
    "idempotent.client.calls",
    &["server", "outcome"],
    "Calls that ended.",
);
const CALL_DURATION: Metric = Metric::new(
    MetricKind::Histogram,
    "idempotent.client.call.duration",
    &["server", "outcome"],
    "How long they took, pauses included.",
)
.seconds();
const ATTEMPTS: Metric = Metric::new(
    MetricKind::Counter,
    "idempotent.client.attempts",
    &["server", "result"],
    "Attempts that ended.",
);
const RESENDS: Metric = Metric::new(
    MetricKind::Counter,
    "idempotent.client.resends",
    &["server"],
    "Attempts after which the call was to be sent again.",
);
const OPEN_CALLS: Metric = Metric::new(
    MetricKind::Gauge,
    "idempotent.client.open_calls",
    &[],
    "Calls of the journal without an ending, calls under way included.",
);
const OPEN_CALLS_ARE_CAPPED: Metric = Metric::new(
    MetricKind::Gauge,
    "idempotent.client.open_calls.is_capped",
    &[],
    "1 if there may be more of them than the 10,000 that were counted.",
);
const OLDEST_AGE: Metric = Metric::new(
    MetricKind::Gauge,
    "idempotent.client.open_calls.oldest_age",
    &[],
    "The age of the oldest of them.",
)
.seconds();

/// Counts and measures how calls go, for a recorder of `metrics`.
///
/// Several clients of a process may each have one: the counts add up. The gauges do not, so start
/// one [sampler](crate::IdempotencyKeys::sample) in a process.
///
/// # Examples
///
/// ```
/// use idempotent_client::{IdempotencyKeys, Profile, metrics::MetricsObserver};
///
/// # fn main() -> Result<(), reqwest::Error> {
/// let client = IdempotencyKeys::builder(Profile::ietf())
///     .observer(MetricsObserver::new())
///     .client(reqwest::Client::builder())?;
/// # let _ = client;
/// # Ok(()) }
/// ```
pub struct MetricsObserver {
    source: Source,
    servers: Family<Server>,
    open: OnceLock<[Gauge; 3]>,
}

/// The metrics of one server, by how calls and attempts ended.
struct Server {
    calls: [OnceLock<(Counter, Histogram)>; CallEnd::ALL.len()],
    attempts: [OnceLock<Counter>; AttemptResult::NAMES.len()],
    resends: Counter,
}

impl std::fmt::Debug for MetricsObserver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MetricsObserver").finish_non_exhaustive()
    }
}

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
        Self::of(source)
    }

    /// Takes this recorder, and not the one that is installed.
    #[must_use]
    pub fn with_recorder(recorder: impl Recorder + Send + Sync + 'static) -> Self {
        Self::of(Source::Own(Box::new(recorder)))
    }

    /// Returns the bounds for histograms, in seconds: those of the runtime's
    /// [`MetricsObserver`](idempotent_runtime::metrics::MetricsObserver::buckets).
    #[must_use]
    pub fn buckets() -> &'static [f64] {
        idempotent_runtime::metrics::MetricsObserver::buckets()
    }

    fn of(source: Source) -> Self {
        source.describe(METRICS);
        let shown: Arc<Shown> = source.shown();
        Self {
            servers: Family::new("server", &shown),
            source,
            open: OnceLock::new(),
        }
    }

    fn server(&self, name: &str, using: impl FnOnce(&Server, &str)) {
        let make = |name: &str| {
            // Alerts are about these. A counter that begins at its first event hides that event.
            let unknown = [name, CallEnd::Unknown.name()];
            self.source.counter(&CALLS, &unknown).increment(0);
            Server {
                calls: std::array::from_fn(|_| OnceLock::new()),
                attempts: std::array::from_fn(|_| OnceLock::new()),
                resends: self.source.counter(&RESENDS, &[name]),
            }
        };
        self.servers.with(name, make, using);
    }
}

impl ClientObserver for MetricsObserver {
    fn attempt(&self, event: &AttemptEvent<'_>) {
        self.server(event.server, |server, name| {
            let attempts = &server.attempts[event.result.place()];
            let labels = [name, event.result.name()];
            let attempts = made(attempts, || self.source.counter(&ATTEMPTS, &labels));
            attempts.increment(1);
            if event.resend_in.is_some() {
                server.resends.increment(1);
            }
        });
    }

    fn ended(&self, event: &CallEnded<'_>) {
        self.server(event.server, |server, name| {
            let calls = &server.calls[event.end as usize];
            let (count, duration) = made(calls, || {
                let labels = [name, event.end.name()];
                let count = self.source.counter(&CALLS, &labels);
                (count, self.source.histogram(&CALL_DURATION, &labels))
            });
            count.increment(1);
            duration.record(event.elapsed);
        });
    }

    fn open_calls(&self, reading: Option<&OpenCalls>) {
        let gauges = [OPEN_CALLS, OPEN_CALLS_ARE_CAPPED, OLDEST_AGE];
        let make = || gauges.map(|metric| self.source.gauge(&metric, &[]));
        let values = match reading {
            Some(it) => [
                it.calls as f64,
                f64::from(u8::from(it.is_capped)),
                it.oldest.as_secs_f64(),
            ],
            None => [f64::NAN; 3],
        };
        let gauges = made(&self.open, make);
        for (gauge, value) in gauges.iter().zip(values) {
            gauge.set(value);
        }
    }
}
