//! Warns of a store that fails: at once, and then now and again with a count.

use std::{sync::Mutex, time::Duration};

use crate::{
    store::{StoreError, StoreErrorKind},
    value::lock,
};

/// How long after one warning the next one comes. After so long without a failure, the next one is
/// the first of another outage.
const EVERY: Duration = Duration::from_secs(30);

/// The failures of the stores of a handle.
#[derive(Debug, Default)]
pub(super) struct Outages {
    stores: Mutex<Outage>,
    records: Mutex<Outage>,
}

#[derive(Debug, Default)]
struct Outage {
    /// When the last warning came, by the handle's timer.
    warned: Option<Duration>,
    /// When the last failure came.
    failed: Duration,
    /// How many failures came since the last warning.
    silent: u64,
}

impl Outages {
    /// Counts a failure, and warns if no warning came for a while. A damaged record is no outage,
    /// and is counted apart.
    pub(super) fn failed(&self, operation: &str, error: &StoreError, now: Duration) {
        let (outage, message) = match error.kind() {
            StoreErrorKind::Corrupt => (&self.records, "a record cannot be read"),
            _ => (&self.stores, "the store fails"),
        };
        // What takes the warning may be slow, or make a call that fails.
        let due = lock(outage).count(now);
        if let Some(failures) = due {
            tracing::warn!(operation, %error, failures, "{message}");
        }
    }
}

impl Outage {
    /// How many failures a warning is about, if one is due.
    fn count(&mut self, now: Duration) -> Option<u64> {
        let is_long_ago = |then: Duration| now.saturating_sub(then) >= EVERY;
        if is_long_ago(self.failed) {
            (self.warned, self.silent) = (None, 0);
        }
        self.failed = now;
        self.silent += 1;
        if !self.warned.is_none_or(is_long_ago) {
            return None;
        }
        self.warned = Some(now);
        Some(std::mem::take(&mut self.silent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The warnings after failures at these seconds: when, and about how many failures.
    fn warnings(failures: impl IntoIterator<Item = u64>) -> Vec<(u64, u64)> {
        let mut outage = Outage::default();
        let warned = |second| Some((second, outage.count(Duration::from_secs(second))?));
        failures.into_iter().filter_map(warned).collect()
    }

    #[test]
    fn an_outage_is_one_warning_and_then_one_every_thirty_seconds_with_a_count() {
        assert_eq!(warnings(0..=65), [(0, 1), (30, 30), (60, 30)]);
    }

    /// Has another call fail while it takes a warning, as one that writes to the store would.
    struct Again(std::sync::Arc<Outages>);

    impl tracing::Subscriber for Again {
        fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            tracing::span::Id::from_u64(1)
        }

        fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

        fn event(&self, _: &tracing::Event<'_>) {
            fail(&self.0, 1);
        }

        fn enter(&self, _: &tracing::span::Id) {}

        fn exit(&self, _: &tracing::span::Id) {}
    }

    fn fail(outages: &Outages, second: u64) {
        let error = StoreError::new(StoreErrorKind::Unavailable, "reading");
        outages.failed("pay", &error, Duration::from_secs(second));
    }

    #[test]
    fn a_call_may_fail_while_a_warning_is_taken() {
        let outages = std::sync::Arc::new(Outages::default());
        let again = Again(std::sync::Arc::clone(&outages));
        tracing::subscriber::with_default(again, || fail(&outages, 0));
        assert_eq!(lock(&outages.stores).silent, 1);
    }

    #[test]
    fn another_outage_is_warned_of_at_once_and_counts_its_own_failures() {
        assert_eq!(
            warnings([0, 5, 10, 100, 101, 131]),
            [(0, 1), (100, 1), (131, 1)]
        );
        assert_eq!(
            warnings([0, 5, 10, 100, 101, 130]),
            [(0, 1), (100, 1), (130, 2)]
        );
    }
}
