//! Looks at a record without running anything.

use std::{sync::Arc, time::Duration};

use serde::de::DeserializeOwned;

use super::RecordRow;
use crate::{
    consumer::Consumer,
    error::{BoxError, Error},
    handle::{Idempotency, identify},
    key::KeyPart,
    outcome::Stored,
    record::{OutcomeKind, Record, State, Time},
    store::{ListedRecord, Snapshot},
};

/// The status of a call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Status {
    /// No call with this key is known: none was made, or it was released, or has expired and was
    /// deleted.
    Unknown,
    /// A process holds it.
    #[non_exhaustive]
    Processing {
        /// How long ago it began, by the store's clock.
        since: Duration,
        /// The rest of the holder's lease; zero when the holder vanished.
        lease_left: Duration,
        /// The number of the attempt.
        attempt: u32,
        /// The label of the process that holds it.
        holder: Arc<str>,
    },
    /// It ended well.
    Completed(StoredOutcome),
    /// It failed for good.
    Failed(StoredOutcome),
    /// It happened, and its outcome could not be kept.
    NotReplayable {
        /// When, by the store's clock.
        finished: Time,
    },
    /// It is unknown whether it happened.
    Uncertain,
    /// It failed for good, and its steps are being undone.
    #[non_exhaustive]
    Undoing {
        /// The rest of the holder's lease; zero when the holder vanished.
        lease_left: Duration,
    },
    /// Too many holders vanished, or an undo failed.
    Parked {
        /// How many attempts there were.
        attempts: u32,
    },
    /// It answers no call any more, and is still there for an audit: the next call runs, and its
    /// record takes the place.
    #[non_exhaustive]
    Expired {
        /// Since when, by the store's clock.
        since: Time,
        /// Its last status: completed, failed, not replayable, or processing if its holder
        /// vanished.
        last: Box<Status>,
    },
}

/// A recorded outcome.
#[derive(Clone, Debug)]
pub struct StoredOutcome {
    finished: Time,
    attempt: u32,
    stored: Stored,
}

impl StoredOutcome {
    pub(super) fn new(finished: Time, attempt: u32, stored: Stored) -> Self {
        Self {
            finished,
            attempt,
            stored,
        }
    }

    /// When it was recorded, by the store's clock.
    #[must_use]
    pub fn finished(&self) -> Time {
        self.finished
    }

    /// The number of the attempt that made it.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Decodes it as the value, or the error, that the function returned. An outcome of a function
    /// with `outcome = reference(save, load)` is decoded as the value that `save` gave. An outcome
    /// that an older build recorded is of the type that it had then: [`stored`](Self::stored) tells
    /// its version.
    ///
    /// # Errors
    ///
    /// When it is not of that type.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, BoxError> {
        self.stored.decode()
    }

    /// Gives its bytes and their schema version as they stand in the store: for an outcome that no
    /// codec wrote. A response of the layer for HTTP is read by `http::StoredResponse::decode`,
    /// once its seal is opened if it has one.
    ///
    /// # Examples
    ///
    /// ```
    /// # use idempotent_runtime::{BoxError, Idempotency, RawEnding, RawOutcome, Status};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), BoxError> {
    /// # let idem = Idempotency::memory();
    /// let call = idem.call("files.convert").key("file-7");
    /// let outcome = RawOutcome::value("as it is").with_schema(2);
    /// call.run_raw(|_| async { RawEnding::Record(outcome) }).await?;
    ///
    /// let status = idem.lookup("files.convert", None::<&str>, "file-7").await?;
    /// let Status::Completed(kept) = status else { panic!() };
    /// assert_eq!((kept.stored().bytes(), kept.stored().version()), (&b"as it is"[..], 2));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn stored(&self) -> &Stored {
        &self.stored
    }
}

