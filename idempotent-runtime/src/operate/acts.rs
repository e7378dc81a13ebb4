//! Acts on a record that a list has named: it is resumed, or its outcome is invalidated.

use std::sync::Arc;

use super::Settle;
use crate::{
    error::{Error, Moved, NotSettled},
    handle::{Idempotency, aimed, is_meant},
    identity::RecordId,
    protocol::Settlement,
    record::{Note, Record, Version, note::signed},
    value::awaited,
};

impl Idempotency {
    /// Begins to have a parked call, or a parked number of a stream, tried again: by its id, as a
    /// list names it. Awaited, it does what [`Settle::resume`] does, or
    /// [`SettleNumber::resume`](crate::sequence::SettleNumber::resume).
    ///
    /// # Errors
    ///
    /// [`Error::NotSettled`] when there is nothing to resume, [`Error::Moved`] when another version
    /// was meant, [`Error::Store`] when the store fails.
    ///
    /// # Examples
    ///
    /// ```
    /// # use idempotent_runtime::{Error, Idempotency, operate::State};
    /// # async fn example(idem: Idempotency) -> Result<(), Error> {
    /// // The gateway is up again.
    /// for row in idem.records().attention().state(State::Parked).page(50).await?.rows {
    ///     let resume = idem.resume_id(row.id).at_version(row.version);
    ///     resume.by("anna").because("the gateway is up again").await?;
    /// }
    /// # Ok(()) }
    /// ```
    pub fn resume_id(&self, id: RecordId) -> ResumeRecord<'_> {
        ResumeRecord(RecordAct::new(self, id))
    }

    /// Begins to give up the outcome of a *finished* call, so that the next call with its key runs
    /// the body once more. The reason is kept in the store, and logged.
    ///
    /// Only a record that is done and whose outcome answers can be invalidated. One of which nobody
    /// knows whether it happened is settled first, and one whose outcome could not be kept is given
    /// that outcome. A stream never goes back.
    ///
    /// It undoes nothing of what the body did. Steps of the call run again, too. Calls in the body
    /// that have keys of their own have records of their own, which stay. A copy in front of the
    /// store, of a [`TieredStore`](crate::store::TieredStore) in another process, may answer until
    /// it is as old as copies may be.
    ///
    /// # Errors
    ///
    /// [`Error::NotSettled`] when there is no such outcome, [`Error::Moved`] when another version
    /// was meant, [`Error::InvalidPolicy`] when the reason is empty or too long, [`Error::Store`]
    /// when the store fails.
    ///
    /// # Cancel safety
    ///
    /// Dropped at any await, it has given the outcome up or has not.
    ///
    /// # Examples
    ///
    /// ```
    /// # use idempotent_runtime::{Error, Idempotency, operate::State};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// # let idem = Idempotency::memory();
    /// let report = || idem.call("reports.make").key("2026-11");
    /// report().run(async |_| Ok::<_, Error>(10_u32)).await?;
    ///
    /// let page = idem.records().operation("reports.make").key("2026-11").page(1).await?;
    /// let row = &page.rows[0];
    /// let act = idem.invalidate(row.id, "it has the figures of October").at_version(row.version);
    /// act.by("anna").await?;
    ///
    /// assert_eq!(report().run(async |_| Ok::<_, Error>(11_u32)).await?, 11);
    /// # Ok(()) }
    /// ```
    pub fn invalidate(&self, id: RecordId, reason: impl Into<Arc<str>>) -> InvalidateRecord<'_> {
        let mut act = RecordAct::new(self, id);
        act.note.text = reason.into();
        InvalidateRecord(act)
    }
}

/// Has a parked record tried again: [`Idempotency::resume_id`] makes it. Nothing happens until it
/// is awaited.
#[derive(Debug)]
#[must_use = "nothing is resumed until it is awaited"]
pub struct ResumeRecord<'a>(RecordAct<'a>);

/// Gives up the outcome of a finished record: [`Idempotency::invalidate`] makes it. Nothing happens
/// until it is awaited.
#[derive(Debug)]
#[must_use = "nothing is invalidated until it is awaited"]
pub struct InvalidateRecord<'a>(RecordAct<'a>);

/// An act on the record with this id.
#[derive(Debug)]
struct RecordAct<'a> {
    handle: &'a Idempotency,
    id: RecordId,
    note: Note,
    for_version: Option<Version>,
}

impl<'a> RecordAct<'a> {
    fn new(handle: &'a Idempotency, id: RecordId) -> Self {
        Self {
            handle,
            id,
            note: Note::default(),
            for_version: None,
        }
    }

    async fn record(&self) -> Result<Arc<Record>, Error> {
        let record = self.handle.store().load(&self.id).await?.record;
        record.ok_or_else(|| Error::NotSettled {
            operation: "?".into(),
            reason: NotSettled::UnknownKey,
        })
    }

    fn settle(self, record: &Record) -> Settle<'a> {
        let operation = Arc::clone(&record.subject.operation);
        Settle {
            note: self.note,
            for_version: self.for_version,
            ..self.handle.settles(operation, self.id)
        }
    }
}

impl ResumeRecord<'_> {
    signed!(|it| it.0.note);
    aimed!(|it| it.0.for_version);

    async fn run(self) -> Result<(), Error> {
        let record = self.0.record().await?;
        if !record.is_stream() {
            return self.0.settle(&record).resume().await;
        }
        let RecordAct {
            handle,
            id,
            note,
            for_version,
        } = self.0;
        is_meant(
            &record.subject.operation,
            for_version,
            record.version,
            || Moved::record(&record),
        )?;
        let mut number = handle.stopped_number(id, &record)?;
        (number.note, number.for_version) = (note, for_version);
        number.resume().await
    }
}

impl InvalidateRecord<'_> {
    crate::value::setters! {
        /// Names the person who acts, in at most 256 bytes. The store keeps the name. A longer one
        /// is refused with `Error::InvalidPolicy`, before anything is written.
        by(it, person: impl Into<Arc<str>>) {
            let person = person.into();
            it.0.note.by = (!person.is_empty()).then_some(person);
        }
    }
    aimed!(|it| it.0.for_version);

    async fn run(self) -> Result<(), Error> {
        let Note { by, text } = self.0.note.clone();
        if text.trim().is_empty() {
            return Err(Error::InvalidPolicy(
                "an outcome is given up with a reason: say why it may not answer any more",
            ));
        }
        let (id, record) = (self.0.id, self.0.record().await?);
        let operation = &*record.subject.operation;
        let settle = self.0.settle(&record);
        settle.write(&Settlement::Invalidate).await?;
        let by = by.as_deref().unwrap_or_default();
        let (id, reason) = (id.to_hex(), &*text);
        tracing::warn!(operation, id, by, reason, "an outcome was invalidated");
        Ok(())
    }
}

awaited!([] ResumeRecord<'a> => Result<(), Error>);

awaited!([] InvalidateRecord<'a> => Result<(), Error>);
