//! Reads, on a schedule, what waits in the stores.

mod reading;

use std::time::Duration;
#[cfg(feature = "_sql")]
use std::{collections::BTreeSet, sync::Arc};

use tokio::{sync::watch, task::JoinHandle};

#[cfg(feature = "_sql")]
use self::reading::Backlog;
use super::turn::Turn;
#[cfg(feature = "_sql")]
use crate::outbox::{Outbox, OutboxDatabase};
use crate::{
    duration::{IntoDuration, read},
    error::Error,
    handle::Idempotency,
    observe::Sample,
    race::{race, survive},
    store::{StoreError, StoreErrorKind},
    value::{opaque, setters},
};

/// The shortest interval, and the longest.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// How many intervals a reading is shown.
const SHOWN_FOR: u32 = 3;

/// How long it tries to give its turn back.
const GIVE_BACK_LIMIT: Duration = Duration::from_secs(5);

/// Sets up a [`Sampler`]: [`Idempotency::sampler`] makes it.
#[must_use = "a sampler does nothing until `start` is called"]
pub struct SamplerBuilder {
    handle: Idempotency,
    #[cfg(feature = "_sql")]
    outboxes: Vec<Arc<dyn Backlog>>,
    every: Duration,
    mistake: Option<Error>,
}

opaque!(SamplerBuilder, |it| every = it.every);

/// Reads what waits in the stores, again and again, and tells
/// [observers](crate::Observer::sampled). Dropped, it stops at once.
#[must_use = "dropped, it stops at once"]
pub struct Sampler {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

opaque!(Sampler);

impl Idempotency {
    /// Begins to set up a sampler. It reads how many records need somebody, and for how long the
    /// oldest has, how far the store's clock is ahead, and how much waits in the outboxes that it
    /// is given.
    ///
    /// Every process may start one, and needs no more than one. Among samplers of the same
    /// outboxes, one process reads at a time, and the others show nothing. A record of the
    /// operation `operations:sampler` names the process. If that process is gone, or cannot read, another one
    /// reads after four intervals at most. Give all of them the same interval: a turn lasts for
    /// three intervals of the process that has it.
    ///
    /// A reading is shown whole or not at all. It costs two round trips for the turn, two for the
    /// store, and two for each outbox. It counts 10,000 records and messages at most. A store that
    /// has no index of the records which need somebody has no [`Sample::Attention`].
    ///
    /// # Examples
    ///
    /// ```
    /// # use idempotent_runtime::{Error, Idempotency};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let idem = Idempotency::memory();
    /// let sampler = idem.sampler().every("15s").start()?;
    /// // … until the program ends …
    /// sampler.stop().await;
    /// # Ok(()) }
    /// ```
    pub fn sampler(&self) -> SamplerBuilder {
        SamplerBuilder {
            handle: self.clone(),
            #[cfg(feature = "_sql")]
            outboxes: Vec::new(),
            every: Duration::from_secs(15),
            mistake: None,
        }
    }
}

impl SamplerBuilder {
    setters! {
        /// Sets how often it reads: every 15 seconds unless it is set, and 100 ms to an hour.
        every(it, every: impl IntoDuration) {
            it.every = read(every, &mut it.mistake).unwrap_or(it.every);
        }
    }

    /// Has it count the messages of this outbox, too.
    #[cfg(feature = "_sql")]
    #[cfg_attr(
        docsrs,
        doc(cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite")))
    )]
    pub fn outbox<DB: OutboxDatabase>(mut self, outbox: &Outbox<DB>) -> Self {
        // One that is given twice is counted once.
        let is_new = |it: &Arc<dyn Backlog>| it.name() != outbox.name();
        if self.outboxes.iter().all(is_new) {
            self.outboxes.push(Arc::new(outbox.clone()));
        }
        self
    }

    /// Starts it, in a task of its own.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPolicy`] if the interval cannot be read, or is not between 100 ms and an
    /// hour.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn start(self) -> Result<Sampler, Error> {
        if let Some(mistake) = self.mistake {
            return Err(mistake);
        }
        if !(SHORTEST..=LONGEST).contains(&self.every) {
            return Err(Error::InvalidPolicy(
                "a sampler reads every 100 ms to every hour: 15 seconds are usual",
            ));
        }
        let (stop, stopped) = watch::channel(false);
        #[cfg(feature = "_sql")]
        let read: Vec<_> = self.outboxes.iter().map(|outbox| outbox.name()).collect();
        #[cfg(not(feature = "_sql"))]
        let read = Vec::new();
        let turn = Turn::new(&self.handle, &read, self.every * SHOWN_FOR)?;
        let work = Work {
            handle: self.handle,
            #[cfg(feature = "_sql")]
            outboxes: self.outboxes,
            every: self.every,
            turn,
            rests: false,
            shows: false,
            #[cfg(feature = "_sql")]
            known: BTreeSet::new(),
        };
        let task = tokio::spawn(work.run(stopped));
        Ok(Sampler { stop, task })
    }
}

