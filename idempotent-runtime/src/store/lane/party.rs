//! The callers of one runtime in one lane.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use tokio::runtime::Id;

use super::{Kind, Waiting};
use crate::{
    identity::RecordId,
    record::Draft,
    store::{
        moment::Moment,
        queue::{Queue, Taken, Ticket},
    },
};

/// How many go their own way while none waits.
const MOST_DIRECT: usize = 4;

/// How many tasks do batches at once, where the one before takes long.
const MOST_TASKS: usize = 4;

/// How long a batch takes before a second task begins another one.
const LONG: Duration = Duration::from_millis(10);

/// How many operations are done together, at most.
const MOST: usize = 64;

/// How many bytes of outcomes, keys and scopes are sent together, unless a single one has more.
const MOST_BYTES: usize = 1 << 20;

#[derive(Default)]
pub(super) struct Party {
    runtime: Option<Id>,
    queue: Queue<Waiting>,
    /// How many go their own way, though they could wait.
    direct: usize,
    tasks: usize,
    /// When a task last took a batch, or was begun for that.
    taken: Option<Moment>,
    /// How many came together of late: the mean of the last batch and those before.
    crowd: usize,
    /// The records of operations that a batch could not do, while these are done alone.
    stuck: HashMap<RecordId, usize>,
}

impl Party {
    /// The callers of this runtime. Those of others are forgotten when a new one comes, unless
    /// something is under way.
    pub(super) fn of(parties: &mut Vec<Self>, runtime: Option<Id>) -> &mut Self {
        let place = parties.iter().position(|it| it.runtime == runtime);
        let place = place.unwrap_or_else(|| {
            parties.retain(|it| !it.is_idle());
            parties.push(Self {
                runtime,
                ..Self::default()
            });
            parties.len() - 1
        });
        &mut parties[place]
    }

    fn is_idle(&self) -> bool {
        self.direct + self.tasks == 0 && self.queue.first().is_none() && self.stuck.is_empty()
    }

    /// Counts an operation that goes alone, if it does.
    pub(super) fn goes_alone(&mut self, id: &RecordId, is_forced: bool) -> bool {
        let is_crowded = is_forced || self.crowd > MOST_DIRECT;
        let has_room = !is_crowded && self.queue.first().is_none() && self.direct < MOST_DIRECT;
        let goes = has_room || !self.stuck.is_empty() && self.stuck.contains_key(id);
        self.direct += usize::from(goes);
        goes
    }

    #[cfg(test)]
    pub(super) fn queued(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn leave_out(&mut self, id: RecordId) {
        *self.stuck.entry(id).or_default() += 1;
    }

    pub(super) fn is_done_alone(&mut self, stuck: Option<RecordId>) {
        let Some(id) = stuck else {
            self.direct = self.direct.saturating_sub(1);
            return;
        };
        if let Some(count) = self.stuck.get_mut(&id) {
            *count -= 1;
            if *count == 0 {
                self.stuck.remove(&id);
            }
        }
    }

    /// Returns the ticket, and whether a new task has to be started for it.
    pub(super) fn push(&mut self, waiting: Waiting) -> (Ticket, bool) {
        let ticket = self.queue.push(Duration::ZERO, waiting);
        let now = Moment::now();
        let is_long = self.taken.is_none_or(|taken| now.since(taken) >= LONG);
        let needs_task = self.tasks == 0 || self.tasks < MOST_TASKS && is_long;
        if needs_task {
            self.tasks += 1;
            self.taken = Some(now);
        }
        (ticket, needs_task)
    }

    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<Waiting> {
        self.queue.remove(ticket)
    }

    /// As many as one statement takes, in the order of the ids, so that no two batches wait for
    /// each other. `None` if none waits: then a task less is at work.
    pub(super) fn take(&mut self, kind: Kind) -> Option<Vec<Waiting>> {
        let (mut ids, mut bytes, mut count) = (HashSet::new(), 0, 0);
        let mut taken = self.queue.take(|_, waiting| {
            let size = waiting.job.bytes();
            if count == MOST || count > 0 && bytes + size > MOST_BYTES {
                return Taken::Full;
            }
            if kind == Kind::Complete && !ids.insert(waiting.job.id) {
                return Taken::Stays;
            }
            (count, bytes) = (count + 1, bytes + size);
            Taken::Yes
        });
        if taken.is_empty() {
            self.tasks -= 1;
            return None;
        }
        self.taken = Some(Moment::now());
        self.crowd = (self.crowd + taken.len()) / 2;
        taken.sort_unstable_by_key(|waiting| *waiting.job.id.as_bytes());
        Some(taken)
    }

    /// A task stops before its time. If it was the last one, those that wait are returned.
    pub(super) fn stop(&mut self) -> Vec<Waiting> {
        self.tasks -= 1;
        match self.tasks {
            0 => self.queue.take(|_, _| Taken::Yes),
            _ => Vec::new(),
        }
    }
}

impl super::Job {
    fn bytes(&self) -> usize {
        self.work.next().map_or(0, Draft::bytes)
    }
}
