//! The heartbeat thread of a handle: prolongs leases, and finishes what a call could not finish
//! itself because it was dropped, panicked, or found the store unreachable.
//!
//! It is a thread with a runtime of its own. So user code that blocks its own runtime does not lose
//! the lease, and a runtime that shuts down leaves nothing half done. It starts with the first
//! claim and ends when the handle is gone and nothing is left to do.

mod health;

use std::{
    fmt,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use slab::Slab;
use tokio::sync::{Notify, Semaphore};

pub use self::health::HeartbeatHealth;
use crate::{
    attempt::Attempt,
    clock::Timer,
    engine::beat::{self, BeatResult},
    engine::job::Job,
    engine::lease::Lease,
    observe::Observers,
    race::{race, survive},
    record::AttemptId,
    store::Store,
    value::{lock, opaque},
};

/// Keeps the leases of one handle.
pub(crate) struct Heartbeats(Arc<Shared>);

/// The state that the calls and the thread share.
pub(crate) struct Shared {
    work: Mutex<Work>,
    wake: Notify,
    settled: Notify,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) timer: Arc<dyn Timer>,
    pub(crate) observers: Observers,
    pub(crate) max_run_time: Duration,
    /// Lets one claim be given up at a time.
    pub(crate) giving_up: Semaphore,
    /// When a heartbeat was last written, and when one last failed, by the timer.
    pulse: Mutex<(Option<Duration>, Option<Duration>)>,
}

#[derive(Default)]
struct Work {
    leases: Slab<Entry>,
    jobs: Vec<Job>,
    running_jobs: usize,
    thread_runs: bool,
    /// The handle is gone.
    abandoned: bool,
    /// When the thread looks again by itself; `None` while it looks only when it is woken.
    next_look: Option<Duration>,
}

#[derive(Clone)]
struct Entry {
    lease: Arc<Lease>,
    since: Duration,
    due: Duration,
    beating: bool,
}

/// A lease's place at the heartbeats; heartbeats stop when it is dropped.
#[derive(Debug)]
pub(crate) struct Registration {
    heartbeats: Weak<Shared>,
    index: usize,
}

impl Heartbeats {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        timer: Arc<dyn Timer>,
        observers: Observers,
        max_run_time: Duration,
    ) -> Self {
        Self(Arc::new(Shared {
            work: Mutex::default(),
            wake: Notify::new(),
            settled: Notify::new(),
            store,
            timer,
            observers,
            max_run_time,
            giving_up: Semaphore::new(1),
            pulse: Mutex::default(),
        }))
    }

    /// Begins to send heartbeats for a lease that was claimed at `sent_at`.
    pub(crate) fn keep(&self, lease: &Arc<Lease>, sent_at: Duration) -> Registration {
        let due = sent_at.saturating_add(lease.holding.lease() / 3);
        let mut work = lock(&self.0.work);
        let index = work.leases.insert(Entry {
            lease: Arc::clone(lease),
            since: sent_at,
            due,
            beating: false,
        });
        if work.next_look.is_none_or(|next| due < next) {
            self.0.wake(&mut work);
        }
        Registration {
            heartbeats: Arc::downgrade(&self.0),
            index,
        }
    }

    /// Does something in the background.
    pub(crate) fn hand_over(&self, job: Job) {
        let mut work = lock(&self.0.work);
        if let Job::End {
            place: Some(place), ..
        } = &job
            && let Some(kept) = work.leases.get_mut(place.index)
        {
            // The foreground could not reach the store: whether the lease still stands is worth
            // knowing at once.
            kept.due = self.0.timer.now();
        }
        work.jobs.push(job);
        self.0.wake(&mut work);
    }

    /// Has the outcome of this attempt written now, whatever the store says of its lease. Tells
    /// whether there is one to write, because the body has returned here. After the maximum hold
    /// time, no caller waits for it any more.
    pub(crate) fn flush_ending(&self, attempt_id: AttemptId) -> bool {
        let now = self.0.timer.now();
        let work = lock(&self.0.work);
        let ending = work.leases.iter().map(|(_, kept)| kept).find(|kept| {
            kept.lease.holding.attempt_id() == attempt_id
                && kept.lease.is_ending()
                && now.saturating_sub(kept.since) <= self.0.max_run_time
        });
        ending.inspect(|kept| kept.lease.flush_now(now)).is_some()
    }

    /// Resolves when no lease is held and nothing is left to do.
    pub(crate) async fn drained(&self) {
        loop {
            let settled = self.0.settled.notified();
            if lock(&self.0.work).is_idle() {
                return;
            }
            settled.await;
        }
    }
}