impl Idempotency {
    /// Tells where the call of `operation` with this scope and key stands, and runs nothing.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidKey`] when the key or the scope cannot be one, [`Error::Store`] when the
    /// store fails.
    ///
    /// # Cancel safety
    ///
    /// It only reads: dropped at any await, it changes nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # use idempotent_runtime::{Error, Idempotency, Status};
    /// # async fn example(idem: Idempotency) -> Result<(), Error> {
    /// let status = idem.lookup("payments.charge", Some("merchant-7"), "order-42").await?;
    /// assert!(matches!(status, Status::Unknown));
    /// # Ok(()) }
    /// ```
    pub async fn lookup<S, K>(
        &self,
        operation: &str,
        scope: Option<&S>,
        key: &K,
    ) -> Result<Status, Error>
    where
        S: KeyPart + ?Sized,
        K: KeyPart + ?Sized,
    {
        let id = identify(&operation.into(), scope, key)?;
        let Snapshot { now, record } = self.store().load(&id).await?;
        let Some(record) = record.filter(|record| record.state != State::Released) else {
            return Ok(Status::Unknown);
        };
        let last = self.status(&record, now);
        Ok(match record.is_expired(now) {
            true => Status::Expired {
                since: record.expires,
                last: Box::new(last),
            },
            false => last,
        })
    }

    fn status(&self, record: &Record, now: Time) -> Status {
        let finished = record.finished.unwrap_or(now);
        match record.state {
            State::Released => Status::Unknown,
            State::Uncertain => Status::Uncertain,
            State::Parked => Status::Parked {
                attempts: record.attempt,
            },
            State::Undoing => Status::Undoing {
                lease_left: record.lease_end.since(now),
            },
            State::Running => Status::Processing {
                since: now.since(record.created),
                lease_left: record.lease_end.since(now),
                attempt: record.attempt,
                holder: Arc::clone(&record.holder.label),
            },
            State::Done => {
                let Some(outcome) = &record.outcome else {
                    return Status::NotReplayable { finished };
                };
                let stored = Stored::new(outcome.clone(), self.coder().clone());
                let kept = StoredOutcome::new(finished, record.attempt, stored);
                match outcome.kind {
                    OutcomeKind::Value => Status::Completed(kept),
                    OutcomeKind::Error => Status::Failed(kept),
                    OutcomeKind::NotReplayable | OutcomeKind::Stream => {
                        Status::NotReplayable { finished }
                    }
                }
            }
        }
    }
}

impl Consumer {
    /// Returns the record of a message; `None` where there is none. A dead letter has its reason in
    /// the note, where the consumer
    /// [keeps](crate::consumer::ConsumerBuilder::keep_dead_letters) them.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidKey`] where the id cannot be a key, [`Error::Store`] where the store fails.
    ///
    /// # Cancel safety
    ///
    /// It only reads.
    ///
    /// # Examples
    ///
    /// ```
    /// # use idempotent_runtime::{Idempotency, record::State};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), idempotent_runtime::BoxError> {
    /// # let idem = Idempotency::memory();
    /// let consumer = idem.consumer("billing").broker_retention("3d").max_deliveries(1);
    /// let consumer = consumer.keep_dead_letters("30d").build()?;
    /// let message = consumer.message("message-7").without_payload().delivery(1);
    /// let _dead = message.run(async |_| Err::<(), _>("no such account")).await;
    ///
    /// let row = consumer.lookup("message-7").await?.expect("it is kept");
    /// assert_eq!(row.state, State::Released);
    /// assert_eq!(&*row.note.expect("a reason").text, "dead letter: exhausted");
    /// # Ok(()) }
    /// ```
    pub async fn lookup<K: KeyPart + ?Sized>(&self, id: &K) -> Result<Option<RecordRow>, Error> {
        let id = self.record_id(id)?;
        let record = self.handle().store().load(&id).await?.record;
        Ok(record.map(|record| RecordRow::from(&ListedRecord::of(id, &record))))
    }
}
