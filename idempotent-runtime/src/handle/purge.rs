//! Deletes the records that are not needed any more, once or again and again.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use tokio::{sync::watch, task::JoinHandle};

use crate::{
    clock::Timer,
    duration::IntoDuration,
    error::Error,
    handle::Idempotency,
    observe::Observers,
    race::{race, survive},
    store::{Store, StoreError, StoreErrorKind},
    value::{lock, opaque},
};

/// How many records a purge asks the store to delete at once: few enough that a call which meets a
/// batch does not notice.
const BATCH: u32 = 250;

/// The longest rest: a batch may have waited for something else than its work.
const LONGEST_REST: Duration = Duration::from_secs(1);

impl Idempotency {
    /// Deletes the records that have been expired for as long as they are
    /// [kept](crate::Builder::audit_retention), in batches of at most 250, and tells how many it
    /// deleted. After each batch it pauses for as long as that took, at most a second, so that live
    /// calls have the store to themselves for half of the time. *Uncertain* and *parked* records
    /// never expire: they stay until an operator settles them.
    ///
    /// It is safe beside live calls, and beside other purges. Observers are
    /// [told](crate::Observer::purged).
    ///
    /// # Errors
    ///
    /// When the store fails. Records that were deleted before stay deleted.
    ///
    /// # Cancel safety
    ///
    /// Dropped at any await, it leaves deleted records deleted, and the batch under way may still
    /// be deleted. Only expired records are touched, so it can be called again at any time.
    pub async fn purge(&self) -> Result<u64, StoreError> {
        let (_nobody_stops, stopped) = watch::channel(false);
        PurgeRun::of(self, stopped).run().await
    }

    /// Purges now, and again `every` so long after the last turn ended, as [`purge`](Self::purge)
    /// does: `"1h"`, or a `Duration`. It does so in a task of its own for as long as the
    /// [`PurgeTask`] lives.
    ///
    /// An error of the store ends only its turn. It is logged and told to
    /// [observers](crate::Observer::purged).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPolicy`] when the duration cannot be read, or is shorter than a millisecond.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Examples
    ///
    /// ```
    /// # use idempotent_runtime::{Error, Idempotency};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # let idem = Idempotency::memory();
    /// let purger = idem.purge_every("1h")?;
    /// // … serve …
    /// purger.stop().await;
    /// # Ok(()) }
    /// ```
    pub fn purge_every(&self, every: impl IntoDuration) -> Result<PurgeTask, Error> {
        let every = every.into_duration()?;
        if every < Duration::from_millis(1) {
            return Err(Error::InvalidPolicy(
                "a purge every less than a millisecond would do nothing else: take minutes or hours",
            ));
        }
        let (stop, stopped) = watch::channel(false);
        let stop = Arc::new(stop);
        self.0.purgers.add(&stop);
        let task = tokio::spawn(PurgeRun::of(self, stopped).run_every(every));
        Ok(PurgeTask { stop, task })
    }
}

/// Purges again and again, until it is stopped or dropped, or the handle [shuts
/// down](Idempotency::shutdown).
///
/// It does not keep its handle alive, and its handle does not keep it alive.
#[must_use = "purging ends when the purger is dropped"]
pub struct PurgeTask {
    /// Closed when the task has ended.
    stop: Arc<watch::Sender<bool>>,
    task: JoinHandle<()>,
}

impl PurgeTask {
    /// Ends it, after the batch that is under way. Resolves when nothing of it is left.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it resolves, it ends as a purger that is dropped: the batch under way may
    /// still be deleted.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        self.stop.closed().await;
    }
}

impl Drop for PurgeTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

opaque!(PurgeTask, |it| is_over = it.stop.is_closed());

/// The purgers of a handle, for its shutdown, and what became of its last purge.
#[derive(Debug, Default)]
pub(super) struct Purgers {
    running: Mutex<Vec<Arc<watch::Sender<bool>>>>,
    last: Arc<Mutex<Option<LastPurge>>>,
}

/// When a purge ended, by the timer, how many records it deleted, and why it failed.
type LastPurge = (Duration, u64, Option<StoreError>);

/// What became of the last purge of a handle.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PurgeHealth {
    /// How long ago it ended.
    pub ended: Duration,
    /// How many records it deleted.
    pub deleted: u64,
    /// Why it failed; `None` where it did not.
    pub error: Option<StoreError>,
}

impl Idempotency {
    /// What became of the last purge.
    pub(crate) fn last_purge(&self) -> Option<PurgeHealth> {
        let (ended, deleted, error) = lock(&self.0.purgers.last).clone()?;
        Some(PurgeHealth {
            ended: self.timer().now().saturating_sub(ended),
            deleted,
            error,
        })
    }
}

impl Purgers {
    /// Ends all of them, and resolves when they have ended.
    pub(super) async fn stop(&self) {
        let all = self.lock().clone();
        for stop in &all {
            stop.send_replace(true);
        }
        for stop in &all {
            stop.closed().await;
        }
    }

    fn add(&self, stop: &Arc<watch::Sender<bool>>) {
        let mut all = self.lock();
        all.retain(|stop| !stop.is_closed());
        all.push(Arc::clone(stop));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<watch::Sender<bool>>>> {
        lock(&self.running)
    }
}

/// One turn of a purge: the parts of its handle that it needs, and the signal that stops it.
struct PurgeRun {
    store: Arc<dyn Store>,
    timer: Arc<dyn Timer>,
    keep: Duration,
    observers: Observers,
    last: Arc<Mutex<Option<LastPurge>>>,
    stopped: watch::Receiver<bool>,
}

impl PurgeRun {
    fn of(handle: &Idempotency, stopped: watch::Receiver<bool>) -> Self {
        let parts = &handle.engine().parts;
        Self {
            store: Arc::clone(&parts.store),
            timer: Arc::clone(&parts.timer),
            keep: parts.defaults.audit_retention,
            observers: parts.observers.clone(),
            last: Arc::clone(&handle.0.purgers.last),
            stopped,
        }
    }

    async fn run_every(self, every: Duration) {
        loop {
            if survive(self.run()).await.is_none() {
                let panicked = StoreError::new(StoreErrorKind::Other, "purging expired records")
                    .with_source("the store panicked");
                self.tell(0, Some(&panicked));
            }
            if self.is_stopped_within(every).await {
                return;
            }
        }
    }

    /// Deletes batch after batch until one is not full.
    async fn run(&self) -> Result<u64, StoreError> {
        let mut deleted = 0;
        let ended = loop {
            let began = self.timer.now();
            match self.store.purge(BATCH, self.keep).await {
                Ok(batch) => {
                    deleted += batch;
                    let took = self.timer.now().saturating_sub(began);
                    let rest = took.min(LONGEST_REST);
                    if batch < u64::from(BATCH) || self.is_stopped_within(rest).await {
                        break Ok(deleted);
                    }
                }
                Err(error) => break Err(error),
            }
        };
        self.tell(deleted, ended.as_ref().err());
        ended
    }

    fn tell(&self, deleted: u64, error: Option<&StoreError>) {
        *lock(&self.last) = Some((self.timer.now(), deleted, error.cloned()));
        self.observers.purged(deleted, error);
    }

    /// Pauses for so long; `true`, and at once, if it is stopped meanwhile.
    async fn is_stopped_within(&self, pause: Duration) -> bool {
        let mut stopped = self.stopped.clone();
        // An error means that nothing can stop it any more, which is as good as being stopped.
        let stopped = stopped.wait_for(|stopped| *stopped);
        race(stopped, self.timer.sleep(pause)).await.is_some()
    }
}
