//! A worker's way to the record and out of it: it decides, claims, gives up, and ends what it
//! holds.

use idempotent_runtime::{
    protocol::{self, ClaimDecision, Meaning, Refusal},
    record,
};
use model::call::{FRESH, NOW, claim};

use crate::{
    driver::{Delivery, Protocol},
    faults::Fault,
    pack::snapshot,
    store,
    world::{
        At, Claiming, Draft, End, Held, Kind, NONE, Name, Request, STEPS, Seen, Worker, World,
        Write,
    },
};

impl Protocol {
    /// Begins a call.
    pub(crate) fn call(&self, world: &mut World, worker: usize) {
        let attempt = world.fresh_name();
        self.look(world, worker, attempt, false);
    }

    /// Decides about what stands.
    fn look(&self, world: &mut World, worker: usize, attempt: Name, goes_on: bool) {
        let claim = claim(attempt, self.on_crash, goes_on);
        let plan = |draft: &record::Draft, meaning| {
            Worker::Claiming(Claiming {
                attempt,
                goes_on: goes_on
                    || (meaning == Meaning::GoOn && self.fault != Fault::GoesOnForgotten),
                write: Write {
                    by: attempt,
                    seen: seen_of(world),
                    draft: Draft::of(draft),
                    kind: Kind::Claim(meaning),
                },
                meaning,
            })
        };
        world.workers[worker] = match protocol::decide(&claim, &snapshot(world.cell), || FRESH) {
            ClaimDecision::Write { draft, meaning, .. } => plan(&draft, meaning),
            ClaimDecision::Mine(record) => {
                let meaning = Meaning::won(&record, goes_on);
                if record.lease_is_over(NOW) {
                    plan(&claim.renew(&record, FRESH), meaning)
                } else {
                    hold(world, attempt, meaning)
                }
            }
            // It was answered, or waits: it holds nothing, and calls again.
            _ => Worker::Idle,
        };
    }

    pub(crate) fn send_claim(&self, world: &mut World, worker: usize, delivery: Delivery) {
        let Worker::Claiming(claiming) = world.workers[worker] else {
            unreachable!("only a claim is sent");
        };
        let Claiming {
            attempt,
            goes_on,
            write,
            meaning,
        } = claiming;
        match delivery {
            Delivery::Straggles => world.straggle(Request::Record(write)),
            Delivery::AnswerLost => {
                store::write_record(world, self.fault, &write);
            }
            Delivery::Answered => {
                if !store::write_record(world, self.fault, &write) {
                    self.look(world, worker, attempt, goes_on);
                } else if matches!(meaning, Meaning::Park | Meaning::LeaveUncertain) {
                    world.workers[worker] = Worker::Idle;
                } else {
                    world.workers[worker] = hold(world, attempt, meaning);
                }
            }
        }
    }

    /// The caller goes away while the claim is under way: what may stand is given up.
    pub(crate) fn cancel(&self, world: &mut World, worker: usize) {
        let Worker::Claiming(claiming) = world.workers[worker] else {
            unreachable!("only a claim is given up");
        };
        let by = claiming.attempt;
        world.workers[worker] = Worker::Idle;
        let claim = claim(by, self.on_crash, claiming.goes_on);
        let seen = claiming.write.seen.version();
        let given_up = claim.give_up(seen, &snapshot(world.cell), FRESH);
        if let Some((_, draft)) = given_up {
            let write = Write {
                by,
                seen: seen_of(world),
                draft: Draft::of(&draft),
                kind: Kind::GiveUp,
            };
            store::write_record(world, self.fault, &write);
        }
    }

    pub(crate) fn send_end(
        &self,
        world: &mut World,
        worker: usize,
        (mut held, end): (Held, End),
        delivery: Delivery,
    ) {
        let holding = held.holding(self.on_crash);
        let ending = held.ending(match end {
            End::GiveBack if self.fault == Fault::GivenBackByName => End::Stopped,
            _ => end,
        });
        let write = Write {
            by: held.attempt,
            seen: held.seen,
            draft: Draft::of(&holding.end(&ending, FRESH)),
            kind: Kind::End(end),
        };
        match delivery {
            Delivery::Straggles => world.straggle(Request::Record(write)),
            Delivery::AnswerLost => {
                store::write_record(world, self.fault, &write);
            }
            Delivery::Answered => {
                world.workers[worker] = Worker::Idle;
                let applied = store::write_record(world, self.fault, &write);
                let refusal = holding.refused(&ending, &snapshot(world.cell));
                if !applied && matches!(refusal, Refusal::Again(_)) {
                    held.seen = Seen::Current;
                    world.workers[worker] = Worker::Holding(held);
                }
            }
        }
    }

    pub(crate) fn arrive(&self, world: &mut World) {
        match world.straggler.take() {
            Some(Request::Record(write)) => {
                store::write_record(world, self.fault, &write);
            }
            Some(Request::Step(request)) => {
                store::write_step(world, self.fault, &request);
            }
            None => {}
        }
    }
}

impl World {
    pub(crate) fn straggle(&mut self, request: Request) {
        self.stragglers_left -= 1;
        self.straggler = Some(request);
    }
}

fn seen_of(world: &World) -> Seen {
    world.cell.map_or(Seen::Nothing, |_| Seen::Current)
}

/// The record stands for the claim of this attempt.
fn hold(world: &World, attempt: Name, meaning: Meaning) -> Worker {
    let cell = world.cell.expect("its claim stands");
    Worker::Holding(Held {
        attempt,
        number: cell.number,
        token: cell.token,
        on_crash: cell.on_crash,
        meaning,
        seen: Seen::Current,
        live: cell.lease > 0,
        at: At::Between,
        values: [NONE; STEPS],
        dropped: [0; STEPS],
        has_steps: false,
        life: world.watch.life,
        recorded: world.watch.at_claim,
    })
}
