//! Bounds how fast a caller brings new keys: each leaves a record that stands until its time to live is over.

use std::{
    collections::{HashMap, hash_map::RandomState},
    hash::BuildHasher as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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
///
/// A key has a place from before it is claimed, and is paid for when its handler runs: so requests of one moment claim no more than
/// may run, and what does not run costs nothing.
#[derive(Clone, Debug)]
pub(crate) struct NewKeys(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    rate: Rate,
    /// By a hash of what tells callers apart, whose length nobody bounds.
    accounts: Mutex<HashMap<u64, Account>>,
    hasher: RandomState,
}

/// What a caller has brought.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    paid_until: Duration,
    /// How many keys may still turn out to be new.
    places: u32,
}

/// Room for one new key of a caller's. Dropped, it is given back.
#[derive(Debug)]
pub(crate) struct Place {
    caller: u64,
    /// Whose place it is, as long as it is one.
    keys: Option<NewKeys>,
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
        Self(Arc::new(Shared {
            rate,
            accounts: Mutex::default(),
            hasher: RandomState::new(),
        }))
    }

    /// Takes a place for a key of this caller's that may be new; the refusal, where it has brought as many as it may.
    pub(crate) fn place(&self, caller: &[u8], timer: &dyn Timer) -> Result<Place, Problem> {
        let hash = self.0.hasher.hash_one(caller);
        self.take(hash, timer.now()).map_err(too_fast)
    }

    /// Counts a handler that is to run for a key of this caller's. One that takes over from a handler that vanished has been
    /// counted already. One for a key that the store seemed to know, or did not tell of, still has to find its place.
    pub(crate) fn begin(
        &self,
        place: Option<Place>,
        attempt: &Attempt,
        caller: &[u8],
        timer: &dyn Timer,
    ) -> Result<(), Problem> {
        if attempt.is_takeover() {
            return Ok(());
        }
        let place = match place {
            Some(place) => place,
            None => self.place(caller, timer)?,
        };
        place.pay(timer.now());
        Ok(())
    }

    /// Takes a place; how long its caller has to wait where there is none.
    fn take(&self, caller: u64, now: Duration) -> Result<Place, Duration> {
        let rate = self.0.rate;
        let mut accounts = self.lock();
        let mut account = accounts.get(&caller).copied().unwrap_or_default();
        account.places = account.places.saturating_add(1);
        let until = account.until(rate, now);
        let latest = now.saturating_add(rate.per);
        if until > latest {
            return Err(until - latest);
        }
        *opened(&mut accounts, caller, rate, now) = account;
        Ok(Place {
            caller,
            keys: Some(self.clone()),
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Account>> {
        let accounts = self.0.accounts.lock();
        accounts.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Has its key paid for.
    fn pay(mut self, now: Duration) {
        let Some(keys) = self.keys.take() else { return };
        let rate = keys.0.rate;
        let mut accounts = keys.lock();
        let account = opened(&mut accounts, self.caller, rate, now);
        account.places = account.places.saturating_sub(1);
        account.paid_until = account.paid_until.max(now).saturating_add(rate.interval);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(keys) = self.keys.take() else { return };
        let mut accounts = keys.lock();
        // Who was forgotten meanwhile has nothing to be given back.
        let Some(account) = accounts.get_mut(&self.caller) else {
            return;
        };
        account.places = account.places.saturating_sub(1);
        if account.places == 0 && account.paid_until.is_zero() {
            accounts.remove(&self.caller);
        }
    }
}

impl Account {
    /// Until when its keys are paid for once those with a place are paid, too.
    fn until(self, rate: Rate, now: Duration) -> Duration {
        let places = rate.interval.saturating_mul(self.places);
        self.paid_until.max(now).saturating_add(places)
    }
}

/// The account of a caller, which is opened where there is none.
fn opened(
    accounts: &mut HashMap<u64, Account>,
    caller: u64,
    rate: Rate,
    now: Duration,
) -> &mut Account {
    if accounts.len() >= MOST && !accounts.contains_key(&caller) {
        make_room(accounts, rate, now);
    }
    accounts.entry(caller).or_default()
}

/// Forgets who has nothing to wait for, and where that leaves too many, an eighth of all: those who have brought the fewest.
fn make_room(accounts: &mut HashMap<u64, Account>, rate: Rate, now: Duration) {
    const KEPT: usize = MOST / 8 * 7;
    accounts.retain(|_, account| account.until(rate, now) > now);
    let Some(surplus) = accounts.len().checked_sub(KEPT).filter(|more| *more > 0) else {
        return;
    };
    let until = |account: &Account| account.until(rate, now);
    let mut moments: Vec<_> = accounts.values().map(until).collect();
    let (_, &mut last, _) = moments.select_nth_unstable(surplus - 1);
    let mut left = surplus;
    accounts.retain(|_, account| {
        let goes = until(account) <= last && left > 0;
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

    impl NewKeys {
        /// Brings a key whose handler runs at once.
        fn count(&self, caller: u64, now: Duration) -> Result<(), Duration> {
            self.take(caller, now).map(|place| place.pay(now))
        }
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
    fn a_place_is_one_key_less_until_it_is_given_back_or_paid_for() {
        let keys = three_in_ten_seconds();
        let place = || keys.take(1, SECOND);
        let (paid, given_back) = (place().expect("the first"), place().expect("the second"));
        let last = place().expect("the third");
        let wait = place().expect_err("a fourth one");
        assert_eq!(wait.as_millis(), 3_333);

        paid.pay(SECOND);
        assert!(place().is_err(), "it costs what its place did");
        drop(given_back);
        assert!(place().is_ok());
        drop(last);
        for _ in 0..2 {
            assert_eq!(keys.count(1, SECOND), Ok(()));
        }
        assert!(place().is_err());
    }

    #[test]
    fn a_place_that_is_given_back_late_gives_back_nothing_that_time_gave_already() {
        let keys = three_in_ten_seconds();
        let old = keys.take(1, SECOND).expect("a place");
        for _ in 0..2 {
            assert_eq!(keys.count(1, 60 * SECOND), Ok(()));
        }
        assert!(keys.count(1, 60 * SECOND).is_err());
        drop(old);
        assert_eq!(keys.count(1, 60 * SECOND), Ok(()));
        assert!(keys.count(1, 60 * SECOND).is_err());
    }

    #[test]
    fn who_has_brought_nothing_is_not_remembered() {
        let keys = three_in_ten_seconds();
        drop(keys.take(1, SECOND));
        assert!(keys.lock().is_empty());
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
