//! How a holder writes, and what it learns when a write is refused.

mod ending;

use std::{sync::Arc, time::Duration};

pub use self::ending::Ending;
use crate::{
    policy::OnCrash,
    protocol::{Claim, Meaning, numbered::HeldNumber},
    record::answers::Snapshot,
    record::{AttemptId, Draft, Holder, Moment, RawOutcome, Record, State, TokenRule, Version},
};

/// A claim that stands: what its holder needs to know to write the next version.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Holding {
    attempt: u32,
    attempt_id: AttemptId,
    holder: Holder,
    on_crash: OnCrash,
    lease: Duration,
    ttl: Duration,
    keep: Duration,
    meaning: Meaning,
    number: Option<Box<HeldNumber>>,
    /// The error for which its steps are being undone.
    undoing: Option<RawOutcome>,
}

/// The meaning of a refused ending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is still this holder's, at this version: write again over it.
    Again(Version),
    /// It stands already: the answer was lost, or another call did the same.
    Stands(Arc<Record>),
    /// Another call had it since, or it was settled; the record that stands there, if any does.
    Lost(Option<Arc<Record>>),
}

/// The meaning of a refused heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Beat {
    /// It is still this holder's, at this version: beat again over it.
    Again(Version),
    /// The holder has ended it meanwhile.
    Over,
    /// The lease is lost.
    Lost,
}

impl Holding {
    /// Begins to hold what `claim` won. `attempt` and `on_crash` are those of the version that
    /// stands.
    #[must_use]
    pub fn new(claim: &Claim, attempt: u32, on_crash: OnCrash, meaning: Meaning) -> Self {
        Self {
            attempt,
            attempt_id: claim.attempt_id,
            holder: claim.holder.clone(),
            on_crash,
            lease: claim.lease,
            ttl: claim.ttl,
            keep: claim.keep,
            meaning,
            number: None,
            undoing: None,
        }
    }

    /// The same for a number of a stream.
    pub(super) fn of_number(self, number: Option<HeldNumber>) -> Self {
        let number = number.map(Box::new);
        Self { number, ..self }
    }

    /// Goes on from the decision that the call has failed for good: its steps are being undone.
    #[must_use]
    pub fn undoing(self, error: RawOutcome) -> Self {
        Self {
            undoing: Some(error),
            ..self
        }
    }

    /// The error for which its steps are being undone; `None` where they are not.
    #[must_use]
    pub fn error(&self) -> Option<&RawOutcome> {
        self.undoing.as_ref()
    }

    /// Holds `record` as what it is: one whose steps are being undone, or any other.
    #[must_use]
    pub fn over(self, record: &Record) -> Self {
        match (record.state, &record.outcome) {
            (State::Undoing, Some(error)) => self.undoing(error.clone()),
            _ => self,
        }
    }

    /// Whether a smaller number whose holder vanished was passed.
    #[must_use]
    pub fn passes(&self) -> bool {
        self.number.as_ref().is_some_and(|number| number.passes())
    }

    /// The record, as the answer that this holder gives where its own ending is refused because of
    /// it; `None` where it has none.
    #[must_use]
    pub fn answer(&self, record: &Arc<Record>) -> Option<Arc<Record>> {
        match &self.number {
            Some(number) => number.answer(record),
            None => Some(Arc::clone(record)),
        }
    }

    /// The attempt number.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Whose claim it is.
    #[must_use]
    pub fn attempt_id(&self) -> AttemptId {
        self.attempt_id
    }

    /// How long the holder may be silent.
    #[must_use]
    pub fn lease(&self) -> Duration {
        self.lease
    }

    /// The meaning of the claim.
    #[must_use]
    pub fn meaning(&self) -> Meaning {
        self.meaning
    }

    /// How the record goes on when this holder vanishes.
    #[must_use]
    pub fn on_crash(&self) -> OnCrash {
        self.on_crash
    }

    /// Goes on from a reconciliation that answered *run again*: the same holder runs the body.
    pub fn run_again(&mut self) {
        self.meaning = Meaning::Takeover;
    }

    /// The draft that prolongs the lease.
    #[must_use]
    pub fn heartbeat(&self, version: Version) -> Draft {
        let draft = Draft {
            lease: Moment::In(self.lease),
            expires: Moment::In(self.lease.saturating_add(self.ttl)),
            ..self.draft(self.state(), version)
        };
        match &self.number {
            Some(number) => number.heartbeat(&draft),
            None => draft,
        }
    }

