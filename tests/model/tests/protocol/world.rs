//! A world: one cell, three workers, perhaps a request that straggles, and the notes of the watch.
//!
//! Everything is small and plain, because millions of worlds are made; `pack` turns it into what
//! the runtime knows.

use idempotent_runtime::{policy::OnCrash, protocol::Meaning, record::State};

use crate::watch::Watch;

/// The name of a version or an attempt. The one that was met first is called 1.
pub(crate) type Name = u8;
/// A version that stands no more and never will again: which one it was makes no difference. Also
/// no outcome.
pub(crate) const NONE: Name = 0;
/// A version and an attempt id that are not in use yet, and another one.
pub(crate) const FRESH: Name = 100;
pub(crate) const FRESHER: Name = 101;
/// The attempt id of a record that an operator resumed, and the outcome that an operator settled
/// one with.
pub(crate) const RESUMED: Name = 102;
pub(crate) const TOLD: Name = 103;

/// Microseconds after now; what is past is 0.
pub(crate) type Ahead = u8;
/// How far the store's clock moves on at once. Tokens follow it, one a microsecond. A tick has room
/// for more claims than the model makes, as a retention has for more than a store can serve.
pub(crate) const TICK: Ahead = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) cell: Option<Cell>,
    pub(crate) workers: [Worker; 3],
    /// A request whose sender did not wait for it: it may arrive at any later moment.
    pub(crate) straggler: Option<Request>,
    pub(crate) stragglers_left: u8,
    /// For how long it must not stand, because its sender gave it up.
    pub(crate) given_up: Ahead,
    pub(crate) calls_left: u8,
    /// How often an operator settles or resumes what stands.
    pub(crate) settlements_left: u8,
    pub(crate) watch: Watch,
}

/// The record that stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cell {
    pub(crate) arguments: u8,
    pub(crate) state: State,
    pub(crate) version: Name,
    pub(crate) token: Ahead,
    pub(crate) attempt: u8,
    pub(crate) attempt_id: Name,
    pub(crate) on_crash: OnCrash,
    pub(crate) lease: Ahead,
    pub(crate) expires: Ahead,
    /// The answer to duplicates, named for the attempt that found it out.
    pub(crate) outcome: Name,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Worker {
    pub(crate) caller: Caller,
    pub(crate) phase: Phase,
}

/// The facts that a worker brings to each of its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Caller {
    pub(crate) arguments: u8,
    pub(crate) on_crash: OnCrash,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    /// There is no such worker.
    Absent,
    Idle,
    /// Its request is on the way, or will be sent again.
    Claiming(Name, Request),
    Waiting {
        attempt_id: Name,
        seen: Name,
    },
    Holding(Held),
    /// Its caller went away while a claim was under way that was sent over this version.
    GivingUp(Name, Option<Name>),
    /// Its body has ended, or will never run; the request is on the way, or will be sent again.
    Ending(Held, End, Request),
}

/// The knowledge of a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Held {
    pub(crate) attempt_id: Name,
    pub(crate) attempt: u8,
    pub(crate) on_crash: OnCrash,
    pub(crate) meaning: Meaning,
    pub(crate) version: Name,
    pub(crate) lease: Ahead,
    pub(crate) polled: bool,
    /// Whether its heartbeats go on.
    pub(crate) beats: bool,
    /// Whether the record that it claimed has not begun anew since; for the watch only.
    pub(crate) current: bool,
}

/// How a holder ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum End {
    Done,
    /// The body's own word that nothing happened.
    Release,
    Uncertain,
    Unpolled,
    Stopped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Request {
    /// The attempt that it belongs to. The draft of a takeover that leaves what it found names no
    /// attempt.
    pub(crate) by: Name,
    pub(crate) seen: Option<Name>,
    pub(crate) draft: Draft,
    pub(crate) kind: Kind,
}

/// The part of a draft that is not the same in all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Draft {
    pub(crate) version: Name,
    /// The arguments of a record that begins.
    pub(crate) begins: Option<u8>,
    pub(crate) state: State,
    /// The token that it has to exceed, where it draws one.
    pub(crate) above: Option<Ahead>,
    pub(crate) attempt: u8,
    pub(crate) attempt_id: Name,
    pub(crate) on_crash: OnCrash,
    pub(crate) lease: Option<Ahead>,
    pub(crate) expires: Option<Ahead>,
    pub(crate) outcome: Name,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Claim(Meaning),
    Heartbeat,
    End(End),
    /// Keeps a claim that was given up from standing.
    Touch,
    /// The request of an operator, who knows what happened, or lets a parked record be tried again.
    Settle,
}

impl World {
    pub(crate) fn tick(&mut self) {
        let pass = |ahead: &mut Ahead| *ahead = ahead.saturating_sub(TICK);
        if let Some(cell) = &mut self.cell {
            pass(&mut cell.lease);
            pass(&mut cell.expires);
            pass(&mut cell.token);
        }
        for worker in &mut self.workers {
            match &mut worker.phase {
                Phase::Claiming(_, request) => request.draft.above.iter_mut().for_each(pass),
                Phase::Holding(held) | Phase::Ending(held, ..) => pass(&mut held.lease),
                _ => {}
            }
        }
        if let Some(straggler) = &mut self.straggler {
            straggler.draft.above.iter_mut().for_each(pass);
        }
        pass(&mut self.given_up);
        pass(&mut self.watch.highest_token);
    }
}

impl Worker {
    /// Its knowledge of the record that it holds.
    pub(crate) fn held(&mut self) -> &mut Held {
        match &mut self.phase {
            Phase::Holding(held) | Phase::Ending(held, ..) => held,
            _ => unreachable!("only a holder is asked"),
        }
    }

    pub(crate) fn request_mut(&mut self) -> Option<&mut Request> {
        match &mut self.phase {
            Phase::Claiming(_, request) | Phase::Ending(_, _, request) => Some(request),
            _ => None,
        }
    }

    pub(crate) fn attempt_id(&self) -> Option<Name> {
        match &self.phase {
            Phase::Absent | Phase::Idle => None,
            Phase::Claiming(attempt_id, _)
            | Phase::GivingUp(attempt_id, _)
            | Phase::Waiting { attempt_id, .. } => Some(*attempt_id),
            Phase::Holding(held) | Phase::Ending(held, ..) => Some(held.attempt_id),
        }
    }
}
