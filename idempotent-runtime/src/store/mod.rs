//! The contract of a store: it keeps versioned cells and has a clock. It is mechanism, never
//! policy.
//!
//! It is fed with drafts, and puts one where the version that was seen still stands. It answers
//! with the version that stands now, or with what stood in the way. Each answer carries the time by
//! the store's clock, the only one that decides.
//!
//! A write is applied whole or not at all. It is never applied over a version that its caller has
//! not seen, also if it is sent twice. A store forgets no write that it has acknowledged, unless it
//! [says so](Store::accepts).

#[cfg(all(
    test,
    feature = "testing",
    any(
        feature = "mysql",
        feature = "postgres",
        feature = "redis",
        feature = "sqlite"
    )
))]
mod cutter;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
mod handshake;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
mod idle;
pub mod memory;
mod moment;
#[cfg(feature = "mysql")]
#[cfg_attr(docsrs, doc(cfg(feature = "mysql")))]
pub mod mysql;
#[cfg(any(feature = "postgres", feature = "redis"))]
pub(crate) mod notifications;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) mod pool;
#[cfg(feature = "postgres")]
#[cfg_attr(docsrs, doc(cfg(feature = "postgres")))]
pub mod postgres;
#[cfg(feature = "redis")]
#[cfg_attr(docsrs, doc(cfg(feature = "redis")))]
pub mod redis;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub(crate) mod spawned;
#[cfg(any(
    feature = "mysql",
    feature = "postgres",
    feature = "redis",
    feature = "sqlite"
))]
pub(crate) mod sql;
#[cfg(feature = "sqlite")]
#[cfg_attr(docsrs, doc(cfg(feature = "sqlite")))]
pub mod sqlite;
pub mod tiered;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) mod together;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod transaction;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
mod version_cache;
mod waiters;
#[cfg(feature = "testing")]
#[cfg_attr(docsrs, doc(cfg(feature = "testing")))]
#[doc = include_str!("writing.md")]
pub mod writing {}

use std::{any::Any, fmt::Debug, sync::Arc, time::Duration};

use async_trait::async_trait;

#[cfg(feature = "mysql")]
#[cfg_attr(docsrs, doc(cfg(feature = "mysql")))]
pub use self::mysql::MySqlStore;
#[cfg(feature = "mysql")]
pub(crate) use self::mysql::{connection::SESSION as MYSQL_SESSION, failure::of as mysql_failure};
#[cfg(feature = "postgres")]
#[cfg_attr(docsrs, doc(cfg(feature = "postgres")))]
pub use self::postgres::PostgresStore;
#[cfg(feature = "postgres")]
pub(crate) use self::postgres::failure::of as postgres_failure;
#[cfg(feature = "redis")]
#[cfg_attr(docsrs, doc(cfg(feature = "redis")))]
pub use self::redis::{RedisOutcomes, RedisStore};
#[cfg(feature = "sqlite")]
#[cfg_attr(docsrs, doc(cfg(feature = "sqlite")))]
pub use self::sqlite::SqliteStore;
#[cfg(feature = "sqlite")]
pub(crate) use self::sqlite::failure::of as sqlite_failure;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
#[cfg_attr(
    docsrs,
    doc(cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite")))
)]
pub use self::transaction::SqlConnection;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub(crate) use self::transaction::{
    NOT_OPEN, Savepoint, check_open, is_aborted, says_aborted, sealed,
};
pub use self::{
    memory::MemoryStore,
    tiered::{OutcomeCache, OutcomeTier, TieredStore},
};
pub(crate) use crate::record::store_error::{no_steps, no_transactions};
pub use crate::record::{
    answers::{Snapshot, Stamp, StepWrite, Swap},
    store_error::{StoreError, StoreErrorKind},
};
use crate::{
    identity::RecordId,
    policy::OnCrash,
    record::{Draft, ListedStep, Record, Step, StepName, StepNames, Version},
};

