//! The recorder that takes the metrics.

use std::sync::{
    Arc, LazyLock,
    atomic::{AtomicBool, Ordering},
};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Label, Level, Metadata, Recorder};

use super::{
    family::Shown,
    table::{Metric, MetricKind},
};
use crate::value::opaque;

const METADATA: Metadata<'static> = Metadata::new("idempotent", Level::INFO, None);

/// The values that the installed recorder shows.
static SHOWN: LazyLock<Arc<Shown>> = LazyLock::new(Arc::default);

/// Where the recorder comes from.
pub enum Source {
    /// The one that is installed when a metric is first counted.
    Installed,
    /// This one.
    Own(Box<dyn Recorder + Send + Sync>),
}

opaque!(Source);

impl Source {
    /// The values of labels that the recorder shows, of all observers over it.
    pub fn shown(&self) -> Arc<Shown> {
        match self {
            Self::Installed => Arc::clone(&SHOWN),
            Self::Own(_) => Arc::default(),
        }
    }

    fn with<T>(&self, using: impl FnOnce(&dyn Recorder) -> T) -> T {
        match self {
            Self::Installed => metrics::with_recorder(using),
            Self::Own(recorder) => using(&**recorder),
        }
    }

    /// Warns, once in a process, if no recorder is installed.
    pub fn warn_if_missing(&self) {
        static WARNED: AtomicBool = AtomicBool::new(false);
        let is_missing = self.with(is_noop);
        if is_missing && !WARNED.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "no recorder of metrics is installed: install one before `MetricsObserver::new()`"
            );
        }
    }

    /// Describes every metric of a table.
    pub fn describe(&self, table: &[Metric]) {
        self.with(|recorder| {
            for metric in table {
                let (name, unit) = (KeyName::from_const_str(metric.name), Some(metric.unit()));
                let help = metric.help.into();
                match metric.kind {
                    MetricKind::Counter => recorder.describe_counter(name, unit, help),
                    MetricKind::Gauge => recorder.describe_gauge(name, unit, help),
                    MetricKind::Histogram => recorder.describe_histogram(name, unit, help),
                }
            }
        });
    }

    /// The counter with these values of its labels.
    pub fn counter(&self, metric: &Metric, values: &[&str]) -> Counter {
        let key = key(metric, values);
        self.with(|recorder| recorder.register_counter(&key, &METADATA))
    }

    /// The gauge with these values of its labels.
    pub fn gauge(&self, metric: &Metric, values: &[&str]) -> Gauge {
        let key = key(metric, values);
        self.with(|recorder| recorder.register_gauge(&key, &METADATA))
    }

    /// The histogram with these values of its labels.
    pub fn histogram(&self, metric: &Metric, values: &[&str]) -> Histogram {
        let key = key(metric, values);
        self.with(|recorder| recorder.register_histogram(&key, &METADATA))
    }
}

/// The key of a metric with these values of its labels. The route of a call comes last, where it
/// has one.
fn key(metric: &Metric, values: &[&str]) -> Key {
    let names = metric.labels.iter().copied().chain(["route"]);
    let labels = names.zip(values);
    let labels = labels.map(|(name, value)| Label::new(name, (*value).to_owned()));
    Key::from_parts(metric.name, labels.collect::<Vec<_>>())
}

/// Whether this is the recorder of the facade itself, which keeps nothing and so has no size. A
/// program's own recorder without a field is taken for it, and warned of without need.
fn is_noop(recorder: &dyn Recorder) -> bool {
    size_of_val(recorder) == 0
}
