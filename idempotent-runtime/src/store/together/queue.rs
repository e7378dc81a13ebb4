//! The writes that wait, in the order in which they are sent.
//!
//! A write comes in when its caller asks for it, and goes out with a batch, or when its caller goes
//! away. There are no more of them than calls that hold a lease or end, and what they share with
//! these, such as an outcome, is not copied.

use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use tokio::sync::oneshot::Sender;

#[cfg(any(feature = "mysql", feature = "postgres"))]
use crate::store::{Snapshot, Swap};
use crate::{
    identity::RecordId,
    record::{Draft, Moment, State, TokenRule, Version},
    store::together::WriteAnswer,
};

/// How many writes are sent together, at most.
const MOST: usize = 256;

/// How many bytes of outcomes, keys and scopes are sent together, at most.
pub(super) const MOST_BYTES: usize = 256 * 1024;

/// A write over a version that was seen.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) id: RecordId,
    pub(crate) seen: Version,
    pub(crate) next: Draft,
}

impl Write {
    /// The lease that it prolongs; `None` if it does anything else.
    pub(super) fn renewed(&self) -> Option<Duration> {
        let next = &self.next;
        match next.lease {
            Moment::In(lease)
                if !lease.is_zero()
                    && matches!(next.state, State::Running | State::Undoing)
                    && next.subject.is_none()
                    && next.token == TokenRule::Keep =>
            {
                Some(lease)
            }
            _ => None,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let outcome = self.next.outcome.as_ref();
        let subject = self.next.subject.as_deref();
        outcome.map_or(0, |outcome| outcome.bytes.len())
            + subject.map_or(0, |subject| subject.scope.len() + subject.key.len())
    }

    /// The answer if nothing was written and this record stands. If it is at the version that was
    /// seen, it was locked, or something drops the write: the write has to be tried alone.
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    pub(crate) fn refused(&self, shown: Option<Snapshot>) -> Option<Swap> {
        let shown = shown?;
        let moved = shown.record.as_ref()?.version != self.seen;
        moved.then_some(Swap::Refused(shown))
    }
}

/// The place of a write in the queue. Renewals come first, and of these the shortest leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket {
    lease: Duration,
    number: u64,
}

impl Ticket {
    /// Stands for the lease of a write that prolongs none.
    const NONE: Duration = Duration::MAX;

    pub(super) fn renews(self) -> bool {
        self.lease != Self::NONE
    }
}

#[derive(Debug)]
pub(super) struct Job {
    pub(super) write: Write,
    pub(super) caller: Sender<WriteAnswer>,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    jobs: BTreeMap<Ticket, Job>,
    last: u64,
}

impl Queue {
    pub(super) fn push(&mut self, job: Job) -> Ticket {
        self.last += 1;
        let turn = Ticket {
            lease: job.write.renewed().unwrap_or(Ticket::NONE),
            number: self.last,
        };
        self.jobs.insert(turn, job);
        turn
    }

    /// The write whose turn is next.
    pub(super) fn next(&self) -> Option<Ticket> {
        self.jobs.keys().next().copied()
    }

    pub(super) fn remove(&mut self, turn: Ticket) -> Option<Job> {
        self.jobs.remove(&turn)
    }

    /// Drops all: each caller learns that there is no answer.
    pub(super) fn clear(&mut self) {
        self.jobs.clear();
    }

    /// As many as one batch takes, each id once, in the order of the ids. Renewals are not mixed
    /// with others.
    pub(super) fn take(&mut self) -> Vec<Job> {
        let Some(first) = self.next() else {
            return Vec::new();
        };
        let (mut ids, mut bytes) = (HashSet::new(), 0);
        let turns: Vec<_> = self
            .jobs
            .iter()
            .take_while(|(turn, job)| {
                bytes += job.write.bytes();
                turn.renews() == first.renews() && bytes <= MOST_BYTES
            })
            .filter(|(_, job)| ids.insert(job.write.id))
            .map(|(turn, _)| *turn)
            .take(MOST)
            .collect();
        let taken = turns.iter().filter_map(|turn| self.jobs.remove(turn));
        let mut taken: Vec<_> = taken.collect();
        taken.sort_unstable_by_key(|job| *job.write.id.as_bytes());
        taken
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }
}
