//! The story of one record, in sentences.

mod advice;
mod story;

use std::fmt;

use super::{row::RecordRow, steps::StepRow};
use crate::{
    error::{Error, NotSettled},
    handle::Idempotency,
    identity::RecordId,
    protocol::read,
    record::Time,
    store::ListedRecord,
};

/// The story of one record: [`Idempotency::explain`] tells it. Its text is the sentences, one a
/// line.
///
/// The sentences are for people: their words change between releases. A program reads the row and
/// the steps.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Explanation {
    /// The record.
    pub row: RecordRow,
    /// The steps of the call, in the order of their names.
    pub steps: Vec<StepRow>,
    /// The time by the store's clock.
    pub now: Time,
    /// They say what the record is, who holds or held it, its steps, and what can be done.
    pub sentences: Vec<String>,
}

impl Idempotency {
    /// Tells the story of a record: what it is, who holds or held it, its steps, why it needs
    /// somebody, and what can be done with which call. It runs nothing and writes nothing.
    ///
    /// Key and scope stand in it, unless the handle that wrote them
    /// [redacts keys](crate::Builder::redact_keys). No outcome does.
    ///
    /// # Errors
    ///
    /// [`Error::NotSettled`] when no record stands there, [`Error::Store`] when the store fails.
    ///
    /// # Cancel safety
    ///
    /// It only reads.
    ///
    /// # Examples
    ///
    /// ```
    /// # use idempotent_runtime::{Error, Idempotency};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), idempotent_runtime::BoxError> {
    /// # let store = idempotent_runtime::MemoryStore::new();
    /// # let idem = Idempotency::builder(store).holder_name("till-3").build()?;
    /// # let charge = idem.call("payments.charge").key("order-42").uncertain_errors();
    /// # let _ = charge.run(async |_| Err::<(), _>(Error::InvalidPolicy("no answer"))).await;
    /// let page = idem.records().attention().page(1).await?;
    /// let story = idem.explain(page.rows[0].id).await?;
    ///
    /// let about = "It is a call of `payments.charge` with the key \"order-42\".";
    /// assert_eq!(story.sentences[0], about);
    /// assert!(story.sentences[1].starts_with("It is uncertain: the body began in `till-3`"));
    /// # Ok(()) }
    /// ```
    pub async fn explain(&self, id: RecordId) -> Result<Explanation, Error> {
        let snapshot = self.store().load(&id).await?;
        let Some(record) = snapshot.record else {
            return Err(Error::NotSettled {
                operation: "?".into(),
                reason: NotSettled::UnknownKey,
            });
        };
        let row = RecordRow::from(&ListedRecord::of(id, &record));
        let stream = match record.is_stream() {
            true => Some(read(Some(&record)).ok().flatten()),
            false => None,
        };
        let steps = match stream {
            None => self.steps(id).await?,
            Some(_) => Vec::new(),
        };
        let mut sentences = match &stream {
            None => story::of_call(&record, &row, snapshot.now),
            Some(stream) => story::of_stream(&row, stream.as_ref(), snapshot.now),
        };
        sentences.extend(steps.iter().map(story::of_step));
        let stream = stream.as_ref().map(Option::as_ref);
        sentences.extend(advice::on(&record, &steps, stream, snapshot.now));
        Ok(Explanation {
            row,
            steps,
            now: snapshot.now,
            sentences,
        })
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.sentences.join("\n"))
    }
}
