//! A body of two steps: each is looked up where it may have been recorded before, runs, and is
//! written.

use idempotent_runtime::{
    policy::OnCrash,
    protocol::{Meaning, StepDecision, decide_step},
    record::StepState,
};
use model::call::arguments;

use crate::{
    driver::{Delivery, Protocol},
    faults::Fault,
    pack::step_version,
    store::{self, StepWrite},
    watch::Promise,
    world::{At, End, Held, Request, StepCell, StepRequest, StepVersion, Worker, World},
};

impl Protocol {
    /// The fate of a step when its holder vanishes.
    fn step_on_crash(&self) -> OnCrash {
        if self.at_most_once {
            OnCrash::Uncertain
        } else {
            OnCrash::Rerun
        }
    }

    /// How a body that returns an error ends.
    pub(crate) fn failure(&self, held: &Held) -> End {
        if held.has_steps && self.fault != Fault::ReleaseFreesSteps {
            End::GiveBack
        } else {
            End::Release
        }
    }

    /// Begins the next step. The look-up and the question whether the lease stands are one: what
    /// was looked up counts only where the lease still stands when the answer is there.
    pub(crate) fn begin(&self, world: &mut World, worker: usize) {
        let held = held(world, worker);
        let looks_up = held.meaning != Meaning::Fresh && self.fault != Fault::LooksNothingUp;
        let found = world.steps[held.step()].filter(|_| looks_up);
        self.meet(world, worker, found);
    }

    /// Does what `found` asks for.
    fn meet(&self, world: &mut World, worker: usize, found: Option<StepCell>) {
        let mut held = held(world, worker);
        let on_crash = self.step_on_crash();
        let stands = found.map(|found| found.step(held.step(), on_crash));
        if let Some(found) = found {
            world.witness_found(&held, found);
            held.has_steps = true;
        }
        match decide_step(stands.as_ref(), arguments(), on_crash) {
            StepDecision::Run(seen) => {
                let seen = seen.map(step_version);
                let begins = self.at_most_once && self.fault != Fault::BegunAfterTheBody;
                self.goes_to(
                    &mut held,
                    if begins {
                        At::Beginning(seen)
                    } else {
                        At::Ready(seen)
                    },
                );
            }
            StepDecision::Replay(step) => {
                held.values[held.step()] = step_version(step.version);
                held.at = At::Between;
            }
            StepDecision::Uncertain(_) => {
                let is_own = found.is_some_and(|found| found.attempt == held.attempt);
                world.must(Promise::UncertainOfAnother, !is_own);
                held.at = At::Ending(End::Uncertain);
            }
            StepDecision::Changed(_) | StepDecision::Ask(_) => {
                unreachable!("the arguments are the same, and nobody asks")
            }
        }
        world.workers[worker] = Worker::Holding(held);
    }

    /// An attempt that is about to write may have written.
    fn goes_to(&self, held: &mut Held, at: At) {
        held.at = at;
        let writes = matches!(at, At::Beginning(_) | At::Writing(_));
        held.has_steps |= writes && self.fault != Fault::OnlyAnsweredCounts;
    }

    pub(crate) fn run(&self, world: &mut World, worker: usize) {
        let mut held = held(world, worker);
        let At::Ready(seen) = held.at else {
            unreachable!("only what is ready runs");
        };
        world.witness_run(&held, self.at_most_once);
        let begins = self.at_most_once && self.fault == Fault::BegunAfterTheBody;
        self.goes_to(
            &mut held,
            if begins {
                At::Beginning(seen)
            } else {
                At::Writing(seen)
            },
        );
        world.workers[worker] = Worker::Holding(held);
    }

    pub(crate) fn send_step(&self, world: &mut World, worker: usize, delivery: Delivery) {
        let mut held = held(world, worker);
        let mut request = request(&held);
        match delivery {
            Delivery::Answered => {
                let answer = store::write_step(world, self.fault, &request);
                return self.hear(world, worker, &request, answer);
            }
            Delivery::AnswerLost => {
                store::write_step(world, self.fault, &request);
            }
            Delivery::Straggles => {
                request.admitted = self.fault == Fault::FenceReadBefore
                    && store::admits(world.cell, self.fault, &request);
                world.straggle(Request::Step(request));
            }
        }
        if self.fault == Fault::BeginsUnanswered && request.next.state == StepState::Begun {
            held.at = At::Ready(Some(request.next.version()));
            world.workers[worker] = Worker::Holding(held);
        }
    }

    /// The answer to a write is there.
    fn hear(&self, world: &mut World, worker: usize, request: &StepRequest, answer: StepWrite) {
        let mut held = held(world, worker);
        let version = request.next.version();
        let is_own = |stands: StepCell| {
            stands.version() == version && self.fault != Fault::OwnIsTakenForForeign
        };
        match answer {
            StepWrite::Lost => held.at = At::Ending(self.failure(&held)),
            StepWrite::Stands(stands) if !is_own(stands) && self.fault != Fault::OwnValueKept => {
                return self.meet(world, worker, Some(stands));
            }
            StepWrite::Written | StepWrite::Stands(_) => {
                held.has_steps = true;
                self.written(&mut held, request.next.state, version);
            }
        }
        world.workers[worker] = Worker::Holding(held);
    }

    fn written(&self, held: &mut Held, state: StepState, version: StepVersion) {
        held.at = match state {
            StepState::Begun if self.fault == Fault::BegunAfterTheBody => {
                At::Writing(Some(version))
            }
            StepState::Begun => At::Ready(Some(version)),
            _ => {
                held.values[held.step()] = version;
                At::Between
            }
        };
    }

    /// No answer came for so long that the attempt is poisoned: it writes no step and no
    /// completion any more, and only ends its lease.
    pub(crate) fn give_up(&self, world: &mut World, worker: usize) {
        let mut held = held(world, worker);
        let request = request(&held);
        if self.fault == Fault::PoisonedCompletes && request.next.state == StepState::Done {
            self.written(&mut held, StepState::Done, request.next.version());
        } else {
            held.at = At::Ending(self.failure(&held));
        }
        world.workers[worker] = Worker::Holding(held);
    }
}

/// The future of the step is dropped. The step may run again in this attempt.
pub(crate) fn drop_step(world: &mut World, worker: usize) {
    let mut held = held(world, worker);
    held.dropped[held.step()] += 1;
    held.at = At::Between;
    world.drops_left -= 1;
    world.workers[worker] = Worker::Holding(held);
}

pub(crate) fn held(world: &World, worker: usize) -> Held {
    *world.workers[worker]
        .held()
        .expect("only a holder has a body")
}

/// The write of the step that the holder is at. It is the same each time that it is sent.
pub(crate) fn request(held: &Held) -> StepRequest {
    let (state, seen) = match held.at {
        At::Beginning(seen) => (StepState::Begun, seen),
        At::Writing(seen) => (StepState::Done, seen),
        _ => unreachable!("only a step that begins or has run is written"),
    };
    let step = held.step();
    StepRequest {
        step: u8::try_from(step).expect("there are few steps"),
        next: StepCell {
            state,
            attempt: held.attempt,
            run: held.dropped[step],
            life: held.life,
        },
        seen,
        token: held.token,
        admitted: false,
    }
}
