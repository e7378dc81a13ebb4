//! A worker's way to the record: it decides, claims, or gives its claim up. And the word of an
//! operator.

use std::time::Duration;

use idempotent_runtime::{
    protocol::{self, ClaimDecision, Meaning, Settlement},
    record::{self, AttemptId, State},
};
use model::call::{FRESH, NOW, TAKEOVERS};

use crate::{
    driver::{Delivery, Protocol},
    faults::Fault,
    pack::{claim, error, snapshot},
    store,
    world::{
        At, Claiming, Draft, Held, Kind, Name, Outcome, Request, Rows, STEPS, Stage, Word, Worker,
        World, Write,
    },
};

impl Protocol {
    /// Begins a call.
    pub(crate) fn call(&self, world: &mut World, worker: usize) {
        let attempt = world.fresh_name();
        let looked = match self.fault {
            Fault::ListedBefore => world.steps,
            _ => [None; STEPS],
        };
        self.look(world, worker, attempt, false, looked);
    }

    /// Decides about what stands.
    fn look(&self, world: &mut World, worker: usize, attempt: Name, goes_on: bool, looked: Rows) {
        let claim = claim(attempt, goes_on);
        let plan = |draft: &record::Draft, meaning| {
            let mut draft = Draft::of(draft);
            self.spoil_claim(&mut draft, meaning);
            Worker::Claiming(Claiming {
                attempt,
                goes_on: goes_on || meaning == Meaning::GoOn,
                write: Write {
                    by: attempt,
                    seen: world.seen(),
                    draft,
                    kind: Kind::Claim(meaning),
                },
                meaning,
                looked,
            })
        };
        world.workers[worker] = match protocol::decide(&claim, &snapshot(world.cell), || FRESH) {
            ClaimDecision::Write { draft, meaning, .. } => plan(&draft, meaning),
            ClaimDecision::Mine(record) => {
                let meaning = Meaning::won(&record, goes_on);
                if record.lease_is_over(NOW) {
                    plan(&claim.renew(&record, FRESH), meaning)
                } else {
                    self.won(world, attempt, meaning, looked)
                }
            }
            // It was answered, or waits: it holds nothing, and calls again.
            _ => Worker::Idle,
        };
    }

    fn spoil_claim(&self, draft: &mut Draft, meaning: Meaning) {
        let takes_over = meaning != Meaning::Fresh && draft.above.is_some();
        if self.fault == Fault::TakeoverForgetsUndos
            && takes_over
            && let Some(expires) = &mut draft.expires
        {
            expires.open = false;
        }
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
            looked,
        } = claiming;
        match delivery {
            Delivery::Straggles => world.straggle(Request::Record(write)),
            Delivery::AnswerLost => {
                store::write_record(world, &write);
            }
            Delivery::Answered => {
                if !store::write_record(world, &write) {
                    self.look(world, worker, attempt, goes_on, looked);
                } else if matches!(meaning, Meaning::Park | Meaning::LeaveUncertain) {
                    world.workers[worker] = Worker::Idle;
                } else {
                    world.workers[worker] = self.won(world, attempt, meaning, looked);
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
        let claim = claim(by, claiming.goes_on);
        let seen = claiming.write.seen.version();
        let given_up = claim.give_up(seen, &snapshot(world.cell), FRESH);
        if let Some((_, draft)) = given_up {
            let write = Write {
                by,
                seen: world.seen(),
                draft: Draft::of(&draft),
                kind: Kind::GiveUp,
            };
            store::write_record(world, &write);
        }
    }

    /// The record stands for the claim of this attempt.
    fn won(&self, world: &World, attempt: Name, meaning: Meaning, looked: Rows) -> Worker {
        let cell = world.cell.expect("its claim stands");
        let undoes = meaning == Meaning::Undo && self.fault != Fault::RunsForward;
        Worker::Holding(Held {
            attempt,
            number: cell.number,
            meaning,
            seen: world.seen(),
            live: cell.lease > 0,
            keeps: cell.expires.open,
            is_kept: cell.expires.open,
            next: None,
            at: [At::Out; STEPS],
            known: [None; STEPS],
            stage: if undoes { Stage::Looking } else { Stage::Body },
            undoing: cell.outcome == Outcome::Error,
            left: false,
            undone_last: None,
            looked,
        })
    }

    /// An operator says that a parked call may be tried again, or that an abandoned one has failed
    /// for good. Or a call that was given back is parked, because nobody is to call it again.
    pub(crate) fn settle(&self, world: &mut World, word: Word) {
        let settlement = match word {
            Word::Undo => Settlement::Undo(error()),
            Word::Park => Settlement::Park,
            Word::Resume => Settlement::Resume {
                max_takeovers: TAKEOVERS,
            },
        };
        let mut record = world.cell.expect("a record is settled").record();
        if self.fault == Fault::ParksWhatIsHeld && word == Word::Park {
            record.attempt_id = AttemptId::GIVEN_BACK;
        }
        let settled = protocol::settle(&record, &settlement, NOW, Duration::ZERO, FRESH);
        let Some(draft) = settled else { return };
        // Only what is dead beforehand is parked so, and no operator speaks.
        world.words_left -= u8::from(word != Word::Park);
        let write = Write {
            by: 0,
            seen: world.seen(),
            draft: Draft::of(&draft),
            kind: Kind::Settle(word),
        };
        store::write_record(world, &write);
    }
}

/// Whether a record is there that an operator may settle.
pub(crate) fn may_be_settled(world: &World) -> bool {
    let states = [State::Running, State::Parked, State::Undoing];
    world.words_left > 0 && world.cell.is_some_and(|cell| states.contains(&cell.state))
}
