//! The moves that may come next, at every point where something may come between.

use idempotent_runtime::policy::OnCrash;
use stateright::{Model, Property};

use crate::{
    body::{drop_step, held},
    canonical::Forgets,
    faults::Fault,
    sights::Sight,
    watch::{Promise, Watch},
    world::{At, End, Held, Request, STEPS, Seen, Worker, World},
};

/// The callers, and the mistake that is made.
#[derive(Clone, Debug)]
pub(crate) struct Protocol {
    pub(crate) workers: usize,
    /// The fate of the record when its holder vanishes.
    pub(crate) on_crash: OnCrash,
    /// The choice of both steps.
    pub(crate) at_most_once: bool,
    /// How many claims are applied.
    pub(crate) claims: u8,
    pub(crate) stragglers: u8,
    pub(crate) drops: u8,
    pub(crate) fault: Fault,
    /// Whether workers that can do nothing any more are idle. A fault may let a worker write that
    /// otherwise could not.
    pub(crate) forgets: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Begins a call, and decides about what stands.
    Call(usize),
    /// Sends what follows from what it saw, or the same again.
    Send(usize, Delivery),
    /// The caller goes away while its claim is under way.
    Cancel(usize),
    Begin(usize),
    Run(usize),
    DropStep(usize),
    GiveUp(usize),
    End(usize, End),
    Crash(usize),
    /// The request that straggled reaches the store. Its answer is lost.
    Arrive,
    Tick,
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
    fn forgetting(&self) -> Forgets {
        match (self.forgets, self.at_most_once) {
            (false, _) => Forgets::Nobody,
            (true, false) => Forgets::WhoCannotWrite,
            (true, true) => Forgets::WhoCannotRun,
        }
    }

    fn act(&self, world: &mut World, action: Action) {
        match action {
            Action::Call(worker) => self.call(world, worker),
            Action::Send(worker, delivery) => match world.workers[worker] {
                Worker::Holding(held) => match held.at {
                    At::Ending(end) => self.send_end(world, worker, (held, end), delivery),
                    _ => self.send_step(world, worker, delivery),
                },
                _ => self.send_claim(world, worker, delivery),
            },
            Action::Cancel(worker) => self.cancel(world, worker),
            Action::Begin(worker) => self.begin(world, worker),
            Action::Run(worker) => self.run(world, worker),
            Action::DropStep(worker) => drop_step(world, worker),
            Action::GiveUp(worker) => self.give_up(world, worker),
            Action::End(worker, end) => {
                let held = held(world, worker);
                world.workers[worker] = Worker::Holding(Held {
                    at: At::Ending(end),
                    ..held
                });
            }
            Action::Crash(worker) => world.workers[worker] = Worker::Idle,
            Action::Arrive => self.arrive(world),
            Action::Tick => world.tick(),
        }
    }

    fn actions_of(&self, world: &World, worker: usize, actions: &mut Vec<Action>) {
        match world.workers[worker] {
            Worker::Absent => return,
            Worker::Idle => {
                actions.push(Action::Call(worker));
                return;
            }
            Worker::Claiming(claiming) => {
                let may_straggle = claiming.write.seen != Seen::Stale;
                sends(world, worker, may_straggle, actions);
                actions.push(Action::Cancel(worker));
            }
            Worker::Holding(held) => self.actions_of_holder(world, worker, &held, actions),
        }
        actions.push(Action::Crash(worker));
    }

    fn actions_of_holder(
        &self,
        world: &World,
        worker: usize,
        held: &Held,
        actions: &mut Vec<Action>,
    ) {
        if let At::Ending(_) = held.at {
            return sends(world, worker, held.seen != Seen::Stale, actions);
        }
        let is_over = held.step() == STEPS;
        let may_begin = held.live || self.fault == Fault::LooksUpLate;
        match held.at {
            At::Between if is_over => actions.push(Action::End(worker, End::Done)),
            At::Between if may_begin => actions.push(Action::Begin(worker)),
            At::Ready(_) => actions.push(Action::Run(worker)),
            At::Beginning(_) | At::Writing(_) => {
                sends(world, worker, true, actions);
                actions.push(Action::GiveUp(worker));
            }
            _ => {}
        }
        match held.at {
            At::Between => {}
            // A step that may run at most once is not begun again by the same attempt: its body
            // ends, as by an error.
            _ if !self.at_most_once && world.drops_left > 0 => {
                actions.push(Action::DropStep(worker));
            }
            _ => {}
        }
        actions.push(Action::End(worker, self.failure(held)));
        actions.push(Action::End(worker, End::Stopped));
        if !held.has_begun() && held.at == At::Between {
            actions.push(Action::End(worker, End::Unpolled));
        }
    }
}

fn sends(world: &World, worker: usize, may_straggle: bool, actions: &mut Vec<Action>) {
    actions.push(Action::Send(worker, Delivery::Answered));
    actions.push(Action::Send(worker, Delivery::AnswerLost));
    if may_straggle && world.straggler.is_none() && world.stragglers_left > 0 {
        actions.push(Action::Send(worker, Delivery::Straggles));
    }
}

impl Model for Protocol {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let mut workers = [Worker::Absent; 3];
        workers[..self.workers].fill(Worker::Idle);
        let world = World {
            cell: None,
            steps: [None; STEPS],
            workers,
            straggler: None,
            stragglers_left: self.stragglers,
            drops_left: self.drops,
            watch: Watch::default(),
        };
        vec![world.canonical(self.forgetting())]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        // A world after a broken promise proves nothing more.
        if self.fault == Fault::None && !world.watch.broken.is_empty() {
            return;
        }
        for worker in 0..world.workers.len() {
            self.actions_of(world, worker, actions);
        }
        if let Some(Request::Record(_) | Request::Step(_)) = world.straggler {
            actions.push(Action::Arrive);
        }
        actions.push(Action::Tick);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = *world;
        self.act(&mut next, action);
        Some(next.canonical(self.forgetting()))
    }

    fn within_boundary(&self, world: &World) -> bool {
        world.cell.is_none_or(|cell| cell.token <= self.claims)
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
        OutcomeStays OwnLife OutcomeOfSteps Fenced NotRunAgain AtMostOnce StepsBind
        UncertainOfAnother
    }
}

fn sights() -> Vec<Property<Protocol>> {
    macro_rules! sometimes {
        ($($sight:ident)*) => {
            vec![$(Property::sometimes(Sight::$sight.name(), |_, world: &World| {
                Sight::$sight.shows(world)
            })),*]
        };
    }
    sometimes! {
        Replayed Mixed StragglerRefused StalledRefused Recognised WentOn Uncertain FoundItsOwn
        StoppedWrites NextLife PausedWrites
    }
}
