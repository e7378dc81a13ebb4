//! A body of two steps: each is looked up where it may have been recorded before, registered, runs,
//! and is written.

use idempotent_runtime::{
    policy::OnCrash,
    protocol::{Beat, Meaning, StepDecision, decide_step},
    record::{State, StepState},
};
use model::call::{FRESH, arguments};

use crate::{
    driver::{Delivery, Protocol},
    faults::Fault,
    pack::snapshot,
    store::{self, Answer},
    world::{
        At, Draft, Held, Kind, Request, Row, Rows, Seen, Stage, StepWrite, Worker, World, Write,
    },
};

impl Protocol {
    /// Begins a step. The look-up and the question whether the lease stands are one: what was
    /// looked up counts only where the lease still stands when the answer is there.
    pub(crate) fn begin(&self, world: &mut World, worker: usize, step: usize) {
        let mut held = world.held(worker);
        let looks_up = held.meaning != Meaning::Fresh;
        let found = world.steps[step].filter(|_| looks_up);
        let stands = found.map(|found| found.step(step));
        held.known[step] = found;
        match decide_step(stands.as_ref(), arguments(), OnCrash::Rerun) {
            StepDecision::Replay(_) => held.at[step] = At::Ended,
            StepDecision::Run(Some(_)) => held.at[step] = At::Ready,
            StepDecision::Run(None) if self.fault == Fault::RegisteredAfterTheBody => {
                held.at[step] = At::Ready;
            }
            StepDecision::Run(None) => {
                let trusts = self.fault == Fault::MarkTakenForStanding && held.keeps;
                held.is_kept |= trusts;
                held.keeps = true;
                held.at[step] = At::Keeping;
            }
            _ => unreachable!("the arguments are the same, and no step runs at most once"),
        }
        world.hold(worker, held);
    }

    /// The holder has the record say that undos are open.
    pub(crate) fn keep(&self, world: &mut World, worker: usize, delivery: Delivery) {
        let stands = self.beat(world, worker, delivery);
        let mut held = world.held(worker);
        held.is_kept |= stands;
        world.hold(worker, held);
    }

    /// Prolongs the lease, at any moment until the call has ended. Tells whether the holder knows
    /// that it stands.
    pub(crate) fn beat(&self, world: &mut World, worker: usize, delivery: Delivery) -> bool {
        let mut held = world.held(worker);
        let holding = held.holding();
        let mut draft = held.kept(Draft::of(&holding.heartbeat(FRESH)));
        if self.fault == Fault::HeartbeatForgetsUndos
            && let Some(expires) = &mut draft.expires
        {
            expires.open = false;
        }
        let write = Write {
            by: held.attempt,
            seen: held.seen,
            draft,
            kind: Kind::Heartbeat,
        };
        if delivery == Delivery::Straggles {
            world.straggle(Request::Record(write));
            return false;
        }
        let applied = store::write_record(world, &write);
        if delivery == Delivery::AnswerLost {
            return false;
        }
        let sends_again = match holding.refused_heartbeat(&snapshot(world.cell)) {
            _ if applied => false,
            Beat::Again(_) => true,
            Beat::Over => self.fault == Fault::HeartbeatOverTheDecision,
            Beat::Lost => false,
        };
        held = world.held(worker);
        held.live |= applied;
        if applied || sends_again {
            held.seen = Seen::Current;
        }
        world.hold(worker, held);
        applied
    }

    /// Gives the step the next number of its life.
    pub(crate) fn take_number(&self, world: &mut World, worker: usize, step: usize) {
        let mut held = world.held(worker);
        let stands = match held.meaning {
            Meaning::Fresh => None,
            _ => world.steps.iter().flatten().map(|row| row.number).max(),
        };
        let first = stands.map_or(0, |last| last + 1);
        let number = held.next.unwrap_or(first);
        held.next = Some(number + 1);
        held.at[step] = At::Registering(number);
        world.hold(worker, held);
    }

    /// The body of a step runs, and has its effect.
    pub(crate) fn run(&self, world: &mut World, worker: usize, step: usize) {
        let mut held = world.held(worker);
        world.witness_run(&held, step);
        held.at[step] = if held.stage != Stage::Body {
            At::Gone
        } else if self.fault == Fault::RegisteredAfterTheBody && held.known[step].is_none() {
            held.keeps = true;
            At::Keeping
        } else {
            At::Writing
        };
        world.hold(worker, held);
    }

    pub(crate) fn send_step(
        &self,
        world: &mut World,
        worker: usize,
        step: usize,
        delivery: Delivery,
    ) {
        let held = world.held(worker);
        let write = step_write(&held, step);
        match delivery {
            Delivery::Straggles => world.straggle(Request::Step(write)),
            Delivery::AnswerLost => {
                store::write_step(world, &write);
            }
            Delivery::Answered => {
                let answer = store::write_step(world, &write);
                self.hear(world, worker, step, answer);
            }
        }
    }

    fn hear(&self, world: &mut World, worker: usize, step: usize, answer: Answer) {
        let mut held = world.held(worker);
        let stands = match answer {
            Answer::Written => step_write(&held, step).next,
            Answer::Stands(row) => row,
            Answer::Lost => {
                // No write of it is taken any more.
                world.workers[worker] = Worker::Idle;
                return;
            }
        };
        let is_closed = held.stage != Stage::Body;
        let may_run = held.live && (!is_closed || self.fault == Fault::BeginsBehindTheEnd);
        if !is_closed {
            held.known[step] = Some(stands);
        }
        held.at[step] = match held.at[step] {
            At::Writing => At::Ended,
            At::Registering(_) if self.fault == Fault::RegisteredAfterTheBody => At::Writing,
            At::Registering(_) if may_run => At::Ready,
            _ => At::Gone,
        };
        world.hold(worker, held);
    }
}

/// The write of a step that is registered or has run. It is the same each time that it is sent.
fn step_write(held: &Held, step: usize) -> StepWrite {
    let known = held.known[step];
    let (state, number, seen) = match (held.at[step], known) {
        (At::Registering(number), _) => (StepState::Begun, number, None),
        (At::Writing, Some(known)) => (StepState::Done, known.number, Some(known)),
        _ => unreachable!("only a step that is registered or has run is written"),
    };
    StepWrite {
        step,
        next: Row {
            state,
            attempt: held.attempt,
            number,
        },
        seen,
    }
}

impl Held {
    /// The same draft for a record that stays because undos are open.
    pub(crate) fn kept(&self, draft: Draft) -> Draft {
        let draft = draft.draft();
        Draft::of(&match self.keeps && draft.state != State::Done {
            true => draft.with_open_undos(),
            false => draft,
        })
    }
}

/// Those that are still to be undone.
pub(crate) fn to_be_undone(mut rows: Rows) -> Rows {
    for (place, row) in rows.iter_mut().enumerate() {
        *row = row.filter(|row| row.step(place).is_to_be_undone());
    }
    rows
}
