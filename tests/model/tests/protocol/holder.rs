//! A worker that holds the record: its body, its heartbeats and its end, a step at a time.

use idempotent_runtime::{
    protocol::{Beat, Meaning, Refusal},
    record::State,
};

use crate::{
    driver::{Delivery, Found, Protocol, Word},
    faults::Fault,
    pack::{LEASE, NOW, ahead, name, outcome_of, snapshot, version},
    store,
    world::{Caller, Draft, End, FRESH, Held, Kind, Name, Phase, Request, Worker, World},
};

impl Protocol {
    /// An ending reaches the store, and the answer reaches the worker.
    pub(crate) fn write_end(
        &self,
        world: &mut World,
        worker: usize,
        held: Held,
        end: End,
        request: &Request,
    ) {
        if store::swap(world, request, self.fault) {
            if end == End::Done {
                world.witness_answer(request.draft.outcome);
            }
            world.workers[worker].phase = Phase::Idle;
            return;
        }
        let caller = world.workers[worker].caller;
        let refusal = self.refused(world, caller, &held, end);
        world.witness_refusal(&held, end, &refusal);
        world.workers[worker].phase = match refusal {
            Refusal::Again(version) if self.fault == Fault::HeartbeatOverAnEnding => {
                let version = name(version);
                self.ending(caller, Held { version, ..held }, version, end)
            }
            // The heartbeat keeps its own version: over that of an uncertain record it would make
            // the record run again.
            Refusal::Again(version) => self.ending(caller, held, name(version), end),
            Refusal::Stands(record) | Refusal::Lost(Some(record))
                if record.state == State::Done && !record.is_expired(NOW) =>
            {
                world.witness_answer(outcome_of(record.outcome.as_ref()));
                Phase::Idle
            }
            Refusal::Stands(_) | Refusal::Lost(_) => Phase::Idle,
        };
    }

    fn refused(&self, world: &World, caller: Caller, held: &Held, end: End) -> Refusal {
        let stands = world.cell.filter(|cell| cell.attempt_id == held.attempt_id);
        match (self.fault, end, stands) {
            (Fault::UncertainTwice, End::Uncertain, Some(cell)) => {
                Refusal::Again(version(cell.version))
            }
            _ => held
                .holding(caller)
                .refused(&end.ending(held.attempt_id), &snapshot(world.cell)),
        }
    }

    /// The holder begins to end what it holds, over the version that it has seen.
    fn ending(&self, caller: Caller, held: Held, seen: Name, end: End) -> Phase {
        let written = match (self.fault, end, held.meaning) {
            (Fault::ReconcileReleases, End::Uncertain, Meaning::Reconcile) => End::Release,
            (Fault::CancelReleases, End::Stopped, _) => End::Release,
            _ => end,
        };
        let meaning = match (self.fault, written) {
            (Fault::TakeoverReleases, End::Release) => Meaning::Fresh,
            _ => held.meaning,
        };
        let holding = Held { meaning, ..held }.holding(caller);
        let ending = written.ending(held.attempt_id);
        let draft = match (self.fault, end) {
            (Fault::StoppedHolds, End::Stopped) => holding.heartbeat(version(FRESH)),
            _ => holding.end(&ending, version(FRESH)),
        };
        let request = Request {
            by: held.attempt_id,
            seen: Some(seen),
            draft: Draft::of(&draft),
            kind: Kind::End(end),
        };
        // A holder that is gone does not beat. Its knowledge of its lease and body makes no
        // difference any more.
        let beats = held.beats && !matches!(end, End::Unpolled | End::Stopped);
        let held = Held {
            version: if beats { held.version } else { seen },
            beats,
            lease: 0,
            polled: false,
            current: false,
            ..held
        };
        Phase::Ending(held, end, request)
    }

    fn end(&self, world: &mut World, worker: usize, end: End, delivery: Delivery) {
        let Worker {
            caller,
            phase: Phase::Holding(held),
        } = world.workers[worker]
        else {
            unreachable!("only a holder ends")
        };
        world.workers[worker].phase = self.ending(caller, held, held.version, end);
        self.send(world, worker, delivery);
    }

    /// A claim that is given up before its answer came may stand, or be under way.
    pub(crate) fn cancel(&self, world: &mut World, worker: usize, delivery: Delivery) {
        match world.workers[worker].phase {
            Phase::Holding(held) if held.polled => self.end(world, worker, End::Stopped, delivery),
            Phase::Holding(_) => self.end(world, worker, End::Unpolled, delivery),
            Phase::Claiming(
                attempt_id,
                Request {
                    seen,
                    kind: Kind::Claim(Meaning::Fresh | Meaning::Takeover | Meaning::Reconcile),
                    ..
                },
            ) => world.workers[worker].phase = Phase::GivingUp(attempt_id, seen),
            _ => world.workers[worker].phase = Phase::Idle,
        }
    }

    pub(crate) fn beat(&self, world: &mut World, worker: usize, delivery: Delivery) {
        let Worker { caller, phase } = world.workers[worker];
        let held = *world.workers[worker].held();
        let request = Request {
            by: held.attempt_id,
            seen: Some(held.version),
            draft: Draft::of(&held.holding(caller).heartbeat(version(FRESH))),
            kind: Kind::Heartbeat,
        };
        if delivery == Delivery::Straggles {
            world.straggler = Some(request);
            world.stragglers_left -= 1;
            return;
        }
        let applied = store::swap(world, &request, self.fault);
        if delivery == Delivery::AnswerLost {
            return;
        }
        let beat = (!applied).then(|| held.refused_heartbeat(caller, world.cell));
        let held = world.workers[worker].held();
        match beat {
            None if matches!(phase, Phase::Ending(..)) => held.version = FRESH,
            None => (held.version, held.lease) = (FRESH, ahead(NOW.plus(LEASE))),
            Some(Beat::Again(version)) => held.version = name(version),
            Some(Beat::Over | Beat::Lost) => held.beats = false,
        }
    }

    pub(crate) fn poll(&self, world: &mut World, worker: usize) {
        let held = world.workers[worker].held();
        held.polled = true;
        let held = *held;
        world.witness_body(&held);
    }

    pub(crate) fn reconcile(
        &self,
        world: &mut World,
        worker: usize,
        found: Found,
        delivery: Delivery,
    ) {
        match found {
            Found::Happened => self.end(world, worker, End::Done, delivery),
            Found::Unknown => self.end(world, worker, End::Uncertain, delivery),
            Found::RunAgain => {
                let caller = world.workers[worker].caller;
                let held = world.workers[worker].held();
                let mut holding = held.holding(caller);
                holding.run_again();
                held.meaning = holding.meaning();
            }
        }
    }

    pub(crate) fn return_with(
        &self,
        world: &mut World,
        worker: usize,
        word: Word,
        delivery: Delivery,
    ) {
        let end = match word {
            Word::Outcome => End::Done,
            Word::Release => End::Release,
            Word::Uncertain => End::Uncertain,
        };
        self.end(world, worker, end, delivery);
    }
}
