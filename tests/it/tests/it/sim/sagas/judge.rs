//! Asks every promise of steps and undos of what was written, done and told.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use idempotent_runtime::record::{AttemptId, OutcomeKind, RawOutcome, State, StepState, Time};

use super::{
    plan::{Group, LEGS, Leg, Plan},
    trip::{Deed, Token, Told, What},
};
use crate::sim::{
    LEASE,
    faults::{Fault, FaultProfile},
    kept::{Entry, StepEntry},
};

/// All that is known of a simulation that is over.
pub(super) struct Evidence {
    pub(super) ledger: Vec<Entry>,
    pub(super) steps: Vec<StepEntry>,
    pub(super) deeds: Vec<Deed>,
    pub(super) told: Vec<Told>,
    pub(super) left: usize,
    pub(super) faults: Vec<Fault>,
    pub(super) budget: u32,
    pub(super) profile: FaultProfile,
    pub(super) plans: Vec<Arc<Plan>>,
}

/// The claim that drew a token.
struct Claim {
    /// Its place in the ledger.
    at: usize,
    life: Life,
    attempt: AttemptId,
}

/// A key, and when its life began.
pub(super) type Life = (u32, Time);

pub(super) fn life_of(entry: &Entry) -> Option<Life> {
    let after = entry.after.as_deref()?;
    let key = entry.token(after).0;
    Some((key, after.created))
}

impl Evidence {
    pub(super) fn judge(&self, about: &str) {
        let claims = self.claims();
        for (at, deed) in self.deeds.iter().enumerate() {
            let about = &format!("{about}: {deed:?}");
            let claim = claims.get(&deed.under);
            let claim = claim.unwrap_or_else(|| panic!("nobody claimed that: {about}"));
            match &deed.what {
                What::Began => self.judge_step(deed, claim, about),
                What::Gave(stored) => self.judge_value(deed, claim, stored, about),
                What::Undoes(value) => {
                    self.judge_undo(at, claim, value.as_deref(), about);
                }
                What::Refused | What::Panicked | What::Undone | What::NotUndone => {}
            }
        }
        self.judge_at_most_once(&claims, about);
        self.judge_writes(about);
        self.judge_ends(&claims, about);
        self.judge_undone(about);
        for told in &self.told {
            self.judge_answer(told, &format!("{about}: {told:?}"));
        }
    }

    fn claims(&self) -> HashMap<Token, Claim> {
        let mut claims = HashMap::new();
        for (at, entry) in self.ledger.iter().enumerate() {
            let (Some(after), Some(life)) = (&entry.after, life_of(entry)) else {
                continue;
            };
            let claim = || Claim {
                at,
                life,
                attempt: after.attempt_id,
            };
            claims.entry(entry.token(after)).or_insert_with(claim);
        }
        claims
    }

    /// All that the attempt must know of a step: what was written of it before the claim, and what
    /// the attempt wrote itself.
    fn known(&self, deed: &Deed, claim: &Claim) -> Option<&StepEntry> {
        let of_it = self.steps_of(claim.life, deed.leg).filter(|(at, entry)| {
            let is_own = entry.after.attempt_id == claim.attempt && *at < deed.at.steps;
            entry.writes <= claim.at || is_own
        });
        of_it.map(|(_, entry)| entry).last()
    }

    pub(super) fn steps_of(
        &self,
        life: Life,
        leg: usize,
    ) -> impl Iterator<Item = (usize, &StepEntry)> {
        let of_key = self
            .ledger
            .iter()
            .filter(move |entry| life_of(entry) == Some(life));
        let call = of_key.map(|entry| entry.id).next();
        self.steps.iter().enumerate().filter(move |(_, entry)| {
            Some(entry.call) == call && entry.life == life.1 && &*entry.after.label == LEGS[leg]
        })
    }

    /// The decision of a life: its place in the ledger, and its attempt.
    fn decision(&self, life: Life) -> Option<usize> {
        let decided = |entry: &Entry| {
            let after = entry.after.as_deref();
            life_of(entry) == Some(life) && after.is_some_and(|it| it.state == State::Undoing)
        };
        self.ledger.iter().position(decided)
    }

    /// The lease of an attempt stands by the timer of its process: this is the latest moment up to
    /// which it may believe so.
    fn judge_lease(&self, deed: &Deed, claim: &Claim, about: &str) {
        let before = &self.ledger[..deed.at.writes];
        let own = before.iter().filter(|entry| {
            let after = entry.after.as_deref();
            after.is_some_and(|after| after.attempt_id == claim.attempt)
        });
        let since = own.map(|entry| entry.since).max();
        let ends = since.unwrap_or_default() + LEASE;
        assert!(
            deed.timer < ends,
            "it began after its lease, which ended {ends:?}: {about}"
        );
    }

