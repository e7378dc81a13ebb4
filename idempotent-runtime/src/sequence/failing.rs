//! Numbers that fail each time, as the calls of this handle have seen them.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    consumer::failure::Failure, error::Error, fingerprint::Fingerprint, handle::Idempotency,
    identity::RecordId, policy::Verdict, request::Request,
};

/// How many streams are remembered at most. One more takes the place of any other.
const MOST: usize = 10_000;

/// At which failure in a row it is logged first; from then on at each doubling.
const LOGGED_AT: u32 = 3;

/// How much of an error is kept, in characters.
const LONGEST: usize = 1_000;

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
    pub(super) fn of(&self, stream: &RecordId) -> Option<(FailingNumber, Fingerprint)> {
        self.lock().get(stream).cloned()
    }

    /// Forgets what failed up to this number, which has ended.
    pub(super) fn forget(&self, stream: &RecordId, number: u64) {
        let mut streams = self.lock();
        if streams
            .get(stream)
            .is_some_and(|(failing, _)| failing.number <= number)
        {
            streams.remove(stream);
        }
    }

    /// Counts a failure, and returns how many there were in a row.
    fn count(
        &self,
        stream: RecordId,
        number: u64,
        fingerprint: Fingerprint,
        last_error: Arc<str>,
    ) -> u32 {
        let mut streams = self.lock();
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

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<RecordId, (FailingNumber, Fingerprint)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call with a number that has a record.
#[derive(Debug)]
pub(super) struct Tried {
    handle: Idempotency,
    operation: Arc<str>,
    id: RecordId,
    number: u64,
    fingerprint: Fingerprint,
}

impl Tried {
    pub(super) fn of(request: &Request, number: u64) -> Option<Self> {
        Some(Self {
            handle: request.handle.clone(),
            operation: Arc::clone(&request.operation),
            id: request.id,
            number,
            fingerprint: request.subject()?.fingerprint.fingerprint(),
        })
    }

    /// Notes how the call ended, whose error was judged so. It failed if its number comes again: it
    /// was released, or its rows could not be committed.
    pub(super) fn ended<T, E: fmt::Display>(
        &self,
        result: &Result<T, Failure<E>>,
        verdict: Verdict,
    ) {
        match result {
            Err(Failure::Handler(error)) if verdict == Verdict::Release => self.failed(error),
            Err(Failure::Refused(
                error @ (Error::Commit { .. } | Error::TransactionEnded { .. }),
            )) => self.failed(error),
            Ok(_) | Err(Failure::Handler(_) | Failure::Refused(Error::Past { .. })) => {
                self.handle.failing().forget(&self.id, self.number);
            }
            Err(_) => {}
        }
    }

    fn failed(&self, error: &dyn fmt::Display) {
        let error: String = error.to_string().chars().take(LONGEST).collect();
        let error: Arc<str> = error.into();
        let failing = self.handle.failing();
        let attempts = failing.count(self.id, self.number, self.fingerprint, Arc::clone(&error));
        if attempts.is_multiple_of(LOGGED_AT) && (attempts / LOGGED_AT).is_power_of_two() {
            tracing::warn!(
                operation = &*self.operation, id = %self.id.to_hex(), number = self.number,
                attempts, %error,
                "a number fails again and again, and its stream stops at it: mend it, or settle or skip it"
            );
        }
    }
}
