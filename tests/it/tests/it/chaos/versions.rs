//! Checks the promises of the protocol for every write and look.

use std::collections::{BTreeMap, HashMap, HashSet};

use idempotent_runtime::{
    OnCrash,
    identity::RecordId,
    record::{AttemptId, OutcomeKind, Record, State, Time, TokenRule},
};

use super::{
    callers::{Deed, What},
    case::{Case, Stood, key_of},
    witness::{Write, versions},
};
use crate::scripts::Say;

impl Case<'_> {
    /// V3, V4, V12: each version is written over once, tokens grow, and only records that are not
    /// needed are gone.
    pub(super) fn judge_versions(&self) {
        let mut over = HashSet::new();
        for one in &self.stood {
            let Stood { write, after, .. } = one;
            let key = key_of(after);
            let holds = |holds: bool, says: &str| self.holds(holds, says, key);
            if let Some(seen) = write.seen {
                holds(
                    over.insert((write.id, seen)),
                    "V3, two writes over one version",
                );
                holds(
                    one.before.is_some(),
                    "something stands over what never stood",
                );
            }
            if let (TokenRule::Above(_), Some(answered)) = (write.draft.token, one.answered()) {
                let later = |other: &&Stood<'_>| {
                    other.write.id == write.id && other.write.sent > answered && other.draws()
                };
                for other in self.stood.iter().filter(later) {
                    holds(other.after.token > after.token, "V4, a token did not grow");
                }
            }
        }
        let mut chains = BTreeMap::<RecordId, usize>::new();
        let mut ends = BTreeMap::<RecordId, usize>::new();
        let unknown: HashSet<_> = {
            let open = |write: &&Write| write.stamp().is_none() && !write.is_refused();
            let open = self.pages.writes.iter().filter(open);
            open.filter_map(|write| write.seen).collect()
        };
        for Stood { write, after, .. } in &self.stood {
            if write.seen.is_none() {
                *chains.entry(write.id).or_default() += 1;
            }
            let version = write.draft.version;
            let goes_on = over.contains(&(write.id, version)) || unknown.contains(&version);
            let may_go = match after.state {
                State::Released => true,
                State::Done => !self.evidence.lasts,
                State::Running => !self.evidence.lasts && after.on_crash == OnCrash::Rerun,
                _ => false,
            };
            if !goes_on && !may_go {
                *ends.entry(write.id).or_default() += 1;
            }
        }
        for (id, chains) in chains {
            let ends = ends.get(&id).copied().unwrap_or_default();
            let of_it = |one: &&Stood<'_>| one.write.id == id;
            let one = self.stood.iter().find(of_it).expect("it has a chain");
            self.holds(
                chains == 1 || ends <= 1,
                "V12, a record is gone that somebody needs",
                key_of(&one.after),
            );
        }
    }

    /// A version is the same in every look, and is not seen any more once another one is known to
    /// stand.
    pub(super) fn judge_looks(&self) {
        let seen = versions(&self.pages.looks);
        let replaced: HashMap<_, _> = self
            .stood
            .iter()
            .filter_map(|one| Some(((one.write.id, one.write.seen?), one.answered()?)))
            .collect();
        for look in &self.pages.looks {
            let Some(record) = &look.record else { continue };
            let key = key_of(record);
            let holds = |holds: bool, says: &str| self.holds(holds, says, key);
            holds(
                seen[&record.version] == *record,
                "a version was seen to change",
            );
            holds(
                look.refused != Some(record.version),
                "a write was refused by what it had seen",
            );
            let replaced = replaced.get(&(look.id, record.version));
            holds(
                replaced.is_none_or(|replaced| *replaced > look.sent),
                "something was seen that was known to stand no more",
            );
        }
    }

    pub(super) fn judge_write(&self, one: &Stood<'_>) {
        let Stood {
            write,
            after,
            before,
            at,
        } = one;
        let key = key_of(after);
        let holds = |holds: bool, says: &str| self.holds(holds, says, key);
        let said: Vec<_> = self.under(key, after.token.as_u64()).collect();
        let began = said
            .iter()
            .any(|deed| matches!(deed.what, What::Began { .. }));
        match (after.state, &after.outcome) {
            (State::Done, Some(outcome)) if outcome.kind != OutcomeKind::NotReplayable => {
                let is_it = |deed: &&Deed| matches!(&deed.what, What::Ended(text, None | Some(Say::Declined)) if text.as_bytes() == &outcome.bytes[..]);
                holds(said.iter().any(is_it), "V2, nobody said so");
            }
            (State::Done, _) => {
                let ended = |deed: &&Deed| matches!(deed.what, What::Ended(..));
                holds(said.iter().any(ended), "nothing happened");
            }
            (State::Released, _)
                if before
                    .as_ref()
                    .is_none_or(|before| before.state != State::Released) =>
            {
                let nothing =
                    |deed: &&Deed| matches!(deed.what, What::Ended(_, Some(Say::Nothing)));
                holds(
                    said.iter().any(nothing) || !began && after.attempt == 1,
                    "V13, released although something may have happened",
                );
                let asked = |deed: &&Deed| deed.what == What::Asked(Some(false));
                holds(
                    after.attempt == 1 || said.iter().any(asked),
                    "a takeover was released",
                );
            }
            _ => {}
        }
        let Some(before) = before else { return };
        let is_over = |moment: Time| at.is_none_or(|at| moment <= at);
        let is_own = before.attempt_id == after.attempt_id;
        let grows = after.token > before.token;
        let keeps = after.token == before.token;
        holds(
            if one.draws() { grows } else { keeps },
            "V4, a token did not grow, or changed",
        );
        let may_expire = before.state == State::Done
            || before.state == State::Running && before.on_crash == OnCrash::Rerun;
        let begins = before.state == State::Released
            || may_expire
                && is_over(before.expires)
                && is_over(before.lease_end)
                && write.draft.subject.is_some();
        if begins {
            return;
        }
        holds(
            write.draft.subject.is_none() && before.subject == after.subject,
            "V6, a record that binds was bound to something else",
        );
        let claims = one.draws() && after.state == State::Running;
        if !matches!(after.state, State::Done | State::Released) {
            holds(
                after.on_crash >= before.on_crash,
                "a stricter choice was forgotten",
            );
        }
        match before.state {
            State::Running if claims && !is_own => {
                holds(
                    is_over(before.lease_end),
                    "V1, a live holder lost its record",
                );
                holds(before.on_crash != OnCrash::Uncertain, "at most once");
                holds(
                    after.attempt <= self.evidence.budget + 1,
                    "more takeovers than the budget allows",
                );
            }
            State::Running => {
                holds(is_own || is_left(before, after), "V3, somebody else wrote");
                let is_live = at.is_some_and(|at| before.lease_end > at);
                let knew = |deed: &&Deed| matches!(deed.what, What::Ended(_, say) if say != Some(Say::Perhaps));
                let gives_up = after.state == State::Parked
                    || after.state == State::Uncertain && said.iter().any(knew);
                holds(!is_live || !gives_up, "V1, a live holder was given up");
            }
            State::Uncertain if claims => holds(
                before.on_crash != OnCrash::Uncertain && after.on_crash == OnCrash::Reconcile,
                "at most once",
            ),
            State::Uncertain => holds(is_own, "V3, somebody else wrote"),
            State::Done => holds(
                after.state == State::Done && before.outcome == after.outcome,
                "V2, an outcome was lost",
            ),
            State::Parked => {
                holds(after.state == State::Parked, "a parked record went on");
            }
            _ => {}
        }
    }
}

/// Whether a takeover that has not begun left what it had found: it does so in the name of no
/// attempt.
fn is_left(before: &Record, after: &Record) -> bool {
    after.attempt_id == AttemptId::NOBODY
        && (before.state, after.state) == (State::Running, State::Running)
        && after.attempt + 1 == before.attempt
}