    /// The same once the body has answered, and only gives its answer away: a call that finds it
    /// abandoned does not run it again.
    #[must_use]
    pub fn heartbeat_of_answered(&self, version: Version) -> Draft {
        let draft = self.heartbeat(version);
        let on_crash = match draft.on_crash {
            OnCrash::Rerun => OnCrash::Uncertain,
            stricter => stricter,
        };
        Draft { on_crash, ..draft }
    }

    /// The draft that ends the holding.
    ///
    /// Only the body's own word releases what a polled body may have begun. A call that stopped
    /// without one is run again if the engineer chose that, by a takeover that counts; else it is
    /// uncertain. A takeover has done nothing if it stopped before its body was polled, or if its
    /// body says so. It then leaves what it found, because of what the holder before it may have
    /// begun: it does not count, and has no holder any more. A reconciliation has found out that
    /// the holder before it did nothing, either.
    ///
    /// A release after a body stays for as long as an outcome would. A release without a body says
    /// nothing that is asked for later, and stays for a lease.
    #[must_use]
    pub fn end(&self, ending: &Ending, version: Version) -> Draft {
        if let Some(number) = &self.number {
            return number.end(ending, &self.draft(State::Running, version));
        }
        if self.undoing.is_some() && !matches!(ending, Ending::Done(_)) {
            return self.end_undoing(ending, version);
        }
        match ending {
            Ending::Undo(error) => Draft {
                lease: Moment::In(self.lease),
                expires: Moment::In(self.lease.saturating_add(self.ttl)),
                outcome: Some(error.clone()),
                ..self.draft(State::Undoing, version)
            },
            Ending::LeftToUndo(error) => self
                .clone()
                .undoing(error.clone())
                .end_undoing(ending, version),
            Ending::NotUndone => self.draft(State::Parked, version),
            Ending::Done(outcome) => Draft {
                expires: Moment::In(self.ttl),
                outcome: Some(outcome.clone()),
                ..self.draft(State::Done, version)
            },
            Ending::Uncertain => self.draft(State::Uncertain, version),
            Ending::Unpolled if self.meaning == Meaning::Fresh => Draft {
                expires: Moment::In(self.lease),
                ..self.released(version)
            },
            Ending::Unpolled | Ending::Release if self.knows_half() => {
                self.left_to(AttemptId::NOBODY, version)
            }
            Ending::GiveBack if self.knows_half() => self.left_to(AttemptId::NOBODY, version),
            Ending::GiveBack => self.left_to(AttemptId::GIVEN_BACK, version),
            Ending::Unpolled | Ending::Release if self.meaning == Meaning::GoOn => {
                self.left_to(AttemptId::GIVEN_BACK, version)
            }
            Ending::Release => self.released(version),
            Ending::Stopped | Ending::Left if self.on_crash == OnCrash::Rerun => Draft {
                lease: Moment::In(Duration::ZERO),
                expires: Moment::In(self.ttl),
                ..self.draft(State::Running, version)
            },
            Ending::Unpolled | Ending::Stopped | Ending::Left => {
                self.draft(State::Uncertain, version)
            }
        }
    }

    /// A holder that ends in the middle leaves the rest to the next one, at once. It counts only
    /// where it panicked, as if it had vanished: callers that leave park nothing.
    fn end_undoing(&self, ending: &Ending, version: Version) -> Draft {
        let left = Draft {
            lease: Moment::In(Duration::ZERO),
            expires: Moment::In(self.ttl),
            ..self.draft(State::Undoing, version)
        };
        match ending {
            Ending::NotUndone => self.draft(State::Parked, version),
            Ending::Stopped => Draft {
                attempt_id: AttemptId::NOBODY,
                ..left
            },
            _ => Draft {
                attempt: self.attempt.saturating_sub(1),
                attempt_id: AttemptId::GIVEN_BACK,
                ..left
            },
        }
    }

