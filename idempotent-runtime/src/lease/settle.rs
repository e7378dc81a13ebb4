//! What becomes of a record that no call can decide, on somebody's word.

use std::time::Duration;

use crate::{
    policy::OnCrash,
    record::{AttemptId, Draft, Moment, RawOutcome, Record, State, TokenRule, Version},
};

/// What somebody says of a call who found out what happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// It came to this outcome, which answers every duplicate from now on.
    Outcome(RawOutcome),
    /// A parked record may be tried again.
    Resume,
}

/// The draft that settles `record`, or `None` where there is nothing to settle: only an uncertain or a parked record can be settled,
/// and only a parked one resumed. It is put where the version of `record` stands, and stays for `keep` after it has expired.
///
/// The next version is nobody's: a holder that was only paused finds another attempt id and has lost. It binds its key for as long as
/// the call chose, counted from now.
#[must_use]
pub fn settle(
    record: &Record,
    settlement: &Settlement,
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
    };
    match (settlement, record.state) {
        (Settlement::Outcome(outcome), State::Uncertain | State::Parked) => Some(Draft {
            outcome: Some(outcome.clone()),
            ..settled(State::Done)
        }),
        (Settlement::Resume, State::Parked) => {
            let state = match record.on_crash {
                OnCrash::Rerun => State::Running,
                OnCrash::Reconcile | OnCrash::Uncertain => State::Uncertain,
            };
            Some(Draft {
                attempt: 1,
                attempt_id: AttemptId::RESUMED,
                lease: Moment::In(Duration::ZERO),
                ..settled(state)
            })
        }
        _ => None,
    }
}
