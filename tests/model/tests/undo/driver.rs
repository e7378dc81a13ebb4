//! The moves that may come next, at every point where something may come between.

use stateright::{Model, Property};

use crate::{
    claim::may_be_settled,
    faults::Fault,
    sights::Sight,
    store,
    watch::{Promise, Watch},
    world::{At, End, Held, Request, STEPS, Seen, Stage, WORKERS, Word, Worker, World},
};

/// The callers, and the mistake that is made.
#[derive(Clone, Debug)]
pub(crate) struct Protocol {
    /// How many claims one record sees.
    pub(crate) claims: u8,
    pub(crate) stragglers: u8,
    /// How often an operator says something.
    pub(crate) words: u8,
    /// Whether the steps run side by side.
    pub(crate) side_by_side: bool,
    /// Whether a registration may still be under way when the body ends, because it is in another
    /// task.
    pub(crate) in_tasks: bool,
    /// Whether an answer may be lost.
    pub(crate) loses: bool,
    /// Whether an undo may fail.
    pub(crate) undo_fails: bool,
    pub(crate) fault: Fault,
    /// Whether workers that can write nothing any more are idle. A fault may let a worker write
    /// that otherwise could not.
    pub(crate) forgets: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Begins a call, and decides about what stands.
    Call(usize),
    /// The request of this kind reaches the store, or the same does again.
    Claim(usize, Delivery),
    End(usize, Delivery),
    Keep(usize, Delivery),
    Beat(usize, Delivery),
    /// A step, by its place in the body, is registered or recorded.
    Write(usize, usize, Delivery),
    WriteUndone(usize, usize, Delivery),
    /// The caller goes away while its claim is under way.
    Cancel(usize),
    Begin(usize, usize),
    TakeNumber(usize, usize),
    Run(usize, usize),
    Ends(usize, End),
    Look(usize),
    Undo(usize, usize),
    UndoFails(usize, usize),
    Finish(usize),
    Crash(usize),
    /// The request that straggled reaches the store. Its answer is lost.
    Arrive,
    Tick,
    Purge,
    Settle(Word),
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
            Action::Call(worker) => self.call(world, worker),
            Action::Claim(worker, delivery) => self.send_claim(world, worker, delivery),
            Action::End(worker, delivery) => self.send_end(world, worker, delivery),
            Action::Keep(worker, delivery) => self.keep(world, worker, delivery),
            Action::Beat(worker, delivery) => {
                self.beat(world, worker, delivery);
            }
            Action::Write(worker, step, delivery) => self.send_step(world, worker, step, delivery),
            Action::WriteUndone(worker, step, delivery) => {
                self.send_undone(world, worker, step, delivery);
            }
            Action::Cancel(worker) => self.cancel(world, worker),
            Action::Begin(worker, step) => self.begin(world, worker, step),
            Action::TakeNumber(worker, step) => self.take_number(world, worker, step),
            Action::Run(worker, step) => self.run(world, worker, step),
            Action::Ends(worker, end) => self.end(world, worker, end),
            Action::Look(worker) => self.look_for_undos(world, worker),
            Action::Undo(worker, step) => self.undo(world, worker, step),
            Action::UndoFails(worker, step) => self.undo_fails(world, worker, step),
            Action::Finish(worker) => self.finish(world, worker),
            Action::Crash(worker) => world.workers[worker] = Worker::Idle,
            Action::Arrive => self.arrive(world),
            Action::Tick => world.tick(),
            Action::Purge => store::purge(world),
            Action::Settle(word) => self.settle(world, word),
        }
    }

    fn arrive(&self, world: &mut World) {
        match world.straggler.take() {
            Some(Request::Record(write)) => {
                store::write_record(world, &write);
            }
            Some(Request::Step(write)) => {
                store::write_step(world, &write);
            }
            None => {}
        }
    }

    fn actions_of(&self, world: &World, worker: usize, actions: &mut Vec<Action>) {
        match world.workers[worker] {
            Worker::Idle => return actions.push(Action::Call(worker)),
            Worker::Claiming(claiming) => {
                let fates = self.fates(world, claiming.write.seen != Seen::Stale);
                actions.extend(fates.map(|fate| Action::Claim(worker, fate)));
                actions.push(Action::Cancel(worker));
            }
            Worker::Holding(held) => {
                match held.stage {
                    Stage::Body => self.actions_of_body(world, worker, &held, actions),
                    Stage::Ending(end) => {
                        let fates = self.fates(world, held.seen != Seen::Stale);
                        actions.extend(fates.map(|fate| Action::End(worker, fate)));
                        if end == End::Undo {
                            actions.push(Action::Ends(worker, End::LeftToUndo));
                        }
                    }
                    _ => self.actions_of_undo(world, worker, &held, actions),
                }
                self.actions_of_steps(world, worker, &held, actions);
                // A holder that stopped sends no heartbeats any more, and none goes over a version
                // that an ending met.
                let is_over = [End::Stopped, End::Left, End::LeftToUndo];
                if !is_over.map(Stage::Ending).contains(&held.stage) {
                    let fates = self.fates(world, held.seen != Seen::Stale);
                    actions.extend(fates.map(|fate| Action::Beat(worker, fate)));
                }
            }
        }
        actions.push(Action::Crash(worker));
    }

    fn actions_of_body(
        &self,
        world: &World,
        worker: usize,
        held: &Held,
        actions: &mut Vec<Action>,
    ) {
        for step in 0..STEPS {
            let is_next = self.side_by_side || held.at[..step].iter().all(|at| *at == At::Ended);
            match held.at[step] {
                At::Out if is_next && held.live => actions.push(Action::Begin(worker, step)),
                At::Keeping if held.is_kept => actions.push(Action::TakeNumber(worker, step)),
                At::Keeping => {
                    let fates = self.fates(world, held.seen != Seen::Stale);
                    actions.extend(fates.map(|fate| Action::Keep(worker, fate)));
                }
                At::Writing => {
                    let fates = self.fates(world, true);
                    actions.extend(fates.map(|fate| Action::Write(worker, step, fate)));
                }
                _ => {}
            }
        }
        if held.at == [At::Ended; STEPS] {
            actions.push(Action::Ends(worker, End::Value));
        }
        // A body that runs in another task is waited for.
        if !self.in_tasks || !held.at.contains(&At::Ready) {
            actions.push(Action::Ends(worker, Self::failure(held)));
            actions.push(Action::Ends(worker, Self::release(held)));
        }
        actions.push(Action::Ends(worker, End::Stopped));
    }

    /// The moves of steps that the end of the body may leave in other tasks.
    fn actions_of_steps(
        &self,
        world: &World,
        worker: usize,
        held: &Held,
        actions: &mut Vec<Action>,
    ) {
        for step in 0..STEPS {
            match held.at[step] {
                At::Ready => actions.push(Action::Run(worker, step)),
                At::Registering(_) => {
                    let fates = self.fates(world, true);
                    actions.extend(fates.map(|fate| Action::Write(worker, step, fate)));
                }
                _ => {}
            }
        }
    }

    fn actions_of_undo(
        &self,
        world: &World,
        worker: usize,
        held: &Held,
        actions: &mut Vec<Action>,
    ) {
        match held.stage {
            Stage::Looking if held.live => actions.push(Action::Look(worker)),
            Stage::Undoing if held.live => match self.next_undo(held) {
                Some(step) => {
                    actions.push(Action::Undo(worker, step));
                    if self.undo_fails {
                        actions.push(Action::UndoFails(worker, step));
                    }
                }
                None => actions.push(Action::Finish(worker)),
            },
            Stage::Undone(step) => {
                let fates = self.fates(world, true);
                actions.extend(fates.map(|fate| Action::WriteUndone(worker, step, fate)));
            }
            Stage::Marked(step) => actions.push(Action::Undo(worker, step)),
            _ => {}
        }
        let ends = [End::Stopped, End::Left];
        actions.extend(ends.map(|end| Action::Ends(worker, end)));
    }

    fn fates(&self, world: &World, may_straggle: bool) -> impl Iterator<Item = Delivery> + use<> {
        let straggles = may_straggle && world.straggler.is_none() && world.stragglers_left > 0;
        [
            Some(Delivery::Answered),
            self.loses.then_some(Delivery::AnswerLost),
            straggles.then_some(Delivery::Straggles),
        ]
        .into_iter()
        .flatten()
    }
}

