//! Sets up a relay.

use std::{sync::Arc, time::Duration};

use tokio::sync::{Notify, watch};

use super::{Publisher, Relay, work::Work};
use crate::{
    duration::{IntoDuration, read},
    error::Error,
    handle::Idempotency,
    observe::Observers,
    outbox::{Outbox, dialect::OutboxDatabase},
    value::setters,
};

/// Sets up a relay. It does nothing until it is [started](Self::start).
#[derive(Debug)]
#[must_use = "a relay does nothing until `start` is called"]
pub struct RelayBuilder<DB: OutboxDatabase, P> {
    outbox: Outbox<DB>,
    publisher: P,
    settings: Settings,
    handle: Option<Idempotency>,
    mistake: Option<Error>,
}

/// The shortest and the longest lease, and time for a batch.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The settings of a relay.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) lease: Duration,
    pub(super) publish_timeout: Duration,
    /// How many attempts a message has.
    pub(super) budget: u32,
    pub(super) on_poison: OnPoison,
    /// The shortest pause between two looks that found nothing, and the longest.
    pub(super) pauses: (Duration, Duration),
}

/// Says what becomes of a message whose budget is spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnPoison {
    /// Its key waits, with all messages behind it, until an operator
    /// [resumes](crate::outbox::Outbox::resume) it or [discards](crate::outbox::Outbox::discard)
    /// the message. A message without a key is set aside.
    #[default]
    Park,
    /// It goes to the table `outbox_rejected`, and the next message of its key goes on. The
    /// receiver may never see it: choose this where the messages of a key do not depend on each
    /// other.
    SetAside,
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
                on_poison: OnPoison::default(),
                pauses: (Duration::from_millis(50), Duration::from_secs(5)),
            },
            handle: None,
            mistake: None,
        }
    }
}

impl<DB: OutboxDatabase, P: Publisher> RelayBuilder<DB, P> {
    setters! {
        /// Sets how long a relay that holds a key may be silent: 30 seconds unless it is set.
        lease(it, lease: impl IntoDuration) {
            it.settings.lease = read(lease, &mut it.mistake).unwrap_or(it.settings.lease);
        }

        /// Sets how long the publisher may take for a batch: 30 seconds unless it is set.
        publish_timeout(it, timeout: impl IntoDuration) {
            let timeout = read(timeout, &mut it.mistake);
            it.settings.publish_timeout = timeout.unwrap_or(it.settings.publish_timeout);
        }

        /// Sets how many attempts a message has, 10 unless it is set. Then
        /// [`on_poison`](Self::on_poison) says what becomes of it.
        budget(it, attempts: u32) { it.settings.budget = attempts.max(1) }

        /// Sets what becomes of a message whose budget is spent: [`OnPoison::Park`] unless it is
        /// set.
        on_poison(it, on_poison: OnPoison) { it.settings.on_poison = on_poison }

        #[doc(hidden)]
        pauses(it, shortest: Duration, longest: Duration) {
            it.settings.pauses = (shortest, longest);
        }

        /// Names the handle that it belongs to. [Observers](crate::Observer::outbox) of the handle
        /// are told of the relay's messages, and the relay looks for messages at once when a
        /// `transact` of the handle has committed.
        idempotency(it, handle: &Idempotency) { it.handle = Some(handle.clone()) }
    }

    /// Starts the relay, in a task of its own.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPolicy`] where a duration cannot be read, or is not between 100 ms and a
    /// day, or where the publisher takes less than the outbox does. [`Error::Store`] where the
    /// tables are missing, or the database fails.
    pub async fn start(self) -> Result<Relay, Error> {
        if let Some(mistake) = self.mistake {
            return Err(mistake);
        }
        let durations = [self.settings.lease, self.settings.publish_timeout];
        if !durations.iter().all(|it| (SHORTEST..=LONGEST).contains(it)) {
            return Err(Error::InvalidPolicy(
                "the lease and the time for a batch are 100 ms to a day: 30 seconds are usual",
            ));
        }
        if self.publisher.max_payload() < self.outbox.max_payload {
            return Err(Error::InvalidPolicy(
                "the publisher takes less than the outbox: give the outbox a `max_payload` that the publisher takes, too",
            ));
        }
        let (wake, (stop, stopped)) = (Arc::new(Notify::new()), watch::channel(false));
        let observers = match &self.handle {
            Some(handle) => {
                handle.engine().wakes(&wake);
                handle.observers().clone()
            }
            None => Observers::default(),
        };
        let work = Work::new(self.outbox, self.publisher, self.settings, observers);
        let work = work.begin().await?;
        let task = tokio::spawn(work.run(Arc::clone(&wake), stopped));
        Ok(Relay { wake, stop, task })
    }
}
