//! Keeps dead letters: the record of each one stands for as long as the consumer says, with the
//! reason in its note.

use std::{sync::Arc, time::Duration};

use super::{
    Consumer,
    disposition::{DeadLetterReason, Decided, Disposition},
};
use crate::{
    error::Error,
    handle::{Idempotency, put},
    identity::RecordId,
    key::{Key, KeyPart},
    race::race,
    record::{
        AttemptId, Draft, FencingToken, Moment, Note, Record, State, Time, TokenRule, Version,
    },
    store::{StoreError, StoreErrorKind, Swap},
};

const DOING: &str = "keeping a dead letter";

impl Consumer {
    /// The id of the record of a message.
    pub(crate) fn record_id<K: KeyPart + ?Sized>(&self, id: &K) -> Result<RecordId, Error> {
        let (operation, scope) = (&self.0.operation, self.0.scope.as_ref());
        let key = Key::from_part(id).map_err(Error::invalid_key(operation, "key"))?;
        Ok(RecordId::new(
            operation,
            scope.map(Key::framed),
            key.framed(),
        ))
    }

    pub(crate) fn handle(&self) -> &Idempotency {
        &self.0.handle
    }
}

/// How long it may take to keep one: the caller may hold what the store waits for, such as the only
/// connection of a pool.
const LIMIT: Duration = Duration::from_secs(5);

impl Decided {
    /// Keeps a dead letter, and tells of it. A message whose record is not taken comes again.
    pub(super) async fn told(mut self) -> Disposition {
        if let Err(error) = self.keep().await {
            self.disposition = Disposition::Retry {
                after: Duration::from_secs(1),
                error: Some(error.into()),
            };
        }
        self.tell()
    }

    /// The same once a transaction has committed, in which the application may have stored the dead
    /// letter itself: that stands.
    #[cfg(feature = "_sql")]
    pub(super) async fn told_of_a_commit(self) -> Disposition {
        if let Err(error) = self.keep().await {
            let record = self.record.as_ref().map(RecordId::to_hex);
            tracing::warn!(record, %error, "a dead letter was not kept");
        }
        self.tell()
    }

    async fn keep(&self) -> Result<(), Error> {
        let reason = match &self.disposition {
            Disposition::DeadLetter { reason, .. } => *reason,
            _ => return Ok(()),
        };
        let (Some(kept), Some(id)) = (self.settings.keep_dead_letters, &self.record) else {
            return Ok(());
        };
        let limit = self.settings.handle.timer().sleep(LIMIT);
        let kept = race(Box::pin(self.write(id, reason, kept)), limit).await;
        kept.unwrap_or_else(|| Err(StoreError::new(StoreErrorKind::Busy, DOING).into()))
    }

    async fn write(
        &self,
        id: &RecordId,
        reason: DeadLetterReason,
        kept: Duration,
    ) -> Result<(), Error> {
        let handle = &self.settings.handle;
        let note = Arc::new(Note {
            by: None,
            text: format!("dead letter: {reason}").into(),
        });
        let mut snapshot = handle.store().load(id).await?;
        loop {
            let (now, record) = (snapshot.now, snapshot.record.as_deref());
            let draft = match record {
                Some(record) if !record.is_expired(now) => over(record, reason, &note, kept, now),
                // Nothing of it counts any more.
                old => Some(self.anew(old, &note, kept)),
            };
            let Some(draft) = draft.map(|it| it.kept(handle.defaults().audit_retention)) else {
                return Ok(());
            };
            match put(handle, id, record.map(|it| it.version), &draft).await? {
                Swap::Applied(_) => return Ok(()),
                Swap::Refused(stands) => snapshot = stands,
            }
        }
    }

    /// The record of a message of which nothing stands.
    fn anew(&self, old: Option<&Record>, note: &Arc<Note>, kept: Duration) -> Draft {
        let token = old.map_or(FencingToken::from_u64(0), |old| old.token);
        Draft {
            version: Version::random(),
            subject: self.subject.clone(),
            state: State::Released,
            token: TokenRule::Above(token),
            attempt: 1,
            attempt_id: AttemptId::NOBODY,
            holder: self.settings.handle.holder(),
            on_crash: self.settings.on_crash(),
            lease: Moment::In(Duration::ZERO),
            expires: Moment::In(kept),
            keep: Duration::ZERO,
            outcome: None,
            note: Some(Arc::clone(note)),
        }
    }
}

/// The draft that changes nothing but the note and the end; `None` where a call may hold the
/// record, or it is as it should be. An operator's note stays, and so does one about the message
/// whose id another one has taken.
fn over(
    record: &Record,
    reason: DeadLetterReason,
    note: &Arc<Note>,
    kept: Duration,
    now: Time,
) -> Option<Draft> {
    if matches!(record.state, State::Running | State::Undoing) {
        return None;
    }
    let is_kept = record.expires.since(now) >= kept;
    let stands = record.note.as_ref();
    if is_kept && stands == Some(note) {
        return None;
    }
    let is_of_another = reason == DeadLetterReason::KeyReused;
    let stays = stands.filter(|it| it.by.is_some() || is_of_another);
    if is_kept && stays.is_some() {
        return None;
    }
    let note = stays.unwrap_or(note);
    Some(Draft {
        version: Version::random(),
        subject: None,
        state: record.state,
        token: TokenRule::Keep,
        attempt: record.attempt,
        attempt_id: record.attempt_id,
        holder: record.holder.clone(),
        on_crash: record.on_crash,
        lease: Moment::Keep,
        expires: match is_kept || matches!(record.state, State::Uncertain | State::Parked) {
            true => Moment::Keep,
            false => Moment::In(kept),
        },
        keep: Duration::ZERO,
        outcome: record.outcome.clone(),
        note: Some(Arc::clone(note)),
    })
}
