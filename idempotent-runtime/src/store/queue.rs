//! A queue of jobs. Each job has a caller that waits, and a task does many jobs together.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// No two jobs have the same number, whatever queue they are in: a queue may be made anew while a
/// caller still has its ticket.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The jobs that wait, in the order in which a task takes them.
#[derive(Debug)]
pub(crate) struct Queue<J> {
    jobs: BTreeMap<Ticket, J>,
}

/// The place of a job in a queue. The lowest rank comes first, and in it the job that came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket {
    rank: Duration,
    number: u64,
}

/// The decision about one job while a task takes a batch.
pub(crate) enum Taken {
    Yes,
    /// It stays, and the batch goes on behind it.
    Stays,
    /// It stays, and so do all behind it.
    Full,
}

#[cfg(any(feature = "mysql", feature = "postgres"))]
impl Ticket {
    pub(crate) fn rank(self) -> Duration {
        self.rank
    }
}

impl<J> Default for Queue<J> {
    fn default() -> Self {
        Self {
            jobs: BTreeMap::new(),
        }
    }
}

impl<J> Queue<J> {
    pub(crate) fn push(&mut self, rank: Duration, job: J) -> Ticket {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let ticket = Ticket { rank, number };
        self.jobs.insert(ticket, job);
        ticket
    }

    /// The job whose turn is next.
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    pub(crate) fn first(&self) -> Option<Ticket> {
        self.jobs.keys().next().copied()
    }

    /// `None` if it was taken before.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<J> {
        self.jobs.remove(&ticket)
    }

    /// Removes and returns the jobs that `choose` accepts, in the order of the queue.
    pub(crate) fn take(&mut self, mut choose: impl FnMut(Ticket, &J) -> Taken) -> Vec<J> {
        let mut chosen = Vec::new();
        for (ticket, job) in &self.jobs {
            match choose(*ticket, job) {
                Taken::Yes => chosen.push(*ticket),
                Taken::Stays => {}
                Taken::Full => break,
            }
        }
        let taken = chosen.iter().filter_map(|ticket| self.jobs.remove(ticket));
        taken.collect()
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.jobs.len()
    }
}
