//! The end of a number that no call can decide, on an operator's word. Nothing here moves a number
//! back.

use std::time::Duration;

use super::{Answer, Applied, Draft, Last, Running, Standing, Stream};
use crate::{
    policy::OnCrash,
    record::{AttemptId, Moment, OutcomeKind, Time, Version},
};

/// The word of an operator who found out what happened to a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
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
    settlement: &Settlement,
    now: Time,
    version: Version,
) -> Option<Draft> {
    if let Settlement::Done(kind) = settlement
        && let Some(last) = stream.last.filter(|last| last.number == number)
    {
        return kept_after_all(stream, last, *kind, now, version);
    }
    let running = stream.running.filter(|running| running.number == number)?;
    let is_abandoned =
        running.state == Standing::Running && stream.lease_is_over(now) && !stream.is_expired(now);
    let may_rerun = running.on_crash == OnCrash::Rerun;
    match (settlement, running.state) {
        (Settlement::Done(kind), state) if is_abandoned || state != Standing::Running => {
            Some(ended(stream, running, Answer::Recorded(*kind), version))
        }
        (Settlement::Released, Standing::Uncertain) => Some(Draft {
            running: running.put_back(),
            lease: Moment::In(Duration::ZERO),
            ..settled(stream, version)
        }),
        (Settlement::Resumed { max_takeovers }, state)
            if state == Standing::Parked
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
) -> Option<Draft> {
    let is_held = stream
        .running
        .is_some_and(|running| running.state == Standing::Running);
    let may_be_kept = last.lacks_outcome() && kind != OutcomeKind::NotReplayable;
    (may_be_kept && !is_held && !stream.is_expired(now)).then(|| Draft {
        last: Last::Moves(Applied {
            answer: Answer::Recorded(kind),
            ..last
        }),
        ..stream.touched(version)
    })
}

/// A number that may not run again is not resumed: it becomes uncertain.
fn resumed(stream: &Stream, running: Running, version: Version) -> Draft {
    let state = if running.on_crash == OnCrash::Rerun {
        Standing::Running
    } else {
        Standing::Uncertain
    };
    Draft {
        running: Some(Running {
            state,
            takeovers: 0,
            ..running
        }),
        attempt_id: AttemptId::RESUMED,
        lease: Moment::In(Duration::ZERO),
        ..settled(stream, version)
    }
}

/// The draft that uses up a parked `number`, or `None` where it is not what stands, or is not
/// parked. The operator's reason is for the event.
#[must_use]
pub fn skip(stream: &Stream, number: u64, version: Version) -> Option<Draft> {
    let is_parked =
        |running: &Running| running.number == number && running.state == Standing::Parked;
    let running = stream.running.filter(is_parked)?;
    Some(ended(stream, running, Answer::Skipped, version))
}

fn ended(stream: &Stream, running: Running, answer: Answer, version: Version) -> Draft {
    Draft {
        last: Last::Moves(Applied {
            number: running.number,
            fingerprint: running.fingerprint,
            answer,
        }),
        running: None,
        ..settled(stream, version)
    }
}

fn settled(stream: &Stream, version: Version) -> Draft {
    Draft {
        attempt_id: AttemptId::NOBODY,
        // The time in which the outcome was unknown does not count.
        expires: stream
            .expires
            .map(|expires| Moment::In(expires.since(stream.lease_end))),
        ..stream.touched(version)
    }
}
