//! The sights that must be seen somewhere: a model in which nothing happens keeps every promise.

use idempotent_runtime::{
    protocol::{Meaning, takes_steps},
    record::{State, StepState},
};
use model::call::attempt;

use crate::{
    body::request,
    world::{At, Cell, Held, NONE, Name, Request, StepRequest, World, attempt_of},
};

/// A sight that has to be seen somewhere, or else the model proves little.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    Replayed,
    Mixed,
    StragglerRefused,
    StalledRefused,
    Recognised,
    WentOn,
    Uncertain,
    FoundItsOwn,
    StoppedWrites,
    NextLife,
    PausedWrites,
}

impl Sight {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Sight::Replayed => "a takeover goes on with a step of another attempt",
            Sight::Mixed => "an outcome holds values of two attempts",
            Sight::StragglerRefused => "a write that straggled is refused",
            Sight::StalledRefused => "the write of a worker that stalled is refused",
            Sight::Recognised => "a write whose answer was lost is recognised",
            Sight::WentOn => "a record that was given back goes on with its steps",
            Sight::Uncertain => "a call is uncertain because a step had begun",
            Sight::FoundItsOwn => "a step that was dropped runs again, and its first write stands",
            Sight::StoppedWrites => "the last write of a call that stopped is taken",
            Sight::NextLife => "a step is recorded in a second life",
            Sight::PausedWrites => "a paused holder writes a step of a record left uncertain",
        }
    }

    pub(crate) fn shows(self, world: &World) -> bool {
        let Some(cell) = world.cell else { return false };
        let straggler = match world.straggler {
            Some(Request::Step(request)) => Some(request),
            _ => None,
        };
        let stragglers_attempt = straggler.map(|request| request.next.attempt);
        let holds = |shows: &dyn Fn(&Held) -> bool| {
            world
                .workers
                .iter()
                .filter_map(|worker| worker.held())
                .any(shows)
        };
        let writes = |shows: &dyn Fn(&Held, StepRequest) -> bool| {
            holds(&|held| {
                matches!(held.at, At::Beginning(_) | At::Writing(_)) && shows(held, request(held))
            })
        };
        match self {
            Sight::Replayed => holds(&|held| held.meaning == Meaning::Takeover && replays(held)),
            Sight::WentOn => holds(&|held| held.meaning == Meaning::GoOn && replays(held)),
            Sight::Mixed => attempt_of(cell.outcome[0]) != attempt_of(cell.outcome[1]),
            Sight::StragglerRefused => stragglers_attempt.is_some_and(|by| !takes(cell, by)),
            Sight::StalledRefused => writes(&|held, _| !takes(cell, held.attempt)),
            Sight::Recognised => writes(&|held, request| {
                takes(cell, held.attempt) && world.steps[held.step()] == Some(request.next)
            }),
            Sight::Uncertain => cell.state == State::Uncertain && has(world, StepState::Begun),
            Sight::FoundItsOwn => writes(&|held, request| {
                world.steps[held.step()].is_some_and(|stands| {
                    stands.attempt == held.attempt && stands.run < request.next.run
                })
            }),
            Sight::StoppedWrites => stragglers_attempt.is_some_and(|by| {
                takes(cell, by)
                    && cell.state == State::Running
                    && !holds(&|held| held.attempt == by)
            }),
            Sight::NextLife => world.watch.life > 1 && has(world, StepState::Done),
            Sight::PausedWrites => {
                cell.state == State::Uncertain && writes(&|held, _| takes(cell, held.attempt))
            }
        }
    }
}

fn takes(cell: Cell, by: Name) -> bool {
    takes_steps(&cell.record(), attempt(by))
}

/// Whether its body goes on with a value of another attempt.
fn replays(held: &Held) -> bool {
    let foreign = |value: &u8| *value != NONE && attempt_of(*value) != held.attempt;
    held.values.iter().any(foreign)
}

fn has(world: &World, state: StepState) -> bool {
    world.steps.iter().flatten().any(|step| step.state == state)
}
