//! The promises, and the notes that are needed to see one broken.

use std::{cell::RefCell, collections::HashMap};

use idempotent_runtime::{
    policy::OnCrash,
    protocol::sequence::{
        Gaps, NumberState, Stream, StreamDecision, StreamEnding, StreamHolding, StreamSettlement,
        decide, settle, skip,
    },
    record::OutcomeKind,
};

use crate::{
    driver::Protocol,
    pack::{Choice, FRESH, LEASE, NOW, TAKEOVERS, small},
    store::{Kind, Write, leaves},
    world::{Cell, End, Held, NUMBERS, Phase, World},
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Watch {
    /// How often each number had its effect downstream; under rerun, whether it had.
    effects: [u8; NUMBERS as usize],
    /// The numbers that ended otherwise than by their holder's completion: by a recorded error, an
    /// operator's word, or as past.
    excused: u8,
    /// The highest token that was seen downstream.
    pub(crate) highest: Option<u8>,
    pub(crate) broken: Broken,
}

/// Which promises were broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Broken(u16);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Promise {
    OneHolder,
    StaleHolder,
    TokensGrow,
    LastKept,
    OnlyTheNext,
    OnlyAbandonedIsPassed,
    StoppedStops,
    BudgetKept,
    AtMostOnce,
    NeverAgain,
    InOrder,
    NoneSkipped,
    GivenUpStays,
    AnsweredByRecord,
    GoesOn,
}

impl Promise {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Promise::OneHolder => "at most one holder whose lease has not ended",
            Promise::StaleHolder => "a holder that lost its number neither ends nor prolongs it",
            Promise::TokensGrow => "fencing tokens only grow, whatever the number",
            Promise::LastKept => "the last number never goes down and is never forgotten",
            Promise::OnlyTheNext => {
                "only the next number is claimed, or a larger one where gaps are accepted"
            }
            Promise::OnlyAbandonedIsPassed => {
                "a number is passed by a larger one only, once its holder vanished, under rerun"
            }
            Promise::StoppedStops => "an uncertain or parked number lets no other one run",
            Promise::BudgetKept => "no number sees more takeovers than the budget has",
            Promise::AtMostOnce => "at most once: a number has its effect once",
            Promise::NeverAgain => "a number that a holder completed has no further effect",
            Promise::InOrder => "effects come in the order of their numbers",
            Promise::NoneSkipped => "without gaps, a number has its effect after the one before it",
            Promise::GivenUpStays => {
                "a claim that was given up does not stand when it arrives late"
            }
            Promise::AnsweredByRecord => "a call is answered by what stands",
            Promise::GoesOn => {
                "whatever stands, the source and an operator bring the stream to its end"
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
    pub(crate) fn has_effect(&self, number: u8) -> bool {
        self.effects[usize::from(number) - 1] > 0
    }

    fn is_excused(&self, number: u8) -> bool {
        self.excused & (1 << number) != 0
    }

    /// This number ends, and the effect of no holder went before that.
    pub(crate) fn excuse(&mut self, number: u8) {
        self.excused |= 1 << number;
    }
}

impl World {
    pub(crate) fn must(&mut self, promise: Promise, holds: bool) {
        if !holds {
            self.watch.broken.0 |= 1 << promise as u8;
        }
    }

    /// `write` was applied over `previous`, and `next` stands now.
    pub(crate) fn witness_write(
        &mut self,
        protocol: &Protocol,
        previous: Option<Cell>,
        write: &Write,
        next: Cell,
    ) {
        let last = previous.map_or(0, |cell| cell.last);
        self.must(Promise::LastKept, next.last >= last);
        // A number that was passed ended without a word, and raised no token downstream.
        (last + 1..next.last).for_each(|number| self.watch.excuse(number));
        let before = previous.and_then(|cell| cell.running);
        match write.kind {
            Kind::Claim(meaning) if !leaves(meaning) => {
                self.witness_claim(protocol, previous, next);
            }
            Kind::Claim(_) | Kind::GiveUp | Kind::Settle => {}
            Kind::Beat => {
                let revives = before.is_some_and(|run| run.state != NumberState::Running);
                self.must(Promise::StaleHolder, write.owns && !revives);
            }
            Kind::End(number, end) => {
                let held = before.is_some_and(|run| run.number == number);
                self.must(Promise::StaleHolder, write.owns && held);
                if end == End::Failed && held {
                    self.watch.excuse(number);
                }
            }
        }
        self.must(Promise::GoesOn, goes_on(protocol.choice, next));
    }