/// For bodies whose answer takes its time.
impl Heartbeats {
    /// Tells the store that the body of this attempt has answered, by heartbeats from here on: a
    /// call that finds it abandoned does not run it again. It waits for the first one, and not for
    /// long: if the store does not take it, the thread goes on trying.
    pub(crate) async fn answered(&self, attempt: &Attempt) {
        /// How long a body waits until the store is told, at most.
        const LONGEST: Duration = Duration::from_secs(1);
        let (timer, store) = (&self.0.timer, &*self.0.store);
        let found = lock(&self.0.work).kept(attempt).map(|kept| kept.clone());
        let Some(Entry { lease, since, .. }) = found else {
            return;
        };
        lease.answered();
        let telling = async {
            let mut pause = Duration::from_millis(5);
            while let BeatResult::Failed(_) = beat::beat(store, &self.0, &lease, since).await {
                timer.sleep(pause).await;
                pause *= 2;
            }
        };
        let patience = timer.sleep((lease.holding.lease() / 12).min(LONGEST));
        if race(telling, patience).await.is_none() {
            let mut work = lock(&self.0.work);
            if let Some(kept) = work.kept(attempt) {
                kept.due = timer.now();
            }
            self.0.wake(&mut work);
        }
    }
}

impl Drop for Heartbeats {
    fn drop(&mut self) {
        lock(&self.0.work).abandoned = true;
        self.0.wake.notify_one();
    }
}

opaque!(Heartbeats, |it| leases = lock(&it.0.work).leases.len());

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(heartbeats) = self.heartbeats.upgrade() {
            let mut work = lock(&heartbeats.work);
            work.leases.remove(self.index);
            heartbeats.tell_if_settled(&work);
        }
    }
}

impl Work {
    fn is_idle(&self) -> bool {
        self.leases.is_empty() && self.jobs.is_empty() && self.running_jobs == 0
    }

    fn kept(&mut self, attempt: &Attempt) -> Option<&mut Entry> {
        let mut leases = self.leases.iter_mut().map(|(_, kept)| kept);
        leases.find(|kept| kept.lease.attempt.is(attempt))
    }
}

impl Shared {
    fn tell_if_settled(&self, work: &Work) {
        if work.is_idle() {
            self.settled.notify_waiters();
        }
    }

    /// Wakes the thread, and starts it where none runs.
    fn wake(self: &Arc<Self>, work: &mut Work) {
        if work.thread_runs {
            self.wake.notify_one();
            return;
        }
        let shared = Arc::clone(self);
        let thread = std::thread::Builder::new().name("idempotent-heartbeats".into());
        match thread.spawn(move || run(shared)) {
            Ok(_) => work.thread_runs = true,
            Err(error) => {
                tracing::error!(%error, "the heartbeat thread cannot be started: leases are not prolonged");
            }
        }
    }
}

/// Counts a job as running until it ends, in whatever way.
struct RunningJob(Arc<Shared>);

impl Drop for RunningJob {
    fn drop(&mut self) {
        let mut work = lock(&self.0.work);
        work.running_jobs -= 1;
        self.0.tell_if_settled(&work);
        self.0.wake.notify_one();
    }
}

/// How long the thread stays when nothing is held, so that the next first call need not start or
/// wake one.
const LINGER: Duration = Duration::from_secs(10);

