//! The readings of a sampler.

use std::time::Duration;

use crate::record::State;

/// A reading of a [`Sampler`](crate::Sampler).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sample<'a> {
    /// The records that need somebody.
    #[non_exhaustive]
    Attention {
        /// Their state: uncertain, parked, or undoing.
        state: State,
        /// How many there are, of the first 10,000 that need somebody.
        records: u64,
        /// Whether there may be more.
        is_capped: bool,
        /// How long the oldest of them has been so, by the store's clock; zero if there is none.
        oldest: Duration,
    },
    /// A topic of an outbox.
    #[non_exhaustive]
    Outbox {
        /// The topic.
        topic: &'a str,
        /// How many messages wait, of the first 10,000 of the outbox, by their keys.
        pending: u64,
        /// Whether there may be more.
        is_capped: bool,
        /// The age of the oldest of them whose key is not parked; zero if there is none.
        oldest: Duration,
        /// How many keys are parked at a message of the topic, of the first 10,000.
        blocked_keys: u64,
    },
    /// The clock of the store.
    #[non_exhaustive]
    Clock {
        /// How many microseconds it is ahead of this process's, negative where it is behind.
        ahead_micros: i64,
    },
    /// No reading is new enough to show: the last one is older than three intervals, another
    /// process reads now, or the sampler is gone.
    Outdated,
}
