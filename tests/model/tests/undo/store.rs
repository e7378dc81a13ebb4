//! The store: a record in a versioned cell with a clock, and beside it the steps of its life, as
//! every store has to keep them.

use idempotent_runtime::{protocol::takes_steps, record::Record};
use model::call::{NOW, attempt};

use crate::world::{Cell, Row, STEPS, Seen, StepWrite, World, Write};

/// The answer to a step that was to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Written,
    Stands(Row),
    Lost,
}

/// Puts the draft where the version that was seen stands, and tells whether it did. A draft that
/// begins a record forgets the steps of the life before.
pub(crate) fn write_record(world: &mut World, write: &Write) -> bool {
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
    if write.draft.begins {
        world.steps = [None; STEPS];
        world.witness_forgotten();
    }
    world.cell = Some(next);
    world.outdate();
    world.witness_record(write, next);
    true
}

/// Puts the step where the record takes steps of its attempt, and no version stands except the one
/// that was seen.
pub(crate) fn write_step(world: &mut World, write: &StepWrite) -> Answer {
    let record = world.cell.map(Cell::record);
    let by = attempt(write.next.attempt);
    if !record.is_some_and(|record: Record| takes_steps(&record, by)) {
        return Answer::Lost;
    }
    let row = &mut world.steps[write.step];
    match *row {
        Some(stands) if stands == write.next || *row != write.seen => Answer::Stands(stands),
        _ => {
            *row = Some(write.next);
            Answer::Written
        }
    }
}

/// Whether a purge would delete the record.
pub(crate) fn is_forgettable(world: &World) -> bool {
    let record = world.cell.map(Cell::record);
    record.is_some_and(|record| record.is_forgettable(NOW, std::time::Duration::ZERO))
}

pub(crate) fn purge(world: &mut World) {
    world.witness_forgotten();
    world.cell = None;
    world.steps = [None; STEPS];
    world.outdate();
}