    fn witness_claim(&mut self, protocol: &Protocol, previous: Option<Cell>, next: Cell) {
        let Some(run) = next.running else { return };
        let (last, token) = previous.map_or((0, 0), |cell| (cell.last, cell.token));
        let accepts = protocol.choice.gaps == Gaps::Accept;
        let follows = run.number == last + 1 || (accepts && run.number > last);
        self.must(Promise::OnlyTheNext, follows);
        self.must(Promise::TokensGrow, next.token > token);
        self.must(Promise::BudgetKept, u32::from(run.takeovers) <= TAKEOVERS);
        let Some(before) = previous.and_then(|cell| cell.running) else {
            return;
        };
        self.must(Promise::StoppedStops, before.state == NumberState::Running);
        let is_abandoned = previous.is_some_and(|cell| !cell.live);
        let may_pass = before.number == run.number
            || (accepts && run.number > before.number && before.on_crash == OnCrash::Rerun);
        self.must(Promise::OnlyAbandonedIsPassed, may_pass && is_abandoned);
    }

    /// A body sends its effect. If it may run again, downstream refuses a token below the highest
    /// that it has seen.
    pub(crate) fn witness_effect(&mut self, protocol: &Protocol, held: &Held) {
        let is_strict = protocol.is_strict();
        if !is_strict
            && self
                .watch
                .highest
                .is_some_and(|highest| held.token < highest)
        {
            return;
        }
        let number = held.run.number;
        self.watch.highest = self.watch.highest.max(Some(held.token));
        let larger = (number + 1..=NUMBERS).any(|larger| self.watch.has_effect(larger));
        self.must(Promise::InOrder, !larger);
        let ended = self.cell.is_some_and(|cell| number <= cell.last);
        self.must(Promise::NeverAgain, !ended || self.watch.is_excused(number));
        let accepts = protocol.choice.gaps == Gaps::Accept;
        let follows =
            number == 1 || self.watch.has_effect(number - 1) || self.watch.is_excused(number - 1);
        self.must(Promise::NoneSkipped, accepts || follows);
        let stopped = self
            .cell
            .and_then(|cell| cell.running)
            .filter(|run| run.state != NumberState::Running && run.number < number);
        self.must(Promise::StoppedStops, stopped.is_none());
        let most = 1 + u8::from(is_strict);
        let effects = &mut self.watch.effects[usize::from(number) - 1];
        *effects = (*effects + 1).min(most);
        let once = *effects <= 1;
        self.must(Promise::AtMostOnce, once);
    }

    /// A call decided about the record that it saw. The record that really stands counts.
    pub(crate) fn witness_decision(&mut self, decision: &StreamDecision, truth: &StreamDecision) {
        let is_answer = !matches!(
            decision,
            StreamDecision::Write { .. } | StreamDecision::InProgress(..)
        );
        self.must(Promise::AnsweredByRecord, !is_answer || decision == truth);
    }

    pub(crate) fn witness_holders(&mut self) {
        let is_live = |phase: &Phase| matches!(phase, Phase::Holding(held) if held.live);
        let holders = self.workers.iter().filter(|worker| is_live(&worker.phase));
        let is_one = holders.count() <= 1;
        self.must(Promise::OneHolder, is_one);
    }
}

/// Tells whether a source that sends every number again, and an operator, reach the last number
/// from here, one lease later and with no other worker there.
fn goes_on(choice: Choice, from: Cell) -> bool {
    thread_local! {
        static KNOWN: RefCell<HashMap<Cell, bool>> = RefCell::default();
    }
    KNOWN.with_borrow_mut(|known| {
        *known
            .entry(from)
            .or_insert_with(|| reaches_end(choice, from))
    })
}

fn reaches_end(choice: Choice, from: Cell) -> bool {
    let mut stream = from.stream();
    let mut number = from.last + 1;
    for _ in 0..6 * NUMBERS {
        if Cell::of(&stream).last == NUMBERS {
            return true;
        }
        match goes_further(choice, stream, number) {
            Ok(further) => stream = further,
            Err(Some(next)) => number = next,
            Err(None) => return false,
        }
    }
    false
}

/// The stream once this number was called, or the number to call instead.
fn goes_further(choice: Choice, stream: Stream, number: u8) -> Result<Stream, Option<u8>> {
    let later = stream.lease_end.max(NOW).plus(LEASE);
    let claim = choice.claim(number, false);
    let done = StreamSettlement::Done(OutcomeKind::Value);
    let draft = match decide(&claim, Some(&stream), later, FRESH) {
        StreamDecision::Write { draft, meaning, .. } if leaves(meaning) => Some(draft),
        StreamDecision::Write { draft, .. } => {
            let begun = draft.apply(Some(&stream), later);
            let holding = StreamHolding::standing(&claim, &begun).ok_or(None)?;
            let ended = holding.end(&StreamEnding::Done(OutcomeKind::Value), FRESH);
            return Ok(ended.apply(Some(&begun), later));
        }
        StreamDecision::Uncertain(stopped) => settle(&stream, stopped, &done, later, FRESH),
        StreamDecision::Parked(stopped) => skip(&stream, stopped, later, FRESH),
        StreamDecision::Past { last } => return Err(Some(small(last) + 1)),
        StreamDecision::Replay(_) => return Err(Some(number + 1)),
        StreamDecision::Overtaken(running) => return Err(Some(small(running))),
        _ => None,
    };
    let draft = draft.ok_or(None)?;
    Ok(draft.apply(Some(&stream), later))
}
