//! The end of a call, and what follows from it.

use idempotent_runtime::protocol::{Meaning, Refusal};
use model::call::FRESH;

use crate::{
    body::to_be_undone,
    driver::{Delivery, Protocol},
    faults::Fault,
    pack::snapshot,
    store,
    world::{At, Draft, End, Held, Kind, Request, STEPS, Seen, Stage, Worker, World, Write},
};

impl Protocol {
    /// A body whose error is final ends so.
    pub(crate) fn failure(held: &Held) -> End {
        match held.keeps {
            true => End::Undo,
            false => End::Error,
        }
    }

    /// A body whose error is not final ends so.
    pub(crate) fn release(held: &Held) -> End {
        match held.keeps {
            true => End::GiveBack,
            false => End::Release,
        }
    }

    /// The body is over, and drops what still runs of it, but for a registration by another task.
    pub(crate) fn end(&self, world: &mut World, worker: usize, end: End) {
        let mut held = world.held(worker);
        held.stage = Stage::Ending(end);
        for at in &mut held.at {
            let goes_on = self.in_tasks && end == End::Undo && matches!(at, At::Registering(_));
            if !goes_on {
                *at = At::Gone;
            }
        }
        held.next = None;
        held.known = match (end, held.meaning) {
            // It knows all of them.
            (End::Undo, Meaning::Fresh) => to_be_undone(held.known),
            _ => [None; STEPS],
        };
        // Its timer counts from here on, and says nothing before the decision stands.
        held.live |= end == End::Undo;
        if end == End::Undo && self.fault == Fault::UndoesUndecided {
            held = begins_to_undo(held);
        }
        world.hold(worker, held);
    }

    pub(crate) fn send_end(&self, world: &mut World, worker: usize, delivery: Delivery) {
        let mut held = world.held(worker);
        let Stage::Ending(end) = held.stage else {
            unreachable!("only an ending is sent");
        };
        let (holding, ending) = match (end, self.fault) {
            (End::Left, Fault::LeavingCounts) => (held.holding(), End::Stopped.ending()),
            _ => (held.holding(), end.ending()),
        };
        let write = Write {
            by: held.attempt,
            seen: held.seen,
            draft: held.kept(Draft::of(&holding.end(&ending, FRESH))),
            kind: Kind::End(end),
        };
        match delivery {
            Delivery::Straggles => return world.straggle(Request::Record(write)),
            Delivery::AnswerLost => {
                store::write_record(world, &write);
                return;
            }
            Delivery::Answered => {}
        }
        let applied = store::write_record(world, &write);
        let refusal = holding.refused(&ending, &snapshot(world.cell));
        world.workers[worker] = match refusal {
            Refusal::Again(_) if !applied => {
                held.seen = Seen::Current;
                Worker::Holding(held)
            }
            Refusal::Lost(_) if !applied => Worker::Idle,
            _ if end == End::Undo => Worker::Holding(begins_to_undo(held)),
            _ => Worker::Idle,
        };
    }
}

/// The decision stands.
fn begins_to_undo(held: Held) -> Held {
    Held {
        seen: Seen::Current,
        keeps: true,
        is_kept: true,
        undoing: true,
        stage: match held.meaning {
            Meaning::Fresh => Stage::Undoing,
            _ => Stage::Looking,
        },
        ..held
    }
}
