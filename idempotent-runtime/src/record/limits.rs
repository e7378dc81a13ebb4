//! Durations that no store can keep its promises with.

use std::time::Duration;

use crate::{clock::Timer, error::Error};

/// A hundred years: anything longer is a mistake, and would overflow a store's clock.
pub const LONGEST: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);

/// Refuses a lease that was set and is not shorter than the ttl. A ttl that was set may be shorter
/// than the default of the lease.
pub(crate) fn check_lease(ttl: Option<Duration>, lease: Option<Duration>) -> Result<(), Error> {
    match (ttl, lease) {
        (Some(ttl), Some(lease)) if lease >= ttl => Err(Error::InvalidPolicy(
            "the lease is not shorter than the ttl: it is how long a crashed call is waited for, 30 seconds are usual",
        )),
        _ => Ok(()),
    }
}

/// The shortest lease by a timer that is not moved by hand: now and then, a store takes some ten
/// milliseconds to answer.
const SHORTEST_LEASE: Duration = Duration::from_millis(100);

/// Refuses durations that no store can keep its promises with.
pub(crate) fn check_durations(
    ttl: Duration,
    lease: Duration,
    timer: &dyn Timer,
) -> Result<(), Error> {
    match () {
        () if ttl < Duration::from_millis(1) => Err(Error::InvalidPolicy(
            "the ttl is shorter than a millisecond: an outcome would answer no duplicate",
        )),
        () if lease < Duration::from_millis(1) => Err(Error::InvalidPolicy(
            "the lease is shorter than a millisecond: no holder could keep it",
        )),
        () if lease < SHORTEST_LEASE && !timer.is_manual() => Err(Error::InvalidPolicy(
            "the lease is shorter than 100 ms, so that it would be over before a busy store answers: give at least `\"100ms\"`, 30 seconds are usual; only by a manual clock it may be shorter",
        )),
        () if ttl > LONGEST || lease > LONGEST => Err(Error::InvalidPolicy(
            "the ttl or the lease is longer than a hundred years",
        )),
        () => Ok(()),
    }
}
