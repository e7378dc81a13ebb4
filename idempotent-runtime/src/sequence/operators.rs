//! Operators look at a stream, and settle a number at which it stops. They cannot move a stream
//! back.

use std::{sync::Arc, time::Duration};

use super::{
    settings::Sequence,
    settle::{SettleNumber, SkipNumber, stored},
};
use crate::{
    error::{Error, NotSettled},
    fingerprint::{ArgumentDigests, Fingerprint, Fingerprinted},
    handle::{Idempotency, identity},
    identity::RecordId,
    protocol::sequence::{FailingNumber, NumberState},
    record::{Note, Record, Subject},
};

/// The position of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Position {
    /// The last number that was applied, or used up; `None` where the stream has not begun, or has
    /// expired.
    pub last: Option<u64>,
    /// The number that is held, or at which the stream stops.
    pub running: Option<RunningNumber>,
    /// The number that fails each time it comes, so that the stream stays where it is.
    pub failing: Option<FailingNumber>,
}

/// A number that was begun, and has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunningNumber {
    /// The number.
    pub number: u64,
    /// How long ago it began, by the store's clock.
    pub since: Duration,
    /// The state of the number.
    pub standing: Standing,
    /// How many attempts there were.
    pub attempts: u32,
    /// The label of the process that holds or held it.
    pub holder: Arc<str>,
}

/// The state of a number that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// A process holds it.
    Held {
        /// The rest of the holder's lease.
        lease_left: Duration,
    },
    /// Its holder vanished: the next call of the number takes over, or leaves it uncertain.
    Vanished,
    /// It is unknown whether it happened.
    Uncertain,
    /// Too many holders vanished.
    Parked,
}

impl<G> Sequence<G> {
    /// Tells where the stream stands, and runs nothing.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidKey`] where key or scope cannot be one, [`Error::Store`] where the store
    /// fails.
    ///
    /// # Cancel safety
    ///
    /// It only reads.
    pub async fn position(&self) -> Result<Position, Error> {
        let (id, _) = self.subject()?;
        let snapshot = self.handle.store().load(&id).await?;
        let now = snapshot.now;
        let begun = snapshot.record.map(|it| Ok::<_, Error>((stored(&it)?, it)));
        let begun = begun.transpose()?;
        let Some((stands, record)) = begun.filter(|(it, _)| !it.stream.is_expired(now)) else {
            return Ok(Position::default());
        };
        let stream = stands.stream;
        Ok(Position {
            last: stream.last.map(|last| last.number),
            failing: stands.failing.map(|failing| FailingNumber::clone(&failing)),
            running: stream.running.map(|running| RunningNumber {
                number: running.number,
                since: now.since(record.created),
                standing: match running.state {
                    NumberState::Uncertain => Standing::Uncertain,
                    NumberState::Parked => Standing::Parked,
                    NumberState::Running if stream.lease_is_over(now) => Standing::Vanished,
                    NumberState::Running => Standing::Held {
                        lease_left: stream.lease_end.since(now),
                    },
                },
                attempts: record.attempt,
                holder: Arc::clone(&record.holder.label),
            }),
        })
    }