impl Model for Protocol {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World {
            cell: None,
            steps: [None; STEPS],
            workers: [Worker::Idle; WORKERS],
            straggler: None,
            stragglers_left: self.stragglers,
            words_left: self.words,
            watch: Watch::default(),
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        // A world after a broken promise proves nothing more.
        if self.fault == Fault::None && !world.watch.broken.is_empty() {
            return;
        }
        for worker in 0..WORKERS {
            self.actions_of(world, worker, actions);
        }
        if world.straggler.is_some() {
            actions.push(Action::Arrive);
        }
        if may_be_settled(world) {
            let words = [Word::Resume, Word::Undo, Word::Park];
            actions.extend(words.map(Action::Settle));
        }
        if store::is_forgettable(world) {
            actions.push(Action::Purge);
        }
        actions.push(Action::Tick);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = *world;
        self.act(&mut next, action);
        Some(next.canonical(self.forgets))
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
        NotForward AllUndone RegisteredBefore Kept LatestFirst OutcomeStays DecidedBefore
        OnlyCrashesPark NoneIsParkedHeld
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
        UndoneByItself UndoneByAnother UndoneByTwo NotUndone UndoneAfterAll Spent ValueAfterTakeover
        OpenAndAbandoned LateRegistration LargerNumberFirst LeftByThree
    }
}
