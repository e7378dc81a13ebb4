//! Warns of a store that fails: at once, and then now and again with a count.

use std::{sync::Mutex, time::Duration};

use crate::{
    store::{StoreError, StoreErrorKind},
    value::lock,
};

/// How long after one warning the next one comes.
const EVERY: Duration = Duration::from_secs(30);

/// The failures of the stores of a handle.
#[derive(Debug, Default)]
pub(super) struct Outages(Mutex<Outage>);

#[derive(Debug, Default)]
struct Outage {
    /// When the last warning came, by the handle's timer.
    warned: Option<Duration>,
    /// How many failures came since.
    silent: u64,
}

impl Outages {
    /// Counts a failure, and warns if no warning came for a while. A damaged record is no outage,
    /// and is told of each time.
    pub(super) fn failed(&self, operation: &str, error: &StoreError, now: Duration) {
        if error.kind() == StoreErrorKind::Corrupt {
            tracing::warn!(operation, %error, "a record cannot be read");
        } else if let Some(failures) = self.count(now) {
            tracing::warn!(operation, %error, failures, "the store fails");
        }
    }

    /// How many failures a warning is about, if one is due.
    fn count(&self, now: Duration) -> Option<u64> {
        let mut outage = lock(&self.0);
        outage.silent += 1;
        let is_due = |warned| now.saturating_sub(warned) >= EVERY;
        if !outage.warned.is_none_or(is_due) {
            return None;
        }
        outage.warned = Some(now);
        Some(std::mem::take(&mut outage.silent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_one_warning_and_then_one_every_thirty_seconds_with_a_count() {
        let outages = Outages::default();
        let warned: Vec<_> = (0..=65)
            .filter_map(|second| {
                outages
                    .count(Duration::from_secs(second))
                    .map(|it| (second, it))
            })
            .collect();
        assert_eq!(warned, [(0, 1), (30, 30), (60, 30)]);
    }
}
