//! Reads, on a schedule, what waits in the stores.

#[cfg(feature = "_sql")]
use std::sync::Arc;
use std::time::Duration;
#[cfg(feature = "_sql")]
use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    pin::Pin,
};

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
    store::{ListedRecord, StoreError, StoreErrorKind},
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

/// The topics of an outbox.
#[cfg(feature = "_sql")]
trait Backlog: Send + Sync {
    /// Names the outbox, in all processes.
    fn name(&self) -> String;

    fn topics(&self)
    -> Pin<Box<dyn Future<Output = Result<Vec<TopicBacklog>, Error>> + Send + '_>>;
}

#[cfg(feature = "_sql")]
impl<DB: OutboxDatabase> Backlog for Outbox<DB> {
    fn name(&self) -> String {
        Outbox::name(self)
    }

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
    /// Every process may start one, and needs no more than one. Among samplers of the same outboxes,
    /// one process reads at a time, and the others show nothing: a record of the operation
    /// `operations:sampler` names the process. If that process is gone, or cannot read, another one
    /// reads after three intervals at most.
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
            let next = timer.now().saturating_add(self.every);
            let Some(read) = race(Box::pin(self.turn()), changed(&mut stopped)).await else {
                break;
            };
            match read {
                Read::Here => read_at = timer.now(),
                Read::Elsewhere => self.hide(),
                Read::Failed => {}
            }
            if timer.now() >= read_at.saturating_add(self.every * SHOWN_FOR) {
                self.hide();
            }
            race(changed(&mut stopped), timer.sleep_until(next)).await;
        }
        self.give_back().await;
    }

    /// Reads, where it is its turn. After a failure it leaves one turn to others, which may be able
    /// to read.
    async fn turn(&mut self) -> Read {
        if std::mem::take(&mut self.rests) {
            return Read::Failed;
        }
        let handle = self.handle.clone();
        let limit = handle.timer().sleep(self.every * SHOWN_FOR);
        let silent = || StoreError::new(StoreErrorKind::Unavailable, "reading what waits");
        let read = race(Box::pin(self.sample()), limit).await;
        match read.unwrap_or_else(|| Err(silent().into())) {
            Ok(true) => Read::Here,
            Ok(false) => Read::Elsewhere,
            Err(error) => {
                self.rests = true;
                self.failed(&error);
                self.give_back().await;
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

    /// Reads everything, and tells of it; no where another process does.
    async fn sample(&mut self) -> Result<bool, Error> {
        if !self.turn.take(&self.handle).await? {
            return Ok(false);
        }
        let health = self.handle.health().await;
        let pulse = health.store?;
        let attention = attention_at_hand(&self.handle).await?;
        #[cfg(feature = "_sql")]
        let topics = self.topics().await?;
        self.shows = true;
        let observers = self.handle.observers();
        observers.sampled(&Sample::Clock {
            ahead_micros: pulse.clock_ahead_micros,
        });
        if let Some((page, is_capped)) = attention {
            for state in State::ATTENTION {
                let of = page.records.iter().filter(|it| it.record.state == state);
                let since = |it: &ListedRecord| match (state, it.record.finished) {
                    // Each write of an undo that goes on sets the time anew.
                    (State::Undoing, _) | (_, None) => it.record.created,
                    (_, Some(finished)) => finished,
                };
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

    /// The topics of all outboxes; topics of one name are one.
    #[cfg(feature = "_sql")]
    async fn topics(&self) -> Result<BTreeMap<String, TopicBacklog>, Error> {
        let mut topics: BTreeMap<String, TopicBacklog> = BTreeMap::new();
        for outbox in &self.outboxes {
            let read = outbox.topics().await?;
            let is_capped = read.iter().any(|it| it.is_capped);
            // In a long outbox nothing is known of the topics that were not met.
            let unmet = self.known.iter().filter(|_| is_capped);
            let unmet = unmet.map(|topic| TopicBacklog {
                is_capped,
                ..TopicBacklog::new(topic)
            });
            for it in unmet.chain(read) {
                let sum = topics.entry(it.topic.clone());
                let sum = sum.or_insert_with(|| TopicBacklog::new(&it.topic));
                sum.pending += it.pending;
                sum.blocked_keys += it.blocked_keys;
                sum.is_capped |= it.is_capped;
                sum.oldest = sum.oldest.max(it.oldest);
            }
        }
        Ok(topics)
    }

    /// Tells of all topics that were ever met, also where nothing waits any more.
    #[cfg(feature = "_sql")]
    fn tell_of_topics(&mut self, mut topics: BTreeMap<String, TopicBacklog>) {
        for topic in &self.known {
            let empty = || TopicBacklog::new(topic);
            topics.entry(topic.clone()).or_insert_with(empty);
        }
        for it in topics.values() {
            self.handle.observers().sampled(&Sample::Outbox {
                topic: &it.topic,
                pending: it.pending,
                is_capped: it.is_capped,
                oldest: it.oldest,
                blocked_keys: it.blocked_keys,
            });
        }
        self.known = topics.into_keys().collect();
    }
}
