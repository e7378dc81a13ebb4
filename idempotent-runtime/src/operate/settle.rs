//! Settles records that no call can decide: uncertain and parked ones, and those whose holder
//! vanished.

use std::sync::Arc;

use serde::Serialize;

use crate::{
    error::{BoxError, Error, NotSettled},
    fingerprint::outline,
    handle::{Idempotency, aimed, identify, is_about_to_be_recorded},
    identity::RecordId,
    key::KeyPart,
    observe::RecordChange,
    outcome::Stored,
    protocol::{Settlement, settle},
    record::{Note, RawOutcome, Record, State, Time, Version, note::signed},
    store::{Snapshot, StoreErrorKind},
};

/// Settles one record, on an operator's word. Only an uncertain or a parked record can be settled,
/// one that is done and whose outcome could not be kept ([`Error::NotReplayable`]), and a running
/// one whose lease is over, unless it [has
/// expired](crate::record::Record::is_expired). A running one stands so because no call has
/// come since that would leave it uncertain, parked, or to the next holder. A call that this handle
/// has run itself, and is about to record, is not settled.
///
/// If the answer of the store is lost, the store is asked once more, and a write that stands is
/// recognised. If that fails with [`StoreErrorKind::Unavailable`] or [`StoreErrorKind::Busy`], it
/// is unknown whether the record is settled: [look](Idempotency::lookup) and settle it again.
///
/// # Cancel safety
///
/// Dropped at any await, it has settled the record or has not; settled again, it stays as it was
/// settled first, unless that was [`as_done`](Self::as_done).
///
/// [`StoreErrorKind::Unavailable`]: crate::store::StoreErrorKind::Unavailable
/// [`StoreErrorKind::Busy`]: crate::store::StoreErrorKind::Busy
#[derive(Clone, Debug)]
#[must_use = "nothing is settled until it is said how"]
pub struct Settle<'a> {
    pub(super) handle: &'a Idempotency,
    pub(super) operation: Arc<str>,
    pub(super) id: RecordId,
    pub(super) schema: u32,
    pub(crate) note: Note,
    pub(crate) for_version: Option<Version>,
}

impl Idempotency {
    /// Begins to settle the call of `operation` with this scope and key, once an operator has found
    /// out what happened.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidKey`] when the key or the scope cannot be one.
    ///
    /// # Examples
    ///
    /// ```
    /// # use idempotent_runtime::{BoxError, Idempotency};
    /// # async fn example(idem: Idempotency) -> Result<(), BoxError> {
    /// // The gateway's dashboard shows the charge: it happened.
    /// let charge = idem.settle("payments.charge", Some("merchant-7"), "order-42")?;
    /// charge.by("anna").because("dashboard, row 7").with_value(&"receipt-99").await?;
    /// # Ok(()) }
    /// ```
    ///
    /// A key is said as the attribute says it: a tuple as a tuple, a template by
    /// [`Template`](crate::key::Template). Under `key_from_arguments` it is the fingerprint of the
    /// arguments that are not skipped, with the handle's [`FingerprintKey`](crate::FingerprintKey)
    /// if it has one:
    ///
    /// ```
    /// # use idempotent_runtime::{BoxError, Error, Idempotency, idempotent};
    /// # use idempotent_runtime::{fingerprint::Arguments, key::Template};
    /// #[idempotent(name = "carts.add", key = "{cart}:{seq}", on_error = uncertain)]
    /// async fn add(cart: u64, seq: u64) -> Result<u64, Error> {
    /// #   Err(Error::InvalidPolicy("no answer"))
    /// }
    ///
    /// #[idempotent(name = "mails.send", key_from_arguments, on_error = uncertain)]
    /// async fn send(to: &str, subject: &str) -> Result<u64, Error> {
    /// #   Err(Error::InvalidPolicy("no answer"))
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), BoxError> {
    /// # let idem = Idempotency::memory(); idem.install()?;
    /// # assert!(add(1, 2).await.is_err() && send("a@example.org", "hello").await.is_err());
    ///
    /// let key = Template::new().part(&1).literal(":").part(&2);
    /// idem.settle("carts.add", None::<&str>, &key)?.with_value(&3).await?;
    ///
    /// let mut arguments = Arguments::new();
    /// arguments.argument("to", "a@example.org");
    /// arguments.argument("subject", "hello");
    /// let key = arguments.finish(None)?.fingerprint();
    /// idem.settle("mails.send", None::<&str>, key.as_bytes())?.with_value(&4).await?;
    /// # assert_eq!((add(1, 2).await?, send("a@example.org", "hello").await?), (3, 4));
    /// # Ok(()) }
    /// ```
    pub fn settle<S, K>(
        &self,
        operation: &str,
        scope: Option<&S>,
        key: &K,
    ) -> Result<Settle<'_>, Error>
    where
        S: KeyPart + ?Sized,
        K: KeyPart + ?Sized,
    {
        let operation = operation.into();
        let id = identify(&operation, scope, key)?;
        Ok(self.settles(operation, id))
    }

    /// Begins to settle the call of a record, as [`scan`](crate::Store::scan), [`Error::Uncertain`]
    /// and [`Error::Parked`] name it. An id that was written down is read by [`parse`](str::parse).
    ///
    /// # Errors
    ///
    /// [`Error::NotSettled`] when no record stands there, [`Error::Store`] when the store fails.
    pub async fn settle_id(&self, id: RecordId) -> Result<Settle<'_>, Error> {
        let snapshot = self.store().load(&id).await?;
        let Some(record) = snapshot.record else {
            return Err(Error::NotSettled {
                operation: "?".into(),
                reason: NotSettled::UnknownKey,
            });
        };
        Ok(self.settles(Arc::clone(&record.subject.operation), id))
    }

    pub(super) fn settles(&self, operation: Arc<str>, id: RecordId) -> Settle<'_> {
        Settle {
            handle: self,
            schema: self.version_of(&operation),
            operation,
            id,
            note: Note::default(),
            for_version: None,
        }
    }
}

