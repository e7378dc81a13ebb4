//! One record with the steps of its life, two workers, perhaps a request that straggles, and what
//! the watch noted down. Everything is small and plain, because a great many worlds are made;
//! `pack` turns it into what the runtime knows.

use idempotent_runtime::{
    protocol::Meaning,
    record::{State, StepState},
};

use crate::watch::Watch;

/// The body has this many steps.
pub(crate) const STEPS: usize = 2;
pub(crate) const WORKERS: usize = 2;
/// Names an attempt. Those below [`FIRST`] are known to the runtime by name.
pub(crate) type Name = u8;
pub(crate) const FIRST: Name = 3;
/// Moves of the clock after now; what is past is 0.
pub(crate) type Ahead = u8;
/// The steps of a life, if they stand.
pub(crate) type Rows = [Option<Row>; STEPS];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) cell: Option<Cell>,
    pub(crate) steps: Rows,
    pub(crate) workers: [Worker; WORKERS],
    /// A request whose sender did not wait for it: it may arrive at any later moment.
    pub(crate) straggler: Option<Request>,
    pub(crate) stragglers_left: u8,
    /// How often an operator may still say something.
    pub(crate) words_left: u8,
    pub(crate) watch: Watch,
}

/// The record that stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cell {
    pub(crate) state: State,
    pub(crate) token: u8,
    /// Counts the attempts, as the record does.
    pub(crate) number: u8,
    pub(crate) attempt: Name,
    pub(crate) lease: Ahead,
    pub(crate) expires: Expiry,
    pub(crate) outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Expiry {
    pub(crate) ahead: Ahead,
    /// Whether it stays for ever after that, because undos are open.
    pub(crate) open: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Outcome {
    #[default]
    None,
    Value,
    Error,
}

/// A step that stands, or is to stand. No attempt writes one state of a step twice, so that a row
/// is its own version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    pub(crate) state: StepState,
    pub(crate) attempt: Name,
    /// Its number among the steps that have an undo.
    pub(crate) number: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Worker {
    Idle,
    /// Its claim is on the way, or will be sent again.
    Claiming(Claiming),
    Holding(Held),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Claiming {
    pub(crate) attempt: Name,
    /// Whether it was ever sent over a record that was given back.
    pub(crate) goes_on: bool,
    pub(crate) write: Write,
    pub(crate) meaning: Meaning,
    /// The steps that stood when it looked first: only where that is the fault.
    pub(crate) looked: Rows,
}

/// The knowledge of a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Held {
    pub(crate) attempt: Name,
    pub(crate) number: u8,
    pub(crate) meaning: Meaning,
    pub(crate) seen: Seen,
    /// Whether its lease stands, by its own timer.
    pub(crate) live: bool,
    /// Whether everything that it writes says that undos are open.
    pub(crate) keeps: bool,
    /// Whether that stands, by its own knowledge.
    pub(crate) is_kept: bool,
    /// The next number of a step, once it is known.
    pub(crate) next: Option<u8>,
    pub(crate) at: [At; STEPS],
    /// The steps as it knows them; while it undoes, those that are left to be undone.
    pub(crate) known: Rows,
    pub(crate) stage: Stage,
    /// Whether the decision stands, by its own knowledge, that the call has failed for good.
    pub(crate) undoing: bool,
    /// Whether a step could not be undone.
    pub(crate) left: bool,
    /// The number of the step that it undid last; for the watch only.
    pub(crate) undone_last: Option<u8>,
    pub(crate) looked: Rows,
}

/// How far a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum At {
    Out,
    /// The record is to say that undos are open, before the step takes its number.
    Keeping,
    /// Its registration under this number is to be written.
    Registering(u8),
    /// Its body may run.
    Ready,
    /// Its body has run, and its value is to be written.
    Writing,
    /// Its value is known.
    Ended,
    /// It was dropped, or refused.
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    Body,
    /// The call has ended; the request is on the way, or will be sent again.
    Ending(End),
    /// The undos are to be found again.
    Looking,
    Undoing,
    /// The undo of this step is through, and that is to be written.
    Undone(usize),
    /// That is written before the undo has run: only where that is the fault.
    Marked(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum End {
    Value,
    /// A final error without a step to be undone, or once all are undone.
    Error,
    Undo,
    NotUndone,
    Release,
    GiveBack,
    /// It panicked, or its body was dropped.
    Stopped,
    /// Its caller left while the decision was written that the call has failed for good.
    LeftToUndo,
    /// Its caller left while it undid steps.
    Left,
}

/// The version that a request was sent over. A version that is gone never comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Seen {
    Nothing,
    Current,
    Stale,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Request {
    Record(Write),
    Step(StepWrite),
}

/// A version of the record that is to stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Write {
    /// The attempt that sends it; none if an operator does.
    pub(crate) by: Name,
    pub(crate) seen: Seen,
    pub(crate) draft: Draft,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Claim(Meaning),
    Heartbeat,
    End(End),
    /// A claim whose caller went away is ended, or kept from standing.
    GiveUp,
    /// The word of an operator.
    Settle(Word),
}

/// The word about a record without a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Word {
    /// It may be tried again.
    Resume,
    /// It has failed for good.
    Undo,
    /// Nobody is to call it again.
    Park,
}

