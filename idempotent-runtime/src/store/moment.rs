//! How much time has passed, on a machine that may have been suspended.

use std::{sync::Arc, time::Duration};

use crate::{
    clock::{Clock, SystemClock, SystemTimer, Timer},
    record::Time,
};

/// The two clocks of a machine that know how much time has passed.
///
/// A monotonic timer may stand still while the machine is suspended, and a wall clock may be set.
/// So the greater of what the two say counts: what is kept for a while is never kept for longer,
/// whichever of them is behind.
#[derive(Clone, Debug)]
pub(in crate::store) struct Clocks {
    timer: Arc<dyn Timer>,
    wall: Arc<dyn Clock>,
}

/// A moment by both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    monotonic: Duration,
    wall: Time,
}

impl Clocks {
    pub(in crate::store) fn set_timer(&mut self, timer: impl Timer + 'static) {
        self.timer = Arc::new(timer);
    }

    pub(in crate::store) fn set_wall(&mut self, wall: impl Clock + 'static) {
        self.wall = Arc::new(wall);
    }

    pub(in crate::store) fn timer(&self) -> &Arc<dyn Timer> {
        &self.timer
    }

    pub(in crate::store) fn now(&self) -> Moment {
        Moment {
            monotonic: self.timer.now(),
            wall: self.wall.now(),
        }
    }
}

impl Default for Clocks {
    fn default() -> Self {
        Self {
            timer: Arc::new(SystemTimer),
            wall: Arc::new(SystemClock),
        }
    }
}

impl Moment {
    /// By the clocks of this machine.
    #[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
    pub(in crate::store) fn now() -> Self {
        Self {
            monotonic: SystemTimer.now(),
            wall: SystemClock.now(),
        }
    }

    /// How long it is since `earlier`: a wall clock that was set back since then does not count.
    pub(in crate::store) fn since(self, earlier: Self) -> Duration {
        let monotonic = self.monotonic.saturating_sub(earlier.monotonic);
        monotonic.max(self.wall.since(earlier.wall))
    }

    /// Whether it is no earlier than `other`, which only the timer can tell.
    pub(in crate::store) fn is_not_before(self, other: Self) -> bool {
        self.monotonic >= other.monotonic
    }
}

#[cfg(test)]
impl Moment {
    pub(in crate::store) fn at(monotonic: Duration, wall: Duration) -> Self {
        Self {
            monotonic,
            wall: Time::from_micros(1_767_225_600_000_000).plus(wall),
        }
    }

    /// So much later by both clocks.
    #[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
    pub(in crate::store) fn plus(self, duration: Duration) -> Self {
        Self {
            monotonic: self.monotonic.saturating_add(duration),
            wall: self.wall.plus(duration),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_clock_that_went_further_counts() {
        let begun = Moment::at(9 * SECOND, 9 * SECOND);
        for (monotonic, wall, since, what) in [
            (12, 12, 3, "both go on"),
            (10, 100, 91, "the machine was suspended"),
            (12, 2, 3, "the wall clock was set back"),
            (9, 9, 0, "no time has passed"),
        ] {
            let now = Moment::at(monotonic * SECOND, wall * SECOND);
            assert_eq!(now.since(begun), since * SECOND, "{what}");
        }
    }
}
