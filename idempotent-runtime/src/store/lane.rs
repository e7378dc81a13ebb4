//! Operations of callers that come together are done together.
//!
//! Each [kind](Kind) of operation has a lane. While few callers are in it, each goes its own way.
//! If more come, they wait in its queue, and a task does all that wait there by one statement. No
//! timer makes a caller wait for others: the task takes what has come while it was busy.
//!
//! An operation that the statement could not do is done alone, and tells its own error. Until then,
//! all others on the same record go alone at once.
//!
//! Only callers of one runtime share a queue and a task. A runtime that rests or ends keeps no
//! caller of another one waiting.

mod party;
#[cfg(test)]
mod tests;

use std::{
    env,
    future::Future,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    runtime::Id,
    sync::oneshot::{self, Receiver, Sender},
    task::yield_now,
    time::timeout,
};

use self::party::Party;
use super::{
    StoreError, StoreErrorKind, Swap, pool::here, queue::Ticket, spawned::detached,
    version_cache::CachedVersion,
};
use crate::{
    identity::RecordId,
    record::{Draft, Version},
    value::{lock, opaque},
};

const DOING: &str = "doing many operations together";

/// How long a caller waits for a task to take its operation. Then it goes alone: a worker of its
/// runtime may be blocked, and the task with it.
const LONGEST_QUEUED: Duration = Duration::from_millis(100);

/// How long an outcome may be that is shown beside others, in bytes: many longer ones may be too
/// large for one answer.
pub(crate) const LONGEST_SHOWN: usize = 64 * 1024;

/// The variable that sends all operations through queues, in a build for tests.
const FORCES: &str = "IDEMPOTENT_TEST_LANES_FORCED";

/// The kind of an operation: those of one kind are one statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A claim of a record of which no version is known.
    Claim,
    /// The same of one that is known to be done: the outcome is looked up.
    Again,
    /// A completion over a known version.
    Complete,
    /// A look at a record.
    Look,
}

/// An operation, and the record that it is on.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) id: RecordId,
    pub(crate) work: Work,
}

#[derive(Debug)]
pub(crate) enum Work {
    Claim {
        next: Draft,
        /// The version that is known to be done.
        known: Option<Arc<CachedVersion>>,
    },
    Complete {
        seen: Version,
        next: Draft,
        /// The version that was seen.
        known: Arc<CachedVersion>,
    },
    Look,
}

impl Work {
    /// The version that is to be written.
    pub(crate) fn next(&self) -> Option<&Draft> {
        match self {
            Self::Claim { next, .. } | Self::Complete { next, .. } => Some(next),
            Self::Look => None,
        }
    }

    /// The version that is known to stand.
    pub(crate) fn known(&self) -> Option<&CachedVersion> {
        match self {
            Self::Claim { known, .. } => known.as_deref(),
            Self::Complete { known, .. } => Some(known),
            Self::Look => None,
        }
    }
}

/// The answer to an operation. A look is answered as a write that was refused.
pub(crate) type Answer = Result<Swap, StoreError>;

/// A store that does many operations of one kind together.
pub(crate) trait DoTogether: Send + Sync + 'static {
    /// `None` if each operation is done alone.
    fn lanes(&self) -> Option<&Lanes>;

    /// The answers in the order of the jobs; `None` for one that has to be done alone. No id is
    /// there twice among completions.
    fn do_together(
        &self,
        kind: Kind,
        jobs: &[Job],
    ) -> impl Future<Output = Vec<Option<Answer>>> + Send;

    /// How long the answer of a statement is awaited.
    fn longest(&self) -> Duration;
}

/// What became of an operation in its lane.
pub(crate) enum Passed<'a, A = Swap> {
    Answered(Result<A, StoreError>),
    /// It has to be done alone. The place is kept until that is done.
    Alone(Option<Alone<'a>>),
}

/// The lanes of one store.
pub(crate) struct Lanes {
    lanes: [Lane; 4],
    longest_queued: Duration,
    /// Whether no operation goes its own way unless it has to, as tests want it.
    is_forced: bool,
}

/// The callers of each runtime.
#[derive(Default)]
struct Lane {
    parties: Mutex<Vec<Party>>,
    /// Whether each operation is done alone.
    is_off: AtomicBool,
}

/// An operation that waits in a queue.
struct Waiting {
    job: Job,
    /// Gets `None` if the operation has to be done alone.
    caller: Sender<Option<Answer>>,
}

/// The way of an operation.
enum Way<'a> {
    Alone(Alone<'a>),
    Queued {
        place: Queued<'a>,
        answer: Receiver<Option<Answer>>,
        /// Whether no task will take it unless a new one does.
        needs_task: bool,
    },
}

/// An operation that is done alone, which the others in its lane see.
pub(crate) struct Alone<'a> {
    lane: &'a Lane,
    runtime: Option<Id>,
    /// Its record, if it was left out of a batch.
    stuck: Option<RecordId>,
}

/// A caller's place in a queue, which it leaves when it goes away.
struct Queued<'a> {
    lane: &'a Lane,
    runtime: Option<Id>,
    ticket: Ticket,
}

impl Lanes {
    /// The test command runs some tests twice, once with all operations in queues.
    pub(crate) fn new() -> Self {
        Self {
            is_forced: cfg!(feature = "testing") && env::var_os(FORCES).is_some(),
            lanes: Default::default(),
            longest_queued: LONGEST_QUEUED,
        }
    }

    /// Lets each operation of this kind be done alone from now on: the server has no statement for
    /// many.
    pub(crate) fn turn_off(&self, kind: Kind) {
        self.of(kind).is_off.store(true, Ordering::Relaxed);
    }