fn run(shared: Arc<Shared>) {
    let _thread = Thread(Arc::clone(&shared));
    let mut builder = tokio::runtime::Builder::new_current_thread();
    match builder.enable_all().build() {
        Ok(runtime) => tokio::task::LocalSet::new().block_on(&runtime, keep(shared)),
        Err(error) => {
            lock(&shared.work).thread_runs = false;
            tracing::error!(%error, "the heartbeat thread has no runtime: leases are not prolonged");
        }
    }
}

/// The thread, which a timer that panics takes along: the next claim starts another.
struct Thread(Arc<Shared>);

impl Drop for Thread {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut work = lock(&self.0.work);
            work.thread_runs = false;
            work.next_look = None;
        }
    }
}

async fn keep(shared: Arc<Shared>) {
    let store = match survive(shared.store.for_heartbeats()).await {
        Some(Ok(own)) => own.unwrap_or_else(|| Arc::clone(&shared.store)),
        Some(Err(error)) => {
            tracing::warn!(%error, "heartbeats have no connections of their own and share the application's");
            Arc::clone(&shared.store)
        }
        None => {
            tracing::error!(
                "the store panicked while it connected for heartbeats, which share the application's connections"
            );
            Arc::clone(&shared.store)
        }
    };
    let mut idle_since = None;
    loop {
        let woken = shared.wake.notified();
        let now = shared.timer.now();
        let next_look = {
            let mut work = lock(&shared.work);
            start_due(&shared, &store, &mut work, now);
            if work.is_idle() {
                let since = *idle_since.get_or_insert(now);
                if work.abandoned || now.saturating_sub(since) >= LINGER {
                    work.thread_runs = false;
                    work.next_look = None;
                    return;
                }
            } else {
                idle_since = None;
            }
            // A heartbeat that is under way says itself when the next one is due.
            let resting = work.leases.iter().filter(|(_, kept)| !kept.beating);
            let earliest = resting.map(|(_, kept)| kept.due).min();
            let next = earliest.unwrap_or(now.saturating_add(LINGER)).max(now);
            work.next_look = Some(next);
            next
        };
        let sleep = shared.timer.sleep_until(next_look);
        race(woken, sleep).await;
    }
}

/// Starts every job that waits and every heartbeat that is due.
fn start_due(shared: &Arc<Shared>, store: &Arc<dyn Store>, work: &mut Work, now: Duration) {
    for job in std::mem::take(&mut work.jobs) {
        work.running_jobs += 1;
        let (running, store) = (RunningJob(Arc::clone(shared)), Arc::clone(store));
        tokio::task::spawn_local(async move { job.run(&*store, &running.0).await });
    }
    for (index, kept) in &mut work.leases {
        if kept.beating || kept.due > now {
            continue;
        }
        kept.beating = true;
        kept.due = Duration::MAX;
        let since = kept.since;
        let mut beating = Beating {
            shared: Arc::clone(shared),
            lease: Arc::clone(&kept.lease),
            index,
            due: now.saturating_add(kept.lease.holding.lease() / 12),
        };
        let store = Arc::clone(store);
        tokio::task::spawn_local(async move {
            // Moved as a whole, so that it is dropped when the heartbeat ends.
            let beating = &mut beating;
            beating.due = match beat::beat(&*store, &beating.shared, &beating.lease, since).await {
                BeatResult::Until(due) | BeatResult::Failed(due) => due,
                BeatResult::Never => Duration::MAX,
            };
        });
    }
}

/// A heartbeat that is under way; when the store panicked in it, the next one is due soon.
struct Beating {
    shared: Arc<Shared>,
    lease: Arc<Lease>,
    index: usize,
    due: Duration,
}

impl Drop for Beating {
    fn drop(&mut self) {
        let mut work = lock(&self.shared.work);
        let kept = work.leases.get_mut(self.index);
        if let Some(kept) = kept.filter(|kept| Arc::ptr_eq(&kept.lease, &self.lease)) {
            kept.beating = false;
            kept.due = self.due;
        }
        drop(work);
        self.shared.wake.notify_one();
    }
}

#[cfg(test)]
mod tests;
