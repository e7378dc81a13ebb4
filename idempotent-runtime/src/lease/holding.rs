//! What a holder writes, and what it learns when a write is refused.

use std::{sync::Arc, time::Duration};

use crate::{
    lease::{Claim, Meaning},
    policy::OnCrash,
    record::{AttemptId, Draft, Holder, Moment, RawOutcome, Record, State, TokenRule, Version},
    store::Snapshot,
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
}

/// How a holder ends.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// It records the outcome.
    Done(RawOutcome),
    /// The body's own word, by its verdict on the error it returned, that it did nothing.
    Release,
    /// The body's own word, or a reconciliation's, that nobody knows.
    Uncertain,
    /// It was dropped, or panicked, before the body was polled.
    Unpolled,
    /// It was dropped, or panicked, after the body was polled.
    Stopped,
}

/// What a refused ending means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is still one's own, at this version: write again over it.
    Again(Version),
    /// It stands already: the answer was lost, or somebody else did the same.
    Stands(Arc<Record>),
    /// Somebody else holds or held it since; what stands there, if anything does.
    Lost(Option<Arc<Record>>),
}

/// What a refused heartbeat means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Beat {
    /// It is still one's own, at this version: beat again over it.
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

    /// What the claim won.
    #[must_use]
    pub fn meaning(&self) -> Meaning {
        self.meaning
    }

    /// What becomes of the record when this holder vanishes.
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
        Draft {
            lease: Moment::In(self.lease),
            expires: Moment::In(self.lease.saturating_add(self.ttl)),
            ..self.draft(State::Running, version)
        }
    }

    /// The same once the body has answered, and only gives its answer away: who finds it abandoned
    /// does not run it again.
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
    /// Only the body's own word releases what a polled body may have begun. What stopped without
    /// one is run again where the engineer chose that, by a takeover that counts, and is
    /// uncertain elsewhere. A takeover that did nothing, because it stopped before its body was
    /// polled or by its body's word, leaves what it found, because of what the holder before it may
    /// have begun: it does not count, and is nobody's any more. A reconciliation has found out of
    /// that one, too, that it did nothing.
    ///
    /// A release after a body stays for as long as an outcome would. One without says nothing that
    /// is asked for later, and stays for a lease.
    #[must_use]
    pub fn end(&self, ending: &Ending, version: Version) -> Draft {
        match ending {
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
            Ending::Unpolled | Ending::Release if self.knows_half() => Draft {
                lease: Moment::In(Duration::ZERO),
                expires: Moment::In(self.ttl),
                attempt: self.attempt.saturating_sub(1),
                attempt_id: AttemptId::NOBODY,
                // In a transaction the claim is stricter than what it found.
                on_crash: OnCrash::Rerun,
                ..self.draft(State::Running, version)
            },
            Ending::Release => self.released(version),
            Ending::Stopped if self.on_crash == OnCrash::Rerun => Draft {
                lease: Moment::In(Duration::ZERO),
                expires: Moment::In(self.ttl),
                ..self.draft(State::Running, version)
            },
            Ending::Unpolled | Ending::Stopped => self.draft(State::Uncertain, version),
        }
    }

    /// What it means that ending was refused because of `snapshot`.
    #[must_use]
    pub fn refused(&self, ending: &Ending, snapshot: &Snapshot) -> Refusal {
        let Some(record) = &snapshot.record else {
            return Refusal::Lost(None);
        };
        let intended = self.end(ending, record.version);
        let leaves = *ending == Ending::Unpolled || intended.attempt_id == AttemptId::NOBODY;
        // What is nobody's and done, somebody has settled, perhaps for another call since.
        let is_settled = record.state == State::Done;
        if leaves && record.attempt_id == AttemptId::NOBODY && !is_settled {
            return Refusal::Stands(Arc::clone(record));
        }
        if record.attempt_id != self.attempt_id {
            return Refusal::Lost(Some(Arc::clone(record)));
        }
        match (record.state, ending) {
            // Writing it again would put this holder's `on_crash` over that of a stricter caller.
            // What a first holder knows that it never began is free all the same.
            (State::Uncertain, _)
                if matches!(intended.state, State::Uncertain | State::Running) =>
            {
                Refusal::Stands(Arc::clone(record))
            }
            (State::Running | State::Uncertain, _) => Refusal::Again(record.version),
            (stands, _) if stands == intended.state => Refusal::Stands(Arc::clone(record)),
            _ => Refusal::Lost(Some(Arc::clone(record))),
        }
    }

    /// Whether a holder before it may have begun something that no reconciliation has looked into.
    fn knows_half(&self) -> bool {
        self.meaning != Meaning::Fresh && self.on_crash != OnCrash::Reconcile
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
            outcome: None,
        }
    }
}

