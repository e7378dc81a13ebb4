//! What time it is in a store that is not asked.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::record::Time;

/// The time that a store told last, and when it was asked.
#[derive(Debug, Default)]
pub(super) struct StoreTime(Mutex<Option<Told>>);

#[derive(Clone, Copy, Debug)]
struct Told {
    now: Time,
    sent: Duration,
}

impl StoreTime {
    /// Takes note of an answer to what was sent at this time of the timer.
    pub(super) fn told(&self, now: Time, sent: Duration) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| last.sent <= sent) {
            *last = Some(Told { now, sent });
        }
    }

    /// The latest that it can be by the store's clock; `None` where that was not told within `age`.
    ///
    /// The store read its clock after it was asked, so counting from the question never gives an earlier time than its own,
    /// as long as both clocks go at the same pace. How far they drift apart is bounded by `age`.
    pub(super) fn reckoned(&self, at: Duration, age: Duration) -> Option<Time> {
        let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since = |told: Told| at.saturating_sub(told.sent);
        let told = last.filter(|told| since(*told) <= age)?;
        Some(told.now.plus(since(told)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn time_goes_on_from_the_question_and_not_for_ever() {
        let time = StoreTime::default();
        assert_eq!(time.reckoned(SECOND, 10 * SECOND), None);
        time.told(Time::from_micros(5_000_000), SECOND);
        let reckoned = time.reckoned(4 * SECOND, 10 * SECOND);
        assert_eq!(reckoned, Some(Time::from_micros(8_000_000)));
        assert_eq!(time.reckoned(12 * SECOND, 10 * SECOND), None);
    }

    #[test]
    fn the_latest_question_counts_in_whatever_order_answers_come() {
        let time = StoreTime::default();
        time.told(Time::from_micros(7_000_000), 3 * SECOND);
        time.told(Time::from_micros(4_000_000), SECOND);
        let reckoned = time.reckoned(3 * SECOND, SECOND);
        assert_eq!(reckoned, Some(Time::from_micros(7_000_000)));
        time.told(Time::from_micros(2_000_000), 4 * SECOND);
        let reckoned = time.reckoned(4 * SECOND, SECOND);
        assert_eq!(
            reckoned,
            Some(Time::from_micros(2_000_000)),
            "it was set back"
        );
    }
}
