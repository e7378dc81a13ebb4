//! The steps that may come next, at every point where something may come between.

use idempotent_runtime::policy::OnCrash;
use stateright::{Model, Property};

use crate::{
    faults::Fault,
    operator::Word,
    pack::Choice,
    sights::Sight,
    watch::{Promise, Watch},
    worker::{advance, cancel, end_with},
    world::{Body, End, Held, NUMBERS, Phase, Seen, Worker, World},
};

/// The callers, and the mistake that is made.
#[derive(Clone, Debug)]
pub(crate) struct Protocol {
    pub(crate) workers: usize,
    pub(crate) choice: Choice,
    pub(crate) stragglers: u8,
    pub(crate) fault: Fault,
    /// Whether workers that can write nothing any more are idle. A fault may let a worker write
    /// that otherwise could not.
    pub(crate) forgets: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Begins a call with this number, or a copy of it, and decides about what stands.
    Call(usize, u8),
    /// Sends what follows from what it saw, or the same again.
    Send(usize, Delivery),
    /// The request that straggled reaches the store. Its answer is lost.
    Arrive,
    Poll(usize),
    /// The body sends its effect downstream, with its token.
    Effect(usize),
    Return(usize, End),
    /// The caller's future is dropped, or the body panics.
    Cancel(usize),
    Beat(usize),
    Crash(usize),
    Tick,
    Operator(Word),
    /// A tier copies the record: only where that is the fault.
    Copy,
}

/// The fate of a request. A request that is lost on its way changes nothing, and is sent again.
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
            Action::Call(worker, number) => self.call(world, worker, number),
            Action::Send(worker, delivery) => self.send(world, worker, delivery),
            Action::Arrive => self.arrive(world),
            Action::Poll(worker) => advance(world, worker, Body::Polled),
            Action::Effect(worker) => {
                let held = world.workers[worker]
                    .held()
                    .expect("only a holder has a body");
                advance(world, worker, Body::Sent);
                world.witness_effect(self, &held);
            }
            Action::Return(worker, end) => end_with(world, worker, end),
            Action::Cancel(worker) => cancel(world, worker),
            Action::Beat(worker) => self.beat(world, worker),
            Action::Crash(worker) => world.workers[worker] = Worker::IDLE,
            Action::Tick => world.tick(),
            Action::Operator(word) => self.operate(world, word),
            Action::Copy => world.copy = world.cell.map(|cell| (cell, true)),
        }
    }

    fn actions_of(&self, world: &World, worker: usize, actions: &mut Vec<Action>) {
        let Worker {
            phase,
            owns,
            straggles,
        } = world.workers[worker];
        let sends = |actions: &mut Vec<Action>, may_straggle: bool| {
            let free = world.straggler.is_none() && world.stragglers_left > 0;
            actions.push(Action::Send(worker, Delivery::Answered));
            actions.push(Action::Send(worker, Delivery::AnswerLost));
            if free && may_straggle {
                actions.push(Action::Send(worker, Delivery::Straggles));
            }
        };
        match phase {
            Phase::Absent => return,
            Phase::Idle => {
                actions.extend((1..=NUMBERS).map(|number| Action::Call(worker, number)));
                return;
            }
            Phase::Claiming(..) => {
                sends(actions, true);
                // Elsewhere there is nothing to give up: it is as if it crashed.
                if owns || straggles {
                    actions.push(Action::Cancel(worker));
                }
            }
            Phase::GivingUp(..) => sends(actions, false),
            Phase::Holding(held) => actions_of_holder(held, worker, actions),
            Phase::Ending(..) => sends(actions, true),
        }
        actions.push(Action::Crash(worker));
    }
}

fn actions_of_holder(held: Held, worker: usize, actions: &mut Vec<Action>) {
    actions.push(Action::Cancel(worker));
    // Before the clock has moved on, a heartbeat changes nothing.
    if !held.live || held.seen != Seen::Current {
        actions.push(Action::Beat(worker));
    }
    let ends: &[End] = match held.body {
        Body::Unpolled => &[],
        Body::Polled => &[End::Failed, End::Release, End::Uncertain],
        Body::Sent => &[End::Done, End::Uncertain],
    };
    actions.extend(ends.iter().map(|end| Action::Return(worker, *end)));
    match held.body {
        Body::Unpolled => actions.push(Action::Poll(worker)),
        Body::Polled => actions.push(Action::Effect(worker)),
        Body::Sent => {}
    }
}

impl Model for Protocol {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let absent = Worker {
            phase: Phase::Absent,
            ..Worker::IDLE
        };
        let mut workers = [absent; 3];
        workers[..self.workers].fill(Worker::IDLE);
        let world = World {
            cell: None,
            copy: None,
            workers,
            straggler: None,
            stragglers_left: self.stragglers,
            watch: Watch::default(),
        };
        vec![world.canonical(self.forgets)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        // A world after a broken promise proves nothing more.
        if self.fault == Fault::None && !world.watch.broken.is_empty() {
            return;
        }
        for worker in 0..world.workers.len() {
            self.actions_of(world, worker, actions);
        }
        if world.straggler.is_some() {
            actions.push(Action::Arrive);
        }
        let words = Word::ALL.into_iter();
        let words = words.filter(|word| self.settlement(world, *word).is_some());
        actions.extend(words.map(Action::Operator));
        if self.fault == Fault::TierCopies {
            actions.push(Action::Copy);
        }
        actions.push(Action::Tick);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = *world;
        self.act(&mut next, action);
        next.witness_holders();
        Some(next.canonical(self.forgets))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        promises().into_iter().chain(sights()).collect()
    }
}

fn promises() -> Vec<Property<Protocol>> {
    macro_rules! always {
        ($($promise:ident)*) => {
            vec![$(Property::always(Promise::$promise.name(), |_, world: &World| {
                !world.watch.broken.contains(Promise::$promise)
            })),*]
        };
    }
    always! {
        OneHolder StaleHolder TokensGrow LastKept OnlyTheNext OnlyAbandonedIsPassed StoppedStops
        BudgetKept AtMostOnce NeverAgain InOrder NoneSkipped GivenUpStays AnsweredByRecord GoesOn
    }
}

fn sights() -> Vec<Property<Protocol>> {
    macro_rules! sometimes {
        ($($sight:ident)*) => {
            vec![$(Property::sometimes(Sight::$sight.name(), |model: &Protocol, world: &World| {
                Sight::$sight.shows(model, world)
            })),*]
        };
    }
    sometimes! {
        AllApplied Released Uncertain Parked TakenOver PutBack Passed Gap AwaitGap InProgress
        Overtaken Past Skipped Mine Outlived Refused PausedCompletes
    }
}

impl Protocol {
    pub(crate) fn is_strict(&self) -> bool {
        self.choice.on_crash == OnCrash::Uncertain
    }
}
