//! Asks every invariant of what was written, done and told.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::Duration,
};

use idempotent_runtime::{
    CallReport, Error, OnCrash,
    identity::RecordId,
    record::{AttemptId, Draft, OutcomeKind, RawOutcome, Record, State, Subject},
    testing::ManualClock,
};

use super::{
    callers::{Deed, Failure, Finds, Token, Told, What, is_settled},
    faults::{Fault, FaultProfile, Faults},
    kept::Entry,
};
use crate::{
    harness::{applied, claim, completion},
    scripts::Say,
};

/// All that is known of a simulation that is over.
pub(super) struct Evidence {
    pub(super) ledger: Vec<Entry>,
    pub(super) deeds: Vec<Deed>,
    pub(super) told: Vec<Told>,
    /// How many callers were told nothing: they left, or their process died, or they panicked.
    pub(super) left: usize,
    /// The fate of every call of the store.
    pub(super) faults: Vec<Fault>,
    pub(super) budget: u32,
    pub(super) profile: FaultProfile,
}

impl Evidence {
    pub(super) fn judge(&self, about: &str) {
        let (mut highest, mut versions) = (BTreeMap::new(), HashSet::new());
        for entry in &self.ledger {
            let Some(after) = entry.after.as_deref() else {
                continue;
            };
            let about = &format!("{about}: {:?} over {:?}", after, entry.before);
            assert!(
                versions.insert(after.version),
                "a version came again: {about}"
            );
            let highest = highest.entry(entry.id).or_insert(0);
            let token = after.token.as_u64();
            let draws = entry
                .before
                .as_ref()
                .is_none_or(|before| before.token != after.token);
            assert!(
                !draws || token > *highest,
                "V4, a token did not grow: {about}"
            );
            *highest = token.max(*highest);
            self.judge_state(entry, after, about);
            self.judge_given_up(entry, after, about);
            if let Some(before) = entry.before.as_deref() {
                judge_write(entry, before, after, draws, about);
            }
            // An uncertain record is asked about as often as callers like, and an operator settles
            // a record that no call may take over.
            let claims = draws && after.state == State::Running;
            let takes_over = claims
                && entry.before.as_deref().is_some_and(|before| {
                    before.state == State::Running && before.attempt_id != after.attempt_id
                });
            // A record that an operator lets be tried again is tried, whatever the budget is.
            let is_resumed = |before: &Record| before.attempt_id == AttemptId::RESUMED;
            let at_least = u32::from(entry.before.as_deref().is_some_and(is_resumed));
            assert!(
                !takes_over || after.attempt <= self.budget.max(at_least) + 1,
                "more takeovers than the budget allows: {about}"
            );
        }
        self.judge_bodies(about);
        if self.profile == FaultProfile::Mild {
            self.judge_remains(about);
        }
        for told in &self.told {
            self.judge_answer(told, &format!("{about}: {told:?}"));
        }
    }

    /// Whether a record may stand as it does, by what was done under its token.
    fn judge_state(&self, entry: &Entry, after: &Record, about: &str) {
        let said: Vec<_> = self.under(entry.token(after)).collect();
        let began = said.contains(&&What::Began);
        match (after.state, &after.outcome) {
            (State::Done, Some(outcome)) if is_settled(&outcome.bytes) => {}
            (State::Done, Some(outcome)) if outcome.kind != OutcomeKind::NotReplayable => {
                let is_it = |what: &&&What| matches!(what, What::Ended(text, Some(Say::Declined) | None) if text.as_bytes() == &outcome.bytes[..]);
                assert!(
                    said.iter().any(|what| is_it(&what)),
                    "V2, nobody said so: {about}"
                );
            }
            (State::Done, _) => {
                let ended = |what: &&&What| matches!(what, What::Ended(..));
                assert!(
                    said.iter().any(|what| ended(&what)),
                    "nothing happened: {about}"
                );
            }
            (State::Released, _)
                if entry
                    .before
                    .as_ref()
                    .is_none_or(|before| before.state != State::Released) =>
            {
                let nothing = |what: &&&What| matches!(what, What::Ended(_, Some(Say::Nothing)));
                assert!(
                    said.iter().any(|what| nothing(&what)) || !began && after.attempt == 1,
                    "V13, released although something may have happened: {about}"
                );
            }
            _ => {}
        }
    }

