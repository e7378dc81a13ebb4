//! The steps that may come next, at every point where something may come between.

use idempotent_runtime::{policy::OnCrash, protocol::Meaning};
use stateright::Model;

use crate::{
    canonical::Merging,
    faults::Fault,
    pack::{LEASE, NOW, ahead},
    sights::Sight,
    store,
    watch::{Promise, Watch},
    world::{Caller, Name, Phase, Worker, World},
};

/// The number of claims that one record sees at most. The takeover budget is smaller. Only a record
/// that strict callers leave uncertain again and again, and others reconcile, would see more:
/// without an end.
const MOST_ATTEMPTS: u8 = 4;

/// The callers, the number of their calls, and the mistake that is made.
#[derive(Clone, Debug)]
pub(crate) struct Protocol {
    pub(crate) callers: Vec<Caller>,
    pub(crate) calls: u8,
    pub(crate) stragglers: u8,
    pub(crate) settlements: u8,
    pub(crate) fault: Fault,
    pub(crate) merging: Merging,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Begins a call, and sends its claim.
    Call(usize, Delivery),
    /// Sends what follows from what it saw last, or the same again.
    Send(usize, Delivery),
    /// The request that straggled reaches the store. Its answer is lost.
    Arrive,
    /// Wakes, and looks.
    Wake(usize),
    /// Polls the body for the first time.
    Poll(usize),
    /// Asks the reconciling function.
    Reconcile(usize, Found, Delivery),
    /// The body ends.
    Return(usize, Word, Delivery),
    /// The caller's future is dropped, or the body panics.
    Cancel(usize, Delivery),
    Beat(usize, Delivery),
    Crash(usize),
    Tick,
    Purge,
    /// An operator says how it ended, or lets it be tried again.
    Settle(Settled, Delivery),
}

/// The word of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    Happened,
    Resumed,
}

/// The finding of the reconciling function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Happened,
    Unknown,
    RunAgain,
}

/// The word of the body when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Outcome,
    Release,
    Uncertain,
}

/// The fate of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    Answered,
    /// The store applies it, and the sender never hears of that.
    AnswerLost,
    /// The sender takes it for lost while it still travels.
    Straggles,
}

impl Protocol {
    fn act(&self, world: &mut World, action: Action) {
        match action {
            Action::Call(worker, delivery) => self.call(world, worker, delivery),
            Action::Send(worker, delivery) => self.send(world, worker, delivery),
            Action::Arrive => self.arrive(world),
            Action::Wake(worker) => self.wake(world, worker),
            Action::Poll(worker) => self.poll(world, worker),
            Action::Reconcile(worker, found, delivery) => {
                self.reconcile(world, worker, found, delivery);
            }
            Action::Return(worker, word, delivery) => {
                self.return_with(world, worker, word, delivery);
            }
            Action::Cancel(worker, delivery) => self.cancel(world, worker, delivery),
            Action::Beat(worker, delivery) => self.beat(world, worker, delivery),
            Action::Crash(worker) => world.workers[worker].phase = Phase::Idle,
            Action::Tick => world.tick(),
            Action::Purge => store::purge(world, self.fault),
            Action::Settle(settled, delivery) => self.settle(world, settled, delivery),
        }
    }

