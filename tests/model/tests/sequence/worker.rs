//! The steps of a worker: it decides, claims, gives up, and ends what it holds, a step at a time.

use idempotent_runtime::{
    policy::OnCrash,
    protocol::sequence::{
        Applied, CopyAnswer, Gaps, LastChange, NumberState, StreamDecision, StreamDraft,
        StreamHolding, StreamRefusal, decide,
    },
    record::{OutcomeKind, TokenRule},
};

use crate::{
    driver::{Delivery, Protocol},
    faults::Fault,
    pack::{FRESH, LEASE, NOW},
    store::{self, Kind, Write},
    watch::Promise,
    world::{Body, Cell, End, Held, Phase, Seen, Straggler, What, Worker, World},
};

impl Protocol {
    pub(crate) fn decision(&self, number: u8, owns: bool, cell: Option<Cell>) -> StreamDecision {
        let mut claim = self.choice.claim(number, owns);
        let mut stream = cell.map(Cell::stream);
        let mut now = NOW;
        let running = stream.as_mut().and_then(|stream| stream.running.as_mut());
        let state = running.as_ref().map(|running| running.state);
        match (self.fault, running) {
            (Fault::TakeoverSkips, _) if state == Some(NumberState::Running) => {
                claim.gaps = Gaps::Accept;
            }
            (Fault::StoppedGoesOn, _) if state != Some(NumberState::Running) => {
                stream.iter_mut().for_each(|stream| stream.running = None);
            }
            (Fault::PassesTheUncertain, Some(running)) if running.number < number.into() => {
                running.on_crash = OnCrash::Rerun;
                claim.on_crash = OnCrash::Rerun;
            }
            (Fault::ClientsClock, _) => now = now.plus(LEASE),
            (Fault::NeverParks, _) => claim.max_takeovers = u32::MAX,
            _ => {}
        }
        decide(&claim, stream.as_ref(), now, FRESH)
    }

    pub(crate) fn call(&self, world: &mut World, worker: usize, number: u8) {
        world.workers[worker] = Worker::IDLE;
        let (looked_at, seen) = match world.copy {
            Some((copy, stands)) => (Some(copy), if stands { Seen::Current } else { Seen::Stale }),
            None => (world.cell, seen_of(world.cell)),
        };
        self.look(world, worker, number, looked_at, seen);
    }

    /// Decides about `cell`, which was at the version `seen`.
    fn look(&self, world: &mut World, worker: usize, number: u8, cell: Option<Cell>, seen: Seen) {
        let owns = world.workers[worker].owns;
        let decision = self.decision(number, owns, cell);
        let truth = self.decision(number, owns, world.cell);
        world.witness_decision(&decision, &truth);
        match decision {
            StreamDecision::Write { .. } => {
                world.workers[worker].phase = Phase::Claiming(number, seen);
            }
            StreamDecision::Mine => self.hold(world, worker, number),
            // It was answered, or waits: who waits holds nothing, and calls again.
            _ => world.workers[worker] = Worker::IDLE,
        }
    }

    /// The record stands for the claim of this worker.
    fn hold(&self, world: &mut World, worker: usize, number: u8) {
        let cell = world.cell.expect("its claim stands");
        let run = cell.running.expect("its claim stands");
        let claim = self.choice.claim(number, true);
        let holding = StreamHolding::standing(&claim, &cell.stream());
        assert!(holding.is_some(), "{cell:?} does not stand for {number}");
        world.workers[worker].phase = Phase::Holding(Held {
            run,
            token: cell.token,
            seen: Seen::Current,
            live: cell.live,
            body: Body::Unpolled,
        });
    }