    /// The meaning of an ending that was refused because of `snapshot`.
    #[must_use]
    pub fn refused(&self, ending: &Ending, snapshot: &Snapshot) -> Refusal {
        if let Some(number) = &self.number {
            return number.refused(ending, snapshot);
        }
        let Some(record) = &snapshot.record else {
            return Refusal::Lost(None);
        };
        let intended = self.end(ending, record.version);
        let leaves = *ending == Ending::Unpolled || is_nobodys(intended.attempt_id);
        // A done record without a holder was settled by an operator, perhaps for another call
        // since.
        let is_settled = record.state == State::Done;
        if leaves && is_nobodys(record.attempt_id) && !is_settled {
            return Refusal::Stands(Arc::clone(record));
        }
        if record.attempt_id != self.attempt_id {
            return Refusal::Lost(Some(Arc::clone(record)));
        }
        match (record.state, ending) {
            // Writing it again would put this holder's `on_crash` over that of a stricter caller.
            // A call that its first holder knows it never began is free all the same.
            (State::Uncertain, _)
                if matches!(intended.state, State::Uncertain | State::Running) =>
            {
                Refusal::Stands(Arc::clone(record))
            }
            (State::Running | State::Uncertain, _) => Refusal::Again(record.version),
            (State::Undoing, Ending::LeftToUndo(_)) => Refusal::Again(record.version),
            (State::Undoing, _) if self.undoing.is_some() => Refusal::Again(record.version),
            (stands, _) if stands == intended.state => Refusal::Stands(Arc::clone(record)),
            _ => Refusal::Lost(Some(Arc::clone(record))),
        }
    }

    /// The meaning of a heartbeat that was refused because of `snapshot`.
    ///
    /// A record that another call left uncertain is lost to the heartbeat, although its holder may
    /// still complete it: prolonging would turn *uncertain* back into *running*. A heartbeat from
    /// before the decision to undo does not prolong a record whose steps are being undone.
    #[must_use]
    pub fn refused_heartbeat(&self, snapshot: &Snapshot) -> Beat {
        let is_mine = |record: &&Arc<Record>| record.attempt_id == self.attempt_id;
        let Some(record) = snapshot.record.as_ref().filter(is_mine) else {
            return Beat::Lost;
        };
        match record.state {
            state if state == self.state() => Beat::Again(record.version),
            State::Done | State::Released | State::Undoing => Beat::Over,
            State::Uncertain | State::Parked | State::Running => Beat::Lost,
        }
    }

    /// Whether a holder before it may have begun something that no reconciliation has looked into.
    fn knows_half(&self) -> bool {
        !matches!(self.meaning, Meaning::Fresh | Meaning::GoOn)
            && self.on_crash != OnCrash::Reconcile
    }

    /// Leaves the record running, its lease over and its arguments bound, to the next call. This
    /// attempt does not count.
    fn left_to(&self, nobody: AttemptId, version: Version) -> Draft {
        Draft {
            lease: Moment::In(Duration::ZERO),
            expires: Moment::In(self.ttl),
            attempt: self.attempt.saturating_sub(1),
            attempt_id: nobody,
            // In a transaction the claim is stricter than what it found.
            on_crash: OnCrash::Rerun,
            ..self.draft(State::Running, version)
        }
    }

    fn released(&self, version: Version) -> Draft {
        Draft {
            expires: Moment::In(self.ttl),
            ..self.draft(State::Released, version)
        }
    }

    fn draft(&self, state: State, version: Version) -> Draft {
        Draft {
            version,
            subject: None,
            state,
            token: TokenRule::Keep,
            attempt: match (state, self.meaning) {
                // A reconciliation that found nothing out ran no body: it does not count.
                (State::Uncertain, Meaning::Reconcile) => self.attempt.saturating_sub(1),
                _ => self.attempt,
            },
            attempt_id: self.attempt_id,
            holder: self.holder.clone(),
            on_crash: self.on_crash,
            lease: Moment::Keep,
            expires: Moment::Keep,
            keep: self.keep,
            outcome: self.undoing.clone(),
            note: None,
        }
    }

    fn state(&self) -> State {
        match self.undoing {
            Some(_) => State::Undoing,
            None => State::Running,
        }
    }
}

/// Whether a holder that ended itself has left the record to the next call.
pub(super) fn is_nobodys(attempt_id: AttemptId) -> bool {
    matches!(attempt_id, AttemptId::NOBODY | AttemptId::GIVEN_BACK)
}

#[cfg(test)]
mod tests;