/// A place where records stand: a versioned cell for each id, and one clock for all of them.
///
/// Every decision is taken outside, by the library's state machine; a store
/// only looks, and puts a draft where the version that was seen still stands. Its clock is the
/// only one that counts. The conformance suite in `testing` tells whether an implementation holds,
/// and `store::writing` shows how to write one.
///
/// # Errors
///
/// Each method fails with a [`StoreError`], whose [kind](StoreErrorKind) is a part of the contract.
/// A write that failed as [`Unavailable`](StoreErrorKind::Unavailable),
/// [`Busy`](StoreErrorKind::Busy) or [`Other`](StoreErrorKind::Other) may have been applied, or be
/// applied yet: its caller gives up a claim that may stand so. A failed write has another kind only
/// if nothing was written, and nothing will be: the caller's write is then forgotten.
///
/// # Cancel safety
///
/// A future of these methods may be dropped at any await. Its work is then either applied whole or
/// not at all, and possibly only after the drop.
#[async_trait]
pub trait Store: Debug + Send + Sync + 'static {
    /// Looks at what stands under `id`, expired or not, with the time by the store's own clock.
    async fn load(&self, id: &RecordId) -> Result<Snapshot, StoreError>;

    /// Looks at what stands under `id` if that takes no waiting, as in the process's own memory: a
    /// duplicate that finds its outcome there claims nothing. `None`, the default, says that a look
    /// has to wait.
    fn peek(&self, id: &RecordId) -> Option<Snapshot> {
        let _ = id;
        None
    }

    /// Puts `next` where version `seen` stands (`None`: where nothing stands), in one atomic step.
    /// If nothing stands, `next` brings its subject.
    async fn swap(
        &self,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError>;

    /// Resolves when the record is no longer at version `seen`, or after `at_most`. It may resolve
    /// early; the caller looks again. Holds no connection while it waits.
    ///
    /// By default it looks again and again, every 5 ms at first and every 500 ms at last, with
    /// jitter.
    async fn wait(
        &self,
        id: &RecordId,
        seen: Version,
        at_most: Duration,
    ) -> Result<(), StoreError> {
        waiters::poll_until_moved(self, id, seen, at_most).await
    }

    /// Deletes at most `limit` records that have been expired [for `keep`](Record::is_forgettable),
    /// and tells how many it deleted. A purge that is done again because its answer was lost may
    /// delete as many once more, and tells the second number. A store that forgets by itself does
    /// so no earlier than the [draft](Draft::keep) says.
    async fn purge(&self, limit: u32, keep: Duration) -> Result<u64, StoreError>;

    /// Lists at most `limit` records in the order of their ids, those after `after`, for operators.
    async fn scan(
        &self,
        after: Option<RecordId>,
        limit: u32,
    ) -> Result<Vec<(RecordId, Arc<Record>)>, StoreError>;

    /// Tells whether calls with this crash policy may be kept here. The answer is an error of the
    /// kind [`Configuration`](StoreErrorKind::Configuration) if the store may forget what it has
    /// acknowledged, and a call that must not run twice would then run twice.
    ///
    /// # Errors
    ///
    /// As said; by default none.
    fn accepts(&self, on_crash: OnCrash) -> Result<(), StoreError> {
        let _ = on_crash;
        Ok(())
    }

    /// Makes the store that heartbeats use, with connections of its own; `None` where sharing is
    /// safe. Called on the heartbeat thread.
    async fn for_heartbeats(&self) -> Result<Option<Arc<dyn Store>>, StoreError> {
        Ok(None)
    }

    /// As [`swap`](Self::swap), inside the transaction that is open on `connection`, which is the
    /// driver's own: the write stands when that is committed, and never if it is rolled back. If
    /// another transaction is about to put something there, it waits for the end of that one, and
    /// sees it. It changes nothing outside the transaction, remembers nothing that the transaction
    /// could take back, and is never sent again. A refusal may show what stood when the transaction
    /// began, except when the write was to replace `seen` and something newer is there.
    ///
    /// Only a store that keeps its records in a database of that kind can do it. Others, by
    /// default, say that they cannot.
    async fn swap_in(
        &self,
        connection: &mut (dyn Any + Send),
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        let _ = (connection, id, seen, next);
        Err(no_transactions())
    }

    /// Returns the text of a statement for the connection of [`swap_in`](Self::swap_in), which
    /// selects the version of a record as its one column. `None`, the default, if the store has
    /// none: a commit whose answer is lost is then unknown.
    #[doc(hidden)]
    fn version_query(&self, id: &RecordId) -> Option<String> {
        let _ = id;
        None
    }

    /// Tells whether the store keeps steps. If it does not, a call whose body has steps is refused
    /// before the first of them.
    fn keeps_steps(&self) -> bool {
        false
    }

    /// Looks at the steps whose names are in this range, in the order of their names. They are
    /// those of the life that the record of this call is in.
    ///
    /// It is not fenced: an attempt that lost the record may see steps of a later life. Its answer
    /// counts only if the lease of the attempt still stands when the answer is there.
    async fn load_steps(
        &self,
        call: &RecordId,
        names: &StepNames,
    ) -> Result<Vec<Arc<Step>>, StoreError> {
        let _ = (call, names);
        Err(no_steps())
    }

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
    ) -> Result<StepWrite, StoreError> {
        let _ = (call, seen, next);
        Err(no_steps())
    }

    /// As [`write_step`](Self::write_step), inside the transaction that is open on `connection`.
    ///
    /// If nothing was seen, the record is only looked at, and its holder can prolong its lease
    /// while the transaction is open. If something was, no other call can write the record until
    /// the transaction ends: this is for its last statement.
    async fn write_step_in(
        &self,
        connection: &mut (dyn Any + Send),
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> Result<StepWrite, StoreError> {
        let _ = (connection, call, seen, next);
        Err(no_transactions())
    }
}

