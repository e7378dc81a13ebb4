//! Writes that come together are sent together.
//!
//! A write that goes alone takes a round trip of its own. So over few connections, the number of
//! leases that can be kept would end where one round trip after the other takes longer than a
//! lease.
//!
//! The heartbeat thread feeds it: each lease has at most one renewal here, and each job one write.
//! A write [waits](queue) until a batch takes it. Its caller gets the answer of the batch, or sends
//! it alone if the batch left it out. A caller that goes away takes its write out of the queue. If
//! a batch has it already, it is written or not, as after an answer that is lost.
//!
//! A renewal never waits for a write that renews nothing. One batch of these is under way at once,
//! and the other place is kept for renewals. For writes that go alone there are two places of the
//! same kind, because such a write may wait long for a record that somebody has locked. So a store
//! needs [as many connections](CONNECTIONS) as there are places. No batch outlives its callers, and
//! a batch of renewals is given up in time for another try.

mod queue;
#[cfg(test)]
mod tests;

use std::{
    fmt::Debug,
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use tokio::{
    sync::{
        Semaphore,
        oneshot::{self, Receiver},
    },
    time::timeout,
};

pub(crate) use self::queue::Write;
use self::queue::{Job, MOST_BYTES, renews, take};
use crate::{
    identity::RecordId,
    policy::OnCrash,
    race::race,
    record::{Draft, Record, Version},
    store::{
        Snapshot, StepStore, Store, StoreError, StoreErrorKind, Swap, TransactionStore,
        forward::forward,
        queue::{Queue, Ticket},
    },
    value::lock,
};

const DOING: &str = "writing records together";

/// How many batches are under way at once.
const BATCHES: usize = 2;

/// How many connections are in use at once: for each batch, for a renewal that goes alone, and for
/// anything else that does.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) const CONNECTIONS: u32 = 4;

/// How long an answer to renewals is awaited, at least.
const SHORTEST_LIMIT: Duration = Duration::from_secs(1);

/// The answer to one of many writes; `None` if it was not written, and has to be written alone.
pub(crate) type WriteAnswer = Option<Result<Swap, StoreError>>;

/// A store that can write many records at once.
pub(crate) trait WriteTogether: Store {
    /// Writes each draft under the same conditions as [`Store::swap`], and returns the answers in
    /// the same order. No id is there twice.
    fn write_together(&self, writes: &[Write]) -> impl Future<Output = Vec<WriteAnswer>> + Send;
}

#[derive(Debug, Default)]
struct Waiting {
    queue: Queue<Job>,
    batches: usize,
    /// Whether one of the batches renews nothing: the other place is kept for renewals.
    ends: bool,
}

#[derive(Debug)]
struct Shared<S> {
    store: S,
    waiting: Mutex<Waiting>,
    /// One renewal goes alone at a time.
    renewing_alone: Semaphore,
    /// The same for everything else.
    alone: Semaphore,
}

/// A store whose writes over a version go together.
#[derive(Debug)]
pub(crate) struct Together<S>(Arc<Shared<S>>);

impl<S: WriteTogether> Together<S> {
    pub(crate) fn new(store: S) -> Self {
        Self(Arc::new(Shared {
            store,
            waiting: Mutex::default(),
            renewing_alone: Semaphore::new(1),
            alone: Semaphore::new(1),
        }))
    }
}

impl<S: WriteTogether> Shared<S> {
    async fn swap(
        self: &Arc<Self>,
        id: &RecordId,
        seen: Version,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        let write = Write {
            id: *id,
            seen,
            next: next.clone(),
        };
        let alone = match write.renewed() {
            Some(_) => &self.renewing_alone,
            None => &self.alone,
        };
        if next.bytes() <= MOST_BYTES {
            let (turn, answer) = self.enter(write);
            let _place = TicketGuard { shared: self, turn };
            match answer.await {
                Ok(Some(answer)) => return answer,
                Ok(None) => {}
                Err(_) => return Err(unanswered()),
            }
        }
        let _permit = alone.acquire().await;
        self.store.swap(id, Some(seen), next).await
    }

    /// Puts a write into the queue, and sees to it that a task takes it out.
    fn enter(self: &Arc<Self>, write: Write) -> (Ticket, Receiver<WriteAnswer>) {
        let (caller, answer) = oneshot::channel();
        let mut waiting = lock(&self.waiting);
        let job = Job { write, caller };
        let turn = waiting.queue.push(job.rank(), job);
        let needs_task = waiting.batches < BATCHES;
        waiting.batches += usize::from(needs_task);
        // A runtime that ends drops the task at once, and that takes the lock again.
        drop(waiting);
        if needs_task {
            let batches = Batches {
                shared: Arc::clone(self),
                is_over: false,
                ends: false,
            };
            tokio::spawn(batches.run());
        }
        (turn, answer)
    }

    /// Writes a batch. It is given up when no caller waits for it any longer, or when the shortest
    /// of its leases needs another try.
    async fn write(&self, batch: Vec<Job>) {
        let (writes, mut callers): (Vec<_>, Vec<_>) =
            batch.into_iter().map(|job| (job.write, job.caller)).unzip();
        let shortest = writes.iter().filter_map(Write::renewed).min();
        let limit = shortest.map_or(Duration::MAX, |lease| (lease / 3).max(SHORTEST_LIMIT));
        let all_gone = async {
            for caller in &mut callers {
                caller.closed().await;
            }
        };
        let writing = timeout(limit, self.store.write_together(&writes));
        let answers = match race(writing, all_gone).await {
            Some(Ok(answers)) => answers,
            _ => writes.iter().map(|_| Some(Err(unanswered()))).collect(),
        };
        for (caller, answer) in callers.into_iter().zip(answers) {
            // A caller that is gone needs no answer.
            let _ = caller.send(answer);
        }
    }
}

/// A task that writes one batch after another, until nothing waits for it.
struct Batches<S: WriteTogether> {
    shared: Arc<Shared<S>>,
    ends: bool,
    is_over: bool,
}

impl<S: WriteTogether> Batches<S> {
    async fn run(mut self) {
        while let Some(batch) = self.take() {
            self.shared.write(batch).await;
        }
    }

    /// The next batch. If there is none, this task counts no more from the same moment on.
    fn take(&mut self) -> Option<Vec<Job>> {
        let mut waiting = lock(&self.shared.waiting);
        if std::mem::take(&mut self.ends) {
            waiting.ends = false;
        }
        let next = waiting.queue.first();
        let is_free = next.is_some_and(|turn| renews(turn) || !waiting.ends);
        if !is_free {
            waiting.batches -= 1;
            self.is_over = true;
            return None;
        }
        self.ends = next.is_some_and(|turn| !renews(turn));
        waiting.ends |= self.ends;
        Some(take(&mut waiting.queue))
    }
}

impl<S: WriteTogether> Drop for Batches<S> {
    /// If it was stopped, or the store panicked, its callers learn that there is no answer.
    fn drop(&mut self) {
        if !self.is_over {
            let mut waiting = lock(&self.shared.waiting);
            waiting.batches -= 1;
            waiting.ends &= !self.ends;
            waiting.queue = Queue::default();
        }
    }
}

/// A caller's place in the queue: a caller that goes away leaves it.
struct TicketGuard<'a, S: WriteTogether> {
    shared: &'a Shared<S>,
    turn: Ticket,
}

impl<S: WriteTogether> Drop for TicketGuard<'_, S> {
    fn drop(&mut self) {
        // Dropped after the lock is free.
        let _left = lock(&self.shared.waiting).queue.remove(self.turn);
    }
}

fn unanswered() -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, DOING)
}

forward! {
    impl[S: WriteTogether] Together<S>, |it| it.0.store, {
        async fn load(&self, id: &RecordId) -> Result<Snapshot, StoreError> {
            let _permit = self.0.alone.acquire().await;
            self.0.store.load(id).await
        }

        async fn swap(
            &self,
            id: &RecordId,
            seen: Option<Version>,
            next: &Draft,
        ) -> Result<Swap, StoreError> {
            let Some(seen) = seen else {
                let _permit = self.0.alone.acquire().await;
                return self.0.store.swap(id, None, next).await;
            };
            self.0.swap(id, seen, next).await
        }

        async fn for_heartbeats(&self) -> Result<Option<Arc<dyn Store>>, StoreError> {
            self.0.store.for_heartbeats().await
        }
    }
}
