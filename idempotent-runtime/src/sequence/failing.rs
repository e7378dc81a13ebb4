//! Numbers that fail each time: their stream keeps how often, and the kind of the last error.

use std::{any::type_name, fmt, sync::Arc, time::Duration};

use super::Decision;
use crate::{
    consumer::failure::Failure,
    drive::DescribedCall,
    error::Error,
    handle::{Idempotency, put},
    identity::RecordId,
    observe::FrontEndEvent,
    policy::Verdict,
    protocol::{
        read,
        sequence::{FailingNumber, LastValue, StoredStream, note_failure},
    },
    race::race,
    record::{Record, Subject, Version},
    request::Protection,
    store::{StoreError, StoreErrorKind, Swap},
};

/// At which failure in a row it is logged first; from then on at each doubling.
const LOGGED_AT: u32 = 3;

/// A call with a number that has a record.
#[derive(Debug)]
pub(super) struct Tried {
    handle: Idempotency,
    operation: Arc<str>,
    id: RecordId,
    number: u64,
    subject: Arc<Subject>,
    expires_after: Option<Duration>,
    keeps_text: bool,
}

/// Why a number comes again: the type of the error, and the error.
pub(super) type Failed = (&'static str, String);

/// How long it may take to keep a failure: the caller waits, and may hold what the store waits for,
/// such as the only connection of a pool.
const LIMIT: Duration = Duration::from_secs(1);

/// Tells observers of the decision about a number that was tried.
pub(super) fn tell<T, E>(
    tried: Option<Tried>,
    decided: Result<Decision<T>, E>,
) -> Result<Decision<T>, E> {
    if let Some(Tried {
        handle,
        operation,
        id,
        ..
    }) = &tried
    {
        let kind = decided.as_ref().map_or("failed", Decision::kind);
        let event = FrontEndEvent::new("sequence", operation, kind, Some(*id));
        handle.observers().front_end(&event);
    }
    decided
}

impl Tried {
    pub(super) fn of(described: &DescribedCall, number: u64, keeps_text: bool) -> Option<Self> {
        let request = &described.as_ref().ok()?.request;
        let Protection::Record(asked) = &request.protection else {
            return None;
        };
        Some(Self {
            handle: request.handle.clone(),
            operation: Arc::clone(&request.operation),
            id: request.id,
            number,
            subject: Arc::clone(&asked.subject),
            expires_after: asked.numbered.and_then(|it| it.expires_after),
            keeps_text,
        })
    }

    /// The failure of the call, whose error was judged so. It failed if its number comes again: it
    /// was released, or its rows could not be committed.
    pub(super) fn failed<T, E: fmt::Display>(
        &self,
        result: &Result<T, Failure<E>>,
        verdict: Verdict,
    ) -> Option<Failed> {
        match result {
            Err(Failure::Handler(error)) if verdict == Verdict::Release => {
                Some((type_name::<E>(), error.to_string()))
            }
            Err(Failure::Refused(
                error @ (Error::Commit { .. } | Error::TransactionEnded { .. }),
            )) => Some((type_name::<Error>(), error.to_string())),
            _ => None,
        }
    }

    /// Keeps the failure in the note of the stream, unless the stream goes on meanwhile. It takes a
    /// second at most, and a store that fails here keeps nothing: the caller gets its own error.
    pub(super) async fn note(&self, (kind, error): &Failed) {
        let Self {
            operation,
            id,
            number,
            ..
        } = self;
        // Boxed, so that the future of every number does not hold room for it.
        let writing = Box::pin(self.write(kind, error));
        let written = race(writing, self.handle.timer().sleep(LIMIT)).await;
        let silent = || StoreError::new(StoreErrorKind::Busy, "keeping a failure");
        match written.unwrap_or_else(|| Err(silent().into())) {
            Ok(Some(failing)) => {
                let attempts = failing.attempts;
                if attempts.is_multiple_of(LOGGED_AT) && (attempts / LOGGED_AT).is_power_of_two() {
                    tracing::warn!(
                        operation = &**operation, id = %id.to_hex(), number, attempts, %error,
                        "a number fails again and again, and its stream stops at it: mend it, or settle or skip it"
                    );
                }
            }
            Ok(None) => {}
            Err(unkept) => tracing::warn!(
                operation = &**operation, id = %id.to_hex(), number, %error, %unkept,
                "a number failed, and its stream could not keep that"
            ),
        }
    }

    async fn write(&self, kind: &str, error: &str) -> Result<Option<FailingNumber>, Error> {
        let mut snapshot = self.handle.store().load(&self.id).await?;
        loop {
            let (now, record) = (snapshot.now, snapshot.record.as_deref());
            let Ok(stands) = read(record) else {
                return Ok(None);
            };
            let stream = stands.as_ref().map(|it| &it.stream);
            let version = Version::random();
            let Some(draft) = note_failure(stream, self.number, self.expires_after, now, version)
            else {
                return Ok(None);
            };
            let before = stands.as_ref().and_then(|it| it.failing.as_deref());
            let text = self.keeps_text.then_some(error);
            let failing = FailingNumber::again(self.number, kind, text, before);
            // A subject begins the record anew, so it is sent only where another one stands.
            let stands_already = |it: &Record| it.subject.fingerprint == self.subject.fingerprint;
            let is_new = !record.is_some_and(stands_already);
            let subject = is_new.then(|| Arc::clone(&self.subject));
            let holder = record.map_or_else(|| self.handle.holder(), |it| it.holder.clone());
            let value = LastValue::default();
            let draft = StoredStream::draft(stands.as_ref(), &draft, subject, holder, value);
            let draft = draft.noted(Some(Arc::new(failing.note())));
            match put(&self.handle, &self.id, record.map(|it| it.version), &draft).await? {
                Swap::Applied(_) => return Ok(Some(failing)),
                Swap::Refused(stands) => snapshot = stands,
            }
        }
    }
}