#[async_trait]
impl<S: Store + ?Sized> Store for Arc<S> {
    async fn load(&self, id: &RecordId) -> Result<Snapshot, StoreError> {
        (**self).load(id).await
    }
    fn peek(&self, id: &RecordId) -> Option<Snapshot> {
        (**self).peek(id)
    }
    async fn swap(
        &self,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        (**self).swap(id, seen, next).await
    }
    async fn wait(
        &self,
        id: &RecordId,
        seen: Version,
        at_most: Duration,
    ) -> Result<(), StoreError> {
        (**self).wait(id, seen, at_most).await
    }
    async fn purge(&self, limit: u32, keep: Duration) -> Result<u64, StoreError> {
        (**self).purge(limit, keep).await
    }
    async fn scan(
        &self,
        after: Option<RecordId>,
        limit: u32,
    ) -> Result<Vec<(RecordId, Arc<Record>)>, StoreError> {
        (**self).scan(after, limit).await
    }
    fn accepts(&self, on_crash: OnCrash) -> Result<(), StoreError> {
        (**self).accepts(on_crash)
    }
    async fn for_heartbeats(&self) -> Result<Option<Arc<dyn Store>>, StoreError> {
        (**self).for_heartbeats().await
    }
    async fn swap_in(
        &self,
        connection: &mut (dyn Any + Send),
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        (**self).swap_in(connection, id, seen, next).await
    }
    fn version_query(&self, id: &RecordId) -> Option<String> {
        (**self).version_query(id)
    }
    fn keeps_steps(&self) -> bool {
        (**self).keeps_steps()
    }
    async fn load_steps(
        &self,
        call: &RecordId,
        names: &StepNames,
    ) -> Result<Vec<Arc<Step>>, StoreError> {
        (**self).load_steps(call, names).await
    }
    async fn list_steps(&self, call: &RecordId) -> Result<Vec<ListedStep>, StoreError> {
        (**self).list_steps(call).await
    }
    async fn write_step(
        &self,
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> Result<StepWrite, StoreError> {
        (**self).write_step(call, seen, next).await
    }
    async fn write_step_in(
        &self,
        connection: &mut (dyn Any + Send),
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> Result<StepWrite, StoreError> {
        (**self).write_step_in(connection, call, seen, next).await
    }
}
