//! Whether and when a call that may be sent again is sent again.

use std::time::Duration;

use super::{Happened, Next, Progress, Protection, StopReason, Stopped};
use crate::policy::{limits::Limits, profile::Profile};

/// The shortest pause of a call that is asked for more often than it has attempts. Pauses that were
/// meant for a few of them may be nothing at all, and a server is not to be asked as fast as it
/// answers.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);

/// A call that may be sent again, if its bounds allow.
pub(super) struct Again {
    pub(super) happened: Happened,
    /// How long the server wants to be left alone.
    pub(super) not_before: Option<Duration>,
    pub(super) is_running: bool,
}

impl Again {
    pub(super) fn next(
        self,
        profile: &Profile,
        limits: &Limits,
        progress: &Progress,
        jitter: f64,
    ) -> Next {
        // The server's word that it may be asked again does not protect what may have happened.
        if self.happened == Happened::Perhaps || progress.may_have_happened {
            match progress.protection {
                Protection::None => return Next::GiveUp(Happened::Perhaps),
                Protection::KeyOnTrial => {
                    return Next::Stop(Stopped::Unknown(StopReason::Undeclared));
                }
                Protection::Key | Protection::Method => {}
            }
        }
        let wait = self.wait(limits, progress, jitter);
        let give_up = |why| give_up(progress, self.happened, why);
        if !progress.repeatable {
            return give_up(StopReason::Body);
        }
        if self.has_had_all(limits, progress) {
            return give_up(StopReason::Attempts);
        }
        let keyed = progress.protection.is_key();
        let is_long = |asked| asked > limits.longest_retry_after;
        let is_late = progress.elapsed.saturating_add(wait) >= limits.deadline;
        match self.not_before {
            Some(asked) if keyed && (is_long(asked) || is_late) => {
                return Next::Stop(Stopped::RetryLater(asked));
            }
            asked if is_late || asked.is_some_and(is_long) => return give_up(StopReason::Deadline),
            _ => {}
        }
        if keyed && progress.key_age.saturating_add(wait) >= profile.oldest() {
            return give_up(StopReason::Age);
        }
        if !progress.budget_left && !self.is_running {
            return give_up(StopReason::Budget);
        }
        Next::RetryAfter(wait)
    }

    /// A running call is waited for, unless nothing is to be sent again at all.
    fn has_had_all(&self, limits: &Limits, progress: &Progress) -> bool {
        let is_waited_for = self.is_running && limits.attempts > 1;
        progress.counted() >= limits.attempts && !is_waited_for
    }

    /// How long to pause: never less than the server asked for, and never nothing. A server that
    /// asks for no pause would be asked without end.
    fn wait(&self, limits: &Limits, progress: &Progress, jitter: f64) -> Duration {
        let spread = limits.backoff.mul_f64(jitter.clamp(0.0, 1.0) / 2.0);
        let least = limits.backoff.mul_f64(0.5);
        let asked = self
            .not_before
            .map(|asked| asked.saturating_add(spread).max(least));
        let nth = if self.is_running {
            progress.waits.saturating_add(1)
        } else {
            progress.counted()
        };
        let pause = limits.pause(nth, jitter);
        let left = limits.deadline.saturating_sub(progress.elapsed);
        let wait = match asked {
            // A call that takes long is asked for less often, as long as there is time for that.
            Some(asked) if self.is_running && pause < left => asked.max(pause),
            Some(asked) => asked,
            // It may come to its end in what is left, though that is less than another pause.
            None if self.is_running && pause >= left => (left / 2).max(least),
            None => pause,
        };
        if self.is_running && nth >= limits.attempts {
            wait.max(SHORTEST_WAIT)
        } else {
            wait
        }
    }
}

fn give_up(progress: &Progress, happened: Happened, why: StopReason) -> Next {
    let happened = if progress.may_have_happened {
        Happened::Perhaps
    } else {
        happened
    };
    match (progress.protection, happened) {
        (Protection::Method | Protection::None, _) => Next::GiveUp(happened),
        (_, Happened::Perhaps) => Next::Stop(Stopped::Unknown(why)),
        (_, Happened::No) => Next::Stop(Stopped::Exhausted(why)),
    }
}