    /// While its lease lasts, a record is given up only on behalf of its holder, whose attempt it
    /// keeps. The body of that holder did not come to an end, or knew no better.
    fn judge_given_up(&self, entry: &Entry, after: &Record, about: &str) {
        let is_live =
            |before: &Record| before.state == State::Running && !before.lease_is_over(entry.at);
        if !entry.before.as_deref().is_some_and(is_live) {
            return;
        }
        let knew = |what: &What| matches!(what, What::Ended(_, say) if *say != Some(Say::Perhaps));
        assert!(
            after.state != State::Parked
                && (after.state != State::Uncertain || !self.under(entry.token(after)).any(knew)),
            "V1, a live holder was given up: {about}"
        );
    }

    /// Each token is one body's, and after a reconciliation only its word lets a body run.
    fn judge_bodies(&self, about: &str) {
        let mut bodies = HashSet::new();
        for deed in &self.deeds {
            if deed.what == What::Began {
                assert!(
                    bodies.insert(deed.under),
                    "V1, two bodies under one token: {about}: {deed:?}"
                );
            }
        }
        for entry in &self.ledger {
            let (Some(before), Some(after)) = (&entry.before, &entry.after) else {
                continue;
            };
            let goes_on = before.token != after.token && before.attempt < after.attempt;
            if goes_on
                && after.on_crash == OnCrash::Reconcile
                && bodies.contains(&entry.token(after))
            {
                let asked = |what: &What| *what == What::Asked(Finds::Nothing);
                assert!(
                    self.under(entry.token(after)).any(asked),
                    "a body ran again that nobody had asked for: {about}: {after:?}"
                );
            }
        }
    }

    /// Every version with this outcome, and where in the ledger it stands.
    pub(super) fn stood<'a>(&'a self, stored: &'a str) -> impl Iterator<Item = (usize, &'a Entry)> {
        self.ledger.iter().enumerate().filter(move |(_, entry)| {
            let after = entry.after.as_ref();
            let outcome = after.and_then(|after| after.outcome.as_ref());
            outcome.is_some_and(|outcome| outcome.bytes[..] == *stored.as_bytes())
        })
    }

    /// Whether a caller may have been told this.
    fn judge_answer(&self, told: &Told, about: &str) {
        let Some((stored, text)) = told.heard() else {
            let Err(Failure::Refused(refusal)) = &told.result else {
                unreachable!("whoever heard nothing was refused")
            };
            // A simulation whose calls are not even made shows nothing.
            assert!(
                !matches!(refusal, Error::InvalidPolicy(_)),
                "no call was made: {about}"
            );
            return;
        };
        assert!(
            told.call.may_hear(text),
            "V6, another call's outcome: {about}"
        );
        let is_kept = match &told.how {
            Some(CallReport::Replayed { .. }) => true,
            Some(CallReport::Executed { recorded, .. }) => {
                *recorded && !self.is_no_outcome(&stored)
            }
            _ => !told.call.has_said(text),
        };
        let replays = matches!(told.how, Some(CallReport::Replayed { .. }));
        let stood = self.stood(&stored).map(|(index, entry)| {
            let is_expired = |record: &Record| replays && record.expires <= told.began;
            let later = self.ledger.iter().enumerate().skip(index + 1);
            let mut replaced = later.filter(|(_, later)| later.id == entry.id);
            index < told.to
                && replaced.next().is_none_or(|(next, _)| next >= told.from)
                && !entry.after.as_deref().is_some_and(is_expired)
        });
        let stood: Vec<_> = stood.collect();
        assert!(
            !is_kept || stood.contains(&true),
            "V2, an answer that did not stand: {about}: {stood:?}"
        );
    }

    /// Whether a body said with it that it is no outcome.
    fn is_no_outcome(&self, stored: &str) -> bool {
        self.deeds.iter().any(|deed| {
            matches!(&deed.what, What::Ended(text, Some(Say::Nothing | Say::Perhaps)) if text == stored)
        })
    }

    pub(super) fn under(&self, token: Token) -> impl Iterator<Item = &What> {
        let of_it = move |deed: &&Deed| deed.under == token;
        self.deeds.iter().filter(of_it).map(|deed| &deed.what)
    }
}

impl Entry {
    pub(super) fn token(&self, record: &Record) -> Token {
        let key = str::from_utf8(&record.subject.key).expect("keys are text");
        (
            key.parse().expect("keys are numbers"),
            record.token.as_u64(),
        )
    }
}

