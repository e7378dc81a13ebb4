//! The promises, and the notes that are needed to see one broken.

use std::{cell::RefCell, collections::HashMap};

use idempotent_runtime::{
    policy::OnCrash,
    protocol::{ClaimDecision, Meaning, Refusal, decide},
    record::State,
};

use crate::{
    pack::{LEASE, NOW, TAKEOVERS, claim, snapshot, version},
    world::{Ahead, Caller, Cell, End, FRESHER, Held, Kind, NONE, Name, Phase, Request, World},
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Watch {
    pub(crate) highest_token: Ahead,
    /// How many bodies were polled since the record began anew.
    pub(crate) bodies: u8,
    /// How many claims were granted since the record began anew, except those that were given up
    /// before a body was polled.
    pub(crate) attempts: u8,
    /// A body was polled that may not simply be run again, and it has not been settled since.
    pub(crate) unsettled: bool,
    /// An operator said that it happened, and so vouches for the holders of the record until then.
    pub(crate) vouched: bool,
    /// Noted only where the fault depends on it.
    pub(crate) purged: bool,
    /// The first outcome since the record began anew.
    pub(crate) recorded: Name,
    pub(crate) broken: Broken,
}

/// Which promises were broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Broken(u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Promise {
    OneHolder,
    OneOutcome,
    StaleHolder,
    TokensGrow,
    OwnIsRecognised,
    MismatchFound,
    AlwaysAnswered,
    PurgeOnlyExpired,
    FirstIsReplayed,
    AtMostOnce,
    BodiesCounted,
    BudgetKept,
    StoppedFrees,
    KnowsWhatItWon,
    FreshOnlyWhenSettled,
    StricterWins,
    GivenUpStays,
    ReleasesNothingBegun,
}

impl Promise {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Promise::OneHolder => "V1: at most one holder whose lease has not ended",
            Promise::OneOutcome => "V2: one recorded outcome until it expires",
            Promise::StaleHolder => {
                "V3: a holder that lost its lease neither overwrites, nor deletes, nor prolongs"
            }
            Promise::TokensGrow => "V4: fencing tokens only grow",
            Promise::OwnIsRecognised => {
                "V5: a claim or completion whose answer was lost is recognised"
            }
            Promise::MismatchFound => {
                "V6: other arguments are found in every state that binds the key, and in no other"
            }
            Promise::AlwaysAnswered => "V10: one lease after anything happened, a call is answered",
            Promise::PurgeOnlyExpired => "V12: purge removes only what is expired",
            Promise::FirstIsReplayed => {
                "V7: whoever runs or replays is given the first outcome that was recorded"
            }
            Promise::AtMostOnce => {
                "at most once: the body is polled once, unless it said that nothing happened"
            }
            Promise::BodiesCounted => {
                "lease: at most one body for the first claim and for each takeover"
            }
            Promise::BudgetKept => "no more takeovers than the budget has: then it is parked",
            Promise::StoppedFrees => "V13: what a stopped holder leaves keeps nobody waiting",
            Promise::KnowsWhatItWon => {
                "a claim that is found again is what it was: the first, a takeover, a reconciliation"
            }
            Promise::FreshOnlyWhenSettled => {
                "only an outcome or the body's own word lets a polled call begin afresh"
            }
            Promise::ReleasesNothingBegun => {
                "nobody releases what somebody before may have begun, and no reconciliation has looked into"
            }
            Promise::GivenUpStays => {
                "V13: a claim that was given up does not stand when it arrives late, before the record is purged"
            }
            Promise::StricterWins => {
                "a record's on_crash never becomes laxer while it binds the key"
            }
        }
    }
}