impl Sampler {
    /// Ends it, and has another process read at once. It takes five seconds at most, also where the
    /// store is silent.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it stops at once.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        let _it_has_ended = (&mut self.task).await;
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// How a turn ended.
enum Read {
    /// It has read, and told of it.
    Here,
    /// Another sampler reads.
    Elsewhere,
    /// It left its turn to others.
    Rested,
    Failed,
}

/// A sampler at work.
struct Work {
    handle: Idempotency,
    #[cfg(feature = "_sql")]
    outboxes: Vec<Arc<dyn Backlog>>,
    every: Duration,
    turn: Turn,
    /// Whether it leaves the next turn to others.
    rests: bool,
    /// Whether observers have a reading of this process.
    shows: bool,
    /// The topics that it has told of.
    #[cfg(feature = "_sql")]
    known: BTreeSet<String>,
}

/// Resolves when it is to stop.
async fn changed(stopped: &mut watch::Receiver<bool>) {
    let _the_sampler_may_be_gone = stopped.changed().await;
}

/// However its task ends, nothing is shown any more.
impl Drop for Work {
    fn drop(&mut self) {
        self.hide();
    }
}

impl Work {
    async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        let handle = self.handle.clone();
        let timer = handle.timer();
        let mut read_at = timer.now();
        while !*stopped.borrow() {
            let shown_for = self.every * SHOWN_FOR;
            if timer.now() >= read_at.saturating_add(shown_for) {
                self.hide();
            }
            let next = timer.now().saturating_add(self.every);
            // Where the store is silent, what is shown grows too old meanwhile.
            let until = match self.shows {
                true => read_at.saturating_add(shown_for),
                false => timer.now().saturating_add(shown_for),
            };
            let turn = Box::pin(self.turn(until));
            let Some(read) = race(turn, changed(&mut stopped)).await else {
                break;
            };
            match read {
                Read::Here => read_at = timer.now(),
                Read::Elsewhere => self.hide(),
                Read::Rested => {}
                Read::Failed => {
                    if timer.now() >= until {
                        self.hide();
                    }
                    race(Box::pin(self.give_back()), changed(&mut stopped)).await;
                }
            }
            let hides = read_at.saturating_add(shown_for);
            let rests = timer.sleep_until(next.min(hides));
            race(changed(&mut stopped), rests).await;
            if timer.now() >= hides && !*stopped.borrow() {
                self.hide();
                race(changed(&mut stopped), timer.sleep_until(next)).await;
            }
        }
        self.give_back().await;
    }

    /// Reads, where it is its turn, until this moment at most. After a failure it leaves one turn
    /// to others, which may be able to read.
    async fn turn(&mut self, until: Duration) -> Read {
        if std::mem::take(&mut self.rests) {
            return Read::Rested;
        }
        let handle = self.handle.clone();
        let limit = handle.timer().sleep_until(until);
        let failed = |kind, why: &str| {
            let error = StoreError::new(kind, "reading what waits");
            Err(Error::from(error.with_source(why.to_owned())))
        };
        let read = match race(Box::pin(survive(self.sample())), limit).await {
            Some(Some(read)) => read,
            Some(None) => failed(StoreErrorKind::Other, "the store panicked"),
            None => failed(StoreErrorKind::Unavailable, "the store did not answer"),
        };
        match read {
            Ok(true) => Read::Here,
            Ok(false) => Read::Elsewhere,
            Err(error) => {
                self.rests = true;
                self.failed(&error);
                Read::Failed
            }
        }
    }

    async fn give_back(&self) {
        let limit = self.handle.timer().sleep(GIVE_BACK_LIMIT);
        race(self.turn.give_back(&self.handle), limit).await;
    }

    fn failed(&self, error: &Error) {
        let now = self.handle.timer().now();
        match error {
            Error::Store(error) => {
                let observers = self.handle.observers();
                observers.store_failed(self.turn.operation(), error, now);
            }
            error => tracing::warn!(%error, "a sampler could not read, and tries again"),
        }
    }

    /// Tells observers that what they were told is too old.
    fn hide(&mut self) {
        if std::mem::take(&mut self.shows) {
            self.handle.observers().sampled(&Sample::Outdated);
        }
    }
}