/// Whether a takeover that has not begun left what it had found. It does so under the id of no
/// attempt.
pub(super) fn is_left(before: &Record, after: &Record) -> bool {
    after.attempt_id == AttemptId::NOBODY
        && (before.state, after.state) == (State::Running, State::Running)
        && after.attempt + 1 == before.attempt
}

/// Whether one version may follow another.
fn judge_write(entry: &Entry, before: &Record, after: &Record, draws: bool, about: &str) {
    let is_own = before.attempt_id == after.attempt_id;
    let begins = before.is_expired(entry.at) || before.state == State::Released;
    if begins {
        return;
    }
    assert_eq!(
        before.subject, after.subject,
        "the subject of a record changed: {about}"
    );
    // The word of a holder that was only paused ends the matter.
    if !matches!(after.state, State::Done | State::Released) {
        assert!(
            after.on_crash >= before.on_crash,
            "a stricter choice was forgotten: {about}"
        );
    }
    let claims = draws && after.state == State::Running;
    let outcome = after.outcome.as_ref();
    let by_operator = outcome.is_some_and(|outcome| is_settled(&outcome.bytes));
    match before.state {
        State::Running if claims && !is_own => {
            assert!(
                before.lease_is_over(entry.at),
                "V1, a live holder lost its record: {about}"
            );
            assert_ne!(before.on_crash, OnCrash::Uncertain, "at most once: {about}");
        }
        State::Running => {
            let by_operator = by_operator || after.attempt_id == AttemptId::RESUMED;
            assert!(
                is_own || is_left(before, after) || (by_operator && before.lease_is_over(entry.at)),
                "V3, somebody else wrote: {about}"
            );
        }
        State::Uncertain if claims => {
            assert_eq!(after.on_crash, OnCrash::Reconcile, "at most once: {about}");
            // A body that was to run again may have said so.
            assert_ne!(before.on_crash, OnCrash::Uncertain, "at most once: {about}");
        }
        State::Uncertain => {
            assert!(is_own || by_operator, "V3, somebody else wrote: {about}");
        }
        State::Done => {
            assert_eq!(after.state, State::Done, "V2, an outcome was lost: {about}");
            let lacked = before
                .outcome
                .as_ref()
                .is_none_or(RawOutcome::is_not_replayable);
            assert!(
                before.outcome == after.outcome || (lacked && by_operator),
                "V2, an outcome was changed: {about}"
            );
        }
        State::Parked => {
            // An operator may have let it be tried again, or it was only kept from being claimed.
            let stays = after.state == State::Parked || after.attempt == 1 && !claims;
            assert!(by_operator || stays, "a parked record went on: {about}");
        }
        _ => {}
    }
}

/// Judges a write over a record whose lease is over and which has seen a takeover, although the
/// budget has none.
async fn judge_beyond_the_budget(over: impl FnOnce(&Draft) -> Draft) {
    let clock = ManualClock::new();
    let conditions = Faults::new(clock.clone(), 0, FaultProfile::Rough);
    conditions.heal();
    let id = RecordId::from_bytes([1; 32]);
    let mut running = claim();
    running.attempt = 2;
    running.subject = running.subject.map(|subject| {
        Arc::new(Subject {
            key: b"1".to_vec(),
            ..Subject::clone(&subject)
        })
    });
    applied(&conditions, &id, None, &running).await;
    clock.advance(Duration::from_secs(3_600));
    let next = over(&running);
    applied(&conditions, &id, Some(running.version), &next).await;
    let evidence = Evidence {
        ledger: conditions.ledger(),
        deeds: Vec::new(),
        told: Vec::new(),
        left: 0,
        faults: conditions.faults(),
        budget: 0,
        profile: FaultProfile::Rough,
    };
    evidence.judge("beyond the budget");
}

#[tokio::test]
async fn first_hour_24_an_operator_settles_beyond_the_budget_of_takeovers() {
    judge_beyond_the_budget(|running| Draft {
        attempt_id: AttemptId::NOBODY,
        ..completion(running, b"\"any of 1 by an operator\"".to_vec())
    })
    .await;
}

#[tokio::test]
#[should_panic = "more takeovers than the budget allows"]
async fn first_hour_24_a_takeover_beyond_the_budget_is_found() {
    judge_beyond_the_budget(|_| Draft {
        attempt: 3,
        subject: None,
        ..claim()
    })
    .await;
}
