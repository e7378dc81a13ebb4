//! How long to pause before the next try, and for how long there is one.

use std::time::Duration;

/// The first pause is no longer than this.
const FIRST: Duration = Duration::from_millis(5);

/// No pause is longer than this.
const LONGEST: Duration = Duration::from_millis(500);

/// The pauses between the tries of one transaction. The bound of a pause doubles each time. The
/// pause is drawn from zero up to that, so that those who met once do not meet again.
#[derive(Debug)]
pub(crate) struct Backoff {
    /// For how long it is tried again, from the first failure on.
    allowed: Duration,
    until: Option<Duration>,
    bound: Duration,
}

impl Backoff {
    pub(crate) fn new(allowed: Duration) -> Self {
        Self {
            allowed,
            until: None,
            bound: FIRST,
        }
    }

    /// Returns how long to pause before the next try; `None` where the time is over.
    pub(crate) fn pause(&mut self, now: Duration) -> Option<Duration> {
        let ends = now.saturating_add(self.allowed);
        let left = self.until.get_or_insert(ends).saturating_sub(now);
        if left.is_zero() {
            return None;
        }
        let drawn = rand::random_range(Duration::ZERO..=self.bound);
        self.bound = (self.bound * 2).min(LONGEST);
        Some(drawn.min(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn mend_19_the_time_counts_from_the_first_failure_on() {
        let mut backoff = Backoff::new(10 * SECOND);
        for now in [100, 101, 109] {
            assert!(backoff.pause(now * SECOND).is_some(), "{now}");
        }
        assert_eq!(backoff.pause(110 * SECOND), None);
    }

    #[test]
    fn mend_19_no_time_is_no_second_try() {
        assert_eq!(Backoff::new(Duration::ZERO).pause(SECOND), None);
    }

    #[test]
    fn mend_19_a_pause_is_drawn_from_zero_up_to_a_bound_that_doubles() {
        let drawn: Vec<Vec<Duration>> = (0..1_000)
            .map(|_| {
                let mut backoff = Backoff::new(10 * SECOND);
                (0..10).filter_map(|_| backoff.pause(SECOND)).collect()
            })
            .collect();
        for round in 0..10 {
            let bound = (FIRST * 2_u32.pow(round)).min(LONGEST);
            let of_round = || drawn.iter().map(|pauses| pauses[round as usize]);
            assert!(of_round().all(|pause| pause <= bound), "{round}");
            assert!(of_round().any(|pause| pause < bound / 4), "{round}");
            assert!(of_round().any(|pause| pause > bound / 4 * 3), "{round}");
        }
    }

    #[test]
    fn mend_19_a_pause_ends_with_the_time() {
        for _ in 0..1_000 {
            let mut backoff = Backoff::new(Duration::from_millis(1));
            assert!(backoff.pause(SECOND) <= Some(Duration::from_millis(1)));
        }
    }
}