    fn actions_of(&self, world: &World, worker: usize, actions: &mut Vec<Action>) {
        let stands = world.cell;
        let deliveries = |seen: Option<Name>| {
            let lost = seen == stands.map(|cell| cell.version);
            let straggles = world.straggler.is_none() && world.stragglers_left > 0;
            let possible = [
                Some(Delivery::Answered),
                lost.then_some(Delivery::AnswerLost),
                straggles.then_some(Delivery::Straggles),
            ];
            possible.into_iter().flatten()
        };
        match &world.workers[worker].phase {
            Phase::Absent => return,
            Phase::Idle if world.calls_left == 0 => return,
            Phase::Idle => {
                actions.extend(deliveries(None).map(|delivery| Action::Call(worker, delivery)));
                return;
            }
            Phase::Claiming(_, request) => {
                actions.extend(
                    deliveries(request.seen).map(|delivery| Action::Send(worker, delivery)),
                );
                actions.push(Action::Cancel(worker, Delivery::Answered));
            }
            Phase::GivingUp(..) => {
                let deliveries = [Delivery::Answered, Delivery::AnswerLost];
                actions.extend(deliveries.map(|delivery| Action::Send(worker, delivery)));
            }
            Phase::Waiting { seen, .. } => {
                let moved = stands.is_none_or(|cell| cell.version != *seen || cell.lease == 0);
                if moved || self.fault == Fault::ClientsClock {
                    actions.push(Action::Wake(worker));
                }
            }
            Phase::Holding(held) => {
                for delivery in deliveries(Some(held.version)) {
                    actions.push(Action::Cancel(worker, delivery));
                    // Before the clock has moved on, a heartbeat changes nothing but names.
                    if held.lease < ahead(NOW.plus(LEASE)) {
                        actions.push(Action::Beat(worker, delivery));
                    }
                    if held.polled {
                        let words = [Word::Outcome, Word::Release, Word::Uncertain];
                        actions.extend(words.map(|word| Action::Return(worker, word, delivery)));
                    } else if held.meaning == Meaning::Reconcile {
                        let found = [Found::Happened, Found::Unknown];
                        actions
                            .extend(found.map(|found| Action::Reconcile(worker, found, delivery)));
                    }
                }
                match (held.polled, held.meaning) {
                    (true, _) => {}
                    (false, Meaning::Reconcile) => {
                        actions.push(Action::Reconcile(
                            worker,
                            Found::RunAgain,
                            Delivery::Answered,
                        ));
                    }
                    (false, _) => actions.push(Action::Poll(worker)),
                }
            }
            Phase::Ending(held, _, request) => {
                actions.extend(
                    deliveries(request.seen).map(|delivery| Action::Send(worker, delivery)),
                );
                if held.beats {
                    actions.extend(
                        deliveries(Some(held.version))
                            .map(|delivery| Action::Beat(worker, delivery)),
                    );
                }
            }
        }
        actions.push(Action::Crash(worker));
    }
}

impl Model for Protocol {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let absent = Worker {
            caller: Caller {
                arguments: 0,
                on_crash: OnCrash::Rerun,
            },
            phase: Phase::Absent,
        };
        let mut workers = [absent; 3];
        for (worker, caller) in workers.iter_mut().zip(&self.callers) {
            *worker = Worker {
                caller: *caller,
                phase: Phase::Idle,
            };
        }
        let world = World {
            cell: None,
            workers,
            straggler: None,
            stragglers_left: self.stragglers,
            settlements_left: self.settlements,
            given_up: 0,
            calls_left: self.calls,
            watch: Watch::default(),
        };
        vec![world.canonical(self.merging)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        // A world after a broken promise proves nothing more, unless it is the consequence of a
        // fault that is looked for.
        if self.fault == Fault::None && !world.watch.broken.is_empty() {
            return;
        }
        for worker in 0..world.workers.len() {
            self.actions_of(world, worker, actions);
        }
        if world.straggler.is_some() {
            actions.push(Action::Arrive);
        }
        if world
            .cell
            .is_some_and(|cell| store::is_purgeable(cell, self.fault))
        {
            actions.push(Action::Purge);
        }
        for settled in [Settled::Happened, Settled::Resumed] {
            let straggles = world.straggler.is_none() && world.stragglers_left > 0;
            let deliveries = [
                Some(Delivery::Answered),
                straggles.then_some(Delivery::Straggles),
            ];
            if self.settlement(world, settled).is_some() {
                let deliveries = deliveries.into_iter().flatten();
                actions.extend(deliveries.map(|delivery| Action::Settle(settled, delivery)));
            }
        }
        actions.push(Action::Tick);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = *world;
        self.act(&mut next, action);
        next.witness_holders();
        Some(next.canonical(self.merging))
    }

    fn within_boundary(&self, world: &World) -> bool {
        world.cell.is_none_or(|cell| cell.attempt <= MOST_ATTEMPTS)
    }

    fn properties(&self) -> Vec<stateright::Property<Self>> {
        macro_rules! always {
            ($($promise:ident),*) => {
                [$(stateright::Property::always(Promise::$promise.name(), |_, world: &World| {
                    !world.watch.broken.contains(Promise::$promise)
                })),*]
            };
        }
        macro_rules! sometimes {
            ($($sight:ident),*) => {
                [$(stateright::Property::sometimes(Sight::$sight.name(), |_, world: &World| Sight::$sight.shows(world))),*]
            };
        }
        let promises = always![
            OneHolder,
            OneOutcome,
            StaleHolder,
            TokensGrow,
            OwnIsRecognised,
            MismatchFound,
            AlwaysAnswered,
            PurgeOnlyExpired,
            FirstIsReplayed,
            GivenUpStays,
            ReleasesNothingBegun,
            AtMostOnce,
            BodiesCounted,
            BudgetKept,
            StoppedFrees,
            KnowsWhatItWon,
            FreshOnlyWhenSettled,
            StricterWins
        ];
        let sights = sometimes![
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
            BegunAnew
        ];
        promises.into_iter().chain(sights).collect()
    }
}
