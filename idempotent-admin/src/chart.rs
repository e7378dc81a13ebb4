//! The calls of this process in the last hour, minute by minute.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use idempotent_runtime::{CallEvent, CallOutcome, Observer};

/// How many minutes are kept.
pub(crate) const MINUTES: usize = 60;

/// How many kinds of answers are told apart.
pub(crate) const KINDS: usize = 4;

/// The kinds, in the order of the counts.
pub(crate) const NAMES: [&str; KINDS] = ["ran", "replayed", "refused", "not recorded"];

/// Counts the calls of this process by their outcomes, for the page: an observer of the handle, and
/// a setting of the page.
///
/// # Examples
///
/// ```
/// use http::request::Parts;
/// use idempotent_admin::{CallChart, Page, Person};
/// use idempotent_runtime::{Error, Idempotency, MemoryStore};
///
/// # fn example() -> Result<(), Error> {
/// let chart = CallChart::default();
/// let idem = Idempotency::builder(MemoryStore::new()).observer(chart.clone()).build()?;
/// let access = |_: &Parts| Some(Person::reader("anna"));
/// let page = Page::new(idem, access).chart(&chart);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
pub struct CallChart(Arc<Mutex<Ring>>);

/// The counts of one minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Minute {
    /// The minutes since 1970.
    pub(crate) at: u64,
    pub(crate) counts: [u64; KINDS],
}

#[derive(Debug)]
struct Ring([Minute; MINUTES]);

impl Default for Ring {
    fn default() -> Self {
        Self([Minute::default(); MINUTES])
    }
}

impl Ring {
    fn count(&mut self, at: u64, kind: usize) {
        let place = usize::try_from(at % MINUTES as u64).unwrap_or(0);
        let minute = &mut self.0[place];
        if minute.at != at {
            *minute = Minute {
                at,
                ..Minute::default()
            };
        }
        minute.counts[kind] += 1;
    }

    /// The minutes of the hour that ends with this one, the oldest first.
    fn hour(&self, at: u64) -> Vec<Minute> {
        let first = at.saturating_sub(MINUTES as u64 - 1);
        let minutes = (first..=at).map(|at| {
            let mut kept = self.0.iter();
            let none = Minute {
                at,
                ..Minute::default()
            };
            kept.find(|minute| minute.at == at).copied().unwrap_or(none)
        });
        minutes.collect()
    }
}

/// The kind of an answer.
fn kind(outcome: CallOutcome) -> usize {
    match outcome {
        CallOutcome::Executed
        | CallOutcome::ExecutedAfterTakeover
        | CallOutcome::ExecutedInTransaction
        | CallOutcome::Reconciled => 0,
        CallOutcome::Replayed | CallOutcome::ReplayedAfterWait => 1,
        CallOutcome::Released
        | CallOutcome::LeftUncertain
        | CallOutcome::RolledBack
        | CallOutcome::Dropped
        | CallOutcome::Panicked
        | CallOutcome::LeaseLost
        | CallOutcome::TransactionEnded
        | CallOutcome::Unprotected => 3,
        _ => 2,
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or(Duration::ZERO).as_secs() / 60
}

impl CallChart {
    pub(crate) fn hour(&self) -> Vec<Minute> {
        let ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ring.hour(now())
    }
}

impl Observer for CallChart {
    fn answered(&self, answered: &CallEvent<'_>) {
        let mut ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ring.count(now(), kind(answered.outcome));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_has_sixty_minutes_and_forgets_the_ones_before() {
        let mut ring = Ring::default();
        for at in [1_000, 1_000, 1_059] {
            ring.count(at, 1);
        }
        let counts = |hour: &[Minute]| hour.iter().map(|it| it.counts[1]).collect::<Vec<_>>();
        let hour = ring.hour(1_059);
        assert_eq!(hour.len(), MINUTES);
        assert_eq!((hour[0].at, hour[59].at), (1_000, 1_059));
        assert_eq!((counts(&hour)[0], counts(&hour)[59]), (2, 1));
        let later = ring.hour(1_060);
        assert_eq!(
            counts(&later).iter().sum::<u64>(),
            1,
            "the first minute is over"
        );
        ring.count(1_060, 1);
        assert_eq!(
            counts(&ring.hour(1_060))[59],
            1,
            "it takes the place of the first one"
        );
    }

    #[test]
    fn every_outcome_has_a_kind() {
        for outcome in CallOutcome::ALL {
            assert!(kind(outcome) < KINDS, "{outcome:?}");
        }
        assert_eq!(kind(CallOutcome::ReplayedAfterWait), 1);
        assert_eq!(kind(CallOutcome::InProgress), 2);
        assert_eq!(kind(CallOutcome::LeftUncertain), 3);
    }
}
