//! The one table of all metrics.

use metrics::Unit;

/// A metric: its name, and what its values mean.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Metric {
    /// The name, with dots.
    pub name: &'static str,
    /// Counter, gauge or histogram.
    pub kind: MetricKind,
    /// Whether its values are seconds. All other values are plain numbers.
    pub is_seconds: bool,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// What it says, in one sentence.
    pub help: &'static str,
}

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricKind {
    /// It only grows, from zero at the start of the process.
    Counter,
    /// It goes up and down. It is not a number where there is no reading, or an old one.
    Gauge,
    /// It counts values by size.
    Histogram,
}

impl Metric {
    /// For crates of this project.
    #[doc(hidden)]
    #[must_use]
    pub const fn new(
        kind: MetricKind,
        name: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            is_seconds: false,
            labels,
            help,
        }
    }

    /// For crates of this project.
    #[doc(hidden)]
    #[must_use]
    pub const fn seconds(self) -> Self {
        Self {
            is_seconds: true,
            ..self
        }
    }

    pub(super) fn unit(&self) -> Unit {
        match self.is_seconds {
            true => Unit::Seconds,
            false => Unit::Count,
        }
    }

    /// The name in Prometheus, by the exporter's recommended naming.
    #[must_use]
    pub fn prometheus(&self) -> String {
        let unit = if self.is_seconds { "_seconds" } else { "" };
        let total = match self.kind {
            MetricKind::Counter => "_total",
            MetricKind::Gauge | MetricKind::Histogram => "",
        };
        format!("{}{unit}{total}", self.name.replace('.', "_"))
    }
}

macro_rules! table {
    ($($constant:ident = $kind:ident $name:literal [$($label:literal),*] $(.$seconds:ident())?, $help:literal;)*) => {
        $(pub(super) const $constant: Metric =
            Metric::new(MetricKind::$kind, $name, &[$($label),*], $help)$(.$seconds())?;)*

        /// All metrics, in the order of the table in [the guide](crate::guide::metrics).
        pub const METRICS: &[Metric] = &[$($constant),*];
    };
}

table! {
    CALLS = Counter "idempotent.calls" ["operation", "outcome"],
        "Calls that ended.";
    CALL_DURATION = Histogram "idempotent.call.duration" ["operation", "outcome"].seconds(),
        "How long they took, waits included.";
    WAIT_DURATION = Histogram "idempotent.wait.duration" ["operation"].seconds(),
        "How long calls waited for another one, where they did.";
    TAKEOVERS = Counter "idempotent.takeovers" ["operation"],
        "Claims over a holder that vanished.";
    LEASES_LOST = Counter "idempotent.leases.lost" ["operation"],
        "Leases that a holder lost while its body ran.";
    COMPLETIONS_RETRIED = Counter "idempotent.completions.retried" ["operation"],
        "Outcomes that the store did not take at once.";
    STORE_DURATION = Histogram "idempotent.store.duration" ["store", "action", "error"].seconds(),
        "How long calls of the store took; `error` is its kind, or `none`.";
    ATTENTION = Gauge "idempotent.attention" ["kind"],
        "Records that need somebody: uncertain, parked or undoing.";
    ATTENTION_IS_CAPPED = Gauge "idempotent.attention.is_capped" [],
        "1 if there may be more of them than the 10,000 that were counted.";
    ATTENTION_OLDEST_AGE = Gauge "idempotent.attention.oldest_age" ["kind"].seconds(),
        "For how long the oldest of them has needed somebody.";
    PURGED = Counter "idempotent.purged" [],
        "Records that a purge deleted.";
    CONSUMER_MESSAGES = Counter "idempotent.consumer.messages" ["consumer", "disposition"],
        "Messages that a consumer settled.";
    SEQUENCE_NUMBERS = Counter "idempotent.sequence.numbers" ["sequence", "decision"],
        "Numbers that were decided about.";
    OUTBOX_PENDING = Gauge "idempotent.outbox.pending" ["topic"],
        "Messages that wait, of the first 10,000 of an outbox.";
    OUTBOX_IS_CAPPED = Gauge "idempotent.outbox.pending.is_capped" ["topic"],
        "1 if there may be more of them.";
    OUTBOX_OLDEST_AGE = Gauge "idempotent.outbox.oldest_age" ["topic"].seconds(),
        "The age of the oldest of them whose key is not parked.";
    OUTBOX_PUBLISHED = Counter "idempotent.outbox.published" ["topic"],
        "Messages that a receiver confirmed.";
    OUTBOX_PUBLISH_DURATION = Histogram "idempotent.outbox.publish.duration" ["topic"].seconds(),
        "How long the batches of messages took that were confirmed.";
    OUTBOX_BLOCKED_KEYS = Gauge "idempotent.outbox.blocked_keys" ["topic"],
        "Keys that are parked at a message of the topic.";
    STEPS = Counter "idempotent.steps" ["operation", "step", "outcome"],
        "Steps that ended.";
    UNDOS = Counter "idempotent.undos" ["operation", "step", "outcome"],
        "Undos of steps that ended.";
    CLOCK_SKEW = Gauge "idempotent.clock.skew" [].seconds(),
        "How far the clock of the store is ahead of this process's.";
}
