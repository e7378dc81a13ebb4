//! The store: a record in a versioned cell with a clock, and beside it the steps of its life, as
//! every store has to keep them. The faults are the ways in which a store could get it wrong.

use idempotent_runtime::protocol::takes_steps;
use model::call::{NOW, attempt};

use crate::{
    faults::Fault,
    world::{Cell, Kind, STEPS, Seen, StepCell, StepRequest, World, Write},
};

/// The answer to a step that was to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepWrite {
    Written,
    Stands(StepCell),
    Lost,
}

/// Puts the draft where the version that was seen stands, and tells whether it did. A draft that
/// begins a record forgets the steps of the life before.
pub(crate) fn write_record(world: &mut World, fault: Fault, write: &Write) -> bool {
    let stands = match write.seen {
        Seen::Nothing => world.cell.is_none(),
        Seen::Current => world.cell.is_some(),
        Seen::Stale => false,
    };
    if !stands {
        return false;
    }
    let previous = world.cell.map(Cell::record);
    let next = Cell::of(&write.draft.draft().apply(previous.as_ref(), NOW));
    let forgets = match fault {
        Fault::StepsOutliveTheirLife => false,
        Fault::TakeoverForgets => matches!(write.kind, Kind::Claim(_)),
        _ => write.draft.begins,
    };
    if forgets {
        world.steps = [None; STEPS];
    }
    world.cell = Some(next);
    world.outdate();
    world.witness_record(write, next);
    true
}

/// Puts the step where the record takes steps of its attempt, and no version stands except the one
/// that was seen.
pub(crate) fn write_step(world: &mut World, fault: Fault, request: &StepRequest) -> StepWrite {
    if !request.admitted && !admits(world.cell, fault, request) {
        return StepWrite::Lost;
    }
    match world.steps[usize::from(request.step)] {
        Some(step) if request.seen != Some(step.version()) && fault != Fault::LastWriteWins => {
            StepWrite::Stands(step)
        }
        _ => {
            world.steps[usize::from(request.step)] = Some(request.next);
            world.witness_step(request);
            StepWrite::Written
        }
    }
}

/// The fence.
pub(crate) fn admits(cell: Option<Cell>, fault: Fault, request: &StepRequest) -> bool {
    cell.is_some_and(|cell| match fault {
        Fault::FencedByToken => cell.token == request.token,
        _ => takes_steps(&cell.record(), attempt(request.next.attempt)),
    })
}
