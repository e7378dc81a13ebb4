//! A relay: takes the messages that were committed, and gives them to a publisher.

mod claims;
mod envelope;
mod failures;
mod work;

use std::{fmt, future::Future, sync::Arc, time::Duration};

use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
};

pub use self::envelope::Envelope;
use self::work::Work;
use super::{Outbox, dialect::OutboxDatabase};
use crate::{duration::IntoDuration, error::Error};

/// Gives messages to a broker, or to a service.
///
/// Its answer has a result for each message, in the order of the batch. A message without one, a
/// panic, and no answer within the time for it are [`PublishError::Unknown`].
pub trait Publisher: Send + Sync + 'static {
    /// Publishes a batch, in which no two messages have one key.
    fn publish(
        &self,
        batch: &[Envelope],
    ) -> impl Future<Output = Vec<Result<(), PublishError>>> + Send;

    /// How many bytes payload and headers of a message may have together.
    fn max_payload(&self) -> usize {
        usize::MAX
    }
}

/// Why a message was not published.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// Whoever takes the messages of this topic is out of reach. It costs the message no attempt.
    #[error("it is out of reach")]
    Outage,
    /// This message was refused, for this reason.
    #[error("it was refused: {0}")]
    Rejected(String),
    /// Nobody knows whether it was taken: it is sent again.
    #[error("nobody knows whether it was taken")]
    Unknown,
}

/// Sets up a relay. It does nothing until it is [started](Self::start).
#[derive(Debug)]
#[must_use = "a relay does nothing until `start` is called"]
pub struct RelayBuilder<DB: OutboxDatabase, P> {
    outbox: Outbox<DB>,
    publisher: P,
    settings: Settings,
    mistake: Option<Error>,
}

/// The settings of a relay.
#[derive(Clone, Copy, Debug)]
struct Settings {
    lease: Duration,
    publish_timeout: Duration,
    /// How many attempts a message has before its key is parked.
    budget: u32,
    /// The longest pause between two looks.
    longest_pause: Duration,
}

impl<DB: OutboxDatabase> Outbox<DB> {
    /// Begins to set up a relay, which sends the messages of this outbox. Any number of processes
    /// may each start one: a key is with one of them at a time.
    pub fn relay<P: Publisher>(&self, publisher: P) -> RelayBuilder<DB, P> {
        RelayBuilder {
            outbox: self.clone(),
            publisher,
            settings: Settings {
                lease: Duration::from_secs(30),
                publish_timeout: Duration::from_secs(30),
                budget: 10,
                longest_pause: Duration::from_secs(5),
            },
            mistake: None,
        }
    }
}

impl<DB: OutboxDatabase, P: Publisher> RelayBuilder<DB, P> {
    /// Sets how long a relay that holds a key may be silent: 30 seconds unless it is set.
    pub fn lease(mut self, lease: impl IntoDuration) -> Self {
        self.settings.lease = self.read(lease).unwrap_or(self.settings.lease);
        self
    }

    /// Sets how long the publisher may take for a batch: 30 seconds unless it is set.
    pub fn publish_timeout(mut self, timeout: impl IntoDuration) -> Self {
        self.settings.publish_timeout = self.read(timeout).unwrap_or(self.settings.publish_timeout);
        self
    }

    /// Sets how many attempts a message has before its key is parked: 10 unless it is set.
    pub fn budget(mut self, attempts: u32) -> Self {
        self.settings.budget = attempts.max(1);
        self
    }

    /// Starts the relay, in a task of its own.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPolicy`] where a duration is none, or the publisher takes less than the
    /// outbox does. [`Error::Store`] where the tables are missing, or the database fails.
    pub async fn start(self) -> Result<Relay, Error> {
        if let Some(mistake) = self.mistake {
            return Err(mistake);
        }
        if self.settings.lease.is_zero() || self.settings.publish_timeout.is_zero() {
            return Err(Error::InvalidPolicy(
                "the lease and the time for a batch are longer than zero: 30 seconds are usual",
            ));
        }
        if self.publisher.max_payload() < self.outbox.max_payload {
            return Err(Error::InvalidPolicy(
                "the publisher takes less than the outbox: give the outbox a `max_payload` that the publisher takes, too",
            ));
        }
        self.outbox.check_schema().await?;
        let (wake, (stop, stopped)) = (Arc::new(Notify::new()), watch::channel(false));
        let work = Work::new(&self.outbox, self.publisher, self.settings);
        let task = tokio::spawn(work.run(Arc::clone(&wake), stopped));
        Ok(Relay { wake, stop, task })
    }

    fn read(&mut self, duration: impl IntoDuration) -> Option<Duration> {
        match duration.into_duration() {
            Ok(duration) => Some(duration),
            Err(error) => {
                self.mistake.get_or_insert(error);
                None
            }
        }
    }
}

/// A relay that runs. Dropped, it stops at once: its keys go to another relay when their lease is
/// over.
#[must_use = "dropped, it stops at once"]
pub struct Relay {
    wake: Arc<Notify>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Relay {
    /// Has it look for messages now.
    pub fn wake(&self) {
        self.wake.notify_one();
    }

    /// Ends it after the batch that is under way, and gives its keys back.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it stops at once.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        self.wake.notify_one();
        let _it_has_ended = (&mut self.task).await;
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").finish_non_exhaustive()
    }
}
