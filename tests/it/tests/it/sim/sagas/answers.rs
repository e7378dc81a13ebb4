//! Asks whether callers may have been told what they were told.

use std::collections::BTreeSet;

use idempotent_runtime::{
    CallReport, Error,
    record::{FencingToken, State, StepState},
};

use super::{
    judge::{Evidence, Life, life_of},
    plan::LEGS,
    trip::{Failure, Told, What},
};
use crate::{
    scripts::{Say, heard},
    sim::kept::Entry,
};

impl Evidence {
    /// Whether a caller may have been told this.
    pub(super) fn judge_answer(&self, told: &Told, about: &str) {
        let is_kept = match (&told.result, &told.how) {
            (Err(Failure::Declined { say, .. }), _) if *say != Say::Declined => false,
            (Err(_), Some(CallReport::Executed { token, .. })) if self.is_refused(told, *token) => {
                false
            }
            (_, Some(CallReport::Executed { recorded, .. })) => *recorded,
            (_, Some(_)) => true,
            (_, None) => false,
        };
        if let Some((stored, _)) = heard(&told.result) {
            let stood = |entry: &Entry| {
                let after = entry.after.as_deref().filter(|it| it.state == State::Done);
                let outcome = after.and_then(|after| after.outcome.as_ref());
                // A store that refuses an outcome keeps that there was one, and its own caller gets
                // it.
                let is_own = matches!(&told.how, Some(CallReport::Executed { token, .. })
                    if after.is_some_and(|after| after.token == *token));
                let is_it = outcome.is_some_and(|it| match it.is_not_replayable() {
                    true => is_own,
                    false => it.bytes[..] == *stored.as_bytes(),
                });
                is_it && life_of(entry).is_some_and(|life| life.0 == told.key)
            };
            assert!(
                !is_kept || self.ledger.iter().any(stood),
                "an answer that did not stand: {about}"
            );
        }
        if let Err(Failure::Refused(Error::NotUndone { undone, left, .. })) = &told.result {
            assert!(
                !left.is_empty() && left.iter().all(|it| !undone.contains(it)),
                "{about}"
            );
            let of_key = |entry: &&Entry| life_of(entry).is_some_and(|it| it.0 == told.key);
            let parked = |entry: &Entry| {
                entry
                    .after
                    .as_ref()
                    .is_some_and(|it| it.state == State::Parked)
            };
            let mut entries = self.ledger.iter().filter(of_key);
            assert!(entries.any(parked), "it is not parked: {about}");
            self.judge_left(told.key, undone, left, about);
        }
    }

    /// Whether a step of this attempt was refused: no error of its body is an outcome.
    fn is_refused(&self, told: &Told, token: FencingToken) -> bool {
        let under = (told.key, token.as_u64());
        let mut deeds = self.deeds.iter();
        deeds.any(|deed| deed.under == under && deed.what == What::Refused)
    }

    /// The list of what is undone and what is not is that of some moment.
    fn judge_left(&self, key: u32, undone: &[String], left: &[String], about: &str) {
        let lives = self.ledger.iter().filter_map(life_of);
        let lives = lives.filter(|life| life.0 == key);
        let is_so = |life: Life| {
            let moments = self.steps.iter().enumerate().map(|(at, _)| at + 1);
            moments.rev().any(|moment| {
                let (mut lists, mut late) = ((Vec::new(), Vec::new()), Vec::new());
                for (leg, name) in LEGS.iter().enumerate() {
                    let until = self.steps_of(life, leg).filter(|(at, _)| *at < moment);
                    match until.map(|(_, entry)| &entry.after).last() {
                        Some(step) if step.is_to_be_undone() => lists.1.push(*name),
                        Some(step) if step.state == StepState::Undone => lists.0.push(*name),
                        // The attempt may not know of an error that was written for a dropped step.
                        Some(step) if step.undo.is_some() && step.state == StepState::Done => {
                            late.push(*name);
                        }
                        _ => {}
                    }
                }
                let in_it = |ours: &[&str], theirs: &[String]| {
                    ours.iter().all(|it| theirs.iter().any(|its| its == it))
                };
                in_it(&lists.0, undone)
                    && lists.0.len() == undone.len()
                    && in_it(&lists.1, left)
                    && left
                        .iter()
                        .all(|it| lists.1.iter().chain(&late).any(|its| its == it))
            })
        };
        let lives: BTreeSet<_> = lives.collect();
        assert!(
            lives.into_iter().any(is_so),
            "the lists were never so: {about}"
        );
    }
}
