//! Reads, on a schedule, what waits in the stores.

#[cfg(feature = "_sql")]
use std::sync::Arc;
use std::time::Duration;
#[cfg(feature = "_sql")]
use std::{future::Future, pin::Pin};

use tokio::{sync::watch, task::JoinHandle};

use super::turn::Turn;
#[cfg(feature = "_sql")]
use crate::outbox::{Outbox, OutboxDatabase, TopicBacklog};
use crate::{
    duration::{IntoDuration, read},
    error::Error,
    handle::Idempotency,
    observe::Sample,
    operate::attention_at_hand,
    race::race,
    record::State,
    store::ListedRecord,
    value::{opaque, setters},
};

/// The shortest interval, and the longest.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// How many intervals a reading is shown.
const SHOWN_FOR: u32 = 3;

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
    handle: Idempotency,
}

opaque!(Sampler);

/// The topics of an outbox.
#[cfg(feature = "_sql")]
trait Backlog: Send + Sync {
    fn topics(&self)
    -> Pin<Box<dyn Future<Output = Result<Vec<TopicBacklog>, Error>> + Send + '_>>;
}

#[cfg(feature = "_sql")]
impl<DB: OutboxDatabase> Backlog for Outbox<DB> {
    fn topics(
        &self,
    ) -> Pin<Box<dyn Future<Output = Result<Vec<TopicBacklog>, Error>> + Send + '_>> {
        Box::pin(Outbox::topics(self))
    }
}

impl Idempotency {
    /// Begins to set up a sampler. It reads how many records need somebody, and for how long the
    /// oldest has, how far the store's clock is ahead, and how much waits in the outboxes that it
    /// is given.
    ///
    /// Any number of processes may each start one. One of them reads at a time, and the others tell
    /// nothing: a record of the operation `operations:sampler` says which one. When it is gone,
    /// another one reads after three intervals at most. A reading costs two round trips for that,
    /// two for the store and two for each outbox. It looks at 10,000 records and messages at most,
    /// along an index; a store that has no index of the records which need somebody has no
    /// [`Sample::Attention`].
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
        self.outboxes.push(Arc::new(outbox.clone()));
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
        let handle = self.handle.clone();
        let (stop, stopped) = watch::channel(false);
        let turn = Turn::new(&handle, self.every * SHOWN_FOR)?;
        let work = Work {
            handle: self.handle,
            #[cfg(feature = "_sql")]
            outboxes: self.outboxes,
            every: self.every,
            turn,
            shows: false,
            #[cfg(feature = "_sql")]
            topics: Vec::new(),
        };
        let task = tokio::spawn(work.run(stopped));
        Ok(Sampler { stop, task, handle })
    }
}

impl Sampler {
    /// Ends it after the reading that is under way, and has another process read at once.
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
        self.handle.observers().sampled(&Sample::Outdated);
    }
}

/// A sampler at work.
struct Work {
    handle: Idempotency,
    #[cfg(feature = "_sql")]
    outboxes: Vec<Arc<dyn Backlog>>,
    every: Duration,
    turn: Turn,
    /// Whether observers have a reading of this process.
    shows: bool,
    /// The topics that it has told of.
    #[cfg(feature = "_sql")]
    topics: Vec<String>,
}

impl Work {
    async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        let handle = self.handle.clone();
        let timer = handle.timer();
        let mut read_at = timer.now();
        while !*stopped.borrow() {
            let next = timer.now().saturating_add(self.every);
            let outdated = read_at.saturating_add(self.every * SHOWN_FOR);
            // A reading that takes too long counts as one that failed.
            match race(
                Box::pin(self.sample()),
                timer.sleep_until(outdated.max(next)),
            )
            .await
            {
                Some(Ok(true)) => read_at = timer.now(),
                Some(Ok(false)) => self.hide(),
                Some(Err(error)) => self.failed(&error),
                None => {}
            }
            if timer.now() >= read_at.saturating_add(self.every * SHOWN_FOR) {
                self.hide();
            }
            race(stopped.changed(), timer.sleep_until(next)).await;
        }
        let giving_back = self.turn.give_back(&handle);
        race(giving_back, timer.sleep(self.every)).await;
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

    /// Reads everything, and tells of it; no where another process does.
    async fn sample(&mut self) -> Result<bool, Error> {
        if !self.turn.take(&self.handle).await? {
            return Ok(false);
        }
        let health = self.handle.health().await;
        let pulse = health.store?;
        let attention = attention_at_hand(&self.handle).await?;
        #[cfg(feature = "_sql")]
        let topics = {
            let mut topics = Vec::new();
            for outbox in &self.outboxes {
                topics.extend(outbox.topics().await?);
            }
            topics
        };
        self.shows = true;
        let observers = self.handle.observers();
        observers.sampled(&Sample::Clock {
            ahead_micros: pulse.clock_ahead_micros,
        });
        if let Some((page, is_capped)) = attention {
            for state in State::ATTENTION {
                let of = page.records.iter().filter(|it| it.record.state == state);
                let since = |it: &ListedRecord| it.record.finished.unwrap_or(it.record.created);
                let oldest = of.clone().map(since).min();
                observers.sampled(&Sample::Attention {
                    state,
                    records: of.count() as u64,
                    is_capped,
                    oldest: oldest.map_or(Duration::ZERO, |oldest| page.now.since(oldest)),
                });
            }
        }
        #[cfg(feature = "_sql")]
        self.tell_of_topics(topics);
        Ok(true)
    }

    /// Tells of the topics in which something waits, and once of each in which nothing does any
    /// more.
    #[cfg(feature = "_sql")]
    fn tell_of_topics(&mut self, topics: Vec<TopicBacklog>) {
        let observers = self.handle.observers();
        let empty = |topic: &String| !topics.iter().any(|it| it.topic == *topic);
        for topic in self.topics.iter().filter(|topic| empty(topic)) {
            observers.sampled(&Sample::Outbox {
                topic,
                pending: 0,
                is_capped: false,
                oldest: Duration::ZERO,
                blocked_keys: 0,
            });
        }
        for it in &topics {
            observers.sampled(&Sample::Outbox {
                topic: &it.topic,
                pending: it.pending,
                is_capped: it.is_capped,
                oldest: it.oldest,
                blocked_keys: it.blocked_keys,
            });
        }
        self.topics = topics.into_iter().map(|it| it.topic).collect();
    }
}
