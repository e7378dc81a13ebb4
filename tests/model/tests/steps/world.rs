//! A world: one record with the steps of its life, three workers, perhaps a request that straggles,
//! and the notes of the watch. Everything is small and plain, because a great many worlds are made;
//! `pack` turns it into what the runtime knows.

use idempotent_runtime::{
    policy::OnCrash,
    protocol::Meaning,
    record::{State, StepState},
};

use crate::watch::Watch;

/// The body has this many steps, one after the other.
pub(crate) const STEPS: usize = 2;
/// Names an attempt. Those below [`FIRST`] are known to the runtime by name.
pub(crate) type Name = u8;
pub(crate) const FIRST: Name = 3;
/// Names a version of a step and, where that is done, its value: each run of a body has its own.
pub(crate) type StepVersion = u8;
/// No value.
pub(crate) const NONE: StepVersion = 0;
/// Moves of the clock after now; what is past is 0.
pub(crate) type Ahead = u8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) cell: Option<Cell>,
    pub(crate) steps: [Option<StepCell>; STEPS],
    pub(crate) workers: [Worker; 3],
    /// A request whose sender did not wait for it: it may arrive at any later moment.
    pub(crate) straggler: Option<Request>,
    pub(crate) stragglers_left: u8,
    pub(crate) drops_left: u8,
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
    pub(crate) on_crash: OnCrash,
    pub(crate) lease: Ahead,
    pub(crate) expires: Ahead,
    /// The values that the body returned.
    pub(crate) outcome: [StepVersion; STEPS],
}

/// A step that stands, or is to stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StepCell {
    pub(crate) state: StepState,
    pub(crate) attempt: Name,
    /// Counts the runs of its body in this attempt.
    pub(crate) run: u8,
    /// The life of its writer; for the watch only.
    pub(crate) life: u8,
}

impl StepCell {
    pub(crate) fn version(self) -> StepVersion {
        self.attempt << 2 | self.run << 1 | u8::from(self.state == StepState::Done)
    }

    /// The value that it stands for, where it is done.
    pub(crate) fn value(self) -> StepVersion {
        match self.state {
            StepState::Done => self.version(),
            _ => NONE,
        }
    }
}

/// The attempt whose run gave this value.
pub(crate) fn attempt_of(value: StepVersion) -> Name {
    value >> 2
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Worker {
    /// There is no such worker.
    Absent,
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
}

/// The knowledge of a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Held {
    pub(crate) attempt: Name,
    pub(crate) number: u8,
    pub(crate) token: u8,
    pub(crate) on_crash: OnCrash,
    pub(crate) meaning: Meaning,
    pub(crate) seen: Seen,
    /// Whether its lease stands, by its own timer.
    pub(crate) live: bool,
    pub(crate) at: At,
    /// The values that its body goes on with.
    pub(crate) values: [StepVersion; STEPS],
    /// How often its steps were dropped.
    pub(crate) dropped: [u8; STEPS],
    /// Whether its life has a step, by its own knowledge: it found one, or wrote or may have
    /// written one.
    pub(crate) has_steps: bool,
    /// The life that it claimed; for the watch only.
    pub(crate) life: u8,
    /// The steps that were recorded when it claimed; for the watch only.
    pub(crate) recorded: [bool; STEPS],
}

/// How far a body is: where its first step without a value stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum At {
    /// Between two steps, or before the first, or after the last.
    Between,
    /// It writes that the step has begun, over this version.
    Beginning(Option<StepVersion>),
    /// The step's body may run.
    Ready(Option<StepVersion>),
    /// The step's body has run, and its value is to be written over this version.
    Writing(Option<StepVersion>),
    /// The call has ended; the request is on the way, or will be sent again.
    Ending(End),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum End {
    Done,
    Release,
    GiveBack,
    Uncertain,
    Unpolled,
    Stopped,
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
    Step(StepRequest),
}

/// A version of the record that is to stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Write {
    /// The attempt that sends it.
    pub(crate) by: Name,
    pub(crate) seen: Seen,
    pub(crate) draft: Draft,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Claim(Meaning),
    End(End),
    /// A claim whose caller went away is ended, or kept from standing.
    GiveUp,
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
    pub(crate) on_crash: OnCrash,
    pub(crate) lease: Option<Ahead>,
    pub(crate) expires: Option<Ahead>,
    pub(crate) outcome: [StepVersion; STEPS],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StepRequest {
    pub(crate) step: u8,
    pub(crate) next: StepCell,
    pub(crate) seen: Option<StepVersion>,
    /// The token of its writer, which stands in no request: only a fault looks at it.
    pub(crate) token: u8,
    /// Whether the fence was passed already: only where that is the fault.
    pub(crate) admitted: bool,
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
            Worker::Absent | Worker::Idle => None,
            Worker::Claiming(claiming) => Some(&mut claiming.write.seen),
            Worker::Holding(held) => Some(&mut held.seen),
        }
    }

    /// No two workers have one attempt.
    pub(crate) fn order(&self) -> Name {
        match self {
            Worker::Absent => 0,
            Worker::Idle => 1,
            Worker::Claiming(claiming) => claiming.attempt,
            Worker::Holding(held) => held.attempt,
        }
    }
}

impl Held {
    /// The step that the body is at; as many as there are after the last.
    pub(crate) fn step(&self) -> usize {
        let waits = self.values.iter().position(|value| *value == NONE);
        waits.unwrap_or(STEPS)
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.has_steps || self.values != [NONE; STEPS] || self.dropped != [0; STEPS]
    }
}

impl World {
    /// A lease or a retention passes.
    pub(crate) fn tick(&mut self) {
        if let Some(cell) = &mut self.cell {
            cell.lease = cell.lease.saturating_sub(1);
            cell.expires = cell.expires.saturating_sub(1);
        }
        for worker in &mut self.workers {
            if let Worker::Holding(held) = worker {
                held.live = false;
            }
        }
    }

    /// Every version of the record that was seen stands no more.
    pub(crate) fn outdate(&mut self) {
        self.workers
            .iter_mut()
            .filter_map(Worker::seen_mut)
            .for_each(|seen| *seen = Seen::Stale);
        if let Some(Request::Record(_)) = self.straggler {
            // It is refused whenever it arrives.
            self.straggler = None;
        }
    }

    /// A name that no attempt has.
    pub(crate) fn fresh_name(&mut self) -> Name {
        let mut fresh = FIRST;
        self.each_name(|name| fresh = fresh.max(*name + 1));
        fresh
    }
}
