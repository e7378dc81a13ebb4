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
        AttemptId, Draft, FencingToken, Moment, Note, Record, State, Subject, Time, TokenRule,
        Version,
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
        // A call that is switched off has no subject, and no record.
        let about = self.record.as_ref().zip(self.subject.as_ref());
        let (Some(kept), Some(about)) = (self.settings.keep_dead_letters, about) else {
            return Ok(());
        };
        let limit = self.settings.handle.timer().sleep(LIMIT);
        let kept = race(Box::pin(self.write(about, reason, kept)), limit).await;
        kept.unwrap_or_else(|| Err(busy().into()))
    }

    async fn write(
        &self,
        (id, subject): (&RecordId, &Arc<Subject>),
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
                Some(record) if !record.is_expired(now) => {
                    let is_own = record.subject.fingerprint == subject.fingerprint;
                    match (is_own, is_held(record, now)) {
                        // It is the record of the other message.
                        (false, _) if reason == DeadLetterReason::KeyReused => None,
                        // A copy that comes too often says nothing of the outcome.
                        _ if reason == DeadLetterReason::Exhausted
                            && record.state == State::Done =>
                        {
                            None
                        }
                        (_, true) => return Err(busy().into()),
                        (_, false) => over(record, &note, kept, now),
                    }
                }
                // Nothing of it counts any more.
                old => Some(self.anew(old, subject, &note, kept)),
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
    fn anew(
        &self,
        old: Option<&Record>,
        subject: &Arc<Subject>,
        note: &Arc<Note>,
        kept: Duration,
    ) -> Draft {
        let token = old.map_or(FencingToken::from_u64(0), |old| old.token);
        Draft {
            version: Version::random(),
            subject: Some(Arc::clone(subject)),
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

fn busy() -> StoreError {
    StoreError::new(StoreErrorKind::Busy, DOING)
}

/// Whether an attempt may still write it: its own release may be under way, too.
fn is_held(record: &Record, now: Time) -> bool {
    match record.state {
        State::Undoing => true,
        State::Running => {
            let nobodys = [AttemptId::NOBODY, AttemptId::GIVEN_BACK];
            !nobodys.contains(&record.attempt_id) || !record.lease_is_over(now)
        }
        _ => false,
    }
}

/// The draft that changes the note and the end, and the moment since when a record stands so;
/// `None` where it is as it should be. An operator's note stays.
fn over(record: &Record, note: &Arc<Note>, kept: Duration, now: Time) -> Option<Draft> {
    let is_kept = record.expires.since(now) >= kept;
    let stays = record.note.as_ref().filter(|it| it.by.is_some());
    let note = stays.unwrap_or(note);
    if is_kept && record.note.as_ref() == Some(note) {
        return None;
    }
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
