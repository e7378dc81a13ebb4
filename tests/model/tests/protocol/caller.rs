//! A worker on its way to an answer: what `run::admit` does around the state machine, a step at a
//! time.

use std::sync::Arc;

use idempotent_runtime::protocol::{ClaimDecision, Meaning, decide, first};

use crate::{
    driver::{Delivery, Protocol},
    faults::Fault,
    pack::{LEASE, ahead, attempt, attempt_number, claim, name, outcome_of, snapshot, version},
    store,
    world::{Draft, End, FRESH, FRESHER, Held, Kind, NONE, Name, Phase, Request, TICK, World},
};

impl Protocol {
    pub(crate) fn call(&self, world: &mut World, worker: usize, delivery: Delivery) {
        let draft = Draft::of(&first(
            &claim(world.workers[worker].caller, FRESH),
            version(FRESH),
        ));
        world.workers[worker].phase = claiming(FRESH, None, draft, Meaning::Fresh);
        world.calls_left -= 1;
        self.send(world, worker, delivery);
    }

    pub(crate) fn send(&self, world: &mut World, worker: usize, delivery: Delivery) {
        if delivery == Delivery::Answered {
            return match world.workers[worker].phase {
                Phase::GivingUp(attempt_id, seen) => {
                    self.give_up(world, worker, attempt_id, seen);
                    world.workers[worker].phase = Phase::Idle;
                }
                Phase::Claiming(attempt_id, request) => {
                    self.claim(world, worker, attempt_id, &request);
                }
                Phase::Ending(held, end, request) => {
                    self.write_end(world, worker, held, end, &request);
                }
                _ => unreachable!("there is nothing to send"),
            };
        }
        if let Phase::GivingUp(attempt_id, seen) = world.workers[worker].phase {
            // It looks again, and gives up what it finds then.
            return self.give_up(world, worker, attempt_id, seen);
        }
        let request = world.workers[worker].request_mut().expect("it sends");
        let sent = *request;
        // A request that is sent again is the same except for its version: a version that stood,
        // and was purged, must not stand again.
        if self.fault != Fault::RetryKeepsVersion {
            request.draft.version = FRESHER;
        }
        if delivery == Delivery::AnswerLost {
            store::swap(world, &sent, self.fault);
        } else {
            world.straggler = Some(sent);
            world.stragglers_left -= 1;
        }
    }

    pub(crate) fn arrive(&self, world: &mut World) {
        let request = world.straggler.take().expect("something straggles");
        let stands = store::swap(world, &request, self.fault);
        world.witness_arrival(stands);
    }

    /// Gives up the claim of a caller that went away, as `run::job` does.
    fn give_up(&self, world: &mut World, worker: usize, attempt_id: Name, seen: Option<Name>) {
        let claim = claim(world.workers[worker].caller, attempt_id);
        let stands = world.cell.is_some_and(|cell| cell.attempt_id == attempt_id);
        let written = claim.give_up(seen.map(version), &snapshot(world.cell), version(FRESH));
        let looks_only = self.fault == Fault::GivesUpWhatStandsOnly && !stands;
        if let Some((seen, draft)) = written.filter(|_| !looks_only) {
            let kind = if stands {
                Kind::End(End::Unpolled)
            } else {
                Kind::Touch
            };
            let (by, seen, mut draft) = (attempt_id, seen.map(name), Draft::of(&draft));
            if self.fault == Fault::LeavesItsName && draft.attempt_id == NONE {
                draft.attempt_id = by;
            }
            let request = Request {
                by,
                seen,
                draft,
                kind,
            };
            store::swap(world, &request, self.fault);
        }
        let own = |straggler: &Request| {
            straggler.by == attempt_id && matches!(straggler.kind, Kind::Claim(_))
        };
        if world.straggler.as_ref().is_some_and(own) {
            world.given_up = TICK;
        }
    }

    pub(crate) fn wake(&self, world: &mut World, worker: usize) {
        let Phase::Waiting { attempt_id, .. } = world.workers[worker].phase else {
            unreachable!("only who waits wakes")
        };
        self.decide(world, worker, attempt_id);
    }

