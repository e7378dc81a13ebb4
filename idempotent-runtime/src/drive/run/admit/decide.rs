//! The state machine's decision about a record, as an admission.

use std::{sync::Arc, time::Duration};

use super::{
    Admission, Admitting, Plan,
    refusal::{damaged, number_of},
};
use crate::{
    attempt::is_own,
    error::Error,
    outcome::OutOfOrder,
    protocol::{self, ClaimDecision, Meaning, sequence::StoredStream},
    record::{Record, State, Time, Version},
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
        let refused = |error| Next::Done(Admission::Refused(error));
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
                self.goes_on |= meaning == Meaning::GoOn;
                Next::Write(Box::new(Plan {
                    seen,
                    draft,
                    meaning,
                }))
            }
            ClaimDecision::Mine(record)
                if record.lease_is_over(self.latest(snapshot.now, sent_at)) =>
            {
                Next::Write(Box::new(Plan {
                    seen: Some(record.version),
                    draft: self.claim.renewal(&record, Version::random()),
                    meaning: Meaning::won(&record, self.goes_on),
                }))
            }
            ClaimDecision::Mine(record) => {
                // An earlier try of this claim stands, so its lease has begun earlier, too.
                let gone = self
                    .claim
                    .lease
                    .saturating_sub(record.lease_end.since(snapshot.now));
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
            ClaimDecision::KeyReused(record) => {
                Next::Done(Admission::Refused(self.key_reused(&record)))
            }
            ClaimDecision::Uncertain(record) => Next::Done(Admission::Refused(Error::Uncertain {
                operation: self.operation(),
                id: self.id,
                number: number_of(&record),
            })),
            ClaimDecision::Expired(_) => Next::Done(Admission::Refused(Error::Expired {
                operation: self.operation(),
            })),
            ClaimDecision::Parked(record) if record.outcome.is_some() && !record.is_stream() => {
                Next::NotUndone(record)
            }
            ClaimDecision::Parked(record) => {
                let number = number_of(&record);
                Next::Done(Admission::Refused(self.parked(record.attempt, number)))
            }
        }
    }

    /// The latest time that it can be by the store's clock, which told this time after something
    /// was sent then.
    pub(super) fn latest(&self, server_time: Time, sent_at: Duration) -> Time {
        server_time.plus(self.request.handle.timer().now().saturating_sub(sent_at))
    }
}
