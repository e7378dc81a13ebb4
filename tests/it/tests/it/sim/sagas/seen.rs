//! The kinds of events that were seen in a simulation of steps that is over.

use idempotent_runtime::{
    Error,
    record::{State, StepState},
};

use super::{
    judge::Evidence,
    trip::{Failure, What},
};
use crate::{tally::Tally, told};

impl Evidence {
    pub(super) fn count(&self, tally: &mut Tally) {
        self.count_deeds(tally);
        self.count_writes(tally);
        for told in &self.told {
            tally.saw(match &told.result {
                Err(Failure::Refused(Error::NotUndone { .. })) => {
                    "told that something is not undone"
                }
                Err(Failure::Refused(Error::StepChanged { .. })) => {
                    "told that arguments of a step changed"
                }
                Err(Failure::Refused(refusal)) => told::of_refusal(refusal),
                Err(Failure::Declined { .. }) => "an error",
                Ok(_) => "a value",
            });
        }
        tally.saw_so_many("a caller that left, or died", self.left);
    }

    fn count_deeds(&self, tally: &mut Tally) {
        let began: Vec<_> = self
            .deeds
            .iter()
            .filter(|it| it.what == What::Began)
            .collect();
        for deed in &self.deeds {
            tally.saw(match &deed.what {
                What::Began => "a step",
                What::Gave(_)
                    if !began
                        .iter()
                        .any(|it| (it.under, it.leg) == (deed.under, deed.leg)) =>
                {
                    "a replayed step"
                }
                What::Gave(_) => "a recorded step",
                What::Refused => "a step that was refused",
                What::Panicked => "a panic",
                What::Undoes(None) => "an undo without a value",
                What::Undoes(Some(_)) => "an undo",
                What::Undone => "an undo that is through",
                What::NotUndone => "an undo that failed",
            });
            let legs = self.plans[deed.under.0 as usize].legs();
            if deed.what == What::Began
                && legs
                    .iter()
                    .any(|it| it.number == deed.leg && it.at_most_once)
            {
                tally.saw("a step of at most once");
            }
        }
    }

    fn count_writes(&self, tally: &mut Tally) {
        for entry in &self.steps {
            if entry.after.state == StepState::Released {
                tally.saw("a released step");
            }
        }
        for entry in &self.ledger {
            let Some(after) = entry.after.as_deref() else {
                continue;
            };
            let before = entry.before.as_deref();
            let was = before.map(|before| before.state);
            let is_own = before.is_some_and(|before| before.attempt_id == after.attempt_id);
            tally.saw(match (was, after.state) {
                (Some(State::Undoing), State::Undoing) if !is_own => "a decision taken over",
                (Some(State::Undoing), State::Done) => "a call that failed, undone",
                (Some(State::Undoing), State::Parked) => "a record parked with open undos",
                (_, State::Undoing) => "a decision",
                (Some(State::Running), State::Running) if !is_own => "a takeover",
                _ => "another write",
            });
        }
    }
}
