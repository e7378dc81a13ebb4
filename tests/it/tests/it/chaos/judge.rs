//! Compares what was asked of the store, what was done, what the gateway's books say and what each
//! caller was told.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use idempotent_runtime::{
    CallReport, Error, OnCrash,
    record::{OutcomeKind, Record, State},
};

use super::{
    callers::{Deed, Told, What},
    case::{Case, Stood, key_of, stood},
    witness::Ledger,
};
use crate::{scripts::Say, tally::Tally};

/// All that is known of a chaos run that is over.
pub(super) struct Evidence {
    pub(super) ledger: Arc<Ledger>,
    pub(super) told: Vec<Told>,
    /// How many callers were told nothing, because they left, or their process ended, or they
    /// panicked.
    pub(super) left: usize,
    /// The records that stand in the store.
    pub(super) remains: Vec<Arc<Record>>,
    /// The value that every call said, or nothing if each said what it liked.
    pub(super) on_crash: Option<OnCrash>,
    pub(super) keys: Vec<u64>,
    /// Whether outcomes outlived the chaos run.
    pub(super) lasts: bool,
    pub(super) budget: u32,
}

impl Evidence {
    pub(super) fn judge(&self, about: &str, tally: &mut Tally) {
        let pages = self.ledger.pages();
        let case = Case {
            about,
            evidence: self,
            pages: &pages,
            stood: stood(&pages),
        };
        case.judge_versions();
        case.judge_looks();
        for stood in &case.stood {
            case.judge_write(stood);
        }
        for key in &self.keys {
            case.judge_bodies(*key);
            case.judge_outcomes(*key);
        }
        for told in &self.told {
            case.judge_answer(told);
        }
        for record in &self.remains {
            let is_left = record.state == State::Running;
            case.holds(!is_left, "a record stays running", key_of(record));
        }
        case.count(tally);
    }
}

