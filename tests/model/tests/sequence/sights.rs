//! The sights that must be seen somewhere: a model in which nothing happens keeps every promise.

use idempotent_runtime::protocol::sequence::{NumberState, StreamDecision, StreamRefusal};

use crate::{
    driver::Protocol,
    world::{Body, Cell, End, Held, NUMBERS, Owner, Phase, Seen, Worker, World},
};

/// A sight that has to be seen somewhere, or else the model proves little.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    AllApplied,
    Released,
    Uncertain,
    Parked,
    TakenOver,
    PutBack,
    Passed,
    Gap,
    AwaitGap,
    InProgress,
    Overtaken,
    Past,
    Skipped,
    Mine,
    Outlived,
    Refused,
    PausedCompletes,
}

impl Sight {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Sight::AllApplied => "every number has its effect, and has ended",
            Sight::Released => {
                "a stream is at rest after a number because somebody released the next one"
            }
            Sight::Uncertain => "a number is uncertain",
            Sight::Parked => "a number is parked",
            Sight::TakenOver => "a worker holds the number that another one held",
            Sight::PutBack => "a takeover puts back what it found",
            Sight::Passed => "a larger number runs, and the one before it was abandoned",
            Sight::Gap => "a call is told of a gap",
            Sight::AwaitGap => "a call waits for a gap to close",
            Sight::InProgress => "a larger number waits",
            Sight::Overtaken => "a smaller number finds a larger one abandoned",
            Sight::Past => "a number is past",
            Sight::Skipped => "an operator used a number up",
            Sight::Mine => "a claim whose answer was lost is recognised",
            Sight::Outlived => "a holder outlives its holding",
            Sight::Refused => "downstream refuses a token that is past",
            Sight::PausedCompletes => "a paused holder completes what somebody left uncertain",
        }
    }

    pub(crate) fn shows(self, protocol: &Protocol, world: &World) -> bool {
        let Some(cell) = world.cell else { return false };
        let standing = |state| cell.running.is_some_and(|run| run.state == state);
        let told = |is: fn(&StreamDecision) -> bool| {
            (1..=NUMBERS).any(|number| is(&protocol.decision(number, false, world.cell)))
        };
        let holds = |shows: &dyn Fn(&Held, bool) -> bool| {
            world.workers.iter().any(
                |worker| matches!(worker.phase, Phase::Holding(held) if shows(&held, worker.owns)),
            )
        };
        match self {
            Sight::AllApplied => {
                cell.last == NUMBERS && (1..=NUMBERS).all(|number| world.watch.has_effect(number))
            }
            Sight::Released => world.workers.iter().any(|worker| {
                let releases =
                    matches!(worker.phase, Phase::Ending(_, End::Release | End::Unpolled));
                releases && cell.running.is_none() && cell.last > 0
            }),
            Sight::Uncertain => standing(NumberState::Uncertain),
            Sight::Parked => standing(NumberState::Parked),
            Sight::TakenOver => holds(&|held, _| held.run.takeovers > 0),
            Sight::PutBack => standing(NumberState::Running) && cell.owner == Owner::Nobody,
            Sight::Passed => holds(&|held, owns| owns && held.run.passed.is_some()),
            Sight::Gap => told(|decision| matches!(decision, StreamDecision::Gap { .. })),
            Sight::AwaitGap => told(|decision| matches!(decision, StreamDecision::AwaitGap { .. })),
            Sight::InProgress => {
                told(|decision| matches!(decision, StreamDecision::InProgress(..)))
            }
            Sight::Overtaken => told(|decision| matches!(decision, StreamDecision::Overtaken(_))),
            Sight::Past => told(|decision| matches!(decision, StreamDecision::Past { .. })),
            Sight::Skipped => cell.skipped,
            Sight::Mine => world.workers.iter().any(|worker| {
                matches!(worker.phase, Phase::Claiming(number, Seen::Stale)
                    if protocol.decision(number, worker.owns, world.cell) == StreamDecision::Mine)
            }),
            Sight::Outlived => holds(&|_, owns| !owns),
            Sight::Refused => holds(&|held, _| {
                held.body != Body::Sent
                    && world
                        .watch
                        .highest
                        .is_some_and(|highest| held.token < highest)
            }),
            Sight::PausedCompletes => {
                standing(NumberState::Uncertain)
                    && world
                        .workers
                        .iter()
                        .any(|worker| completes(protocol, worker, cell))
            }
        }
    }
}

/// A holder is about to say what happened, and may.
fn completes(protocol: &Protocol, worker: &Worker, cell: Cell) -> bool {
    let Phase::Ending(held, End::Done) = worker.phase else {
        return false;
    };
    let holding = protocol.choice.holding(&held, worker.owns);
    let refusal = holding.refused(&End::Done.ending(), Some(&cell.stream()));
    matches!(refusal, StreamRefusal::Again(_))
}