/// The part of a draft that is not the same in all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Draft {
    pub(crate) begins: bool,
    pub(crate) state: State,
    /// The token that it has to exceed, where it draws one.
    pub(crate) above: Option<u8>,
    pub(crate) number: u8,
    pub(crate) attempt: Name,
    pub(crate) lease: Option<Ahead>,
    pub(crate) expires: Option<Expiry>,
    pub(crate) outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StepWrite {
    pub(crate) step: usize,
    pub(crate) next: Row,
    pub(crate) seen: Option<Row>,
}

impl Worker {
    pub(crate) fn held(&self) -> Option<&Held> {
        match self {
            Worker::Holding(held) => Some(held),
            _ => None,
        }
    }

    fn seen_mut(&mut self) -> Option<&mut Seen> {
        match self {
            Worker::Idle => None,
            Worker::Claiming(claiming) => Some(&mut claiming.write.seen),
            Worker::Holding(held) => Some(&mut held.seen),
        }
    }

    /// No two workers have one attempt.
    pub(crate) fn order(&self) -> Name {
        match self {
            Worker::Idle => 0,
            Worker::Claiming(claiming) => claiming.attempt,
            Worker::Holding(held) => held.attempt,
        }
    }
}

impl World {
    pub(crate) fn held(&self, worker: usize) -> Held {
        *self.workers[worker].held().expect("it holds the record")
    }

    pub(crate) fn hold(&mut self, worker: usize, held: Held) {
        self.workers[worker] = Worker::Holding(held);
    }

    /// The version that stands, for a worker that looks now.
    pub(crate) fn seen(&self) -> Seen {
        self.cell.map_or(Seen::Nothing, |_| Seen::Current)
    }

    /// A lease or a retention passes.
    pub(crate) fn tick(&mut self) {
        if let Some(cell) = &mut self.cell {
            cell.lease = cell.lease.saturating_sub(1);
            cell.expires.ahead = cell.expires.ahead.saturating_sub(1);
        }
        for worker in &mut self.workers {
            if let Worker::Holding(held) = worker {
                held.live = false;
            }
        }
    }

    /// Every version of the record that was seen stands no more.
    pub(crate) fn outdate(&mut self) {
        let seen = self.workers.iter_mut().filter_map(Worker::seen_mut);
        seen.for_each(|seen| *seen = Seen::Stale);
        if let Some(Request::Record(_)) = self.straggler {
            // It is refused whenever it arrives.
            self.straggler = None;
        }
    }

    pub(crate) fn straggle(&mut self, request: Request) {
        self.stragglers_left -= 1;
        self.straggler = Some(request);
    }

    /// A name that no attempt has.
    pub(crate) fn fresh_name(&mut self) -> Name {
        let mut fresh = FIRST;
        self.each_name(|name| fresh = fresh.max(*name + 1));
        fresh
    }
}
