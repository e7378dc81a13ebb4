//! Settles a record that no call can decide, on an operator's word.

use std::time::Duration;

use crate::{
    policy::OnCrash,
    protocol::{
        decide::{is_spent, with_open_undos_of},
        holding::is_nobodys,
    },
    record::{AttemptId, Draft, Moment, RawOutcome, Record, State, Time, TokenRule, Version},
};

/// The word of an operator who found out what happened to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// It came to this outcome, which answers every duplicate from now on.
    Outcome(RawOutcome),
    /// It may be tried again.
    Resume {
        /// How many takeovers a record may see before the next call parks it.
        max_takeovers: u32,
    },
    /// A step was in doubt, and is settled: the next call goes on behind it.
    GoOn,
    /// It failed for good, with this error: the next call undoes what its steps did.
    Undo(RawOutcome),
    /// Its outcome answers no duplicate any more: the next call runs.
    Invalidate,
    /// Nobody is to call it again: it was given back while undos are open, and an operator decides.
    Park,
}

/// The draft that settles `record`, or `None` if there is nothing to settle at `now`, by the
/// store's clock. Only these can be settled: an uncertain or a parked record, and one whose lease
/// is over, whether or not a call has come since that would leave it so. A record that is done, and
/// whose outcome could not be kept, can be given that outcome. Only these can be resumed:
/// a parked record, and one that the next call would park. Only a record that is done, and whose
/// outcome answers, can be invalidated. The draft is put where the version of
/// `record` stands, and stays for `keep` after it has expired.
///
/// The next version has no holder: one that was only paused finds another attempt id and has lost.
/// It binds its key for as long as the call chose, counted from now.
#[must_use]
pub fn settle(
    record: &Record,
    settlement: &Settlement,
    now: Time,
    keep: Duration,
    version: Version,
) -> Option<Draft> {
    let settled = |state| Draft {
        version,
        subject: None,
        state,
        token: TokenRule::Keep,
        attempt: record.attempt,
        attempt_id: AttemptId::NOBODY,
        holder: record.holder.clone(),
        on_crash: record.on_crash,
        lease: Moment::Keep,
        expires: Moment::In(record.ttl()),
        keep,
        outcome: None,
        note: None,
    };
    // A resumed record: no call holds it, and its budget is fresh.
    let resumed = |state, outcome| {
        let draft = Draft {
            attempt: 1,
            attempt_id: AttemptId::RESUMED,
            lease: Moment::In(Duration::ZERO),
            outcome,
            ..settled(state)
        };
        with_open_undos_of(record, draft)
    };
    let may_rerun = record.on_crash == OnCrash::Rerun;
    let was_held = matches!(record.state, State::Running | State::Undoing);
    let is_abandoned = was_held && record.lease_is_over(now) && !record.is_expired(now);
    // A record that was being undone is undone to the end, even if it was parked in the middle.
    let error = record.outcome.clone();
    match (settlement, record.state) {
        (Settlement::Outcome(outcome), state)
            if is_abandoned
                || matches!(state, State::Uncertain | State::Parked)
                || (record.lacks_outcome(now) && !outcome.is_not_replayable()) =>
        {
            Some(Draft {
                outcome: Some(outcome.clone()),
                ..settled(State::Done)
            })
        }
        (Settlement::GoOn, state)
            if state == State::Uncertain || (is_abandoned && state == State::Running) =>
        {
            let draft = Draft {
                attempt: record.attempt.saturating_sub(1),
                attempt_id: AttemptId::GIVEN_BACK,
                on_crash: OnCrash::Rerun,
                lease: Moment::In(Duration::ZERO),
                ..settled(State::Running)
            };
            Some(with_open_undos_of(record, draft))
        }
        (Settlement::Undo(error), state)
            if (is_abandoned && state == State::Running)
                || matches!(state, State::Uncertain | State::Parked) =>
        {
            Some(resumed(State::Undoing, Some(error.clone())))
        }
        (Settlement::Invalidate, State::Done)
            if !record.is_expired(now) && !record.lacks_outcome(now) =>
        {
            Some(Draft {
                expires: Moment::Keep,
                ..settled(State::Released)
            })
        }
        (Settlement::Park, State::Running)
            if is_nobodys(record.attempt_id) && record.has_open_undos() =>
        {
            Some(with_open_undos_of(record, settled(State::Parked)))
        }
        (Settlement::Resume { max_takeovers }, state)
            if state == State::Parked
                || (is_abandoned
                    && (may_rerun || state == State::Undoing)
                    && is_spent(record, *max_takeovers)) =>
        {
            Some(match error {
                Some(error) => resumed(State::Undoing, Some(error)),
                None if may_rerun => resumed(State::Running, None),
                None => resumed(State::Uncertain, None),
            })
        }
        _ => None,
    }
}
