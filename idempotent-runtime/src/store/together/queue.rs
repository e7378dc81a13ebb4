//! The writes that wait, in the order in which they are sent.
//!
//! A write comes in when its caller asks for it, and goes out with a batch, or when its caller goes
//! away. There are no more of them than calls that hold a lease or end, and what they share with
//! these, such as an outcome, is not copied.

use std::{collections::HashSet, time::Duration};

use tokio::sync::oneshot::Sender;

#[cfg(any(feature = "mysql", feature = "postgres"))]
use crate::store::{Snapshot, Swap};
use crate::{
    identity::RecordId,
    record::{Draft, Moment, State, TokenRule, Version},
    store::{
        queue::{Queue, Taken, Ticket},
        together::WriteAnswer,
    },
};

/// How many writes are sent together, at most.
const MOST: usize = 256;

/// How many bytes of outcomes, keys and scopes are sent together, at most.
pub(super) const MOST_BYTES: usize = 256 * 1024;

/// The rank of a write that prolongs no lease.
const LAST: Duration = Duration::MAX;

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

    /// The answer if nothing was written and this record stands. If it is at the version that was
    /// seen, it was locked, or something drops the write: the write has to be tried alone.
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    pub(crate) fn refused(&self, shown: Option<Snapshot>) -> Option<Swap> {
        let shown = shown?;
        let moved = shown.record.as_ref()?.version != self.seen;
        moved.then_some(Swap::Refused(shown))
    }
}

#[derive(Debug)]
pub(super) struct Job {
    pub(super) write: Write,
    pub(super) caller: Sender<WriteAnswer>,
}

impl Job {
    /// Renewals come first, and of these the shortest leases.
    pub(super) fn rank(&self) -> Duration {
        self.write.renewed().unwrap_or(LAST)
    }
}

/// Whether the write at this place renews a lease.
pub(super) fn renews(ticket: Ticket) -> bool {
    ticket.rank() != LAST
}

/// As many as one batch takes, each id once, in the order of the ids. Renewals are not mixed with
/// others.
pub(super) fn take(queue: &mut Queue<Job>) -> Vec<Job> {
    let Some(first) = queue.first() else {
        return Vec::new();
    };
    let (mut ids, mut bytes) = (HashSet::new(), 0);
    let mut taken = queue.take(|ticket, job| {
        bytes += job.write.next.bytes();
        if ids.len() == MOST || renews(ticket) != renews(first) || bytes > MOST_BYTES {
            return Taken::Full;
        }
        match ids.insert(job.write.id) {
            true => Taken::Yes,
            false => Taken::Stays,
        }
    });
    taken.sort_unstable_by_key(|job| *job.write.id.as_bytes());
    taken
}
