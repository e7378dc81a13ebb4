//! How the heartbeats of a handle are.

use std::time::Duration;

use super::{Heartbeats, Shared};
use crate::value::lock;

/// How the heartbeats of a handle are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeartbeatHealth {
    /// How many leases are held at this moment.
    pub held: usize,
    /// How many writes wait in the background: outcomes that the store has not taken yet, and
    /// claims that are given up.
    pub pending: usize,
    /// How long ago a heartbeat was last written; `None` where none has been.
    pub last: Option<Duration>,
    /// How long ago one last failed; `None` where none has.
    pub last_failed: Option<Duration>,
}

impl Heartbeats {
    pub(crate) fn health(&self) -> HeartbeatHealth {
        let (last, failed) = *lock(&self.0.pulse);
        let now = self.0.timer.now();
        let ago = |at: Option<Duration>| at.map(|at| now.saturating_sub(at));
        let work = lock(&self.0.work);
        HeartbeatHealth {
            held: work.leases.len(),
            pending: work.jobs.len() + work.running_jobs,
            last: ago(last),
            last_failed: ago(failed),
        }
    }
}

impl Shared {
    /// Takes note that a heartbeat was written, or failed.
    pub(crate) fn beaten(&self, is_written: bool) {
        let (now, mut pulse) = (self.timer.now(), lock(&self.pulse));
        match is_written {
            true => pulse.0 = Some(now),
            false => pulse.1 = Some(now),
        }
    }
}
