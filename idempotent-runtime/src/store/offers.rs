//! Capabilities that a store may offer beside its records: steps, and transactions of the
//! application's.

use std::{any::Any, sync::Arc};

use async_trait::async_trait;

use super::{StepWrite, Store, StoreError, StoreErrorKind, Swap};
use crate::{
    identity::RecordId,
    record::{Draft, ListedStep, Step, StepName, StepNames, Version},
    value::opaque,
};

/// Keeps the steps of a body beside its record. [`Store::steps`] offers it.
///
/// Errors and cancel safety are those of [`Store`].
#[async_trait]
pub trait StepStore: Send + Sync {
    /// Looks at the steps whose names are in this range, in the order of their names. They are
    /// those of the life that the record of this call is in.
    ///
    /// It is not fenced: an attempt that lost the record may see steps of a later life. Its answer
    /// counts only if the lease of the attempt still stands when the answer is there.
    async fn load_steps(
        &self,
        call: &RecordId,
        names: &StepNames,
    ) -> Result<Vec<Arc<Step>>, StoreError>;

    /// Lists all of those steps, in the order of their names. The default reads them whole. A store
    /// that can leaves out what they returned, of which there may be a lot.
    async fn list_steps(&self, call: &RecordId) -> Result<Vec<ListedStep>, StoreError> {
        let steps = self.load_steps(call, &StepName::ALL).await?;
        Ok(steps.iter().map(|step| ListedStep::from(&**step)).collect())
    }

    /// Puts `next` where the record of this call [takes](crate::protocol::takes_steps) steps of its
    /// attempt, and where no step of this name and life stands except version `seen`, in one atomic
    /// step.
    ///
    /// It and every write of the record are in one order: after a takeover has been applied, no
    /// step of an earlier attempt is. It changes nothing of the record. Steps are deleted together
    /// with their record, and none is seen in another life of it.
    async fn write_step(
        &self,
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> Result<StepWrite, StoreError>;
}

/// Writes records and steps inside transactions of the application's. [`Store::transactions`]
/// offers it, if the records are in a database of that kind.
///
/// Errors and cancel safety are those of [`Store`].
#[async_trait]
pub trait TransactionStore: StepStore {
    /// As [`swap`](Store::swap), inside the transaction that is open on `connection`: the write
    /// stands when that is committed, and never if it is rolled back. If another transaction is
    /// about to put something there, it waits for the end of that one, and sees it. It changes
    /// nothing outside the transaction, remembers nothing that the transaction could take back, and
    /// is never sent again. A refusal may show what stood when the transaction began, except when
    /// the write was to replace `seen` and something newer is there.
    async fn swap_in(
        &self,
        connection: &mut JoinedConnection<'_>,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError>;

    /// Returns the text of a statement for the connection of [`swap_in`](Self::swap_in), which
    /// selects the version of a record as its one column. `None`, the default, if the store has
    /// none: a commit whose answer is lost is then unknown.
    fn version_query(&self, id: &RecordId) -> Option<String> {
        let _ = id;
        None
    }

    /// Returns the id of the store, which tells it from every other one; `None`, the default, if it
    /// has none. An audit is that of one store.
    async fn store_id(&self) -> Result<Option<String>, StoreError> {
        Ok(None)
    }

    /// Tells whether a transaction keeps every other writer out of the whole database, as one of
    /// SQLite does: a call outside it would wait for it. `false` is the default.
    fn one_writer(&self) -> bool {
        false
    }

    /// As [`write_step`](StepStore::write_step), inside the transaction that is open on
    /// `connection`.
    ///
    /// If nothing was seen, the record is only looked at, and its holder can prolong its lease
    /// while the transaction is open. If something was, no other call can write the record until
    /// the transaction ends: this is for its last statement.
    async fn write_step_in(
        &self,
        connection: &mut JoinedConnection<'_>,
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> Result<StepWrite, StoreError>;
}

/// A connection with an open transaction of the application's, which a call joins. It is of a
/// driver's type, which [`downcast`](Self::downcast) finds again.
pub struct JoinedConnection<'a>(&'a mut (dyn Any + Send));

impl<'a> JoinedConnection<'a> {
    /// Wraps a connection of a driver, for example `sqlx::PgConnection`.
    pub fn new<C: Any + Send>(connection: &'a mut C) -> Self {
        Self(connection)
    }

    /// Returns the connection, if it is of this type.
    pub fn downcast<C: Any>(&mut self) -> Option<&mut C> {
        self.0.downcast_mut()
    }

    /// Tells whether it is of this type.
    #[must_use]
    pub fn is<C: Any>(&self) -> bool {
        self.0.is::<C>()
    }

    /// Where the connection is in memory: it is the same one as long as it is borrowed.
    #[cfg(feature = "_sql")]
    pub(crate) fn address(&self) -> usize {
        std::ptr::from_ref(&*self.0).addr()
    }
}

opaque!(JoinedConnection<'a>);

impl dyn Store + '_ {
    /// The steps of this store, which a call needs.
    pub(crate) fn step_store(&self) -> Result<&dyn StepStore, StoreError> {
        let lacks = || {
            StoreError::new(StoreErrorKind::Configuration, "writing a step").with_source(
                "this store keeps no steps: those of this crate do, and one of your own by `StepStore`",
            )
        };
        self.steps().ok_or_else(lacks)
    }

    /// The part that this store takes in transactions, which a call needs.
    #[cfg(feature = "_sql")]
    pub(crate) fn transaction_store(&self) -> Result<&dyn TransactionStore, StoreError> {
        let lacks = || {
            StoreError::new(StoreErrorKind::Configuration, "writing a record").with_source(
                "this store takes no part in transactions: those of Postgres, MariaDB, MySQL and SQLite do",
            )
        };
        self.transactions().ok_or_else(lacks)
    }
}
