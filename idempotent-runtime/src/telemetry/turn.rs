//! Which process reads: a record of the store says so, and lapses when its holder does.

use std::{sync::Arc, time::Duration};

use crate::{
    error::Error,
    fingerprint::{ArgumentDigests, Fingerprint, Fingerprinted},
    framing::Hex,
    handle::{Idempotency, identity, put},
    identity::RecordId,
    key::Key,
    policy::OnCrash,
    record::{
        AttemptId, Draft, FencingToken, Moment, RawOutcome, State, Subject, TokenRule, Version,
    },
    request::OPERATIONS,
    sha256::sha256,
    store::{StoreError, Swap},
};

/// The turn of one sampler among those of all processes.
pub(super) struct Turn {
    id: RecordId,
    subject: Arc<Subject>,
    own: AttemptId,
    /// How long it is held after it was taken last.
    lasts: Duration,
}

impl Turn {
    /// The turn of samplers that read these outboxes. A sampler takes it for `lasts`.
    pub(super) fn new(
        handle: &Idempotency,
        read: &[String],
        lasts: Duration,
    ) -> Result<Self, Error> {
        let operation: Arc<str> = format!("{OPERATIONS}sampler").into();
        let mut read = read.to_vec();
        read.sort_unstable();
        let digest = sha256(&mut read.join("\n").into_bytes());
        let read = Hex(&digest[..8]).to_string();
        let (id, _, key) = identity(&operation, None, Key::from_part(&*read))?;
        let none = Fingerprint::from_bytes([0; 32]);
        let subject = Arc::new(Subject {
            operation,
            scope: Vec::new(),
            key: handle.shown(Some(key)),
            fingerprint: Fingerprinted::stored(none, ArgumentDigests::default()),
        });
        Ok(Self {
            id,
            subject,
            own: AttemptId::random(),
            lasts,
        })
    }

    /// The operation of its record.
    pub(super) fn operation(&self) -> &str {
        &self.subject.operation
    }

    /// Takes the turn, or keeps it; no where another sampler has it.
    pub(super) async fn take(&self, handle: &Idempotency) -> Result<bool, StoreError> {
        let stands = handle.store().load(&self.id).await?;
        let (now, record) = (stands.now, stands.record);
        let is_free = record
            .as_ref()
            .is_none_or(|it| it.attempt_id == self.own || it.is_expired(now));
        if !is_free {
            return Ok(false);
        }
        let is_new = record.is_none();
        let draft = self.draft(handle, self.lasts, is_new);
        let taken = put(handle, &self.id, record.map(|it| it.version), &draft).await?;
        Ok(matches!(taken, Swap::Applied(_)))
    }

    /// Gives it back, so that the next sampler need not wait.
    pub(super) async fn give_back(&self, handle: &Idempotency) -> Result<(), StoreError> {
        let stands = handle.store().load(&self.id).await?.record;
        if let Some(record) = stands.filter(|it| it.attempt_id == self.own) {
            let draft = self.draft(handle, Duration::ZERO, false);
            put(handle, &self.id, record.version, &draft).await?;
        }
        Ok(())
    }

    fn draft(&self, handle: &Idempotency, lasts: Duration, is_new: bool) -> Draft {
        Draft {
            version: Version::random(),
            subject: Some(Arc::clone(&self.subject)),
            state: State::Done,
            token: match is_new {
                true => TokenRule::Above(FencingToken::from_u64(0)),
                false => TokenRule::Keep,
            },
            attempt: 1,
            attempt_id: self.own,
            holder: handle.holder(),
            on_crash: OnCrash::Rerun,
            lease: Moment::In(Duration::ZERO),
            expires: Moment::In(lasts),
            keep: Duration::ZERO,
            outcome: Some(RawOutcome::not_replayable()),
            note: None,
        }
    }
}
