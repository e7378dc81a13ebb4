//! Events of the relays of an outbox.

use std::time::Duration;

/// A relay did this with messages of an outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutboxEvent<'a> {
    /// Messages of this topic were confirmed, and are deleted.
    #[non_exhaustive]
    Sent {
        /// The topic.
        topic: &'a str,
        /// How many.
        messages: u64,
        /// How long the publisher took for the batch that they were in.
        elapsed: Duration,
    },
    /// Messages of this topic could not be sent, and are tried again. It cost no attempt.
    #[non_exhaustive]
    Outage {
        /// The topic.
        topic: &'a str,
        /// How many.
        messages: u64,
        /// How long the relay pauses.
        pause: Duration,
    },
    /// An attempt at a message has failed.
    #[non_exhaustive]
    Failed {
        /// The topic.
        topic: &'a str,
        /// The message.
        id: &'a str,
        /// Why.
        reason: &'a str,
        /// How many attempts have failed so far.
        attempts: u32,
    },
    /// The budget of a message is spent. Its key waits until an operator resumes it. A relay that
    /// starts tells of the first 100 keys that wait so.
    #[non_exhaustive]
    Parked {
        /// The topic.
        topic: &'a str,
        /// The message.
        id: &'a str,
        /// Why it failed last.
        reason: &'a str,
    },
    /// The budget of a message is spent. It went to the table of the rejected ones, and the next
    /// one goes on.
    #[non_exhaustive]
    SetAside {
        /// The topic.
        topic: &'a str,
        /// The message.
        id: &'a str,
        /// Why it failed last.
        reason: &'a str,
    },
    /// The age of the oldest message of this topic that is first in its key, by the database's
    /// clock. It comes about every 30 seconds, and is zero once when there is none any more.
    #[non_exhaustive]
    Oldest {
        /// The topic.
        topic: &'a str,
        /// Its age.
        age: Duration,
    },
}
