//! The connection that all callers share, the making of one, and when it is left.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use redis::RedisError;
use tokio::sync::watch;

use super::source::Line;
use crate::{
    store::{idle::LONGEST_IDLE, moment::Moment},
    value::lock,
};

/// The connection, and the making of one.
#[derive(Default)]
pub(super) struct Open {
    last: Mutex<LastOpen>,
}

/// A connection with its number; or the error why there is none, which is `None` if that took too
/// long.
pub(super) type Made = Result<(Line, u64), Option<RedisError>>;

/// The connection that was made last.
#[derive(Default)]
struct LastOpen {
    /// With the moment when it was asked for last. All nodes of a cluster lie idle together,
    /// because records are spread evenly.
    line: Option<(Line, Moment)>,
    /// How many there were: a caller that finds one broken must not close the one after it.
    number: u64,
    silence: Silence,
    making: Option<watch::Receiver<Option<Made>>>,
}

/// How long callers waited in vain since the last answer.
#[derive(Clone, Copy, Default)]
struct Silence {
    waited: Duration,
    until: Option<Instant>,
}

/// Asks over a connection. If callers give up on its answers, the next one asks over another. A
/// heartbeat gives up after a third of the lease, and a tiered store far sooner. The connection may
/// be silent for good, and no caller would ever wait for as long as an answer may take. In a
/// cluster, the answer of any node counts.
pub(super) struct Asking<'a> {
    open: &'a Open,
    number: u64,
    not_silent: Duration,
    since: Instant,
    is_answered: bool,
}

/// How long all callers together wait before a connection counts as silent: far longer than Redis
/// takes for an answer.
pub(super) const NOT_SILENT: Duration = Duration::from_millis(100);

/// The same for connections to the nodes of a cluster, which are all made again together.
pub(super) const NO_NODE_SILENT: Duration = Duration::from_secs(1);

impl<'a> Asking<'a> {
    pub(super) fn over(open: &'a Open, number: u64, not_silent: Duration) -> Self {
        Self {
            open,
            number,
            not_silent,
            since: Instant::now(),
            is_answered: false,
        }
    }

    /// The answer came, or took as long as one may take.
    pub(super) fn end(mut self) {
        self.is_answered = true;
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let mut last = lock(&self.open.last);
        if last.number != self.number {
            return;
        }
        if self.is_answered {
            last.silence = Silence::default();
        } else if last.silence.goes_on(self.since) >= self.not_silent {
            last.line = None;
        }
    }
}

impl Open {
    /// The connection, or else its making, which begins if no caller is at it.
    pub(super) fn line_or_making(
        &self,
        now: Moment,
        is_given: bool,
        make: impl FnOnce() -> watch::Receiver<Option<Made>>,
    ) -> Result<(Line, u64), watch::Receiver<Option<Made>>> {
        let mut last = lock(&self.last);
        if let Some(line) = last.line(now, is_given) {
            return Ok(line);
        }
        let is_stopped = |made: &mut watch::Receiver<_>| made.has_changed().is_err();
        last.making.take_if(is_stopped);
        Err(last.making.get_or_insert_with(make).clone())
    }

    pub(super) fn end_making(&self, line: Result<Line, Option<RedisError>>, now: Moment) -> Made {
        let mut last = lock(&self.last);
        last.making = None;
        line.map(|line| last.begin(line, now))
    }

    /// Forgets the connection of this number.
    pub(super) fn end(&self, number: u64) {
        let mut last = lock(&self.last);
        if last.number == number {
            last.line = None;
        }
    }
}

#[cfg(test)]
impl Open {
    pub(super) fn has_line(&self, now: Moment) -> bool {
        lock(&self.last).line(now, false).is_some()
    }

    /// Since a caller gave up on the last connection.
    pub(super) fn let_time_pass(&self, waited: Duration) {
        let mut last = lock(&self.last);
        assert!(last.silence.until.is_some(), "it owes an answer");
        last.silence.waited += waited;
    }
}

impl LastOpen {
    /// The connection, with its number, unless there is none, or it was asked for too long ago.
    fn line(&mut self, now: Moment, is_given: bool) -> Option<(Line, u64)> {
        match &mut self.line {
            Some((line, used)) if now.since(*used) < LONGEST_IDLE || is_given => {
                *used = now;
                Some((line.clone(), self.number))
            }
            old => {
                *old = None;
                None
            }
        }
    }

    fn begin(&mut self, line: Line, now: Moment) -> (Line, u64) {
        self.line = Some((line.clone(), now));
        self.number += 1;
        self.silence = Silence::default();
        (line, self.number)
    }
}

impl Silence {
    /// One more caller waited in vain, from then until now: how long all of them did, not counting
    /// any moment twice.
    fn goes_on(&mut self, since: Instant) -> Duration {
        let now = Instant::now();
        let uncounted = self.until.map_or(since, |until| until.max(since));
        let waited = self.waited + now.saturating_duration_since(uncounted);
        self.waited = waited.max(now.saturating_duration_since(since));
        self.until = Some(now);
        self.waited
    }
}
