//! Numbers that fail each time, as the calls of this handle have seen them.

use std::{fmt, sync::Arc};

use crate::{
    consumer::failure::Failure, drive::DescribedCall, error::Error, fingerprint::Fingerprint,
    handle::Idempotency, identity::RecordId, outcome::OutOfOrder, policy::Verdict,
};

/// At which failure in a row it is logged first; from then on at each doubling.
const LOGGED_AT: u32 = 3;

/// How much of an error is kept, in characters.
const LONGEST: usize = 1_000;

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
    pub(super) fn of(described: &DescribedCall, number: u64) -> Option<Self> {
        let request = &described.as_ref().ok()?.request;
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
            Ok(_) | Err(Failure::Handler(_) | Failure::OutOfOrder(OutOfOrder::Past { .. })) => {
                self.handle.engine().failing().forget(&self.id, self.number);
            }
            Err(_) => {}
        }
    }

    fn failed(&self, error: &dyn fmt::Display) {
        let error: String = error.to_string().chars().take(LONGEST).collect();
        let error: Arc<str> = error.into();
        let failing = self.handle.engine().failing();
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
