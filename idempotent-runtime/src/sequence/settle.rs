//! The settlement of a number at which a stream stops, on an operator's word.

use std::{sync::Arc, time::Duration};

use serde::Serialize;

use crate::{
    error::NotSettled,
    error::{BoxError, Error},
    fingerprint::{ArgumentDigests, Fingerprint, Fingerprinted},
    handle::{Idempotency, aimed, is_about_to_be_recorded},
    identity::RecordId,
    observe::RecordChange,
    protocol::{
        read,
        sequence::{
            self, BegunNumber, CopyAnswer, LastValue, NextNumber, NumberState, StoredStream,
            Stream, StreamDraft, StreamSettlement, end_next, skip,
        },
    },
    record::{Note, OutcomeKind, Record, Subject, Time, Version, note::signed},
    store::Snapshot,
    value::awaited,
};

/// Settles one number, on an operator's word. Only the number at which the stream stops can be
/// settled: one that is uncertain or parked, and a running one whose lease is over. The next one
/// takes an outcome, if calls of it came and failed. The last number can be settled, too, if its
/// outcome could not be kept and no later number runs: a copy of it then gets that outcome in place
/// of [`Error::NotReplayable`].
///
/// # Cancel safety
///
/// Dropped at any await, it has settled the number or has not.
#[derive(Debug)]
#[must_use = "nothing is settled until it is said how"]
pub struct SettleNumber<'a> {
    pub(super) handle: &'a Idempotency,
    pub(super) operation: Arc<str>,
    pub(super) subject: Result<(RecordId, Subject), Error>,
    pub(super) number: u64,
    /// The first number of the stream, where that is known.
    pub(super) first: Option<u64>,
    pub(super) expires_after: Option<Duration>,
    pub(crate) note: Note,
    pub(crate) for_version: Option<Version>,
}

impl<'a> SettleNumber<'a> {
    signed!(|it| it.note);
    aimed!(|it| it.for_version);

    /// The number.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// It happened, with this value, which answers a copy.
    ///
    /// # Errors
    ///
    /// [`Error::NotSettled`] where the stream does not stop at this number; where the value cannot
    /// be encoded, or the store fails.
    pub async fn with_value<T: Serialize>(self, value: &T) -> Result<(), BoxError> {
        let bytes = self.handle.coder().encode(value)?;
        let done = StreamSettlement::Done(OutcomeKind::Value);
        Ok(self.write(Some(done), bytes).await?)
    }

    /// It failed for good, with this error, which answers a copy. The stream goes on all the same.
    ///
    /// # Errors
    ///
    /// As [`with_value`](Self::with_value).
    pub async fn with_error<E: Serialize>(self, error: &E) -> Result<(), BoxError> {
        let bytes = self.handle.coder().encode(error)?;
        let done = StreamSettlement::Done(OutcomeKind::Error);
        Ok(self.write(Some(done), bytes).await?)
    }

    /// It happened, and its outcome is not known: a copy gets [`Error::NotReplayable`].
    ///
    /// # Errors
    ///
    /// [`Error::NotSettled`] where the stream does not stop at this number, [`Error::Store`] where
    /// the store fails.
    pub async fn as_done(self) -> Result<(), Error> {
        let done = StreamSettlement::Done(OutcomeKind::NotReplayable);
        self.write(Some(done), Vec::new()).await
    }

    /// It did not happen: the number is free again, and runs when it comes. Only for an uncertain
    /// one, and only when no process is alive that may still do it.
    ///
    /// # Errors
    ///
    /// As [`as_done`](Self::as_done).
    pub async fn release(self) -> Result<(), Error> {
        self.write(Some(StreamSettlement::Released), Vec::new())
            .await
    }

    /// It may be tried again, with a fresh budget of takeovers. Only for a parked one, and for one
    /// that the next call would park.
    ///
    /// # Errors
    ///
    /// As [`as_done`](Self::as_done).
    pub async fn resume(self) -> Result<(), Error> {
        let max_takeovers = self.handle.defaults().max_takeovers;
        let resumed = StreamSettlement::Resumed { max_takeovers };
        self.write(Some(resumed), Vec::new()).await
    }