    fn judge_step(&self, deed: &Deed, claim: &Claim, about: &str) {
        self.judge_lease(deed, claim, about);
        if let Some(known) = self.known(deed, claim) {
            assert!(
                !matches!(known.after.state, StepState::Done | StepState::Undone),
                "a recorded step ran again: {about}: {known:?}"
            );
        }
        if let Some(decision) = self.decision(claim.life) {
            let by = self.ledger[decision].after.as_deref();
            let is_own = by.is_some_and(|by| by.attempt_id == claim.attempt);
            assert!(
                claim.at < decision && !(is_own && deed.at.writes > decision),
                "it ran forward after the decision: {about}"
            );
        }
    }

    /// The value that a step gave is the one that stands, then and from then on. One that the store
    /// did not take is known to its own attempt alone.
    fn judge_value(&self, deed: &Deed, claim: &Claim, stored: &str, about: &str) {
        let of_it = self.steps_of(claim.life, deed.leg);
        let mut of_it = of_it.take_while(|(at, _)| *at < deed.at.steps);
        let first = of_it.find(|(_, entry)| entry.after.outcome.is_some());
        let is_it = first.is_some_and(|(_, entry)| {
            let outcome = entry.after.outcome.as_ref();
            let is_own = entry.after.attempt_id == claim.attempt;
            outcome.is_some_and(|outcome| match outcome.is_not_replayable() {
                true => is_own,
                false => outcome.bytes[..] == *stored.as_bytes(),
            })
        });
        assert!(is_it, "another value stands: {about}: {first:?}");
    }

    fn judge_undo(&self, at: usize, claim: &Claim, value: Option<&str>, about: &str) {
        let deed = &self.deeds[at];
        self.judge_lease(deed, claim, about);
        let decision = self.decision(claim.life);
        assert!(
            decision.is_some_and(|decision| decision < deed.at.writes),
            "an undo before the decision: {about}: {decision:?}"
        );
        let known = self.known(deed, claim);
        let known = known.unwrap_or_else(|| panic!("an undo of nothing: {about}"));
        // The attempt does not know of an error that was written for it while the step was dropped.
        let gave = |it: &Deed| matches!(it.what, What::Gave(_)) && it.leg == deed.leg;
        let mut own = self.deeds.iter().filter(|it| it.under == deed.under);
        let is_told = known.after.attempt_id != claim.attempt || own.any(gave);
        assert!(
            known.after.is_to_be_undone() || (!is_told && value.is_none()),
            "there is nothing to undo: {about}: {known:?}"
        );
        if let Some(value) = value {
            let stored = format!("{value:?}");
            self.judge_value(deed, claim, &stored, about);
        }
        let number = |deed: &Deed| self.known(deed, claim).and_then(|known| known.after.undo);
        let undone = |it: &&Deed| it.under == deed.under && matches!(it.what, What::Undoes(_));
        if let Some(before) = self.deeds[..at].iter().rfind(undone) {
            assert!(
                number(before) > number(deed) || before.leg == deed.leg,
                "not from the latest one down: {about}: {before:?}"
            );
        }
    }

    /// Between two runs of such a step somebody said that nothing had happened.
    fn judge_at_most_once(&self, claims: &HashMap<Token, Claim>, about: &str) {
        let mut last: BTreeMap<_, &Deed> = BTreeMap::new();
        for deed in self.deeds.iter().filter(|deed| deed.what == What::Began) {
            let plan = &self.plans[deed.under.0 as usize];
            let is_it = |leg: &Leg| leg.number == deed.leg && leg.at_most_once;
            if !plan.legs().iter().any(is_it) {
                continue;
            }
            let life = claims[&deed.under].life;
            let Some(before) = last.insert((life, deed.leg), deed) else {
                continue;
            };
            let mut between = self.steps_of(life, deed.leg).filter(|(at, entry)| {
                let is_between = (before.at.steps..deed.at.steps).contains(at);
                is_between && entry.after.state == StepState::Released
            });
            assert!(
                between.next().is_some(),
                "it ran twice: {about}: {before:?} {deed:?}"
            );
        }
    }

