//! How often, how long and how fast calls are sent again.

use std::time::Duration;

use idempotent_runtime::__client::{LONGEST, setters};

/// The bounds of one call.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    pub(crate) attempts: u32,
    pub(crate) deadline: Duration,
    pub(crate) attempt_timeout: Option<Duration>,
    pub(crate) backoff: Duration,
    pub(crate) longest_backoff: Duration,
    pub(crate) longest_retry_after: Duration,
    pub(crate) budget: Budget,
}

/// How many attempts beyond the first an origin gets, over all calls: more retries would only keep
/// down a server that is down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    pub(crate) reserve: f64,
    pub(crate) share: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            attempts: 4,
            deadline: Duration::from_secs(120),
            attempt_timeout: None,
            backoff: Duration::from_millis(500),
            longest_backoff: Duration::from_secs(8),
            longest_retry_after: Duration::from_secs(60),
            budget: Budget::default(),
        }
    }
}

impl Limits {
    setters! {
        /// Sets how many attempts a call gets, the first included: 4 unless set, at least 1. An
        /// attempt that is answered by the word that the call is running does not count, also not
        /// as a retry of the origin. The call is then asked for, less and less often, until the
        /// deadline. Once it was asked for as often as it has attempts, it is asked for ten times a
        /// second at most, however short the pauses are. A pause beyond the deadline is made
        /// shorter. With a single attempt nothing is sent again, and nothing is waited for.
        #[must_use]
        attempts(it, attempts: u32) { it.attempts = attempts.max(1) }

        /// Sets how long a call may take with all its attempts and pauses: 120 seconds unless set.
        /// An attempt that is under way then is given up. Time that is spent before the first one
        /// counts, on reading or hashing the body and on writing the call down. If none is left
        /// then, nothing is sent. Time that the journal takes after the last one counts, too. An
        /// answer that the journal has not taken by then is handed on as
        /// [unrecorded](crate::ClientOutcome::unrecorded).
        #[must_use]
        deadline(it, deadline: Duration) { it.deadline = deadline }

        /// Sets how long one attempt may take: as long as the deadline leaves, unless set. Timeouts
        /// of the client itself hold beside it.
        #[must_use]
        attempt_timeout(it, timeout: Duration) { it.attempt_timeout = Some(timeout) }

        /// Sets the pause before the second attempt and the longest one: half a second and 8
        /// seconds unless set, and a hundred years at most. It doubles with each attempt, and a
        /// random part of up to a half is taken off.
        #[must_use]
        backoff(it, first: Duration, longest: Duration) {
            it.backoff = first.min(LONGEST);
            it.longest_backoff = longest.clamp(it.backoff, LONGEST);
        }

        /// Sets the longest `Retry-After` that is waited out: 60 seconds unless set. Beyond it, the
        /// caller is told.
        #[must_use]
        longest_retry_after(it, longest: Duration) { it.longest_retry_after = longest }

        /// Sets how many attempts beyond the first an origin gets.
        #[must_use]
        budget(it, budget: Budget) { it.budget = budget }
    }

    /// The pause after `attempts` attempts, with `jitter` from 0 to 1.
    pub(crate) fn pause(&self, attempts: u32, jitter: f64) -> Duration {
        let doubled = 2_u32.saturating_pow(attempts.saturating_sub(1));
        let full = self
            .backoff
            .saturating_mul(doubled)
            .min(self.longest_backoff);
        full.mul_f64(1.0 - jitter.clamp(0.0, 1.0) / 2.0)
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            reserve: 10.0,
            share: 0.2,
        }
    }
}

impl Budget {
    /// Lets every call add `share` of an attempt, and begins with `reserve` attempts, which is also
    /// the most that is saved up. Unless set, the reserve is ten, and five calls add one attempt.
    #[must_use]
    pub fn new(reserve: u32, share: f64) -> Self {
        Self {
            reserve: f64::from(reserve),
            share: share.max(0.0),
        }
    }

    pub(crate) fn deposit(&self, balance: &mut f64) {
        *balance = (*balance + self.share).min(self.reserve);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cl28_pauses_double_up_to_the_longest_and_lose_at_most_a_half() {
        let limits = Limits::default();
        let full: Vec<_> = (1..=6)
            .map(|attempts| limits.pause(attempts, 0.0).as_millis())
            .collect();
        assert_eq!(full, [500, 1_000, 2_000, 4_000, 8_000, 8_000]);
        assert_eq!(limits.pause(1, 1.0), Duration::from_millis(250));
        assert_eq!(limits.pause(u32::MAX, 0.0), Duration::from_secs(8));
    }

    #[test]
    fn cl28_a_pause_may_be_as_long_as_anybody_likes() {
        let limits = Limits::default().backoff(Duration::MAX, Duration::ZERO);
        for jitter in [0.0, 1.0] {
            assert!(limits.pause(u32::MAX, jitter) >= LONGEST / 2);
        }
    }

    #[test]
    fn cl29_a_budget_saves_up_no_more_than_its_reserve() {
        let budget = Budget::new(2, 0.5);
        let mut balance = 0.0;
        for _ in 0..100 {
            budget.deposit(&mut balance);
        }
        assert_eq!(balance, 2.0);
    }
}
