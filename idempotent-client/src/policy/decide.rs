//! The decision after an attempt: the whole policy, without a request, a clock or a random number
//! of its own.

mod again;
mod judge;

use std::time::Duration;

use http::StatusCode;

use self::{
    again::Again,
    judge::{Judgement, judge},
};
use crate::policy::limits::Limits;
use crate::policy::profile::Profile;
use crate::policy::redirect;
use crate::problem::Problem;
use idempotent_runtime::wire::Kind;

/// The result of one attempt, as it was observed.
#[derive(Clone, Debug)]
pub(crate) enum Observed {
    /// The server answered.
    Answer(Answered),
    /// No connection came about, so the server saw nothing.
    NotSent,
    /// The connection was cut, or the wait ended, after bytes had left: the server may have done
    /// everything.
    Lost,
    /// The attempt will fail in the same way again, such as for a certificate or a redirect that
    /// leads nowhere.
    Hopeless,
    /// Another middleware failed for a reason of its own, or gave up, before it sent the call or
    /// afterwards.
    Failed,
}

/// The part of an answer that decides.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answered {
    /// Its status.
    pub(crate) status: StatusCode,
    /// It says of itself that it is a recorded one.
    pub(crate) replayed: bool,
    /// It says that nothing happened, and that its key is free.
    pub(crate) released: bool,
    /// It says that it is about this attempt alone, and that one before it may have acted.
    pub(crate) open: bool,
    /// It tells of another address, which the answer to the call itself led on to.
    pub(crate) led_here: bool,
    /// How long the next attempt is to wait.
    pub(crate) retry_after: Option<Duration>,
    /// The word of a vendor's header about asking again.
    pub(crate) verdict: Option<bool>,
    /// The problem in its body.
    pub(crate) problem: Problem,
}

/// How far a call has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    /// How many attempts there were.
    pub(crate) attempts: u32,
    /// How many of them were answered that the call is running, this one left aside.
    pub(crate) waits: u32,
    /// How long the call has taken.
    pub(crate) elapsed: Duration,
    /// How old its key is.
    pub(crate) key_age: Duration,
    /// It has a key, whatever that means to the server.
    pub(crate) keyed: bool,
    /// How it is protected.
    pub(crate) protection: Protection,
    /// It deletes.
    pub(crate) deletes: bool,
    /// An attempt may have taken effect, this one left aside.
    pub(crate) may_have_happened: bool,
    /// An attempt was led on to another address: what was answered there is about that address.
    pub(crate) led_on: bool,
    /// It was told once that it came too early.
    pub(crate) was_early: bool,
    /// Its body can be sent again.
    pub(crate) repeatable: bool,
    /// The origin has a retry left.
    pub(crate) budget_left: bool,
}

impl Progress {
    /// How many attempts count.
    fn counted(&self) -> u32 {
        self.attempts.saturating_sub(self.waits)
    }
}

/// The reason why it is safe to send a call again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protection {
    /// A key, which the server honours.
    Key,
    /// A key that may mean nothing to the server.
    KeyOnTrial,
    /// The method, which may be repeated by definition.
    Method,
    /// Nothing.
    None,
}

impl Protection {
    pub(crate) fn is_key(self) -> bool {
        matches!(self, Protection::Key | Protection::KeyOnTrial)
    }

    /// A call that may have happened may be sent again.
    pub(crate) fn repeats(self) -> bool {
        matches!(self, Protection::Key | Protection::Method)
    }
}

/// The next thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Hand the answer, or the error, to the caller: it is what happened.
    Return,
    /// Hand the last answer, or the error, to the caller, because there is nothing else to hand
    /// over: it does not tell what happened.
    GiveUp(Happened),
    /// Send the same bytes with the same key after this long.
    RetryAfter(Duration),
    /// Stop, and tell the caller.
    Stop(Stopped),
}

impl Next {
    /// The pause before the next attempt, if there is to be one.
    pub(crate) fn pause(&self) -> Option<Duration> {
        match self {
            Next::RetryAfter(pause) => Some(*pause),
            Next::Return | Next::GiveUp(_) | Next::Stop(_) => None,
        }
    }
}

/// Why a call stops without an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// The key belongs to another request.
    KeyReused,
    /// It is unknown whether it happened.
    Unknown(StopReason),
    /// It did not happen.
    Exhausted(StopReason),
    /// The server wants to be asked later than the limits allow.
    RetryLater(Duration),
    /// It happened, and its response is not to be had.
    ResultGone,
    /// The server does not honour keys here, and did nothing.
    Unsupported,
}

/// Why a call is not sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// It had all its attempts.
    Attempts,
    /// Its deadline is over, or would be before the next attempt.
    Deadline,
    /// The origin has had all the retries that its budget allows.
    Budget,
    /// It is unknown whether the server honours keys.
    Undeclared,
    /// Its body was a stream, and is gone.
    Body,
    /// Its failure was recorded: sending it again replays that.
    Recorded,
    /// The server says that it does not know either, or that asking again is no use.
    Server,
    /// The server may have forgotten its key, and would take it for a new one.
    Age,
    /// Sending it again would fail in the same way.
    Hopeless,
    /// Another middleware failed for a reason of its own, and may have sent it before.
    Middleware,
    /// The server, or a proxy before it, did not let a later attempt through, such as with 401 or
    /// 501: that says nothing about the earlier one. The same holds for a failure of the address
    /// that it was led on to, and for a later attempt to delete that finds nothing. It also holds
    /// for an answer that says of itself that it is [about one attempt
    /// alone](crate::KeyStatus::Open).
    Refused,
    /// The server said with 301 or 302 that its target is elsewhere, and not whether it was carried
    /// out: the `Location` stands in the last answer.
    Moved,
    /// It did nothing here, but the journal may hold it as one to be sent: another process took it
    /// up, or the journal could not be told, or did not answer before the deadline. The same is
    /// said if it was taken out of the journal while it was made.
    Journal,
}

