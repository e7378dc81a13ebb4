//! Operators look at a stream, and settle a number at which it stops. They cannot move a stream
//! back.

use std::{sync::Arc, time::Duration};

use serde::Serialize;

use super::settings::Sequence;
use crate::{
    error::{BoxError, Error},
    handle::{Idempotency, NotSettled, is_about_to_be_recorded, put},
    identity::RecordId,
    key::Key,
    lease::{
        read,
        sequence::{self, Draft, Settlement, Stored, Stream, Value, skip},
    },
    observe::RecordChange,
    record::{OutcomeKind, Record, Time, Version},
    store::Swap,
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
        let id = self.id()?;
        let snapshot = self.handle.store().load(&id).await?;
        let now = snapshot.now;
        let Some(record) = snapshot.record else {
            return Ok(Position::default());
        };
        let stream = stored(&record)?.stream;
        if stream.is_expired(now) {
            return Ok(Position::default());
        }
        Ok(Position {
            last: stream.last.map(|last| last.number),
            running: stream.running.map(|running| RunningNumber {
                number: running.number,
                since: now.since(record.created),
                standing: match running.state {
                    sequence::Standing::Uncertain => Standing::Uncertain,
                    sequence::Standing::Parked => Standing::Parked,
                    sequence::Standing::Running if stream.lease_is_over(now) => Standing::Vanished,
                    sequence::Standing::Running => Standing::Held {
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
            operation: &self.operation,
            id: self.id(),
            number,
        }
    }

    /// Uses up a parked number: the stream goes on with the next one, and a copy of this one is
    /// [`Past`](super::Decision::Past). The reason is logged, and observers are told
    /// [`Skipped`](RecordChange::Skipped).
    ///
    /// # Errors
    ///
    /// [`Error::NotSettled`] where the stream does not stop at this number, or it is not parked.
    /// [`Error::Store`] where the store fails.
    ///
    /// # Cancel safety
    ///
    /// Dropped at any await, it has skipped the number or has not.
    pub async fn skip(&self, number: u64, reason: &str) -> Result<(), Error> {
        let skip = |stream: &Stream, _, version| skip(stream, number, version);
        let change = RecordChange::Skipped;
        self.settle(number)
            .write(skip, Value::default(), change)
            .await?;
        let operation = &*self.operation;
        tracing::warn!(operation, number, reason, "a number was skipped");
        Ok(())
    }

    fn id(&self) -> Result<RecordId, Error> {
        if let Some(mistake) = &self.mistake {
            return Err(mistake.clone());
        }
        let invalid = |part| {
            let operation = Arc::clone(&self.operation);
            move |source| Error::InvalidKey {
                operation,
                part,
                source,
            }
        };
        let scope = self.scope.clone().transpose().map_err(invalid("scope"))?;
        let key = self.key.clone().map_err(invalid("key"))?;
        let scope = scope.as_ref().map(Key::framed);
        Ok(RecordId::new(&self.operation, scope, key.framed()))
    }
}

/// Settles one number, on an operator's word. Only the number at which the stream stops can be
/// settled: one that is uncertain or parked, and a running one whose lease is over. The last number
/// can be settled, too, if its outcome could not be kept and no later number runs: a copy of it then
/// gets that outcome in place of [`Error::NotReplayable`].
///
/// # Cancel safety
///
/// Dropped at any await, it has settled the number or has not.
#[derive(Debug)]
#[must_use = "nothing is settled until it is said how"]
pub struct SettleNumber<'a> {
    handle: &'a Idempotency,
    operation: &'a Arc<str>,
    id: Result<RecordId, Error>,
    number: u64,
}

impl SettleNumber<'_> {
    /// It happened, with this value, which answers a copy.
    ///
    /// # Errors
    ///
    /// [`Error::NotSettled`] where the stream does not stop at this number; where the value cannot
    /// be encoded, or the store fails.
    pub async fn with_value<T: Serialize>(self, value: &T) -> Result<(), BoxError> {
        let bytes = self.handle.coder().encode(value)?;
        Ok(self.done(OutcomeKind::Value, bytes).await?)
    }

    /// It failed for good, with this error, which answers a copy. The stream goes on all the same.
    ///
    /// # Errors
    ///
    /// As [`with_value`](Self::with_value).
    pub async fn with_error<E: Serialize>(self, error: &E) -> Result<(), BoxError> {
        let bytes = self.handle.coder().encode(error)?;
        Ok(self.done(OutcomeKind::Error, bytes).await?)
    }

    /// It happened, and its outcome is not known: a copy gets [`Error::NotReplayable`].
    ///
    /// # Errors
    ///
    /// [`Error::NotSettled`] where the stream does not stop at this number, [`Error::Store`] where
    /// the store fails.
    pub async fn as_done(self) -> Result<(), Error> {
        self.done(OutcomeKind::NotReplayable, Vec::new()).await
    }

    /// It did not happen: the number is free again, and runs when it comes. Only for an uncertain
    /// one, and only when no process is alive that may still do it.
    ///
    /// # Errors
    ///
    /// As [`as_done`](Self::as_done).
    pub async fn release(self) -> Result<(), Error> {
        self.on_word(Settlement::Released).await
    }

    /// It may be tried again, with a fresh budget of takeovers. Only for a parked one, and for one
    /// that the next call would park.
    ///
    /// # Errors
    ///
    /// As [`as_done`](Self::as_done).
    pub async fn resume(self) -> Result<(), Error> {
        let max_takeovers = self.handle.defaults().max_takeovers;
        self.on_word(Settlement::Resumed { max_takeovers }).await
    }

    async fn done(self, kind: OutcomeKind, bytes: Vec<u8>) -> Result<(), Error> {
        let value = Value {
            schema: 0,
            bytes: bytes.into(),
        };
        let number = self.number;
        let settlement = Settlement::Done(kind);
        let settle = |stream: &Stream, now, version| {
            sequence::settle(stream, number, &settlement, now, version)
        };
        self.write(settle, value, RecordChange::Settled).await
    }

    async fn on_word(self, settlement: Settlement) -> Result<(), Error> {
        let number = self.number;
        let settle = |stream: &Stream, now, version| {
            sequence::settle(stream, number, &settlement, now, version)
        };
        let change = RecordChange::Settled;
        self.write(settle, Value::default(), change).await
    }

    async fn write(
        self,
        draft: impl Fn(&Stream, Time, Version) -> Option<Draft>,
        moved: Value,
        change: RecordChange,
    ) -> Result<(), Error> {
        let (handle, number) = (self.handle, self.number);
        let id = self.id?;
        let operation = self.operation;
        let not = |reason| Error::NotSettled {
            operation: Arc::clone(operation),
            reason,
        };
        let mut snapshot = handle.store().load(&id).await?;
        loop {
            let Some(record) = &snapshot.record else {
                return Err(not(NotSettled::OtherNumber));
            };
            if is_about_to_be_recorded(handle, record) {
                return Err(not(NotSettled::StillRunning));
            }
            let stored = stored(record)?;
            let Some(draft) = draft(&stored.stream, snapshot.now, Version::random()) else {
                return Err(not(why_not(&stored.stream, number, snapshot.now)));
            };
            let holder = record.holder.clone();
            let draft = Stored::draft(Some(&stored), &draft, None, holder, moved.clone());
            match put(handle, &id, record.version, &draft).await? {
                Swap::Applied(_) => {
                    let observers = handle.observers();
                    observers.transition(operation, &id, record.attempt, change);
                    return Ok(());
                }
                Swap::Refused(stands) => snapshot = stands,
            }
        }
    }
}

fn stored(record: &Record) -> Result<Stored, Error> {
    match read(Some(record)) {
        Ok(Some(stored)) => Ok(stored),
        Ok(None) | Err(_) => Err(crate::run::damaged()),
    }
}

/// Why a number is not settled.
fn why_not(stream: &Stream, number: u64, now: Time) -> NotSettled {
    let last = stream.last.map(|last| last.number);
    let is_held = stream
        .running
        .is_some_and(|it| it.state == sequence::Standing::Running);
    match stream.running {
        _ if is_held
            && stream
                .last
                .is_some_and(|last| last.number == number && last.lacks_outcome()) =>
        {
            NotSettled::StillRunning
        }
        _ if last.is_some_and(|last| number <= last) => NotSettled::AlreadySettled,
        Some(running) if running.number != number => NotSettled::OtherNumber,
        None => NotSettled::OtherNumber,
        Some(running)
            if running.state == sequence::Standing::Running && !stream.lease_is_over(now) =>
        {
            NotSettled::StillRunning
        }
        Some(_) => NotSettled::NotParked,
    }
}
