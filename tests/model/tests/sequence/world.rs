//! The record of one stream, three workers, perhaps a request that straggles, and what the watch
//! noted down: small and plain, because a great many of them are made.

use idempotent_runtime::{policy::OnCrash, protocol::sequence::NumberState};

use crate::watch::Watch;

/// The last number that the source sends.
pub(crate) const NUMBERS: u8 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) cell: Option<Cell>,
    /// A copy in a tier, where the fault is to make one, and whether the record still stands so.
    pub(crate) copy: Option<(Cell, bool)>,
    pub(crate) workers: [Worker; 3],
    pub(crate) straggler: Option<Straggler>,
    pub(crate) stragglers_left: u8,
    pub(crate) watch: Watch,
}

/// The record that stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cell {
    /// The last number; 0 where there is none.
    pub(crate) last: u8,
    pub(crate) skipped: bool,
    pub(crate) running: Option<Run>,
    pub(crate) owner: Owner,
    pub(crate) token: u8,
    /// Whether the lease is not over.
    pub(crate) live: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Run {
    pub(crate) number: u8,
    pub(crate) state: NumberState,
    pub(crate) on_crash: OnCrash,
    pub(crate) takeovers: u8,
    /// The number that it passed, and how often that one was taken over.
    pub(crate) passed: Option<(u8, u8)>,
}

/// The owner of the claim that stands. The workers know which of them it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    Nobody,
    Resumed,
    Somebody,
}

/// The version that a request was sent over. A version that is gone never comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Seen {
    Nothing,
    Current,
    Stale,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Worker {
    pub(crate) phase: Phase,
    /// Whether the record stands for its claim.
    pub(crate) owns: bool,
    /// Whether the request that straggles is one of its present call.
    pub(crate) straggles: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Phase {
    /// There is no such worker.
    Absent,
    Idle,
    /// Its claim of this number is on the way, or will be sent again.
    Claiming(u8, Seen),
    /// Its caller went away while a claim was under way.
    GivingUp(u8, Seen),
    Holding(Held),
    /// Its body has ended, or will never run; the request is on the way, or will be sent again.
    Ending(Held, End),
}

/// The knowledge of a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Held {
    pub(crate) run: Run,
    pub(crate) token: u8,
    pub(crate) seen: Seen,
    pub(crate) live: bool,
    pub(crate) body: Body,
}

/// How far a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Body {
    Unpolled,
    Polled,
    /// It has sent its effect, with its token.
    Sent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum End {
    Done,
    /// It records an error, and had no effect.
    Failed,
    Release,
    Uncertain,
    Unpolled,
    Stopped,
}

/// A request whose sender did not wait for it: it may arrive at any later moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Straggler {
    pub(crate) what: What,
    pub(crate) seen: Seen,
    /// Whether the record stands for the claim that it belongs to.
    pub(crate) owns: bool,
    /// Whether its sender was told that it will not stand.
    pub(crate) given_up: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum What {
    Claim(u8),
    End(Held, End),
}

impl Worker {
    pub(crate) const IDLE: Self = Self {
        phase: Phase::Idle,
        owns: false,
        straggles: false,
    };

    pub(crate) fn held(&self) -> Option<Held> {
        match self.phase {
            Phase::Holding(held) | Phase::Ending(held, _) => Some(held),
            _ => None,
        }
    }

    pub(crate) fn seen_mut(&mut self) -> Option<&mut Seen> {
        match &mut self.phase {
            Phase::Absent | Phase::Idle => None,
            Phase::Claiming(_, seen) | Phase::GivingUp(_, seen) => Some(seen),
            Phase::Holding(held) | Phase::Ending(held, _) => Some(&mut held.seen),
        }
    }

    fn held_mut(&mut self) -> Option<&mut Held> {
        match &mut self.phase {
            Phase::Holding(held) | Phase::Ending(held, _) => Some(held),
            _ => None,
        }
    }
}

impl World {
    /// A lease passes.
    pub(crate) fn tick(&mut self) {
        for cell in self
            .cell
            .iter_mut()
            .chain(self.copy.iter_mut().map(|copy| &mut copy.0))
        {
            cell.live = false;
        }
        for held in self.workers.iter_mut().filter_map(Worker::held_mut) {
            held.live = false;
        }
    }

    /// Gives one name to worlds that differ in nothing that matters. Tokens are counted through,
    /// and workers are sorted. If `forgets`, a worker that can neither write nor send an effect any
    /// more is idle.
    pub(crate) fn canonical(mut self, forgets: bool) -> Self {
        if self.straggler.is_none() {
            self.workers
                .iter_mut()
                .for_each(|worker| worker.straggles = false);
        }
        if forgets {
            self.forget();
        }
        self.count_tokens();
        self.workers.sort_unstable();
        self
    }

    fn forget(&mut self) {
        let stands = self.cell.is_some();
        if self
            .straggler
            .is_some_and(|straggler| straggler.seen == Seen::Stale)
        {
            self.straggler = None;
            self.workers
                .iter_mut()
                .for_each(|worker| worker.straggles = false);
        }
        for worker in self
            .workers
            .iter_mut()
            .filter(|worker| !worker.owns && !worker.straggles)
        {
            let is_lost = match worker.phase {
                Phase::Claiming(_, seen) | Phase::GivingUp(_, seen) => {
                    seen == Seen::Stale || (seen == Seen::Nothing && stands)
                }
                Phase::Holding(held) => !held.live && held.body == Body::Sent,
                Phase::Ending(..) => true,
                Phase::Absent | Phase::Idle => false,
            };
            if is_lost {
                *worker = Worker::IDLE;
            }
        }
    }

    fn count_tokens(&mut self) {
        let mut tokens = [0; 8];
        let mut known = 0;
        self.each_token(|token| {
            tokens[known] = *token;
            known += 1;
        });
        let tokens = &mut tokens[..known];
        tokens.sort_unstable();
        let rank = |token: u8| {
            let below = tokens.iter().zip(tokens.iter().skip(1));
            let below = below
                .filter(|(one, next)| one != next && **one < token)
                .count();
            u8::try_from(below).expect("there are few tokens") + 1
        };
        self.each_token(|token| *token = rank(*token));
    }

    fn each_token(&mut self, mut each: impl FnMut(&mut u8)) {
        let cells = self
            .cell
            .iter_mut()
            .chain(self.copy.iter_mut().map(|copy| &mut copy.0));
        cells.for_each(|cell| each(&mut cell.token));
        self.watch.highest.iter_mut().for_each(&mut each);
        for worker in &mut self.workers {
            if let Some(held) = worker.held_mut() {
                each(&mut held.token);
            }
        }
        if let Some(Straggler {
            what: What::End(held, _),
            ..
        }) = &mut self.straggler
        {
            each(&mut held.token);
        }
    }
}