    pub(crate) fn send(&self, world: &mut World, worker: usize, delivery: Delivery) {
        let Worker { phase, owns, .. } = world.workers[worker];
        if delivery == Delivery::Straggles {
            let (what, seen) = match phase {
                Phase::Claiming(number, seen) => (What::Claim(number), seen),
                Phase::Ending(held, end) => (What::End(held, end), held.seen),
                _ => unreachable!("nothing else straggles"),
            };
            world.straggler = Some(Straggler {
                what,
                seen,
                owns,
                given_up: false,
            });
            world.stragglers_left -= 1;
            world.workers[worker].straggles = true;
            return;
        }
        let is_told = delivery == Delivery::Answered;
        match phase {
            Phase::Claiming(number, seen) => {
                self.send_claim(world, worker, (number, seen), is_told);
            }
            Phase::GivingUp(number, seen) => self.give_up(world, worker, (number, seen), is_told),
            Phase::Ending(held, end) => self.send_end(world, worker, (held, end), is_told),
            _ => unreachable!("it sends nothing"),
        }
    }

    fn send_claim(
        &self,
        world: &mut World,
        worker: usize,
        (number, seen): (u8, Seen),
        is_told: bool,
    ) {
        let owns = world.workers[worker].owns;
        let applied = self.write_claim(world, number, seen, owns, Some(worker));
        match (applied, is_told) {
            (_, false) => {}
            (None, _) => self.look(world, worker, number, world.cell, seen_of(world.cell)),
            (Some(true), _) => self.hold(world, worker, number),
            (Some(false), _) => world.workers[worker] = Worker::IDLE,
        }
    }

    /// A claim reaches the store. It tells whether it holds the number now; `None` where it was
    /// refused. The record is the one that was decided about, where the version is the same: a
    /// lease that was over has not begun again.
    fn write_claim(
        &self,
        world: &mut World,
        number: u8,
        seen: Seen,
        owns: bool,
        by: Option<usize>,
    ) -> Option<bool> {
        if !store::stands(world.cell, seen) {
            return None;
        }
        let StreamDecision::Write { draft, meaning, .. } = self.decision(number, owns, world.cell)
        else {
            return None;
        };
        let draft = match self.fault {
            Fault::MovesBeforeTheBody => moved(&draft),
            Fault::TokenStays if world.cell.is_some() => StreamDraft {
                token: TokenRule::Keep,
                ..draft
            },
            _ => draft,
        };
        let write = Write {
            draft,
            kind: Kind::Claim(meaning),
            owns,
            by,
        };
        self.write(world, seen, &write)
            .then(|| !matches!(write.kind, Kind::Claim(meaning) if store::leaves(meaning)))
    }

    fn give_up(&self, world: &mut World, worker: usize, (number, seen): (u8, Seen), is_told: bool) {
        let owns = world.workers[worker].owns;
        let claim = self.choice.claim(number, owns);
        let stream = world.cell.map(Cell::stream);
        let given_up = claim.give_up(seen.version(), stream.as_ref(), FRESH);
        let given_up = given_up.filter(|_| owns || self.fault != Fault::GivesUpWhatStandsOnly);
        if let Some((_, draft)) = given_up {
            let write = Write {
                draft,
                kind: Kind::GiveUp,
                owns,
                by: Some(worker),
            };
            let seen = seen_of(world.cell);
            self.write(world, seen, &write);
        }
        if is_told || given_up.is_none() {
            if let Some(straggler) = &mut world.straggler {
                straggler.given_up |= world.workers[worker].straggles;
            }
            world.workers[worker] = Worker::IDLE;
        }
    }

    fn send_end(&self, world: &mut World, worker: usize, (held, end): (Held, End), is_told: bool) {
        let owns = world.workers[worker].owns;
        let applied = self.write_end(world, (held, end), held.seen, owns);
        if !is_told {
            return;
        }
        let holding = self.choice.holding(&held, owns);
        let stream = world.cell.map(Cell::stream);
        world.workers[worker] = match holding.refused(&end.ending(), stream.as_ref()) {
            StreamRefusal::Again(_) if !applied => Worker {
                phase: Phase::Ending(
                    Held {
                        seen: Seen::Current,
                        ..held
                    },
                    end,
                ),
                ..world.workers[worker]
            },
            _ => Worker::IDLE,
        };
    }

