//! The end of a number that no call can decide, on an operator's word. Nothing here moves a number
//! back.

use std::time::Duration;

use super::{Applied, BegunNumber, CopyAnswer, LastChange, NumberState, Stream, StreamDraft};
use crate::{
    fingerprint::Fingerprint,
    policy::OnCrash,
    record::{AttemptId, FencingToken, Moment, OutcomeKind, Time, TokenRule, Version},
};

/// The word of an operator who found out what happened to a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamSettlement {
    /// It came to an outcome of this kind: the number moves.
    Done(OutcomeKind),
    /// It did not happen, and no holder of it is alive that may still do it: it is free again. Only
    /// for an uncertain one.
    Released,
    /// It may be tried again. Only for a parked one, and one that the next call would park.
    Resumed {
        /// How many takeovers a number may see before the next call parks it.
        max_takeovers: u32,
    },
}

/// The draft that settles `number`, or `None` where it is not what stands, or there is nothing to
/// settle at `now`.
///
/// The next version has no holder: one that was only paused has lost.
#[must_use]
pub fn settle(
    stream: &Stream,
    number: u64,
    settlement: &StreamSettlement,
    now: Time,
    version: Version,
) -> Option<StreamDraft> {
    if let StreamSettlement::Done(kind) = settlement
        && let Some(last) = stream.last.filter(|last| last.number == number)
    {
        return kept_after_all(stream, last, *kind, now, version);
    }
    let running = stream.running.filter(|running| running.number == number)?;
    let is_abandoned = is_abandoned(stream, &running, now);
    let may_rerun = running.on_crash == OnCrash::Rerun;
    match (settlement, running.state) {
        (StreamSettlement::Done(kind), state) if is_abandoned || state != NumberState::Running => {
            Some(ended(stream, running, CopyAnswer::Recorded(*kind), version))
        }
        (StreamSettlement::Released, NumberState::Uncertain) => Some(StreamDraft {
            running: running.put_back(),
            lease: Moment::In(Duration::ZERO),
            ..settled(stream, version)
        }),
        (StreamSettlement::Resumed { max_takeovers }, state)
            if state == NumberState::Parked
                || (is_abandoned
                    && may_rerun
                    && running.is_spent(stream.attempt_id, *max_takeovers)) =>
        {
            Some(resumed(stream, running, version))
        }
        _ => None,
    }
}

/// Gives the last number the outcome that could not be kept. A holder writes the last outcome with
/// everything that it writes, so that none may be alive.
fn kept_after_all(
    stream: &Stream,
    last: Applied,
    kind: OutcomeKind,
    now: Time,
    version: Version,
) -> Option<StreamDraft> {
    let is_held = stream
        .running
        .is_some_and(|running| running.state == NumberState::Running);
    let may_be_kept = last.lacks_outcome() && kind != OutcomeKind::NotReplayable;
    (may_be_kept && !is_held && !stream.is_expired(now)).then(|| StreamDraft {
        last: LastChange::Moves(Applied {
            answer: CopyAnswer::Recorded(kind),
            ..last
        }),
        ..stream.touched(version)
    })
}

/// A number that may not run again is not resumed: it becomes uncertain.
fn resumed(stream: &Stream, running: BegunNumber, version: Version) -> StreamDraft {
    let state = if running.on_crash == OnCrash::Rerun {
        NumberState::Running
    } else {
        NumberState::Uncertain
    };
    StreamDraft {
        running: Some(BegunNumber {
            state,
            takeovers: 0,
            ..running
        }),
        attempt_id: AttemptId::RESUMED,
        lease: Moment::In(Duration::ZERO),
        ..settled(stream, version)
    }
}

/// The draft that uses up `number`, or `None` where it is not what stands. It is parked, or its
/// holder vanished and it may run again, as one that fails after each takeover. The operator's
/// reason is for the event.
#[must_use]
pub fn skip(stream: &Stream, number: u64, now: Time, version: Version) -> Option<StreamDraft> {
    let running = stream.running.filter(|running| running.number == number)?;
    let may_rerun = running.on_crash == OnCrash::Rerun && is_abandoned(stream, &running, now);
    let is_skipped = running.state == NumberState::Parked || may_rerun;
    is_skipped.then(|| ended(stream, running, CopyAnswer::Skipped, version))
}

fn is_abandoned(stream: &Stream, running: &BegunNumber, now: Time) -> bool {
    running.state == NumberState::Running && stream.lease_is_over(now) && !stream.is_expired(now)
}

/// A number that no call holds, as an operator names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextNumber {
    /// The number.
    pub number: u64,
    /// Must be equal in a copy.
    pub fingerprint: Fingerprint,
    /// The number with which the stream begins; `None` where any larger one may follow the last.
    pub first: Option<u64>,
    /// Whether calls of it are known to have failed. Without a first number, only such a one is
    /// ended: any other would take all smaller ones along.
    pub has_failed: bool,
    /// How long the stream binds calls after it; `None` for as long as before.
    pub expires_after: Option<Duration>,
}

/// The draft that ends the next number, where none is held or must be settled. `None` where it is
/// not the next one. A call of it that comes meanwhile moves the version.
#[must_use]
pub fn end_next(
    stream: Option<&Stream>,
    next: &NextNumber,
    answer: CopyAnswer,
    now: Time,
    version: Version,
) -> Option<StreamDraft> {
    let counted = stream.filter(|stream| !stream.is_expired(now));
    let last = match counted {
        Some(stream) if stream.running.is_some() => return None,
        Some(stream) => stream.last.map(|last| last.number),
        None => None,
    };
    let is_next = match next.first {
        Some(first) => last.map_or(Some(first), |last| last.checked_add(1)) == Some(next.number),
        None => next.has_failed && last < Some(next.number),
    };
    let as_before = || counted.and_then(|it| Some(it.expires?.since(it.lease_end)));
    is_next.then(|| StreamDraft {
        version,
        token: TokenRule::Above(stream.map_or(FencingToken::from_u64(0), |stream| stream.token)),
        last: LastChange::Moves(Applied {
            number: next.number,
            fingerprint: next.fingerprint,
            answer,
        }),
        running: None,
        attempt_id: AttemptId::NOBODY,
        lease: Moment::In(Duration::ZERO),
        expires: next.expires_after.or_else(as_before).map(Moment::In),
    })
}

fn ended(
    stream: &Stream,
    running: BegunNumber,
    answer: CopyAnswer,
    version: Version,
) -> StreamDraft {
    StreamDraft {
        last: LastChange::Moves(Applied {
            number: running.number,
            fingerprint: running.fingerprint,
            answer,
        }),
        running: None,
        ..settled(stream, version)
    }
}

fn settled(stream: &Stream, version: Version) -> StreamDraft {
    StreamDraft {
        attempt_id: AttemptId::NOBODY,
        // The time in which the outcome was unknown does not count.
        expires: stream
            .expires
            .map(|expires| Moment::In(expires.since(stream.lease_end))),
        ..stream.touched(version)
    }
}
