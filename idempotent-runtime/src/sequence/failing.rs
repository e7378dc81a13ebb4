//! Numbers that fail each time: their stream keeps how often, and the kind of the last error.

use std::{any::type_name, fmt, sync::Arc, time::Duration};

use crate::{
    consumer::failure::Failure,
    drive::DescribedCall,
    error::Error,
    handle::{Idempotency, put},
    identity::RecordId,
    policy::Verdict,
    protocol::{
        read,
        sequence::{FailingNumber, LastValue, StoredStream, note_failure},
    },
    record::{Subject, Version},
    request::Protection,
    store::Swap,
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

/// A call whose number comes again.
#[derive(Debug)]
pub(super) struct Failed {
    tried: Tried,
    kind: &'static str,
    error: String,
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
        self,
        result: &Result<T, Failure<E>>,
        verdict: Verdict,
    ) -> Option<Failed> {
        let (kind, error) = match result {
            Err(Failure::Handler(error)) if verdict == Verdict::Release => {
                (type_name::<E>(), error.to_string())
            }
            Err(Failure::Refused(
                error @ (Error::Commit { .. } | Error::TransactionEnded { .. }),
            )) => (type_name::<Error>(), error.to_string()),
            _ => return None,
        };
        let tried = self;
        Some(Failed { tried, kind, error })
    }
}

impl Failed {
    /// Keeps the failure in the note of the stream, unless the stream goes on meanwhile. A store
    /// that fails here keeps nothing: the caller has its answer already.
    pub(super) async fn note(self) {
        let Tried {
            operation,
            id,
            number,
            ..
        } = &self.tried;
        let error = &*self.error;
        match self.tried.write(self.kind, error).await {
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
}

impl Tried {
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
            let subject = Some(Arc::clone(&self.subject));
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
