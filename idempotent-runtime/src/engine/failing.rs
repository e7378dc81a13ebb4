//! Numbers that fail each time, as the calls of a handle have seen them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use crate::{fingerprint::Fingerprint, identity::RecordId, value::lock};

/// How many streams are remembered at most. One more takes the place of any other.
const MOST: usize = 10_000;

/// A number whose calls fail, so that it comes again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailingNumber {
    /// The number.
    pub number: u64,
    /// How many attempts have failed in a row.
    pub attempts: u32,
    /// The error of the last one, as it displays itself.
    pub last_error: Arc<str>,
}

/// The numbers that fail, by the record of their stream.
#[derive(Debug, Default)]
pub(crate) struct Failing(Mutex<HashMap<RecordId, (FailingNumber, Fingerprint)>>);

impl Failing {
    /// The number of this stream that fails, with its fingerprint.
    pub(crate) fn of(&self, stream: &RecordId) -> Option<(FailingNumber, Fingerprint)> {
        lock(&self.0).get(stream).cloned()
    }

    /// Forgets what failed up to this number, which has ended.
    pub(crate) fn forget(&self, stream: &RecordId, number: u64) {
        let mut streams = lock(&self.0);
        if streams
            .get(stream)
            .is_some_and(|(failing, _)| failing.number <= number)
        {
            streams.remove(stream);
        }
    }

    /// Counts a failure, and returns how many there were in a row.
    pub(crate) fn count(
        &self,
        stream: RecordId,
        number: u64,
        fingerprint: Fingerprint,
        last_error: Arc<str>,
    ) -> u32 {
        let mut streams = lock(&self.0);
        let before = streams.remove(&stream);
        let before = before.filter(|(failing, _)| failing.number == number);
        let attempts = before.map_or(1, |(failing, _)| failing.attempts.saturating_add(1));
        if streams.len() >= MOST
            && let Some(any) = streams.keys().next().copied()
        {
            streams.remove(&any);
        }
        let failing = FailingNumber {
            number,
            attempts,
            last_error,
        };
        streams.insert(stream, (failing, fingerprint));
        attempts
    }
}
