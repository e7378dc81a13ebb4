//! The sights that must be seen somewhere: a model in which nothing happens keeps every promise.

use idempotent_runtime::{
    protocol::Meaning,
    record::{State, StepState},
};

use crate::{
    watch::Effect,
    world::{At, Held, Outcome, STEPS, Stage, World},
};

/// A sight that has to be seen somewhere, or else the model proves little.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    UndoneByItself,
    UndoneByAnother,
    UndoneByTwo,
    NotUndone,
    UndoneAfterAll,
    Spent,
    ValueAfterTakeover,
    OpenAndAbandoned,
    LateRegistration,
    LargerNumberFirst,
    LeftByThree,
}

impl Sight {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Sight::UndoneByItself => "the attempt that decided undoes both steps",
            Sight::UndoneByAnother => "a takeover undoes the steps of another attempt",
            Sight::UndoneByTwo => "the steps of one call are undone by two attempts",
            Sight::NotUndone => "a call is parked with an effect that is not undone",
            Sight::UndoneAfterAll => "a call that was parked is undone after all",
            Sight::Spent => "a call is parked because too many holders vanished that undid it",
            Sight::ValueAfterTakeover => "a call has a value after a takeover",
            Sight::OpenAndAbandoned => "a record outlives its retention, because undos are open",
            Sight::LateRegistration => "a registration is under way while the call is undone",
            Sight::LeftByThree => "a call is undone by its fourth holder, and none vanished",
            Sight::LargerNumberFirst => "the first step of the body has the larger number",
        }
    }

    pub(crate) fn shows(self, world: &World) -> bool {
        let Some(cell) = world.cell else { return false };
        let effects = world.watch.effects;
        let both_undone = effects == [Effect::Undone; STEPS];
        let failed = cell.state == State::Done && cell.outcome == Outcome::Error;
        let holds = |shows: &dyn Fn(&Held) -> bool| {
            let mut holders = world.workers.iter().filter_map(|worker| worker.held());
            holders.any(shows)
        };
        let undone = |step: usize| {
            let row = world.steps[step].filter(|row| row.state == StepState::Undone);
            row.map(|row| row.attempt)
        };
        match self {
            Sight::UndoneByItself => failed && both_undone && cell.token == 1,
            Sight::LeftByThree => {
                failed && both_undone && cell.token == 4 && world.watch.vanished == 0
            }
            Sight::UndoneByAnother => holds(&|held| {
                held.meaning == Meaning::Undo && matches!(held.stage, Stage::Undone(_))
            }),
            Sight::UndoneByTwo => {
                let (first, second) = (undone(0), undone(1));
                failed && both_undone && first.is_some() && second.is_some() && first != second
            }
            Sight::NotUndone => cell.state == State::Parked && effects.contains(&Effect::Stands),
            Sight::UndoneAfterAll => failed && both_undone && world.watch.was_parked,
            Sight::Spent => {
                cell.state == State::Parked
                    && cell.outcome == Outcome::Error
                    && !world.watch.was_parked
            }
            Sight::ValueAfterTakeover => {
                cell.state == State::Done && cell.outcome == Outcome::Value && cell.number > 1
            }
            Sight::OpenAndAbandoned => {
                cell.expires.ahead == 0 && cell.lease == 0 && effects.contains(&Effect::Stands)
            }
            Sight::LateRegistration => holds(&|held| {
                held.undoing && held.at.iter().any(|at| matches!(at, At::Registering(_)))
            }),
            Sight::LargerNumberFirst => {
                let number = |step: usize| world.steps[step].map(|row| row.number);
                number(1).is_some() && number(0) > number(1)
            }
        }
    }
}