    /// Begins to settle the number at which the stream stops, after an operator found out what
    /// happened. [`position`](Self::position) tells which one it is.
    ///
    /// # Examples
    ///
    /// ```
    /// # use idempotent_runtime::{BoxError, Error, Idempotency, sequence::Decision};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), BoxError> {
    /// # let idem = Idempotency::memory();
    /// let payouts = idem.sequence("payouts", "merchant-7").first(1);
    /// let call = payouts.clone().number(1).uncertain_errors();
    /// let no_answer = call.run(async |_| Err::<(), _>(Error::InvalidPolicy("no answer"))).await;
    /// assert!(no_answer.is_err());
    ///
    /// // The bank's statement shows it.
    /// payouts.settle(1).with_value(&()).await?;
    ///
    /// let next = payouts.number(2).run(async |_| Ok::<_, Error>(())).await?;
    /// assert_eq!(next, Decision::Applied(()));
    /// # Ok(()) }
    /// ```
    pub fn settle(&self, number: u64) -> SettleNumber<'_> {
        SettleNumber {
            handle: &self.handle,
            operation: Arc::clone(&self.operation),
            subject: self.subject(),
            number,
            first: self.first,
            expires_after: self.expires_after,
            note: Note::default(),
            for_version: None,
        }
    }

    /// Begins to use up a number: the stream goes on with the next one, and a copy of this one is
    /// [`Past`](super::Decision::Past). The reason is logged, and observers are told
    /// [`Skipped`](crate::RecordChange::Skipped).
    ///
    /// It takes the number at which the stream stops:
    ///
    /// * one that is parked, or whose holder vanished and which may run again;
    /// * the next one, which no call holds: it fails each time, or never comes, because its source
    ///   rolled it back. The sequence says [`first`](Sequence::first) then. Without that, the
    ///   stream must name it as [`failing`](Position::failing).
    ///
    /// # Errors
    ///
    /// [`Error::NotSettled`] where the stream does not stop at this number, it runs, or it is
    /// uncertain. [`Error::Store`] where the store fails.
    ///
    /// # Cancel safety
    ///
    /// Dropped at any await, it has skipped the number or has not.
    ///
    /// # Examples
    ///
    /// ```
    /// # use idempotent_runtime::{Error, sequence::Sequence};
    /// # async fn example<G>(payouts: Sequence<G>) -> Result<(), Error> {
    /// payouts.skip(7).by("anna").because("its source rolled it back").await?;
    /// # Ok(()) }
    /// ```
    pub fn skip(&self, number: u64) -> SkipNumber<'_> {
        SkipNumber(self.settle(number))
    }

    /// The record of the stream, and its subject without a number.
    fn subject(&self) -> Result<(RecordId, Subject), Error> {
        if let Some(mistake) = &self.mistake {
            return Err(mistake.clone());
        }
        let (id, scope, key) = identity(&self.operation, self.scope.clone(), self.key.clone())?;
        let none = Fingerprint::from_bytes([0; 32]);
        let subject = Subject {
            operation: Arc::clone(&self.operation),
            scope: self.handle.shown(scope),
            key: self.handle.shown(Some(key)),
            fingerprint: Fingerprinted::stored(none, ArgumentDigests::default()),
        };
        Ok((id, subject))
    }
}

impl Idempotency {
    /// Begins to settle the number at which the stream of a record stops: by the id of the record,
    /// as a list names it. [`SettleNumber::number`] says which number it is.
    ///
    /// # Errors
    ///
    /// [`Error::NotSettled`] where no stream stands there, or none of its numbers has begun;
    /// [`Error::Store`] where the store fails.
    pub async fn settle_number_id(&self, id: RecordId) -> Result<SettleNumber<'_>, Error> {
        let record = self.store().load(&id).await?.record;
        match record {
            Some(record) => self.stopped_number(id, &record),
            None => Err(Error::NotSettled {
                operation: "?".into(),
                reason: NotSettled::UnknownKey,
            }),
        }
    }

    /// The number at which the stream of this record stops.
    pub(crate) fn stopped_number(
        &self,
        id: RecordId,
        record: &Record,
    ) -> Result<SettleNumber<'_>, Error> {
        let operation = &record.subject.operation;
        let not = |reason| Error::NotSettled {
            operation: Arc::clone(operation),
            reason,
        };
        if !record.is_stream() {
            return Err(not(NotSettled::IsCall));
        }
        let running = stored(record)?.stream.running;
        let Some(running) = running else {
            return Err(not(NotSettled::OtherNumber));
        };
        Ok(SettleNumber {
            handle: self,
            operation: Arc::clone(operation),
            subject: Ok((id, Subject::clone(&record.subject))),
            number: running.number,
            first: None,
            expires_after: None,
            note: Note::default(),
            for_version: None,
        })
    }
}