impl Settle<'_> {
    signed!(|it| it.note);
    aimed!(|it| it.for_version);

    /// Sets the schema version of the value, if the attribute or the call says `version`. It may be
    /// that no call can read an outcome of another version, and a record is settled only once. The
    /// version is known for an annotated function of which this handle has seen a call, also by the
    /// name that its `also_accept` says. A program of its own for operators has seen none.
    pub fn version(mut self, schema: u32) -> Self {
        self.schema = schema;
        self
    }

    /// The id of the record.
    #[must_use]
    pub fn id(&self) -> &RecordId {
        &self.id
    }

    /// It happened, with this value, which answers every duplicate from now on.
    ///
    /// # Errors
    ///
    /// [`Error::NotSettled`] when there is nothing to settle, or when this handle has seen a call
    /// of the function and it could not read the value; when the value cannot be encoded, or the
    /// store fails.
    pub async fn with_value<T: Serialize>(self, value: &T) -> Result<(), BoxError> {
        let outcome = self.encoded(RawOutcome::value, value)?;
        Ok(self.with_outcome(outcome).await?)
    }

    /// It failed for good, with this error, which answers every duplicate from now on.
    ///
    /// A function whose `on_error` is `release`, `uncertain` or a classifier that returns
    /// [`Unrecorded`](crate::Unrecorded) reads no error back: its duplicates get
    /// [`Error::Unreadable`], and the body is not run for them either. A function that may be
    /// settled so takes a classifier that returns [`Verdict`](crate::Verdict).
    ///
    /// # Errors
    ///
    /// [`Error::NotSettled`] when there is nothing to settle, or when this handle has seen a call
    /// of the function and it could not read the error, or reads none; when the error cannot be
    /// encoded, or the store fails.
    pub async fn with_error<E: Serialize>(self, error: &E) -> Result<(), BoxError> {
        let outcome = self.encoded(RawOutcome::error, error)?;
        Ok(self.with_outcome(outcome).await?)
    }

    /// It happened, and its outcome is not known: duplicates get [`Error::NotReplayable`].
    ///
    /// # Errors
    ///
    /// [`Error::NotSettled`] when there is nothing to settle, [`Error::Store`] when the store
    /// fails.
    pub async fn as_done(self) -> Result<(), Error> {
        self.with_outcome(RawOutcome::not_replayable()).await
    }

    /// Lets a *parked* record be tried again, with a fresh budget, and once if that is 0. The next
    /// call takes over and runs, or reconciles if that is its policy. A running one that may be run
    /// again, whose lease is over, and which the next call would park under the budget of this
    /// handle, is resumed likewise. If no call comes within the ttl that its call chose, counted
    /// from now, the record is forgotten as any that may run again. An uncertain record can only be
    /// settled.
    ///
    /// # Errors
    ///
    /// [`Error::NotSettled`] when there is nothing to resume, [`Error::Store`] when the store
    /// fails.
    pub async fn resume(self) -> Result<(), Error> {
        let max_takeovers = self.handle.defaults().max_takeovers;
        self.write(&Settlement::Resume { max_takeovers }).await
    }

    /// It failed for good, with this error. The next call undoes the steps that have an undo, and
    /// then the error answers every duplicate. Nothing of it runs forward any more.
    ///
    /// # Errors
    ///
    /// As [`with_error`](Self::with_error).
    pub async fn undo<E: Serialize>(self, error: &E) -> Result<(), BoxError> {
        let outcome = self.encoded(RawOutcome::error, error)?;
        Ok(self.write(&Settlement::Undo(outcome)).await?)
    }

    /// Records this outcome, whatever its bytes are.
    pub(crate) async fn with_outcome(self, outcome: RawOutcome) -> Result<(), Error> {
        let outcome = outcome.with_schema(self.schema);
        self.write(&Settlement::Outcome(outcome)).await
    }

    /// The outcome, if the function could read it back, or this handle has seen no call of it.
    fn encoded<T: Serialize>(
        &self,
        outcome: fn(Vec<u8>) -> RawOutcome,
        said: &T,
    ) -> Result<RawOutcome, BoxError> {
        let (handle, coder) = (self.handle, self.handle.coder());
        let outcome = outcome(coder.encode(said)?);
        let stored = Stored::new(outcome.clone(), coder.clone());
        match handle.can_read(&self.operation, &stored, outline(said)) {
            true => Ok(outcome.with_schema(self.schema)),
            false => Err(self.not(NotSettled::Unreadable).into()),
        }
    }

    pub(super) fn not(&self, reason: NotSettled) -> Error {
        Error::NotSettled {
            operation: Arc::clone(&self.operation),
            reason,
        }
    }

    pub(super) async fn write(self, settlement: &Settlement) -> Result<(), Error> {
        let (keep, note) = (self.handle.defaults().audit_retention, self.note.checked()?);
        let gives_up = matches!(settlement, Settlement::Invalidate);
        let ends_by_error = matches!(settlement, Settlement::Outcome(it) if it.is_error());
        let settled = |snapshot: &Snapshot| {
            let Some(record) = snapshot.record.as_deref() else {
                return Ok(None);
            };
            let draft = || settle(record, settlement, snapshot.now, keep, Version::random());
            let reason = match record {
                _ if record.is_stream() => NotSettled::IsSequence,
                _ if ends_by_error && record.has_open_undos() => NotSettled::OpenUndos,
                _ if is_about_to_be_recorded(self.handle, record) => NotSettled::StillRunning,
                _ => match draft() {
                    Some(draft) => return Ok(Some(draft.noted(note.clone()))),
                    None => match why_not(record, snapshot.now) {
                        NotSettled::AlreadySettled | NotSettled::NotParked if gives_up => {
                            NotSettled::NotFinished
                        }
                        reason => reason,
                    },
                },
            };
            Err(self.not(reason))
        };
        let (place, change) = ((&self.operation, &self.id), change_of(settlement));
        let meant = self.for_version;
        match self.handle.settled(place, meant, change, settled).await? {
            true => Ok(()),
            false => Err(self.not(self.unknown().await?)),
        }
    }

    /// Which part of the identity is unknown to the store.
    pub(super) async fn unknown(&self) -> Result<NotSettled, Error> {
        const MOST: u32 = 1_000;
        let records = match self.handle.store().scan(None, MOST).await {
            Err(error) if error.kind() == StoreErrorKind::Corrupt => {
                return Ok(NotSettled::UnknownKey);
            }
            scanned => scanned?,
        };
        let is_of_it = |record: &Record| record.subject.operation == self.operation;
        let is_known = records.iter().any(|(_, record)| is_of_it(record));
        Ok(match is_known || records.len() >= MOST as usize {
            true => NotSettled::UnknownKey,
            false => NotSettled::UnknownOperation,
        })
    }
}

fn change_of(settlement: &Settlement) -> RecordChange {
    match settlement {
        Settlement::Invalidate => RecordChange::Invalidated,
        _ => RecordChange::Settled,
    }
}

/// Why nothing is settled of a record that stands.
fn why_not(record: &Record, now: Time) -> NotSettled {
    match record.state {
        State::Released => NotSettled::UnknownKey,
        _ if record.is_expired(now) => NotSettled::UnknownKey,
        State::Done => NotSettled::AlreadySettled,
        State::Running if !record.lease_is_over(now) => NotSettled::StillRunning,
        _ => NotSettled::NotParked,
    }
}
