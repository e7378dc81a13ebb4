//! The undos of a call that has failed for good.

use idempotent_runtime::record::StepState;

use crate::{
    body::to_be_undone,
    driver::{Delivery, Protocol},
    faults::Fault,
    store::{self, Answer},
    world::{At, End, Held, Request, Row, STEPS, Stage, StepWrite, Worker, World},
};

impl Protocol {
    /// Lists the steps that are to be undone.
    pub(crate) fn look_for_undos(&self, world: &mut World, worker: usize) {
        let mut held = world.held(worker);
        held.known = to_be_undone(match self.fault {
            Fault::ListedBefore => held.looked,
            _ => world.steps,
        });
        held.at = [At::Gone; STEPS];
        held.stage = Stage::Undoing;
        world.hold(worker, held);
    }

    /// The step that is undone next: that of the largest number.
    pub(crate) fn next_undo(&self, held: &Held) -> Option<usize> {
        let open = (0..STEPS).filter(|step| held.known[*step].is_some());
        let number = |step: &usize| held.known[*step].map(|row| row.number);
        match self.fault {
            Fault::FirstIsUndoneFirst => open.min_by_key(number),
            _ => open.max_by_key(number),
        }
    }

    /// The undo of a step runs.
    pub(crate) fn undo(&self, world: &mut World, worker: usize, step: usize) {
        let mut held = world.held(worker);
        let marks_first = self.fault == Fault::MarkedBeforeItRan && held.stage == Stage::Undoing;
        if !marks_first {
            let number = held.known[step].expect("it is on the list").number;
            world.witness_undo(&held, step, number);
            held.undone_last = Some(number);
        }
        held.stage = match held.stage {
            Stage::Marked(_) => {
                held.known[step] = None;
                Stage::Undoing
            }
            _ => Stage::Undone(step),
        };
        world.hold(worker, held);
    }

    /// It fails as often as it is tried, or was not found.
    pub(crate) fn undo_fails(&self, world: &mut World, worker: usize, step: usize) {
        let mut held = world.held(worker);
        held.known[step] = None;
        held.left = true;
        world.hold(worker, held);
    }

    pub(crate) fn send_undone(
        &self,
        world: &mut World,
        worker: usize,
        step: usize,
        delivery: Delivery,
    ) {
        let mut held = world.held(worker);
        let known = held.known[step].expect("it is on the list");
        let write = StepWrite {
            step,
            next: Row {
                state: StepState::Undone,
                attempt: held.attempt,
                number: known.number,
            },
            seen: Some(known),
        };
        if delivery == Delivery::Straggles {
            return world.straggle(Request::Step(write));
        }
        let answer = store::write_step(world, &write);
        if delivery == Delivery::AnswerLost {
            return;
        }
        held.stage = match answer {
            Answer::Stands(row) if row != write.next => Stage::Ending(End::Stopped),
            Answer::Lost => Stage::Ending(End::Stopped),
            _ if self.fault == Fault::MarkedBeforeItRan => Stage::Marked(step),
            _ => {
                held.known[step] = None;
                Stage::Undoing
            }
        };
        world.hold(worker, held);
    }

    /// Nothing is on the list any more.
    pub(crate) fn finish(&self, world: &mut World, worker: usize) {
        let mut held = world.held(worker);
        let is_left = held.left && self.fault != Fault::LeftIsForgotten;
        held.stage = Stage::Ending(if is_left { End::NotUndone } else { End::Error });
        world.workers[worker] = Worker::Holding(held);
    }
}
