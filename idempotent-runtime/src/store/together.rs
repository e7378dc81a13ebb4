//! Writes that come together are sent together.
//!
//! A write that goes alone takes a round trip of its own. So over few connections, the number of
//! leases that can be kept would end where one round trip after the other takes longer than a
//! lease.

use std::{
    collections::{BTreeMap, HashSet},
    fmt::Debug,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use tokio::{
    sync::{
        Semaphore,
        oneshot::{self, Receiver, Sender},
    },
    time::timeout,
};

use crate::{
    identity::RecordId,
    policy::OnCrash,
    record::{Draft, Moment, Record, State, Step, StepNames, TokenRule, Version},
    run::race,
    store::{Snapshot, StepWrite, Store, StoreError, StoreErrorKind, Swap},
};

const DOING: &str = "writing records together";

/// How many writes are sent together, at most.
const MOST: usize = 256;

/// How many bytes of outcomes, keys and scopes are sent together, at most.
const MOST_BYTES: usize = 256 * 1024;

/// How many batches are under way at once: as many as heartbeats have connections.
const BATCHES: usize = 2;

/// How long an answer to renewals is awaited, at least.
const SHORTEST_LIMIT: Duration = Duration::from_secs(1);

/// A write over a version that was seen.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) id: RecordId,
    pub(crate) seen: Version,
    pub(crate) next: Draft,
}

/// The answer to one of many writes; `None` if it was not written, and has to be written alone.
pub(crate) type Answer = Option<Result<Swap, StoreError>>;

/// A store that can write many records at once.
pub(crate) trait WriteTogether: Store {
    /// Writes each draft under the same conditions as [`Store::swap`], and returns the answers in
    /// the same order. No id is there twice.
    fn write_together(&self, writes: &[Write]) -> impl Future<Output = Vec<Answer>> + Send;
}

impl Write {
    /// The lease that it prolongs; `None` if it does anything else.
    fn renewed(&self) -> Option<Duration> {
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

    fn bytes(&self) -> usize {
        let outcome = self.next.outcome.as_ref();
        let subject = self.next.subject.as_deref();
        outcome.map_or(0, |outcome| outcome.bytes.len())
            + subject.map_or(0, |subject| subject.scope.len() + subject.key.len())
    }

    /// The answer if nothing was written and this record stands. If it is at the version that was
    /// seen, it was locked, or something drops the write: the write has to be tried alone.
    pub(crate) fn refused(&self, shown: Option<Snapshot>) -> Option<Swap> {
        let shown = shown?;
        let moved = shown.record.as_ref()?.version != self.seen;
        moved.then_some(Swap::Refused(shown))
    }
}

/// The place of a write in the queue. Renewals come first, and of these the shortest leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    lease: Duration,
    number: u64,
}

impl Turn {
    /// Stands for the lease of a write that prolongs none.
    const NONE: Duration = Duration::MAX;

    fn renews(self) -> bool {
        self.lease != Self::NONE
    }
}

#[derive(Debug)]
struct Job {
    write: Write,
    caller: Sender<Answer>,
}

#[derive(Debug, Default)]
struct Waiting {
    queue: BTreeMap<Turn, Job>,
    last: u64,
    batches: usize,
    /// Whether one of the batches renews nothing: the other connection is kept for renewals.
    ends: bool,
}

#[derive(Debug)]
struct Shared<S> {
    store: S,
    waiting: Mutex<Waiting>,
    /// One write goes alone at a time, so that those which wait for a lock do not take all
    /// connections.
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
            alone: Semaphore::new(1),
        }))
    }
}

impl<S: WriteTogether> Shared<S> {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn swap(self: &Arc<Self>, write: Write) -> Result<Swap, StoreError> {
        let (id, seen, next) = (write.id, write.seen, write.next.clone());
        if write.bytes() <= MOST_BYTES {
            let (turn, answer) = self.enter(write);
            let _place = Place { shared: self, turn };
            match answer.await {
                Ok(Some(answer)) => return answer,
                Ok(None) => {}
                Err(_) => return Err(unanswered()),
            }
        }
        let _permit = self.alone.acquire().await;
        self.store.swap(&id, Some(seen), &next).await
    }