    /// A claim reaches the store, and the answer reaches the worker.
    fn claim(&self, world: &mut World, worker: usize, attempt_id: Name, request: &Request) {
        let Kind::Claim(meaning) = request.kind else {
            unreachable!("only a claim is sent by who holds nothing")
        };
        if !store::swap(world, request, self.fault) {
            return self.decide(world, worker, attempt_id);
        }
        world.workers[worker].phase = match meaning {
            Meaning::Park | Meaning::LeaveUncertain => Phase::Idle,
            Meaning::Fresh | Meaning::Takeover | Meaning::Reconcile => {
                Phase::Holding(Held::won(request, meaning))
            }
            Meaning::GoOn | Meaning::Undo => unreachable!("no call here has steps"),
        };
    }

    /// The worker decides about what stands.
    fn decide(&self, world: &mut World, worker: usize, attempt_id: Name) {
        let caller = world.workers[worker].caller;
        let (mut claim, mut snapshot) = (claim(caller, attempt_id), snapshot(world.cell));
        match (self.fault, &snapshot.record) {
            (Fault::ClientsClock, _) => snapshot.now = snapshot.now.plus(LEASE),
            (Fault::NoFingerprint, Some(record)) => claim.subject = Arc::clone(&record.subject),
            (Fault::NeverParks, _) => claim.max_takeovers = u32::MAX,
            (Fault::ClaimsAreStrangers, _) => {
                claim.attempt_id = attempt(FRESHER);
            }
            _ => {}
        }
        let decision = decide(&claim, &snapshot, || version(FRESH));
        world.witness_decision(caller, attempt_id, &decision);
        world.workers[worker].phase = match decision {
            ClaimDecision::Write {
                seen,
                draft,
                meaning,
            } => {
                let (seen, mut draft) = (seen.map(name), Draft::of(&draft));
                if self.fault == Fault::TakeoverDoesNotCount && meaning == Meaning::Takeover {
                    draft.attempt -= 1;
                }
                claiming(attempt_id, seen, draft, meaning)
            }
            // The answer came so late that the lease is over: it claims once more what it won.
            ClaimDecision::Mine(record) if record.lease_is_over(snapshot.now) => {
                let draft = Draft::of(&claim.renew(&record, version(FRESH)));
                let seen = Some(name(record.version));
                claiming(attempt_id, seen, draft, Meaning::won(&record, false))
            }
            ClaimDecision::Mine(record) => Phase::Holding(Held {
                attempt_id,
                attempt: attempt_number(record.attempt),
                on_crash: record.on_crash,
                meaning: Meaning::won(&record, false),
                version: name(record.version),
                lease: ahead(record.lease_end),
                polled: false,
                beats: true,
                current: true,
            }),
            ClaimDecision::InProgress(record, _) => Phase::Waiting {
                attempt_id,
                seen: name(record.version),
            },
            ClaimDecision::Replay(record) => {
                world.witness_answer(outcome_of(record.outcome.as_ref()));
                Phase::Idle
            }
            ClaimDecision::Expired(_)
            | ClaimDecision::KeyReused(_)
            | ClaimDecision::Uncertain(_)
            | ClaimDecision::Parked(_) => Phase::Idle,
        };
    }
}

/// A worker that sends this claim.
fn claiming(by: Name, seen: Option<Name>, draft: Draft, meaning: Meaning) -> Phase {
    let kind = Kind::Claim(meaning);
    Phase::Claiming(
        by,
        Request {
            by,
            seen,
            draft,
            kind,
        },
    )
}

impl Held {
    /// The holding that a claim won whose draft was applied just now.
    pub(crate) fn won(request: &Request, meaning: Meaning) -> Self {
        let draft = request.draft;
        Self {
            attempt_id: draft.attempt_id,
            attempt: draft.attempt,
            on_crash: draft.on_crash,
            meaning,
            version: draft.version,
            lease: draft.lease.expect("a claim has a lease"),
            polled: false,
            beats: true,
            current: true,
        }
    }
}
