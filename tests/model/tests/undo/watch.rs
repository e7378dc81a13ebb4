//! The promises, and the notes that are needed to see one broken. Nothing here asks what the store
//! asks: the notes tell on their own which attempt holds the record, and what it did.

use idempotent_runtime::{
    protocol::Meaning,
    record::{State, StepState},
};
use model::call::TAKEOVERS;

use crate::world::{Cell, End, Held, Kind, Name, Outcome, STEPS, Word, World, Write};

const NOBODY: Name = 0;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Watch {
    /// The attempt whose claim stands; none if it has ended since, or an operator has settled its
    /// record. An effect of any other attempt comes from a holder that stalled for longer than its
    /// lease, and no store can stop it. It is no part of any promise here.
    pub(crate) claimant: Name,
    /// How many of its holders vanished. An operator who lets it be tried again leaves one of them
    /// counted.
    pub(crate) vanished: u32,
    /// Whether the record was ever being undone in this life.
    pub(crate) undoing: bool,
    /// Whether an attempt left it parked after that.
    pub(crate) was_parked: bool,
    /// The outcome that was recorded first in this life.
    pub(crate) outcome: Outcome,
    /// A step counts once its body has begun. A registration whose answer the holder never got
    /// counts for nothing, because no body runs behind it.
    pub(crate) effects: [Effect; STEPS],
    pub(crate) broken: Broken,
}

/// The effect of a step in this life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Effect {
    #[default]
    None,
    Stands,
    Undone,
}

/// Which promises were broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Broken(u16);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Promise {
    NotForward,
    AllUndone,
    RegisteredBefore,
    Kept,
    LatestFirst,
    OutcomeStays,
    DecidedBefore,
    OnlyCrashesPark,
    NoneIsParkedHeld,
}

impl Promise {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Promise::NotForward => "no body of a step begins once the call is being undone",
            Promise::AllUndone => "a recorded error has every effect of its life undone",
            Promise::RegisteredBefore => "no step has an effect before its registration stands",
            Promise::Kept => {
                "no record is deleted or begun anew with an effect and without an outcome"
            }
            Promise::LatestFirst => "an attempt undoes from the larger number to the smaller one",
            Promise::OutcomeStays => "the first recorded outcome of a life never changes",
            Promise::NoneIsParkedHeld => "no call is parked as a dead letter while it is held",
            Promise::OnlyCrashesPark => {
                "a claim parks no call unless more holders vanished than its budget has takeovers"
            }
            Promise::DecidedBefore => "no undo runs before the error of the call is recorded",
        }
    }
}

impl Broken {
    pub(crate) fn contains(self, promise: Promise) -> bool {
        self.0 & (1 << promise as u16) != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Whether an attempt that ends so holds nothing any more.
fn is_over(end: End) -> bool {
    end != End::Undo
}

impl World {
    fn must(&mut self, promise: Promise, holds: bool) {
        if !holds {
            self.watch.broken.0 |= 1 << promise as u16;
        }
    }

    /// The record and its steps are about to be forgotten.
    pub(crate) fn witness_forgotten(&mut self) {
        let has_outcome = self.cell.is_some_and(|cell| cell.state == State::Done);
        let stands = self.watch.effects.contains(&Effect::Stands);
        self.must(Promise::Kept, has_outcome || !stands);
        let broken = self.watch.broken;
        self.watch = Watch {
            broken,
            ..Watch::default()
        };
    }

    /// `write` was applied, and `next` stands now.
    pub(crate) fn witness_record(&mut self, write: &Write, next: Cell) {
        self.witness_holder(write);
        let watch = &mut self.watch;
        watch.was_parked |= write.kind == Kind::End(End::NotUndone);
        watch.undoing |= next.state == State::Undoing;
        let first = watch.outcome;
        if first == Outcome::None {
            watch.outcome = next.outcome;
        }
        let all_undone = !watch.effects.contains(&Effect::Stands);
        let failed = next.state == State::Done && next.outcome == Outcome::Error;
        let stays = first == Outcome::None || next.outcome == first;
        self.must(Promise::OutcomeStays, stays);
        self.must(Promise::AllUndone, !failed || all_undone);
    }

    /// `write` was applied: who holds the record from now on, and who vanished before.
    fn witness_holder(&mut self, write: &Write) {
        let watch = &mut self.watch;
        let is_own = write.by == watch.claimant;
        let is_held = watch.claimant != NOBODY;
        match write.kind {
            Kind::Claim(_) => {
                watch.vanished += u32::from(is_held && !is_own);
                watch.claimant = write.by;
            }
            Kind::Settle(Word::Park) => {
                watch.claimant = NOBODY;
                self.must(Promise::NoneIsParkedHeld, !is_held);
            }
            Kind::Settle(_) => (watch.claimant, watch.vanished) = (NOBODY, 1),
            Kind::End(end) if is_own && is_over(end) => {
                watch.vanished += u32::from(end == End::Stopped);
                watch.claimant = NOBODY;
            }
            Kind::GiveUp if is_own => watch.claimant = NOBODY,
            Kind::End(_) | Kind::GiveUp | Kind::Heartbeat => {}
        }
        if write.kind == Kind::Claim(Meaning::Park) {
            let is_spent = self.watch.vanished > TAKEOVERS;
            self.watch.claimant = NOBODY;
            self.must(Promise::OnlyCrashesPark, is_spent);
        }
    }

    /// The body of a step runs, and has its effect.
    pub(crate) fn witness_run(&mut self, held: &Held, step: usize) {
        if held.attempt != self.watch.claimant {
            return;
        }
        self.watch.effects[step] = Effect::Stands;
        let (undoing, row) = (self.watch.undoing, self.steps[step]);
        self.must(Promise::NotForward, !undoing);
        let is_registered = row.is_some_and(|row| row.state == StepState::Begun);
        self.must(Promise::RegisteredBefore, is_registered);
    }

    /// The undo of a step runs. An undo that comes late, because its holder stalled, undoes all the
    /// same.
    pub(crate) fn witness_undo(&mut self, held: &Held, step: usize, number: u8) {
        let goes_down = held.undone_last.is_none_or(|last| number < last);
        self.must(Promise::LatestFirst, goes_down);
        let is_decided = self.watch.outcome == Outcome::Error;
        let is_of_this_life = held.attempt == self.watch.claimant;
        self.must(Promise::DecidedBefore, is_decided || !is_of_this_life);
        let effect = &mut self.watch.effects[step];
        if *effect == Effect::Stands {
            *effect = Effect::Undone;
        }
    }
}
