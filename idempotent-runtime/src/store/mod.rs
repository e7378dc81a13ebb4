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

#[cfg(all(test, feature = "testing", any(feature = "_sql", feature = "redis")))]
mod cutter;
mod forward;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
mod handshake;
mod health;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
mod idle;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) mod lane;
mod list;
pub mod memory;
mod moment;
#[cfg(feature = "mysql")]
#[cfg_attr(docsrs, doc(cfg(feature = "mysql")))]
pub mod mysql;
#[cfg(any(feature = "postgres", feature = "redis"))]
pub(crate) mod notifications;
pub(crate) mod observed;
mod offers;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) mod pool;
#[cfg(feature = "postgres")]
#[cfg_attr(docsrs, doc(cfg(feature = "postgres")))]
pub mod postgres;
#[cfg(feature = "_sql")]
pub(crate) mod queue;
#[cfg(feature = "redis")]
#[cfg_attr(docsrs, doc(cfg(feature = "redis")))]
pub mod redis;
#[cfg(feature = "_sql")]
pub(crate) mod spawned;
#[cfg(any(feature = "_sql", feature = "redis"))]
pub(crate) mod sql;
#[cfg(feature = "sqlite")]
#[cfg_attr(docsrs, doc(cfg(feature = "sqlite")))]
pub mod sqlite;
pub(crate) mod through;
pub mod tiered;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) mod together;
#[cfg(feature = "_sql")]
mod transaction;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
mod version_cache;
mod waiters;
#[cfg(feature = "testing")]
#[cfg_attr(docsrs, doc(cfg(feature = "testing")))]
#[doc = include_str!("writing.md")]
pub mod writing {}

use std::{fmt::Debug, sync::Arc, time::Duration};

use async_trait::async_trait;

#[cfg(feature = "mysql")]
#[cfg_attr(docsrs, doc(cfg(feature = "mysql")))]
pub use self::mysql::MySqlStore;
#[cfg(feature = "mysql")]
pub(crate) use self::mysql::connection::SESSION as MYSQL_SESSION;
#[cfg(feature = "postgres")]
#[cfg_attr(docsrs, doc(cfg(feature = "postgres")))]
pub use self::postgres::PostgresStore;
#[cfg(feature = "redis")]
#[cfg_attr(docsrs, doc(cfg(feature = "redis")))]
pub use self::redis::{RedisOutcomes, RedisStore};
#[cfg(feature = "sqlite")]
#[cfg_attr(docsrs, doc(cfg(feature = "sqlite")))]
pub use self::sqlite::SqliteStore;
#[cfg(feature = "_sql")]
#[cfg_attr(
    docsrs,
    doc(cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite")))
)]
pub use self::transaction::SqlConnection;
#[cfg(feature = "_sql")]
pub(crate) use self::transaction::{
    NOT_OPEN, Savepoint, check_open, is_aborted, says_aborted, sealed,
};
use self::{forward::forward, observed::StoreObserver};
pub use self::{
    health::{ConnectionUse, ListenerHealth, StoreHealth},
    list::{Handful, ListOrder, ListPosition, ListedPage, ListedRecord, RecordList},
    memory::MemoryStore,
    observed::{StoreAction, StoreEvent},
    offers::{JoinedConnection, StepStore, TransactionStore},
    tiered::{OutcomeCache, OutcomeTier, TieredStore},
};
pub use crate::record::{
    answers::{Snapshot, Stamp, StepWrite, Swap},
    store_error::{StoreError, StoreErrorKind},
};
use crate::{
    identity::RecordId,
    policy::OnCrash,
    record::{Draft, Record, Version},
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

    /// Returns what keeps the steps of this store; `None`, the default, if it keeps none. A call
    /// whose body has steps is then refused before the first of them. The answer is the same each
    /// time.
    fn steps(&self) -> Option<&dyn StepStore> {
        None
    }

    /// Returns what lists records along an index, for operators; `None`, the default, if there is
    /// none. They are then found by [`scan`](Self::scan), which looks at every record. The answer
    /// is the same each time.
    fn lists(&self) -> Option<&dyn RecordList> {
        None
    }

    /// Returns how [store events](StoreEvent) name it: a short word for the kind of the store, such
    /// as `postgres`. The default is `other`.
    fn name(&self) -> &'static str {
        "other"
    }

    /// Wraps what it is made of, so that this observer is told of each call; `None`, the default,
    /// if it is a store of its own.
    #[doc(hidden)]
    fn observed(&self, observer: &StoreObserver) -> Option<Arc<dyn Store>> {
        let _ = observer;
        None
    }

    /// Returns what it knows of its connections, without waiting for anything. The default knows
    /// nothing.
    fn health(&self) -> StoreHealth {
        StoreHealth::default()
    }

    /// Returns what writes inside transactions of the application's; `None`, the default, if the
    /// store takes no part in them. A call that joins one is then refused before its body. The
    /// answer is the same each time.
    fn transactions(&self) -> Option<&dyn TransactionStore> {
        None
    }
}

forward! {
    impl[S: Store + ?Sized] Arc<S>, |it| (**it), {
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
        async fn for_heartbeats(&self) -> Result<Option<Arc<dyn Store>>, StoreError> {
            (**self).for_heartbeats().await
        }
            fn observed(&self, observer: &StoreObserver) -> Option<Arc<dyn Store>> {
            (**self).observed(observer)
        }
    }
}