    fn of(&self, kind: Kind) -> &Lane {
        &self.lanes[kind as usize]
    }
}

/// Does an operation together with others, unless it has to be done alone.
///
/// # Cancel safety
///
/// A caller that goes away leaves the queue. If a task has taken its operation already, that is
/// done or not, as after an answer that is lost.
pub(crate) async fn pass<'a, S: DoTogether>(
    store: &'a Arc<S>,
    kind: Kind,
    id: &RecordId,
    work: impl FnOnce() -> Work,
) -> Passed<'a> {
    let Some(lanes) = store.lanes() else {
        return Passed::Alone(None);
    };
    let lane = lanes.of(kind);
    if lane.is_off.load(Ordering::Relaxed) {
        return Passed::Alone(None);
    }
    let (place, mut answer) = match lane.enter(lanes.is_forced, id, work) {
        Way::Alone(alone) => return Passed::Alone(Some(alone)),
        Way::Queued {
            place,
            answer,
            needs_task,
        } => {
            if needs_task {
                detached(Draining::new(store, kind, place.runtime).run());
            }
            (place, answer)
        }
    };
    let answered = match timeout(lanes.longest_queued, &mut answer).await {
        Ok(answered) => answered,
        Err(_) if place.leave() => return Passed::Alone(None),
        // The task that has taken it ends in time, unless it is kept from running.
        Err(_) => match timeout(2 * store.longest(), answer).await {
            Ok(answered) => answered,
            Err(_) => return Passed::Answered(Err(late())),
        },
    };
    match answered {
        Ok(Some(answer)) => Passed::Answered(answer),
        Ok(None) => Passed::Alone(Some(lane.leave_out(place.runtime, id))),
        Err(stopped) => Passed::Answered(Err(unknown(stopped))),
    }
}

impl Lane {
    fn enter(&self, is_forced: bool, id: &RecordId, work: impl FnOnce() -> Work) -> Way<'_> {
        let runtime = here();
        let mut parties = lock(&self.parties);
        let party = Party::of(&mut parties, runtime);
        if party.goes_alone(id, is_forced) {
            return Way::Alone(Alone {
                lane: self,
                runtime,
                stuck: None,
            });
        }
        drop(parties);
        let (caller, answer) = oneshot::channel();
        let job = Job {
            id: *id,
            work: work(),
        };
        let mut parties = lock(&self.parties);
        let party = Party::of(&mut parties, runtime);
        let (ticket, needs_task) = party.push(Waiting { job, caller });
        let place = Queued {
            lane: self,
            runtime,
            ticket,
        };
        Way::Queued {
            place,
            answer,
            needs_task,
        }
    }

    /// Lets all others on this record go alone, until this one is done.
    fn leave_out(&self, runtime: Option<Id>, id: &RecordId) -> Alone<'_> {
        Party::of(&mut lock(&self.parties), runtime).leave_out(*id);
        Alone {
            lane: self,
            runtime,
            stuck: Some(*id),
        }
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        Party::of(&mut lock(&self.lane.parties), self.runtime).is_done_alone(self.stuck);
    }
}

impl Queued<'_> {
    /// Returns `true` if no task has taken the operation, which is out of the queue then.
    fn leave(&self) -> bool {
        // Dropped when the lock is free again.
        let left = Party::of(&mut lock(&self.lane.parties), self.runtime).remove(self.ticket);
        left.is_some()
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

/// A task that does one batch after another until none waits.
struct Draining<S: DoTogether> {
    store: Arc<S>,
    kind: Kind,
    runtime: Option<Id>,
    is_over: bool,
}

impl<S: DoTogether> Draining<S> {
    fn new(store: &Arc<S>, kind: Kind, runtime: Option<Id>) -> Self {
        Self {
            store: Arc::clone(store),
            kind,
            runtime,
            is_over: false,
        }
    }

    async fn run(mut self) {
        loop {
            // Those that are ready to come in do so first.
            yield_now().await;
            let Some(batch) = self.take() else {
                return;
            };
            let (jobs, callers): (Vec<_>, Vec<_>) =
                batch.into_iter().map(|it| (it.job, it.caller)).unzip();
            let doing = self.store.do_together(self.kind, &jobs);
            let answers = match timeout(self.store.longest(), doing).await {
                Ok(answers) => answers,
                Err(_) => jobs.iter().map(|_| Some(Err(late()))).collect(),
            };
            for (caller, answer) in callers.into_iter().zip(answers) {
                // A caller that is gone needs no answer.
                let _ = caller.send(answer);
            }
        }
    }

    /// The next batch. If there is none, this task counts no more from the same moment on.
    fn take(&mut self) -> Option<Vec<Waiting>> {
        let lane = self.store.lanes()?.of(self.kind);
        let batch = Party::of(&mut lock(&lane.parties), self.runtime).take(self.kind);
        self.is_over = batch.is_none();
        batch
    }
}

impl<S: DoTogether> Drop for Draining<S> {
    /// If it was stopped, or the store panicked, those that wait go alone.
    fn drop(&mut self) {
        if let Some(lanes) = self.store.lanes().filter(|_| !self.is_over) {
            let mut parties = lock(&lanes.of(self.kind).parties);
            let left = Party::of(&mut parties, self.runtime).stop();
            drop(parties);
            for waiting in left {
                let _ = waiting.caller.send(None);
            }
        }
    }
}

fn late() -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, DOING).with_source("no answer came in time")
}

/// It is unknown whether it was done.
fn unknown(why: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, DOING).with_source(why)
}

opaque!(Lanes);