    /// An outcome of a step stays, and so does the decision of a life.
    fn judge_writes(&self, about: &str) {
        for entry in &self.steps {
            let before = entry.before.as_ref();
            let before = before.and_then(|before| before.outcome.as_ref());
            let after = entry.after.outcome.as_ref();
            assert!(
                before.is_none() || before == after,
                "a value was changed: {about}: {entry:?}"
            );
        }
        for entry in &self.ledger {
            let (Some(before), Some(after)) = (&entry.before, &entry.after) else {
                continue;
            };
            // An operator may say what a value was that could not be kept.
            let lacked = before.outcome.as_ref();
            let lacked = lacked.is_some_and(RawOutcome::is_not_replayable);
            let is_over = before.created != after.created || before.state != State::Done;
            let stays = is_over || lacked;
            assert!(
                stays || before.outcome == after.outcome,
                "an outcome was changed: {about}: {entry:?}"
            );
            let outcome = after.outcome.as_ref();
            let settled = outcome.is_none_or(|it| it.kind == OutcomeKind::Value);
            let stays = before.state != State::Undoing || lacked || settled;
            assert!(
                stays || before.outcome == after.outcome,
                "the error of a decision was changed: {about}: {entry:?}"
            );
            let goes_on = matches!(after.state, State::Undoing | State::Parked | State::Done);
            assert!(
                before.state != State::Undoing || goes_on,
                "a decision was forgotten: {about}: {entry:?}"
            );
        }
    }

    /// Where a life that was decided ends, nothing is left to undo, or the record is parked.
    fn judge_ends(&self, claims: &HashMap<Token, Claim>, about: &str) {
        for (at, entry) in self.ledger.iter().enumerate() {
            let (Some(after), Some(life)) = (entry.after.as_deref(), life_of(entry)) else {
                continue;
            };
            let was = entry.before.as_deref().map(|before| before.state);
            if was == Some(State::Undoing) && after.state == State::Parked {
                self.judge_parked(life, about);
            }
            let failed = after.outcome.as_ref().is_some_and(RawOutcome::is_error);
            if after.state != State::Done || !failed || self.decision(life).is_none() {
                continue;
            }
            for leg in 0..LEGS.len() {
                let last = self.steps_of(life, leg).filter(|(_, it)| it.writes <= at);
                let last = last.map(|(_, entry)| entry).last();
                // The body of a step that was dropped while it was registered never ran.
                let began = |deed: &Deed| deed.what == What::Began && deed.leg == leg;
                let began = self.deeds.iter().any(|deed| {
                    began(deed) && claims.get(&deed.under).is_some_and(|it| it.life == life)
                });
                assert!(
                    !began || !last.is_some_and(|last| last.after.is_to_be_undone()),
                    "it is not undone: {about}: {last:?} {after:?}"
                );
            }
        }
    }

    fn judge_undone(&self, about: &str) {
        let ended = self.steps.iter();
        for entry in ended.filter(|it| it.after.state == StepState::Undone) {
            let undone =
                |deed: &&Deed| deed.what == What::Undone && LEGS[deed.leg] == &*entry.after.label;
            let was = entry.before.as_ref().map(|before| before.state);
            assert!(
                was == Some(StepState::Undone) || self.deeds.iter().any(|it| undone(&it)),
                "nothing undid it: {about}: {entry:?}"
            );
        }
    }

    /// If everything comes through, and nobody fails, callers who leave park nothing.
    fn judge_parked(&self, life: Life, about: &str) {
        let plan = &self.plans[life.0 as usize];
        let panics = self
            .faults
            .iter()
            .filter(|it| **it == Fault::Panics)
            .count();
        // A body that lost a race, and went on, may not come there again once the raced step
        // failed.
        let fails = |leg: &Leg| self.has_outcome(life, leg, RawOutcome::is_error);
        let is_raced = |group: &Group| matches!(group, Group::Raced(leg, _) if fails(leg));
        // No takeover comes behind a step whose value could not be kept.
        let is_hidden = |leg: &Leg| self.has_outcome(life, leg, RawOutcome::is_not_replayable);
        let turns = plan.groups.iter().any(is_raced) || plan.legs().iter().any(is_hidden);
        let is_sound = !turns && !plan.undos_fail && !plan.panics && !plan.changes;
        assert!(
            !is_sound || self.profile != FaultProfile::Mild || panics > self.budget as usize,
            "parked without a failure: {about}: {life:?} {plan:?}"
        );
    }

    fn has_outcome(&self, life: Life, leg: &Leg, is_it: fn(&RawOutcome) -> bool) -> bool {
        let mut steps = self.steps_of(life, leg.number);
        steps.any(|(_, entry)| entry.after.outcome.as_ref().is_some_and(is_it))
    }
}