impl Case<'_> {
    /// The rules for bodies beside each other, and after each other.
    fn judge_bodies(&self, key: u64) {
        let holds = |holds: bool, says: &str| self.holds(holds, says, key);
        let deeds: Vec<_> = self
            .pages
            .deeds
            .iter()
            .filter(|deed| deed.key == key)
            .collect();
        let is_settled = |deed: &&Deed| {
            let same = |other: &&&Deed| other.token == deed.token;
            let nothing = |other: &&Deed| matches!(other.what, What::Ended(_, Some(Say::Nothing)));
            deeds.iter().filter(same).any(nothing)
        };
        let (mut tokens, mut amounts) = (HashSet::new(), HashMap::new());
        for (index, body) in deeds.iter().enumerate() {
            let What::Began { is_takeover } = body.what else {
                continue;
            };
            holds(tokens.insert(body.token), "V1, two bodies under one token");
            let of_it = |one: &&Stood<'_>| one.after.token.as_u64() == body.token;
            let claim = self.of(key).find(of_it);
            holds(claim.is_some(), "a body ran without a claim");
            let bound = claim.map(|claim| claim.after.subject.fingerprint.fingerprint());
            let first = *amounts.entry(bound).or_insert(body.amount);
            holds(
                first == body.amount,
                "V6, a body ran with other arguments than its record is bound to",
            );
            if !self.evidence.lasts {
                continue;
            }
            let began = |deed: &&&Deed| matches!(deed.what, What::Began { .. });
            let earlier = deeds[..index].iter().filter(began);
            // An attempt that found out that the ones before did nothing, and then did nothing, has
            // settled those, too.
            let asked = |deed: &&&Deed| deed.what == What::Asked(Some(false)) && is_settled(deed);
            let settled = deeds[..index].iter().filter(asked).map(|deed| deed.at);
            let since = settled.max().unwrap_or_default();
            let open: Vec<_> = earlier
                .filter(|deed| deed.at > since && !is_settled(deed))
                .collect();
            holds(
                open.is_empty() || is_takeover,
                "a body was not told that another one may have run",
            );
            if self.evidence.on_crash == Some(OnCrash::Uncertain) {
                holds(open.is_empty(), "at most once, a second body ran");
                let ended = |other: &Deed| {
                    let same = |deed: &&&Deed| deed.token == other.token;
                    let mut since = deeds[..index].iter().filter(same);
                    since.any(|deed| matches!(deed.what, What::Ended(..)))
                };
                let live = deeds[..index].iter().filter(began);
                holds(
                    live.into_iter().all(|other| ended(other)),
                    "at most once, two live bodies",
                );
            }
        }
        // A reconciliation may let a body run again. Then the one before may wake up, and is
        // refused.
        let asked = deeds
            .iter()
            .any(|deed| deed.what == What::Asked(Some(false)) && is_settled(deed));
        let conflict = deeds.iter().any(|deed| deed.what == What::Conflict);
        holds(
            !conflict || asked || !self.evidence.lasts,
            "charged with two amounts",
        );
    }

    /// V2: one outcome, and the store still has it.
    fn judge_outcomes(&self, key: u64) {
        let holds = |holds: bool, says: &str| self.holds(holds, says, key);
        if !self.evidence.lasts {
            return;
        }
        let outcomes = self.outcomes(key);
        holds(outcomes.len() <= 1, "V2, two outcomes");
        let of_it = |record: &&Arc<Record>| key_of(record) == key;
        let remains = self.evidence.remains.iter().find(of_it);
        for outcome in &outcomes {
            let is_it = |record: &Arc<Record>| {
                let stands = record.outcome.as_ref();
                stands.is_some_and(|stands| stands.bytes[..] == **outcome)
            };
            holds(remains.is_some_and(is_it), "V2, an outcome is gone");
        }
    }

    fn judge_answer(&self, told: &Told) {
        let key = told.call.key;
        let holds = |holds: bool, says: &str| {
            if !holds {
                self.holds(false, &format!("{says}: {told:?}"), key);
            }
        };
        let of_key = || self.pages.deeds.iter().filter(|deed| deed.key == key);
        let own = of_key().find_map(|deed| match &deed.what {
            What::Ended(text, say) if deed.call == told.call.number => Some((text, *say)),
            _ => None,
        });
        let Some((stored, word)) = told.heard() else {
            let refusal = told.refusal().expect("nothing else is told");
            holds(
                own.is_none() || matches!(refusal, Error::LeaseLost { .. }),
                "V8, a body's word was kept from its caller",
            );
            let perhaps =
                of_key().any(|deed| matches!(deed.what, What::Ended(_, Some(Say::Perhaps))));
            holds(
                !matches!(refusal, Error::Uncertain { .. })
                    || self.evidence.on_crash != Some(OnCrash::Rerun)
                    || perhaps,
                "uncertain, though nobody said so",
            );
            let others = self.pages.deeds.iter().any(|deed| {
                deed.key == key && deed.amount != told.call.amount && deed.at < told.at
            });
            let bound: HashSet<_> = self
                .pages
                .writes
                .iter()
                .filter_map(|write| Some((write, write.draft.subject.as_ref()?)))
                .filter(|(write, _)| write.sent < told.at)
                .filter(|(_, subject)| subject.key == key.to_string().as_bytes())
                .map(|(_, subject)| subject.fingerprint.fingerprint())
                .collect();
            holds(
                !matches!(refusal, Error::KeyReused { .. }) || others || bound.len() > 1,
                "V6, refused for other arguments that nobody had",
            );
            let is_bare = |one: &Stood<'_>| {
                let outcome = one.after.outcome.as_ref();
                outcome.is_some_and(|outcome| outcome.kind == OutcomeKind::NotReplayable)
            };
            let is_known = matches!(
                refusal,
                Error::InProgress { .. }
                    | Error::KeyReused { .. }
                    | Error::Uncertain { .. }
                    | Error::Parked { .. }
                    | Error::LeaseLost { .. }
                    | Error::NotReplayable { .. }
                    | Error::Unreadable { .. }
                    | Error::Store(_)
            );
            holds(is_known, "a refusal that nothing gives cause for");
            let unreadable = matches!(refusal, Error::Unreadable { .. });
            let bare = matches!(refusal, Error::NotReplayable { .. });
            holds(
                !unreadable && (!bare || self.of(key).any(is_bare)),
                "V7, an outcome cannot be given",
            );
            return;
        };
        holds(
            (word.key, word.amount) == (key, told.call.amount),
            "V6, the outcome of other arguments",
        );
        let said = of_key().any(|deed| {
            matches!(&deed.what, What::Ended(text, _) if *text == stored) && deed.at < told.at
        });
        holds(said, "an outcome that nobody said");
        let is_charged = |receipt| self.pages.books.gave(receipt, word.amount);
        holds(
            word.receipt.is_none_or(is_charged),
            "the gateway knows nothing of it",
        );
        let is_own = word.call == told.call.number;
        let is_outcome = own.is_none_or(|(_, say)| say.is_none_or(|say| say == Say::Declined));
        let is_kept = match &told.how {
            Some(CallReport::Replayed { .. }) => true,
            Some(CallReport::Executed { recorded, .. }) => *recorded && (!is_own || is_outcome),
            _ => !is_own,
        };
        let earlier = self.pages.times.iter().filter(|(at, _)| *at < told.began);
        let began = earlier.map(|(_, now)| *now).max();
        let replays = matches!(told.how, Some(CallReport::Replayed { .. }));
        let stood = |one: &Stood<'_>| {
            let is_it = one.after.state == State::Done
                && one
                    .after
                    .outcome
                    .as_ref()
                    .is_some_and(|outcome| outcome.bytes[..] == *stored.as_bytes());
            is_it && (!replays || began.is_none_or(|began| one.after.expires > began))
        };
        holds(
            !is_kept || self.of(key).any(stood),
            "V2, an answer that never stood, or whose time is over",
        );
        if let (true, Some(CallReport::Executed { token, .. })) = (is_own, &told.how) {
            holds(token.as_u64() == word.token, "another attempt's token");
        }
    }
}
