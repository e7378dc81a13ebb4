//! The time in a store that is not asked.

use std::{sync::Mutex, time::Duration};

use crate::{record::Time, store::moment::Moment, value::lock};

/// The time that a store told last, and when it was asked.
#[derive(Debug, Default)]
pub(super) struct StoreTime(Mutex<Option<ServerTime>>);

#[derive(Clone, Copy, Debug)]
struct ServerTime {
    now: Time,
    sent_at: Moment,
}

impl StoreTime {
    /// Takes note of an answer to what was sent at this moment.
    pub(super) fn observe(&self, now: Time, sent_at: Moment) {
        let mut last = lock(&self.0);
        if last.is_none_or(|last| sent_at.is_not_before(last.sent_at)) {
            *last = Some(ServerTime { now, sent_at });
        }
    }

    /// The latest that it can be by the store's clock; `None` where that was not told within `age`.
    ///
    /// The store read its clock after it was asked, so counting from the question never gives an
    /// earlier time than its own, as long as its clock and the ones here go at the same pace. How
    /// far they drift apart is bounded by `age`. A later time than its own, as after the wall clock
    /// here was set forward, only costs a question.
    pub(super) fn reckoned(&self, at: Moment, age: Duration) -> Option<Time> {
        let last = *lock(&self.0);
        let since = |last: ServerTime| at.since(last.sent_at);
        let last = last.filter(|last| since(*last) <= age)?;
        Some(last.now.plus(since(last)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A moment by clocks that go alike.
    fn at(seconds: u32) -> Moment {
        Moment::at(seconds * SECOND, seconds * SECOND)
    }

    #[test]
    fn time_goes_on_from_the_question_and_not_for_ever() {
        let time = StoreTime::default();
        assert_eq!(time.reckoned(at(1), 10 * SECOND), None);
        time.observe(Time::from_micros(5_000_000), at(1));
        let reckoned = time.reckoned(at(4), 10 * SECOND);
        assert_eq!(reckoned, Some(Time::from_micros(8_000_000)));
        assert_eq!(time.reckoned(at(12), 10 * SECOND), None);
    }

    #[test]
    fn a_machine_that_was_suspended_knows_that_time_went_on() {
        let time = StoreTime::default();
        time.observe(Time::from_micros(5_000_000), at(1));
        let woken = Moment::at(2 * SECOND, 9 * SECOND);
        let reckoned = time.reckoned(woken, 10 * SECOND);
        assert_eq!(reckoned, Some(Time::from_micros(13_000_000)));
        let woken = Moment::at(2 * SECOND, 12 * SECOND);
        assert_eq!(time.reckoned(woken, 10 * SECOND), None);
    }

    #[test]
    fn the_latest_question_counts_in_whatever_order_answers_come() {
        let time = StoreTime::default();
        time.observe(Time::from_micros(7_000_000), at(3));
        time.observe(Time::from_micros(4_000_000), at(1));
        let reckoned = time.reckoned(at(3), SECOND);
        assert_eq!(reckoned, Some(Time::from_micros(7_000_000)));
        time.observe(Time::from_micros(2_000_000), at(4));
        let reckoned = time.reckoned(at(4), SECOND);
        assert_eq!(
            reckoned,
            Some(Time::from_micros(2_000_000)),
            "it was set back"
        );
    }
}