    fn write_end(
        &self,
        world: &mut World,
        (held, end): (Held, End),
        seen: Seen,
        owns: bool,
    ) -> bool {
        let written = match (self.fault, end) {
            (Fault::CancelReleases, End::Stopped) => End::Release,
            _ => end,
        };
        let mut draft = self
            .choice
            .holding(&held, owns)
            .end(&written.ending(), FRESH);
        let did_nothing = matches!(written, End::Release | End::Unpolled);
        match self.fault {
            Fault::ReleaseForgets if did_nothing => draft.last = LastChange::Forget,
            Fault::PassedIsForgotten if did_nothing && held.run.takeovers == 0 => {
                draft.running = None;
            }
            _ => {}
        }
        let write = Write {
            draft,
            kind: Kind::End(held.run.number, end),
            owns,
            by: None,
        };
        self.write(world, seen, &write)
    }

    pub(crate) fn beat(&self, world: &mut World, worker: usize) {
        let Worker {
            phase: Phase::Holding(held),
            owns,
            ..
        } = world.workers[worker]
        else {
            unreachable!("only a holder beats");
        };
        let holding = self.choice.holding(&held, owns);
        let draft = holding.heartbeat(FRESH);
        let write = Write {
            draft,
            kind: Kind::Beat,
            owns,
            by: None,
        };
        let applied = self.write(world, held.seen, &write);
        let may_go_on = world
            .cell
            .is_some_and(|cell| holding.may_beat(&cell.stream()));
        if let Phase::Holding(held) = &mut world.workers[worker].phase {
            held.live |= applied;
            // Refused over a version of its own, it beats again over that one.
            if applied || may_go_on {
                held.seen = Seen::Current;
            }
        }
    }

    pub(crate) fn arrive(&self, world: &mut World) {
        let Some(straggler) = world.straggler else {
            return;
        };
        let applied = match straggler.what {
            What::Claim(number) => {
                let by = world.workers.iter().position(|worker| worker.straggles);
                let applied = self.write_claim(world, number, straggler.seen, straggler.owns, by);
                applied.is_some()
            }
            What::End(held, end) => {
                self.write_end(world, (held, end), straggler.seen, straggler.owns)
            }
        };
        world.straggler = None;
        world.must(Promise::GivenUpStays, !(applied && straggler.given_up));
    }

    fn write(&self, world: &mut World, seen: Seen, write: &Write) -> bool {
        store::swap(world, self, seen, write)
    }
}

fn seen_of(cell: Option<Cell>) -> Seen {
    cell.map_or(Seen::Nothing, |_| Seen::Current)
}

pub(crate) fn advance(world: &mut World, worker: usize, to: Body) {
    if let Phase::Holding(held) = &mut world.workers[worker].phase {
        held.body = to;
    }
}

pub(crate) fn end_with(world: &mut World, worker: usize, end: End) {
    let held = world.workers[worker].held().expect("only a holder ends");
    world.workers[worker].phase = Phase::Ending(held, end);
}

pub(crate) fn cancel(world: &mut World, worker: usize) {
    match world.workers[worker].phase {
        Phase::Claiming(number, seen) => {
            world.workers[worker].phase = Phase::GivingUp(number, seen);
        }
        Phase::Holding(held) => {
            let is_begun = held.body != Body::Unpolled;
            end_with(
                world,
                worker,
                if is_begun {
                    End::Stopped
                } else {
                    End::Unpolled
                },
            );
        }
        _ => unreachable!("nobody cancels it"),
    }
}

/// The claim that moves the number before its body has run.
fn moved(draft: &StreamDraft) -> StreamDraft {
    let last = draft.running.map_or(draft.last, |running| {
        LastChange::Moves(Applied {
            number: running.number,
            fingerprint: running.fingerprint,
            answer: CopyAnswer::Recorded(OutcomeKind::Value),
        })
    });
    StreamDraft { last, ..*draft }
}