    /// Puts a write into the queue, and sees to it that a task takes it out.
    fn enter(self: &Arc<Self>, write: Write) -> (Turn, Receiver<Answer>) {
        let (caller, answer) = oneshot::channel();
        let mut waiting = self.lock();
        waiting.last += 1;
        let turn = Turn {
            lease: write.renewed().unwrap_or(Turn::NONE),
            number: waiting.last,
        };
        waiting.queue.insert(turn, Job { write, caller });
        if waiting.batches < BATCHES {
            waiting.batches += 1;
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

impl Waiting {
    /// As many as one batch takes, each id once, in the order of the ids. Renewals are not mixed
    /// with others.
    fn take(&mut self) -> Vec<Job> {
        let Some(first) = self.queue.keys().next().copied() else {
            return Vec::new();
        };
        let (mut ids, mut bytes) = (HashSet::new(), 0);
        let turns: Vec<_> = self
            .queue
            .iter()
            .take_while(|(turn, job)| {
                bytes += job.write.bytes();
                turn.renews() == first.renews() && bytes <= MOST_BYTES
            })
            .filter(|(_, job)| ids.insert(job.write.id))
            .map(|(turn, _)| *turn)
            .take(MOST)
            .collect();
        let taken = turns.iter().filter_map(|turn| self.queue.remove(turn));
        let mut taken: Vec<_> = taken.collect();
        taken.sort_unstable_by_key(|job| *job.write.id.as_bytes());
        taken
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
        let mut waiting = self.shared.lock();
        if std::mem::take(&mut self.ends) {
            waiting.ends = false;
        }
        let next = waiting.queue.keys().next();
        let is_free = next.is_some_and(|turn| turn.renews() || !waiting.ends);
        if !is_free {
            waiting.batches -= 1;
            self.is_over = true;
            return None;
        }
        self.ends = next.is_some_and(|turn| !turn.renews());
        waiting.ends |= self.ends;
        Some(waiting.take())
    }
}

impl<S: WriteTogether> Drop for Batches<S> {
    /// If it was stopped, or the store panicked, its callers learn that there is no answer.
    fn drop(&mut self) {
        if !self.is_over {
            let mut waiting = self.shared.lock();
            waiting.batches -= 1;
            waiting.ends &= !self.ends;
            waiting.queue.clear();
        }
    }
}

/// A caller's place in the queue: a caller that goes away leaves it.
struct Place<'a, S: WriteTogether> {
    shared: &'a Shared<S>,
    turn: Turn,
}

impl<S: WriteTogether> Drop for Place<'_, S> {
    fn drop(&mut self) {
        self.shared.lock().queue.remove(&self.turn);
    }
}

fn unanswered() -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, DOING)
}

#[async_trait]
impl<S: WriteTogether> Store for Together<S> {
    async fn load(&self, id: &RecordId) -> Result<Snapshot, StoreError> {
        self.0.store.load(id).await
    }

    async fn swap(
        &self,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        let Some(seen) = seen else {
            return self.0.store.swap(id, None, next).await;
        };
        let (id, next) = (*id, next.clone());
        self.0.swap(Write { id, seen, next }).await
    }

    async fn wait(
        &self,
        id: &RecordId,
        seen: Version,
        at_most: Duration,
    ) -> Result<(), StoreError> {
        self.0.store.wait(id, seen, at_most).await
    }

    async fn purge(&self, limit: u32, keep: Duration) -> Result<u64, StoreError> {
        self.0.store.purge(limit, keep).await
    }

    async fn scan(
        &self,
        after: Option<RecordId>,
        limit: u32,
    ) -> Result<Vec<(RecordId, Arc<Record>)>, StoreError> {
        self.0.store.scan(after, limit).await
    }

    fn accepts(&self, on_crash: OnCrash) -> Result<(), StoreError> {
        self.0.store.accepts(on_crash)
    }

    async fn for_heartbeats(&self) -> Result<Option<Arc<dyn Store>>, StoreError> {
        self.0.store.for_heartbeats().await
    }

    async fn swap_in(
        &self,
        connection: &mut (dyn std::any::Any + Send),
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        self.0.store.swap_in(connection, id, seen, next).await
    }

    fn keeps_steps(&self) -> bool {
        self.0.store.keeps_steps()
    }

    async fn load_steps(
        &self,
        call: &RecordId,
        names: &StepNames,
    ) -> Result<Vec<Arc<Step>>, StoreError> {
        self.0.store.load_steps(call, names).await
    }

    async fn write_step(
        &self,
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> Result<StepWrite, StoreError> {
        self.0.store.write_step(call, seen, next).await
    }

    async fn write_step_in(
        &self,
        connection: &mut (dyn std::any::Any + Send),
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> Result<StepWrite, StoreError> {
        let store = &self.0.store;
        store.write_step_in(connection, call, seen, next).await
    }
}
