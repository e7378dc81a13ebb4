//! Bounds how fast a caller brings new keys: each leaves a record that stands until its time to live is over.

use std::{
    collections::{HashMap, hash_map::RandomState},
    hash::BuildHasher as _,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::{
    attempt::Attempt,
    clock::Timer,
    duration::IntoDuration,
    error::Error,
    http::problem::{Kind, Problem},
};

/// Counts the new keys of each caller.
///
/// For each it knows one moment, until which its keys are paid for: a new key moves it on by the interval, and may not move it
/// further than a period from now. Who has brought none for a period is as if it had never been seen, and is forgotten.
#[derive(Debug)]
pub(crate) struct NewKeys {
    rate: Rate,
    /// By a hash of what tells callers apart, whose length nobody bounds.
    paid_until: Mutex<HashMap<u64, Duration>>,
    hasher: RandomState,
}

/// So many keys at once, and as many again in each period.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    per: Duration,
    /// What a key costs.
    interval: Duration,
}

/// How many callers are remembered, in about two megabytes.
const MOST: usize = 1 << 16;

impl Rate {
    pub(crate) fn new(keys: u32, per: impl IntoDuration) -> Result<Self, Error> {
        let per = per.into_duration()?;
        let interval = per.checked_div(keys).unwrap_or_default();
        if interval.is_zero() {
            return Err(Error::InvalidPolicy(
                "a caller may bring at least one new key in a period, and at most one in a nanosecond",
            ));
        }
        Ok(Self { per, interval })
    }
}

impl NewKeys {
    pub(crate) fn new(rate: Rate) -> Self {
        Self {
            rate,
            paid_until: Mutex::default(),
            hasher: RandomState::new(),
        }
    }

    /// The refusal of a new key of this caller's, where it has brought as many as it may.
    pub(crate) fn refusal(&self, caller: &[u8], timer: &dyn Timer) -> Option<Problem> {
        let callers = self.lock();
        let paid_until = callers.get(&self.hasher.hash_one(caller));
        let paid = self.pay(paid_until.copied(), timer.now());
        paid.err().map(too_fast)
    }

    /// Counts a handler that is to run for a key of this caller's. One that takes over from a handler that vanished has been
    /// counted already.
    pub(crate) fn begin(
        &self,
        attempt: &Attempt,
        caller: &[u8],
        timer: &dyn Timer,
    ) -> Result<(), Problem> {
        if attempt.is_takeover() {
            return Ok(());
        }
        let hash = self.hasher.hash_one(caller);
        self.count(hash, timer.now()).map_err(too_fast)
    }

    fn count(&self, hash: u64, now: Duration) -> Result<(), Duration> {
        let mut callers = self.lock();
        let paid_until = self.pay(callers.get(&hash).copied(), now)?;
        if callers.len() >= MOST && !callers.contains_key(&hash) {
            make_room(&mut callers, now);
        }
        callers.insert(hash, paid_until);
        Ok(())
    }

    /// Until when the keys of a caller are paid for with one more; how long it has to wait where that is too far.
    fn pay(&self, paid_until: Option<Duration>, now: Duration) -> Result<Duration, Duration> {
        let from = paid_until.unwrap_or_default().max(now);
        let until = from.saturating_add(self.rate.interval);
        let latest = now.saturating_add(self.rate.per);
        if until <= latest {
            Ok(until)
        } else {
            Err(until - latest)
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Duration>> {
        self.paid_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets who has nothing to wait for, and where that leaves too many, an eighth of all: those who have brought the fewest.
fn make_room(callers: &mut HashMap<u64, Duration>, now: Duration) {
    const KEPT: usize = MOST / 8 * 7;
    callers.retain(|_, paid_until| *paid_until > now);
    let Some(surplus) = callers.len().checked_sub(KEPT).filter(|more| *more > 0) else {
        return;
    };
    let mut moments: Vec<_> = callers.values().copied().collect();
    let (_, &mut last, _) = moments.select_nth_unstable(surplus - 1);
    let mut left = surplus;
    callers.retain(|_, paid_until| {
        let goes = *paid_until <= last && left > 0;
        left -= usize::from(goes);
        !goes
    });
}

fn too_fast(wait: Duration) -> Problem {
    Problem::new(Kind::TooManyKeys)
        .with_detail(
            "This caller brings new keys faster than this service allows. The request was not executed.",
        )
        .with_retry_after(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn three_in_ten_seconds() -> NewKeys {
        NewKeys::new(Rate::new(3, "10s").expect("a rate"))
    }

    #[test]
    fn a_caller_brings_so_many_at_once_and_as_many_again_in_a_period() {
        let keys = three_in_ten_seconds();
        for _ in 0..3 {
            assert_eq!(keys.count(1, SECOND), Ok(()));
        }
        let wait = keys.count(1, SECOND).expect_err("a fourth one");
        assert_eq!(wait.as_millis(), 3_333);
        assert_eq!(keys.count(1, SECOND + wait), Ok(()), "one has come back");
        assert!(keys.count(1, SECOND + wait).is_err());
        assert_eq!(keys.count(2, SECOND + wait), Ok(()), "another caller");
        for _ in 0..3 {
            assert_eq!(keys.count(1, 60 * SECOND), Ok(()), "no more than three");
        }
        assert!(keys.count(1, 60 * SECOND).is_err());
    }

    #[test]
    fn a_refusal_costs_nothing() {
        let keys = three_in_ten_seconds();
        for _ in 0..3 {
            assert_eq!(keys.count(1, SECOND), Ok(()));
        }
        let wait = keys.count(1, SECOND).expect_err("a fourth one");
        for _ in 0..100 {
            assert_eq!(keys.count(1, SECOND), Err(wait));
        }
    }

    #[test]
    fn whoever_comes_memory_is_bounded_and_those_who_brought_most_are_remembered() {
        let keys = three_in_ten_seconds();
        for _ in 0..3 {
            assert_eq!(keys.count(u64::MAX, SECOND), Ok(()));
        }
        for caller in 0..3 * MOST as u64 {
            assert_eq!(keys.count(caller, SECOND), Ok(()));
            assert!(keys.lock().len() <= MOST);
        }
        assert!(keys.count(u64::MAX, SECOND).is_err());

        let later = 60 * SECOND;
        for caller in 0..MOST as u64 {
            assert_eq!(keys.count(caller, later), Ok(()));
        }
        assert!(
            !keys.lock().contains_key(&u64::MAX),
            "it has nothing to wait for"
        );
    }

    #[test]
    fn a_rate_lets_something_through_and_not_everything() {
        assert!(Rate::new(1, "1h").is_ok());
        for (keys, per) in [
            (0, SECOND),
            (1, Duration::ZERO),
            (2, Duration::from_nanos(1)),
        ] {
            assert!(Rate::new(keys, per).is_err(), "{keys} in {per:?}");
        }
        assert!(Rate::new(1, "often").is_err());
    }
}
