//! The sights that must be seen somewhere: a model in which nothing interesting happens keeps every
//! promise.

use idempotent_runtime::{
    policy::OnCrash,
    protocol::{ClaimDecision, Meaning, Refusal, decide},
    record::State,
};

use crate::{
    pack::{claim, snapshot, version},
    world::{Cell, End, FRESH, Held, Kind, NONE, Phase, RESUMED, Worker, World},
};

/// A sight that has to be seen somewhere, or else the model proves little.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    Recorded,
    Released,
    Uncertain,
    Parked,
    TakenOver,
    Asked,
    RunAgain,
    Outlived,
    Waiting,
    Recognised,
    WaiterReplays,
    KeyReused,
    Settled,
    SettledByOperator,
    Resumed,
    AskedOfUncertain,
    Purged,
    BegunAnew,
}

impl Sight {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Sight::Recorded => "an outcome is recorded",
            Sight::Released => "a record is released",
            Sight::Uncertain => "a record is uncertain",
            Sight::Parked => "a record is parked",
            Sight::TakenOver => "a worker holds what another one held",
            Sight::Asked => "the reconciling function is asked",
            Sight::RunAgain => "a reconciliation runs the body again",
            Sight::Outlived => "a holder outlives its holding",
            Sight::Waiting => "two workers wait",
            Sight::Recognised => "a claim whose answer was lost is recognised",
            Sight::WaiterReplays => "one that waited is given the recorded outcome",
            Sight::KeyReused => "other arguments are refused",
            Sight::Settled => "a paused holder completes what somebody left uncertain",
            Sight::SettledByOperator => {
                "an operator settles a record that a paused holder still knows"
            }
            Sight::Resumed => "a worker takes over what an operator let be tried again",
            Sight::AskedOfUncertain => "a reconciliation claims what is uncertain",
            Sight::BegunAnew => "a call begins anew over an outcome that has expired",
            Sight::Purged => "a record is purged that somebody still holds or waits for",
        }
    }

    pub(crate) fn shows(self, world: &World) -> bool {
        let state = world.cell.map(|cell| cell.state);
        let phases = || world.workers.iter().map(|worker| worker.phase);
        let holds = |shown: fn(&Held) -> bool| {
            phases().any(|phase| matches!(phase, Phase::Holding(held) if shown(&held)))
        };
        let will = |does: fn(&ClaimDecision) -> bool| {
            let decisions = world
                .workers
                .iter()
                .filter_map(|worker| next(worker, world));
            decisions.into_iter().any(|decision| does(&decision))
        };
        match self {
            Sight::Recorded => state == Some(State::Done),
            Sight::Released => state == Some(State::Released),
            Sight::Uncertain => state == Some(State::Uncertain),
            Sight::Parked => state == Some(State::Parked),
            Sight::TakenOver => holds(|held| held.meaning == Meaning::Takeover && !held.polled),
            Sight::Asked => holds(|held| held.meaning == Meaning::Reconcile),
            Sight::RunAgain => holds(|held| {
                held.meaning == Meaning::Takeover && held.on_crash == OnCrash::Reconcile
            }),
            Sight::Outlived => {
                let standing = world.cell.map(|cell| cell.attempt_id);
                phases().any(|phase| matches!(phase, Phase::Holding(held) if Some(held.attempt_id) != standing))
            }
            Sight::Waiting => {
                let waits =
                    |phase: &Phase| matches!(phase, Phase::Waiting { seen, .. } if *seen != NONE);
                phases().filter(waits).count() == 2
            }
            Sight::Recognised => will(|decision| matches!(decision, ClaimDecision::Mine(_))),
            Sight::KeyReused => will(|decision| matches!(decision, ClaimDecision::KeyReused(_))),
            Sight::WaiterReplays => world.workers.iter().any(|worker| {
                matches!(worker.phase, Phase::Waiting { .. })
                    && matches!(next(worker, world), Some(ClaimDecision::Replay(_)))
            }),
            Sight::Settled => world.workers.iter().any(|worker| settles(worker, world)),
            Sight::SettledByOperator => {
                let settled = |cell: Cell| cell.state == State::Done && cell.attempt_id == NONE;
                world.cell.is_some_and(settled) && holds(|_| true)
            }
            Sight::Resumed => {
                let takes = |phase| {
                    matches!(phase, Phase::Claiming(_, request)
                        if matches!(request.kind, Kind::Claim(Meaning::Takeover | Meaning::Reconcile)))
                };
                world.cell.is_some_and(|cell| cell.attempt_id == RESUMED) && phases().any(takes)
            }
            Sight::AskedOfUncertain => {
                let asks = |phase| matches!(phase, Phase::Claiming(_, request) if request.kind == Kind::Claim(Meaning::Reconcile));
                state == Some(State::Uncertain) && phases().any(asks)
            }
            Sight::BegunAnew => {
                let begins = |phase| matches!(phase, Phase::Claiming(_, request) if request.kind == Kind::Claim(Meaning::Fresh) && request.seen.is_some());
                state == Some(State::Done) && phases().any(begins)
            }
            Sight::Purged => {
                let knew = |phase| {
                    matches!(
                        phase,
                        Phase::Holding(_) | Phase::Ending(..) | Phase::Waiting { .. }
                    )
                };
                world.cell.is_none() && phases().any(knew)
            }
        }
    }
}

/// The decision of this worker when it looks, or is refused and looks.
fn next(worker: &Worker, world: &World) -> Option<ClaimDecision> {
    let refused = match worker.phase {
        Phase::Claiming(_, request) => request.seen != world.cell.map(|cell| cell.version),
        Phase::Waiting { .. } => true,
        _ => false,
    };
    let attempt_id = worker.attempt_id().filter(|_| refused)?;
    let claim = claim(worker.caller, attempt_id);
    Some(decide(&claim, &snapshot(world.cell), || version(FRESH)))
}

/// A holder that was paused, and whose record another call left uncertain, is about to say what
/// happened.
fn settles(worker: &Worker, world: &World) -> bool {
    let Phase::Ending(held, End::Done, _) = worker.phase else {
        return false;
    };
    let ending = End::Done.ending(held.attempt_id);
    let refusal = held
        .holding(worker.caller)
        .refused(&ending, &snapshot(world.cell));
    world
        .cell
        .is_some_and(|cell| cell.state == State::Uncertain)
        && matches!(refusal, Refusal::Again(_))
}
