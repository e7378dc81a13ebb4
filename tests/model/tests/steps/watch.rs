//! The promises, and the notes that are needed to see one broken. Nothing here asks what the store
//! asks: the notes tell on their own which attempt holds the record, and what it recorded.

use idempotent_runtime::{
    protocol::{ClaimDecision, Meaning, decide},
    record::State,
    store::Snapshot,
};
use model::call::{FRESH, NOW, claim};

use crate::{
    pack::snapshot,
    world::{
        Cell, End, Held, Kind, NONE, Name, STEPS, StepCell, StepRequest, StepVersion, World, Write,
    },
};

/// No more lives can begin than there are attempts.
const LIVES: usize = 5;
/// An attempt that comes after all others.
const LAST: Name = 60;
const NOBODY: Name = 0;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Watch {
    /// Counts the lives of the record.
    pub(crate) life: u8,
    /// The values that were recorded in this life.
    pub(crate) recorded: [StepVersion; STEPS],
    /// The steps that were recorded when the last claim was applied.
    pub(crate) at_claim: [bool; STEPS],
    /// The attempt of that claim; none if it has ended since.
    pub(crate) claimant: Name,
    /// How often each step had its effect, where it may have one at most.
    pub(crate) effects: [[u8; STEPS]; LIVES],
    pub(crate) broken: Broken,
}

/// Which promises were broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Broken(u8);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Promise {
    OutcomeStays,
    OwnLife,
    OutcomeOfSteps,
    Fenced,
    NotRunAgain,
    AtMostOnce,
    StepsBind,
    UncertainOfAnother,
}

impl Promise {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Promise::OutcomeStays => "the outcome of a step never changes within a life",
            Promise::OwnLife => "no life sees a step of another life",
            Promise::OutcomeOfSteps => {
                "the values in a recorded outcome are those of the recorded steps of its life"
            }
            Promise::Fenced => {
                "no attempt writes a step after another one claimed, or after it ended"
            }
            Promise::NotRunAgain => {
                "no attempt runs a step whose outcome was recorded before it claimed"
            }
            Promise::AtMostOnce => "at most once: a step has its effect once in a life",
            Promise::StepsBind => {
                "no claim begins a new life where there are steps, before the record expires"
            }
            Promise::UncertainOfAnother => {
                "a step is uncertain only where another attempt has begun it"
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

/// Whether an attempt that ends so is over for its steps. An attempt that stopped, or leaves the
/// record uncertain, still holds it until the next claim: its last write may tell what happened.
fn is_over(end: End) -> bool {
    match end {
        End::Done | End::Release | End::GiveBack | End::Unpolled => true,
        End::Uncertain | End::Stopped => false,
    }
}

impl World {
    pub(crate) fn must(&mut self, promise: Promise, holds: bool) {
        if !holds {
            self.watch.broken.0 |= 1 << promise as u8;
        }
    }

    /// `write` was applied, and `next` stands now.
    pub(crate) fn witness_record(&mut self, write: &Write, next: Cell) {
        let watch = &mut self.watch;
        if write.draft.begins {
            watch.life += 1;
            watch.recorded = [NONE; STEPS];
        }
        match write.kind {
            Kind::Claim(Meaning::Park | Meaning::LeaveUncertain) => {}
            Kind::Claim(_) => {
                watch.claimant = write.by;
                watch.at_claim = watch.recorded.map(|value| value != NONE);
            }
            Kind::End(end) if !is_over(end) => {}
            Kind::End(_) | Kind::GiveUp if write.by == watch.claimant => watch.claimant = NOBODY,
            Kind::End(_) | Kind::GiveUp => {}
        }
        let recorded = watch.recorded;
        let answers = next.state == State::Done;
        self.must(
            Promise::OutcomeOfSteps,
            !answers || next.outcome == recorded,
        );
        self.witness_steps(next);
    }

    /// A step was written.
    pub(crate) fn witness_step(&mut self, request: &StepRequest) {
        let holds = self.watch.claimant == request.next.attempt;
        self.must(Promise::Fenced, holds);
        let value = request.next.value();
        let recorded = &mut self.watch.recorded[usize::from(request.step)];
        let stays = *recorded == NONE || *recorded == value;
        if *recorded == NONE {
            *recorded = value;
        }
        self.must(Promise::OutcomeStays, stays);
        if let Some(cell) = self.cell {
            self.witness_steps(cell);
        }
    }

    fn witness_steps(&mut self, cell: Cell) {
        let has_steps = self.steps.iter().any(Option::is_some);
        let binds = !has_steps || cell.state == State::Done || !is_freed(cell);
        self.must(Promise::StepsBind, binds);
    }

    /// A holder learns of a step that stands.
    pub(crate) fn witness_found(&mut self, held: &Held, found: StepCell) {
        self.must(Promise::OwnLife, found.life == held.life);
    }

    /// The body of a step runs, and has its effect.
    pub(crate) fn witness_run(&mut self, held: &Held, at_most_once: bool) {
        let step = held.step();
        self.must(Promise::NotRunAgain, !held.recorded[step]);
        if at_most_once {
            let effects = &mut self.watch.effects[usize::from(held.life) - 1][step];
            *effects = (*effects + 1).min(2);
            let is_once = *effects == 1;
            self.must(Promise::AtMostOnce, is_once);
        }
    }
}

/// Whether a claim, now or once the lease is over, begins a new life although the record has not
/// expired then.
fn is_freed(cell: Cell) -> bool {
    let Snapshot { record, .. } = snapshot(Some(cell));
    let Some(record) = record else { return false };
    let claim = claim(LAST, cell.on_crash, false);
    [NOW, record.lease_end.max(NOW)].into_iter().any(|now| {
        let snapshot = Snapshot {
            now,
            record: Some(record.clone()),
        };
        let decision = decide(&claim, &snapshot, || FRESH);
        let begins =
            matches!(&decision, ClaimDecision::Write { draft, .. } if draft.subject.is_some());
        begins && !record.is_expired(now)
    })
}