    /// It is used up without an outcome, as [`Sequence::skip`](super::Sequence::skip) does.
    pub fn skip(self) -> SkipNumber<'a> {
        SkipNumber(self)
    }

    /// Settles the number, or skips it, with the bytes that answer a copy. The number may be begun,
    /// or the next one, which takes an outcome alone.
    async fn write(
        self,
        settlement: Option<StreamSettlement>,
        bytes: Vec<u8>,
    ) -> Result<(), Error> {
        let (handle, number, note) = (self.handle, self.number, self.note.checked()?);
        let (id, subject) = self.subject.clone()?;
        let (schema, bytes) = (0, bytes.into());
        let value = LastValue { schema, bytes };
        let (answer, change) = told(settlement.as_ref());
        let not = |reason| Error::NotSettled {
            operation: Arc::clone(&self.operation),
            reason,
        };
        let settled = |snapshot: &Snapshot| {
            let (now, record) = (snapshot.now, snapshot.record.as_deref());
            if record.is_some_and(|record| is_about_to_be_recorded(handle, record)) {
                return Err(not(NotSettled::StillRunning));
            }
            let stands = record.map(stored).transpose()?;
            let stream = stands.as_ref().map(|stored| &stored.stream);
            let begun = stream.and_then(|stream| match &settlement {
                Some(it) => sequence::settle(stream, number, it, now, Version::random()),
                None => skip(stream, number, now, Version::random()),
            });
            let next = || self.next(stands.as_ref(), record, answer, now);
            let (draft, subject) = match begun.map(|draft| (draft, None)).or_else(next) {
                Some((draft, ends)) => (draft, ends.map(|it| about(&subject, it))),
                None => return Err(not(why_not(stream, number, now))),
            };
            let holder = record.map_or_else(|| handle.holder(), |record| record.holder.clone());
            let value = value.clone();
            let draft = StoredStream::draft(stands.as_ref(), &draft, subject, holder, value);
            Ok(Some(match &note {
                Some(note) => draft.noted(Some(Arc::clone(note))),
                None => draft,
            }))
        };
        let (place, meant) = ((&self.operation, &id), self.for_version);
        if !handle.settled(place, meant, change, settled).await? {
            return Err(not(NotSettled::UnknownKey));
        }
        Ok(())
    }

    /// The draft that ends the next number so, with the fingerprint of its copies.
    fn next(
        &self,
        stands: Option<&StoredStream>,
        record: Option<&Record>,
        answer: Option<CopyAnswer>,
        now: Time,
    ) -> Option<(StreamDraft, Option<Fingerprint>)> {
        let answer = answer?;
        let stream = stands.map(|stored| &stored.stream);
        let failing = stands.and_then(|stands| stands.failing.as_ref());
        let has_failed = failing.is_some_and(|failing| failing.number == self.number);
        // The subject of a stream at rest is that of the number which was begun last.
        let last = stream.and_then(|stream| stream.last);
        let begun = record.map(|record| record.subject.fingerprint.fingerprint());
        let known =
            begun.filter(|it| has_failed || last.is_none_or(|last| last.fingerprint != *it));
        let fingerprint = match answer {
            CopyAnswer::Skipped => known.unwrap_or(Fingerprint::from_bytes([0; 32])),
            CopyAnswer::Recorded(_) => known?,
        };
        let next = NextNumber {
            number: self.number,
            fingerprint,
            first: self.first,
            has_failed,
            expires_after: self.expires_after,
        };
        let draft = end_next(stream, &next, answer, now, Version::random())?;
        Some((draft, Some(fingerprint)))
    }
}

/// Skips one number, on an operator's word: [`Sequence::skip`](super::Sequence::skip) makes it.
#[derive(Debug)]
#[must_use = "nothing is skipped until it is awaited"]
pub struct SkipNumber<'a>(pub(super) SettleNumber<'a>);

impl SkipNumber<'_> {
    signed!(|it| it.0.note);
    aimed!(|it| it.0.for_version);

    async fn run(self) -> Result<(), Error> {
        let (operation, number) = (Arc::clone(&self.0.operation), self.0.number);
        let Note { by, text } = self.0.note.clone();
        self.0.write(None, Vec::new()).await?;
        let (by, reason) = (by.as_deref().unwrap_or_default(), &*text);
        tracing::warn!(
            operation = &*operation,
            number,
            by,
            reason,
            "a number was skipped"
        );
        Ok(())
    }
}

awaited!([] SkipNumber<'a> => Result<(), Error>);

/// The answer of a copy of a number that was only to begin, and the change that observers are told.
fn told(settlement: Option<&StreamSettlement>) -> (Option<CopyAnswer>, RecordChange) {
    let answer = match settlement {
        None => return (Some(CopyAnswer::Skipped), RecordChange::Skipped),
        Some(StreamSettlement::Done(kind)) => Some(CopyAnswer::Recorded(*kind)),
        Some(_) => None,
    };
    (answer, RecordChange::Settled)
}

/// The subject of a stream whose last number has this fingerprint.
fn about(subject: &Subject, fingerprint: Fingerprint) -> Arc<Subject> {
    Arc::new(Subject {
        fingerprint: Fingerprinted::stored(fingerprint, ArgumentDigests::default()),
        ..subject.clone()
    })
}

pub(super) fn stored(record: &Record) -> Result<StoredStream, Error> {
    match read(Some(record)) {
        Ok(Some(stored)) => Ok(stored),
        Ok(None) | Err(_) => Err(crate::run::damaged()),
    }
}

/// Why a number is not settled.
fn why_not(stream: Option<&Stream>, number: u64, now: Time) -> NotSettled {
    let Some(stream) = stream else {
        return NotSettled::OtherNumber;
    };
    let is_held = |it: &BegunNumber| it.state == NumberState::Running;
    match (stream.running, stream.last) {
        (Some(running), Some(last))
            if is_held(&running) && last.number == number && last.lacks_outcome() =>
        {
            NotSettled::StillRunning
        }
        (_, Some(last)) if number <= last.number => NotSettled::AlreadySettled,
        (Some(running), _) if running.number == number => {
            match is_held(&running) && !stream.lease_is_over(now) {
                true => NotSettled::StillRunning,
                false => NotSettled::NotParked,
            }
        }
        _ => NotSettled::OtherNumber,
    }
}