/// What it means that the heartbeat of `attempt_id` was refused because of `snapshot`.
///
/// A record that somebody left uncertain is lost to the heartbeat, although its holder may still
/// complete it: prolonging would turn *uncertain* back into *running*.
#[must_use]
pub fn refused_heartbeat(attempt_id: AttemptId, snapshot: &Snapshot) -> Beat {
    match &snapshot.record {
        Some(record) if record.attempt_id == attempt_id => match record.state {
            State::Running => Beat::Again(record.version),
            State::Done | State::Released => Beat::Over,
            State::Uncertain | State::Parked => Beat::Lost,
        },
        _ => Beat::Lost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        lease::{Decision, decide, first, sample},
        record::Time,
    };

    const LEASE: Duration = Duration::from_secs(30);

    fn claim(attempt_id: u128, on_crash: OnCrash) -> Claim {
        Claim {
            ttl: LEASE,
            ..sample::claim(AttemptId::from_u128(attempt_id), on_crash)
        }
    }

    #[test]
    fn an_uncertain_verdict_leaves_the_stricter_choice_of_a_caller_that_left_it_uncertain_before() {
        let start = Time::from_micros(1_000_000);
        let (lax, strict) = (claim(1, OnCrash::Rerun), claim(2, OnCrash::Uncertain));
        let begun = first(&lax, Version::from_u128(1)).apply(None, start);
        let holding = Holding::new(&lax, 1, OnCrash::Rerun, Meaning::Fresh);
        let late = Snapshot {
            now: start.plus(LEASE),
            record: Some(Arc::new(begun.clone())),
        };
        let Decision::Write { draft: left, .. } = decide(&strict, &late, || Version::from_u128(2))
        else {
            panic!("a lease that is over is not in progress")
        };
        let left = Arc::new(left.apply(Some(&begun), late.now));
        assert_eq!(
            (left.state, left.on_crash),
            (State::Uncertain, OnCrash::Uncertain)
        );

        let snapshot = Snapshot {
            now: late.now,
            record: Some(Arc::clone(&left)),
        };
        let refusal = holding.refused(&Ending::Uncertain, &snapshot);

        assert_eq!(refusal, Refusal::Stands(left));
    }

    #[test]
    fn who_never_began_frees_what_a_stricter_caller_left_uncertain_meanwhile() {
        let holding = Holding::new(
            &claim(1, OnCrash::Uncertain),
            1,
            OnCrash::Uncertain,
            Meaning::Fresh,
        );
        let left = holding.end(&Ending::Uncertain, Version::from_u128(2));
        let begun = first(&claim(1, OnCrash::Uncertain), Version::from_u128(1));
        let now = Time::from_micros(1);
        let left = left.apply(Some(&begun.apply(None, now)), now);
        let snapshot = Snapshot {
            now,
            record: Some(Arc::new(left)),
        };

        for (ending, is_free) in [
            (Ending::Unpolled, true),
            (Ending::Release, true),
            (Ending::Stopped, false),
        ] {
            let again = Refusal::Again(Version::from_u128(2));
            let refusal = holding.refused(&ending, &snapshot);
            assert_eq!(refusal == again, is_free, "{ending:?}: {refusal:?}");
        }
    }

    #[test]
    fn a_release_stays_for_the_ttl_where_a_body_ran_and_else_for_a_lease() {
        let claim = Claim {
            ttl: 24 * LEASE,
            ..claim(1, OnCrash::Rerun)
        };
        let begun = Holding::new(&claim, 1, OnCrash::Rerun, Meaning::Fresh);
        for (ending, stays) in [(Ending::Release, claim.ttl), (Ending::Unpolled, LEASE)] {
            let draft = begun.end(&ending, Version::from_u128(2));
            assert_eq!(
                (draft.state, draft.expires),
                (State::Released, Moment::In(stays))
            );
        }
    }

    #[test]
    fn what_a_holder_leaves_to_the_next_one_says_how_long_its_outcome_would_have_stayed() {
        let claim = Claim {
            ttl: LEASE / 6,
            ..claim(1, OnCrash::Rerun)
        };
        let begun = first(&claim, Version::from_u128(1)).apply(None, Time::from_micros(1));
        for (meaning, ending) in [
            (Meaning::Fresh, Ending::Stopped),
            (Meaning::Takeover, Ending::Unpolled),
            (Meaning::Takeover, Ending::Release),
        ] {
            let holding = Holding::new(&claim, 2, OnCrash::Rerun, meaning);
            let left = holding.end(&ending, Version::from_u128(2));
            let left = left.apply(Some(&begun), Time::from_micros(2));
            assert_eq!(left.ttl(), claim.ttl, "{ending:?}");
        }
    }
}
