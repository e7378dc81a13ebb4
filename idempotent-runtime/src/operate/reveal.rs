//! Reveals a recorded outcome to a person.

use super::StoredOutcome;
use crate::{
    error::{Error, NotSettled},
    handle::Idempotency,
    identity::RecordId,
    observe::RevealEvent,
    outcome::Stored,
    record::{Note, OutcomeKind},
};

impl Idempotency {
    /// Returns the outcome of a record for a person to read, or `None` if it has none: none was
    /// kept, or it is the record of a stream.
    ///
    /// [`Observer::revealed`](crate::Observer::revealed) is called before it returns, with the
    /// person, and a line at INFO is logged. With an [audit](crate::Builder::audit), an event
    /// `reveal` is written first, and the audit must be that of the store.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPolicy`] if `by` is empty or has more than 256 bytes, [`Error::NotSettled`]
    /// if there is no such record, [`Error::AuditMissing`] if the audit is missing or the event
    /// could not be written, [`Error::Store`] if the store fails.
    ///
    /// # Cancel safety
    ///
    /// It only reads. Dropped before it returns, it has revealed nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # use idempotent_runtime::{BoxError, Error, Idempotency};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), BoxError> {
    /// # let idem = Idempotency::memory();
    /// let charge = idem.call("payments.charge").key("order-42");
    /// charge.run(async |_| Ok::<_, Error>("receipt-99".to_owned())).await?;
    ///
    /// let page = idem.records().operation("payments.charge").page(1).await?;
    /// let outcome = idem.reveal(page.rows[0].id, "anna").await?.expect("it has one");
    /// assert_eq!(outcome.decode::<String>()?, "receipt-99");
    /// # Ok(()) }
    /// ```
    pub async fn reveal(&self, id: RecordId, by: &str) -> Result<Option<StoredOutcome>, Error> {
        let person = Note {
            by: Some(by.into()),
            text: "".into(),
        };
        person.checked()?;
        if by.trim().is_empty() {
            return Err(Error::InvalidPolicy(
                "an outcome is revealed to a person: name them",
            ));
        }
        let snapshot = self.store().load(&id).await?;
        let record = snapshot.record.ok_or_else(|| Error::NotSettled {
            operation: "?".into(),
            reason: NotSettled::UnknownKey,
        })?;
        let is_one = |kind| matches!(kind, OutcomeKind::Value | OutcomeKind::Error);
        let Some(outcome) = record.outcome.clone().filter(|it| is_one(it.kind)) else {
            return Ok(None);
        };
        let operation = &record.subject.operation;
        if let Some(audit) = self.engine().unseen_audit() {
            audit.confirm(operation).await?;
        }
        if let Some(audit) = self.engine().audit() {
            audit.revealed(operation, &id, by).await?;
        }
        self.observers()
            .revealed(&RevealEvent { operation, id, by });
        let finished = record.finished.unwrap_or(snapshot.now);
        let stored = Stored::new(outcome, self.coder().clone());
        Ok(Some(StoredOutcome::new(finished, record.attempt, stored)))
    }
}
