//! The state machine's decision about a record, as an admission.

use std::{sync::Arc, time::Duration};

use super::{
    Admission, Admitting,
    refusal::{damaged, number_of},
};
use crate::{
    attempt::is_own,
    error::Error,
    outcome::OutOfOrder,
    protocol::{self, Claim, ClaimDecision, Meaning, first, sequence::StoredStream},
    record::{Draft, Record, State, Time, Version},
    run::held::ClaimGrant,
    store::Snapshot,
};

/// How long it is until the next look whether an outcome is written at last.
const UNWRITTEN: Duration = Duration::from_millis(100);

/// How long it is until a new try is worth it beside a larger number, which goes first.
const OVERTAKEN: Duration = Duration::from_secs(1);

/// The step that follows a decision.
pub(in crate::drive::run) enum Next {
    Write(Box<Plan>),
    Wait(Arc<Record>, Duration),
    /// Tells which steps could not be undone.
    NotUndone(Arc<Record>),
    /// Waits until this number has ended.
    WaitForGap(u64),
    Done(Admission),
}

/// The next write.
pub(in crate::drive::run) struct Plan {
    pub(in crate::drive::run) seen: Option<Version>,
    pub(in crate::drive::run) draft: Draft,
    pub(in crate::drive::run) meaning: Meaning,
}

impl Plan {
    /// The first write of a claim, over nothing. If that may be wrong, it is sent over a version
    /// that never stands: the refusal shows the version that does.
    pub(in crate::drive::run) fn begin(claim: &Claim) -> Self {
        let (seen, draft) = match claim.opening(Version::random()) {
            Some(draft) => (None, draft),
            None => (Some(Version::random()), first(claim, Version::random())),
        };
        Self {
            seen,
            draft,
            meaning: Meaning::Fresh,
        }
    }

    /// The plan that follows a decision.
    fn next(seen: Option<Version>, draft: Draft, meaning: Meaning) -> Next {
        let plan = Self {
            seen,
            draft,
            meaning,
        };
        Next::Write(Box::new(plan))
    }
}

impl Admitting<'_> {
    /// Decides. It takes over nothing that this handle has run and whose outcome could not be
    /// written: the store was out of reach for longer than the lease.
    pub(super) fn decide_here(&mut self, snapshot: &Snapshot, sent_at: Duration) -> Next {
        match (self.decide(snapshot, sent_at), &snapshot.record) {
            (Next::Write(_), Some(record)) if self.flushes_ending(record) => {
                self.bound = true;
                Next::Wait(Arc::clone(record), UNWRITTEN)
            }
            (next, _) => next,
        }
    }

    /// Requests the write of the outcome of a call that has run here; whether there is one.
    pub(super) fn flushes_ending(&self, record: &Record) -> bool {
        let heartbeats = self.request.handle.engine().heartbeats();
        matches!(record.state, State::Running | State::Undoing)
            && heartbeats.flush_ending(record.attempt_id)
    }

    pub(in crate::drive::run) fn decide(&mut self, snapshot: &Snapshot, sent_at: Duration) -> Next {
        let refused = |error: Error| Next::Done(error.into());
        let decision = match self.claim.next(snapshot, Version::random) {
            protocol::Next::Decided(decision) => decision,
            protocol::Next::Past(last) => {
                return Next::Done(Admission::OutOfOrder(OutOfOrder::Past { last }));
            }
            protocol::Next::Gap(expected) => return Next::Done(self.gap(expected)),
            protocol::Next::AwaitGap(expected) => return Next::WaitForGap(expected),
            protocol::Next::Overtaken(record) => {
                return refused(self.in_progress(&record, snapshot.now, OVERTAKEN));
            }
            protocol::Next::Damaged => return refused(damaged()),
        };
        match decision {
            ClaimDecision::Write {
                seen,
                draft,
                meaning,
            } => {
                self.bound = meaning != Meaning::Fresh;
                let before = snapshot.record.as_ref().filter(|_| self.bound);
                self.before = before.and_then(|it| it.holder.trace_parent.clone());
                self.goes_on |= meaning == Meaning::GoOn;
                Plan::next(seen, draft, meaning)
            }
            ClaimDecision::Mine(record)
                if record.lease_is_over(self.latest(snapshot.now, sent_at)) =>
            {
                let renewal = self.claim.renewal(&record, Version::random());
                let meaning = Meaning::won(&record, self.goes_on);
                Plan::next(Some(record.version), renewal, meaning)
            }
            ClaimDecision::Mine(record) => {
                // An earlier try of this claim stands, so its lease has begun earlier, too.
                let left = record.lease_end.since(snapshot.now);
                let gone = self.claim.lease.saturating_sub(left);
                let won = ClaimGrant {
                    id: self.id,
                    version: record.version,
                    token: record.token,
                    attempt: record.attempt,
                    on_crash: record.on_crash,
                    meaning: Meaning::won(&record, self.goes_on),
                    error: record.outcome.clone(),
                    keeps_undos: record.has_open_undos(),
                    stream: StoredStream::read(&record).ok(),
                    sent_at: sent_at.saturating_sub(gone),
                };
                Next::Done(Admission::Run(self.run(&won)))
            }
            // It holds the record through another handle over the same store.
            ClaimDecision::InProgress(record, _) if is_own(record.attempt_id) => {
                Next::Done(self.recursive())
            }
            ClaimDecision::InProgress(record, left) => {
                self.bound = true;
                Next::Wait(record, left)
            }
            ClaimDecision::Replay(record) => Next::Done(Admission::Recorded {
                record,
                now: snapshot.now,
                waited: self.waited,
            }),
            ClaimDecision::KeyReused(record) => refused(self.key_reused(&record)),
            ClaimDecision::Uncertain(record) => refused(self.uncertain(number_of(&record))),
            ClaimDecision::Expired(_) => {
                let operation = self.operation();
                refused(Error::Expired { operation })
            }
            ClaimDecision::Parked(record) if record.outcome.is_some() && !record.is_stream() => {
                Next::NotUndone(record)
            }
            ClaimDecision::Parked(record) => {
                refused(self.parked(record.attempt, number_of(&record)))
            }
        }
    }

    /// The latest time that it can be by the store's clock, which told this time after something
    /// was sent then.
    pub(super) fn latest(&self, server_time: Time, sent_at: Duration) -> Time {
        server_time.plus(self.request.handle.timer().now().saturating_sub(sent_at))
    }
}

/// Whether a claim begins a call, over nothing that binds it.
pub(super) fn is_fresh(decision: &ClaimDecision) -> bool {
    matches!(
        decision,
        ClaimDecision::Write {
            meaning: Meaning::Fresh,
            ..
        }
    )
}