impl Broken {
    pub(crate) fn contains(self, promise: Promise) -> bool {
        self.0 & (1 << promise as u8) != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl Watch {
    fn must(&mut self, promise: Promise, holds: bool) {
        if !holds {
            self.broken.0 |= 1 << promise as u8;
        }
    }
}

impl World {
    /// `request` was applied over `previous`, and `next` stands now.
    pub(crate) fn witness_write(&mut self, previous: Option<Cell>, request: &Request, next: Cell) {
        let binding = previous.filter(|cell| !cell.is_expired());
        let watch = &mut self.watch;
        watch.must(
            Promise::OneOutcome,
            binding.is_none_or(|cell| cell.state != State::Done),
        );
        if let Some(previous) = binding {
            let goes_on = request.draft.begins.is_none()
                && !matches!(next.state, State::Done | State::Released);
            watch.must(
                Promise::StricterWins,
                !goes_on || next.on_crash >= previous.on_crash,
            );
        }
        if let Kind::Claim(meaning @ (Meaning::Fresh | Meaning::Takeover | Meaning::Reconcile)) =
            request.kind
        {
            watch.must(
                Promise::KnowsWhatItWon,
                meaning == Meaning::won(&next.record(), false),
            );
            watch.must(Promise::TokensGrow, next.token > watch.highest_token);
            watch.highest_token = watch.highest_token.max(next.token);
            let took_over = binding.is_some_and(|cell| {
                cell.state == State::Running && cell.attempt_id != next.attempt_id
            });
            let budgeted = u32::from(next.attempt) <= 1 + TAKEOVERS;
            watch.must(Promise::BudgetKept, !took_over || budgeted);
        }
        let granted = (watch.attempts + next.attempt)
            .saturating_sub(previous.map_or(0, |previous| previous.attempt));
        match request.kind {
            Kind::Claim(_) if request.draft.begins.is_some() => {
                self.witness_beginning(next.attempt_id);
            }
            Kind::Touch => {}
            Kind::Settle => self.witness_settlement(next),
            Kind::Claim(_) => watch.attempts = granted,
            Kind::Heartbeat | Kind::End(_) => {
                let own = previous.is_some_and(|cell| cell.attempt_id == request.by);
                watch.must(Promise::StaleHolder, own);
                let revived = request.kind == Kind::Heartbeat
                    && previous.is_some_and(|cell| cell.state != State::Running);
                watch.must(Promise::StaleHolder, !revived);
                let frees = next.state != State::Running || next.lease == 0;
                watch.must(
                    Promise::StoppedFrees,
                    frees || request.kind == Kind::Heartbeat,
                );
                // A holder that releases knows that the body that it polled itself did nothing. A
                // reconciliation has found out the same for a record that was reconciled.
                let own = u8::from(request.kind == Kind::End(End::Release));
                watch.must(
                    Promise::ReleasesNothingBegun,
                    next.state != State::Released
                        || next.on_crash == OnCrash::Reconcile
                        || watch.bodies <= own,
                );
                watch.bodies = watch.bodies.saturating_sub(own);
                watch.attempts = granted;
                watch.unsettled &= !matches!(request.kind, Kind::End(End::Done | End::Release));
            }
        }
        if next.state == State::Done && self.watch.recorded == NONE {
            self.watch.recorded = next.outcome;
        }
        self.watch
            .must(Promise::AlwaysAnswered, is_answerable(next));
    }

    fn witness_settlement(&mut self, next: Cell) {
        if next.state != State::Done {
            return;
        }
        self.watch.unsettled = false;
        self.watch.vouched = true;
        for worker in &mut self.workers {
            if let Phase::Holding(held) = &mut worker.phase {
                held.current = false;
            }
        }
    }

    fn witness_beginning(&mut self, attempt_id: Name) {
        self.watch
            .must(Promise::FreshOnlyWhenSettled, !self.watch.unsettled);
        self.watch.recorded = NONE;
        self.watch.bodies = 0;
        self.watch.attempts = 1;
        for worker in &mut self.workers {
            let claims = worker.attempt_id() == Some(attempt_id);
            if let Phase::Holding(held) = &mut worker.phase {
                held.current = claims;
            }
        }
    }

    /// The request that straggled was applied, or was refused.
    pub(crate) fn witness_arrival(&mut self, stands: bool) {
        self.watch
            .must(Promise::GivenUpStays, !stands || self.given_up == 0);
        self.given_up = 0;
    }

    pub(crate) fn witness_purge(&mut self, purged: Cell) {
        self.watch
            .must(Promise::PurgeOnlyExpired, purged.is_expired());
        // It was kept from standing by a record, and for as long as records are kept.
        self.given_up = 0;
        self.watch.recorded = NONE;
    }

    /// A caller is given this outcome.
    pub(crate) fn witness_answer(&mut self, outcome: Name) {
        self.watch
            .must(Promise::FirstIsReplayed, outcome == self.watch.recorded);
    }

    /// A call decided about what it saw. The record that really stands counts.
    pub(crate) fn witness_decision(
        &mut self,
        caller: Caller,
        attempt_id: Name,
        decision: &ClaimDecision,
    ) {
        let binding = self.cell.filter(|cell| !cell.is_expired());
        let mine = binding
            .is_some_and(|cell| cell.attempt_id == attempt_id && cell.state == State::Running);
        let differs = binding.is_some_and(|cell| {
            cell.state != State::Released && cell.arguments != caller.arguments
        });
        self.watch.must(
            Promise::OwnIsRecognised,
            !mine || matches!(decision, ClaimDecision::Mine(_)),
        );
        self.watch.must(
            Promise::MismatchFound,
            differs == matches!(decision, ClaimDecision::KeyReused(_)),
        );
    }

    /// The store refused an ending because of what stands there.
    pub(crate) fn witness_refusal(&mut self, held: &Held, end: End, refusal: &Refusal) {
        let Some(cell) = self.cell else { return };
        let recorded =
            end == End::Done && cell.attempt_id == held.attempt_id && cell.state == State::Done;
        self.watch.must(
            Promise::OwnIsRecognised,
            !recorded || matches!(refusal, Refusal::Stands(_)),
        );
    }

    /// A holder polls its body for the first time.
    pub(crate) fn witness_body(&mut self, held: &Held) {
        let watch = &mut self.watch;
        if watch.vouched && !held.current {
            return;
        }
        if held.on_crash == OnCrash::Uncertain {
            watch.must(Promise::AtMostOnce, !watch.unsettled);
        }
        // A paused holder that wakes after a reconciliation took its place is what
        // `Reconciled::RunAgain` warns of.
        let replaced = self
            .cell
            .is_none_or(|cell| cell.attempt_id != held.attempt_id);
        watch.unsettled |= match held.on_crash {
            OnCrash::Rerun => false,
            OnCrash::Reconcile => !replaced,
            _ => true,
        };
        if held.current {
            watch.bodies += 1;
            watch.must(Promise::BodiesCounted, watch.bodies <= watch.attempts);
        }
    }

    pub(crate) fn witness_holders(&mut self) {
        let live = |phase: &Phase| matches!(phase, Phase::Holding(held) if held.lease > 0);
        let holders = self
            .workers
            .iter()
            .filter(|worker| live(&worker.phase))
            .count();
        self.watch.must(Promise::OneHolder, holders <= 1);
    }
}

/// Tells whether a call that comes one lease later, and finds no other call there, gets further or
/// is told why not.
fn is_answerable(stands: Cell) -> bool {
    thread_local! {
        static KNOWN: RefCell<HashMap<Cell, bool>> = RefCell::default();
    }
    let ask = |on_crash| {
        let claim = claim(
            Caller {
                arguments: stands.arguments,
                on_crash,
            },
            FRESHER,
        );
        let mut later = snapshot(Some(stands));
        later.now = NOW.plus(LEASE);
        !matches!(
            decide(&claim, &later, || version(FRESHER)),
            ClaimDecision::InProgress(..)
        )
    };
    let answers = || {
        [OnCrash::Rerun, OnCrash::Reconcile, OnCrash::Uncertain]
            .into_iter()
            .all(ask)
    };
    KNOWN.with_borrow_mut(|known| *known.entry(stands).or_insert_with(answers))
}