/// Decides what to do after an attempt. `jitter` is a random number from 0 to 1.
#[must_use]
pub(crate) fn decide(
    profile: &Profile,
    limits: &Limits,
    progress: &Progress,
    observed: &Observed,
    jitter: f64,
) -> Next {
    match judge(profile, progress, observed) {
        Judgement::Known => Next::Return,
        // The method protects this one, and its key resumes it.
        Judgement::Stop(Stopped::Unknown(StopReason::Refused)) if progress.keyed => {
            Next::Stop(Stopped::Unknown(StopReason::Refused))
        }
        // Without a key there is nothing to resume: the last answer says all there is.
        Judgement::Stop(_) if !progress.protection.is_key() => Next::GiveUp(Happened::Perhaps),
        Judgement::Stop(stopped) => Next::Stop(stopped),
        Judgement::Again {
            happened,
            not_before,
        } => {
            let again = Again {
                happened,
                not_before,
                is_running: observed.is_running(),
            };
            again.next(profile, limits, progress, jitter)
        }
    }
}

impl Answered {
    /// The request was not let through, so that the answer is about this attempt alone. A recorded
    /// answer is about the attempt that ran.
    fn refuses(&self) -> bool {
        let refuses = is_refusal(self.status, self.problem.kind);
        let is_unsupported = self.status == StatusCode::NOT_IMPLEMENTED
            || self.problem.kind == Some(Kind::NotSupported);
        !self.replayed && (refuses || is_unsupported)
    }

    /// A condition does not hold, or nothing is there to be deleted, and the attempt before may
    /// have seen to that. A server that honours keys would answer with the result of that one.
    fn may_come_of_the_call(&self, progress: &Progress) -> bool {
        let by_method = progress.protection == Protection::Method;
        let is_gone = matches!(self.status, StatusCode::NOT_FOUND | StatusCode::GONE);
        let is_done = self.status == StatusCode::PRECONDITION_FAILED || progress.deletes && is_gone;
        by_method && !self.replayed && is_done
    }

    /// The call belongs to another address. By the letter nothing was done, but many a server means
    /// 303 by it.
    fn moves(&self) -> bool {
        !self.replayed && !self.led_here && redirect::is_elsewhere(self.status)
    }
}

/// The statuses by which a request is not let through.
const REFUSALS: [u16; 17] = [
    307, 308, 401, 403, 405, 407, 411, 413, 414, 415, 417, 421, 425, 426, 428, 429, 431,
];

/// The server, or a proxy before it, did not let the request through, and nothing ran.
pub(crate) fn is_refusal(status: StatusCode, kind: Option<Kind>) -> bool {
    let by_kind = matches!(
        kind,
        Some(
            Kind::KeyMissing
                | Kind::KeyInvalid
                | Kind::ScopeUnresolved
                | Kind::BodyTooLarge
                | Kind::Misconfigured
        )
    );
    let status = status.as_u16();
    by_kind && status >= 400 || REFUSALS.contains(&status)
}

impl Observed {
    /// The server says plainly that the call is running: it is up, and is asked again, however
    /// often, until the call is done.
    #[must_use]
    pub(crate) fn is_running(&self) -> bool {
        let Observed::Answer(answer) = self else {
            return false;
        };
        let stripe = answer.problem.stripe.as_ref();
        let code = stripe.and_then(|stripe| stripe.code.as_deref());
        answer.status.as_u16() >= 400
            && match answer.problem.kind {
                Some(kind) => kind == Kind::RequestInProgress,
                None => code == Some("idempotency_key_in_use"),
            }
    }

    /// Whether the server may have done what it was asked, without having said how it ended.
    #[must_use]
    pub(crate) fn may_have_happened(&self, profile: &Profile, progress: &Progress) -> bool {
        match judge(profile, progress, self) {
            Judgement::Again { happened, .. } => happened == Happened::Perhaps,
            Judgement::Stop(stopped) => matches!(stopped, Stopped::Unknown(_)),
            Judgement::Known => false,
        }
    }
}

/// Whether a call without an outcome may have taken effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    No,
    Perhaps,
}

/// Decides anew after a pause, which may have been longer than it was meant to be: timers stand
/// still while a machine sleeps.
#[must_use]
pub(crate) fn too_old(profile: &Profile, progress: &Progress) -> Option<Stopped> {
    let is_too_old = progress.protection.is_key() && progress.key_age >= profile.oldest();
    is_too_old.then_some(if progress.may_have_happened {
        Stopped::Unknown(StopReason::Age)
    } else {
        Stopped::Exhausted(StopReason::Age)
    })
}

/// Decides before the first attempt, for which there may be no time left: reading the body and
/// writing the call down take some.
#[must_use]
pub(crate) fn too_late(deadline: Duration, progress: &Progress) -> Option<Stopped> {
    (progress.elapsed >= deadline).then_some(if progress.may_have_happened {
        Stopped::Unknown(StopReason::Deadline)
    } else {
        Stopped::Exhausted(StopReason::Deadline)
    })
}

#[cfg(test)]
#[path = "decide/tests.rs"]
mod tests;
