//! Messages that are committed with the rows of a transaction, to be sent afterwards.
//!
//! `send` writes a message beside the rows, with the next number of its key. A relay claims keys,
//! one token each, reads their oldest messages and hands them to the publisher. A confirmed message
//! is deleted; one that is rejected too often parks its key, or is set aside. A payload has at most
//! `max_payload` bytes.
//!
//! A message is never published before its transaction has committed, and a later message of a key
//! never before an earlier one arrived. A relay that lost its claim deletes nothing.

mod dialect;
mod message;
mod operators;
mod parked;
mod purge;
mod rejected;
mod relay;
mod send;
mod tables;
mod topics;
mod walk;

use std::{sync::Arc, time::Duration};

use sqlx::Pool;

use self::tables::Tables;
pub use self::{
    dialect::OutboxDatabase,
    message::Message,
    operators::KeyAct,
    parked::{Parked, ParkedKeys, ResumeKeys},
    rejected::{Rejected, RejectedAct, RejectedMessages},
    relay::{Envelope, OnPoison, PublishError, Publisher, Relay, RelayBuilder},
    topics::TopicBacklog,
};
pub use crate::error::MessageError;
use crate::{
    duration::IntoDuration,
    engine::parts::Traces,
    error::Error,
    store::{
        StoreError,
        sql::{TablePrefix, chosen},
    },
    transaction::{Isolation, OwnedConnection, silent},
};

/// How many bytes the payload and the headers of a message may have together, unless more is said.
const MAX_PAYLOAD: usize = 256 * 1024;

/// How long the statements of a look, or of an operator, may take together.
const LIMIT: Duration = Duration::from_secs(30);

/// The same for a migration, which may have an index made.
const MIGRATION: Duration = Duration::from_secs(10 * 60);

/// An outbox: tables beside those of the application, in the same database. Clones are the same
/// outbox.
///
/// A message is written in the transaction of the rows that it tells of. So it is there when they
/// are committed, and is not when they are rolled back.
#[derive(Debug)]
pub struct Outbox<DB: OutboxDatabase> {
    pool: Pool<DB>,
    tables: Arc<Tables>,
    max_payload: usize,
    audit_retention: Option<Duration>,
    traces: Option<Traces>,
    /// Whether a proxy pools transactions, so that nothing of a session lasts.
    pools_transactions: bool,
    /// How far the clock of the statements is ahead of the database's, in microseconds: for tests.
    clock_ahead: i64,
}

impl<DB: OutboxDatabase> Clone for Outbox<DB> {
    fn clone(&self) -> Self {
        Self {
            pool: self.pool.clone(),
            tables: Arc::clone(&self.tables),
            max_payload: self.max_payload,
            audit_retention: self.audit_retention,
            traces: self.traces.clone(),
            pools_transactions: self.pools_transactions,
            clock_ahead: self.clock_ahead,
        }
    }
}

macro_rules! constructors {
    ($($feature:literal $name:ident $database:ident $says:literal,)*) => { $(
        #[cfg(feature = $feature)]
        #[cfg_attr(docsrs, doc(cfg(feature = $feature)))]
        impl Outbox<sqlx::$database> {
            #[doc = $says]
            #[must_use]
            pub fn $name(pool: Pool<sqlx::$database>) -> Self {
                Self::new(&pool)
            }
        }
    )* };
}

constructors! {
    "mysql" mysql MySql "Takes a pool on a database of MariaDB or MySQL.",
    "postgres" postgres Postgres "Takes a pool on a database of Postgres.",
    "sqlite" sqlite Sqlite "Takes a pool on a file of SQLite.",
}

#[cfg(feature = "postgres")]
#[cfg_attr(docsrs, doc(cfg(feature = "postgres")))]
impl Outbox<sqlx::Postgres> {
    /// Has relays poll and not listen: the pool leads to a proxy that pools transactions, such as
    /// PgBouncer. Senders do not depend on it.
    #[must_use]
    pub fn transaction_pooling(self) -> Self {
        Self {
            pools_transactions: true,
            ..self
        }
    }
}

impl<DB: OutboxDatabase> Outbox<DB> {
    /// Takes a pool on the database in which the application writes its rows.
    #[must_use]
    pub fn new(pool: &Pool<DB>) -> Self {
        Self {
            pool: pool.clone(),
            tables: Arc::new(Tables::new(&TablePrefix::default())),
            max_payload: MAX_PAYLOAD,
            audit_retention: None,
            traces: None,
            pools_transactions: false,
            clock_ahead: 0,
        }
    }

    /// Sets the beginning of the names of the tables, which names the outbox: `idempotent_` unless
    /// it is set.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] where the prefix cannot begin a table's name.
    pub fn prefix(self, prefix: &str) -> Result<Self, Error> {
        let prefix = chosen(prefix, "naming an outbox")?;
        let tables = Arc::new(Tables::new(&prefix));
        Ok(Self { tables, ..self })
    }

    /// Sets how many bytes the payload and the headers of a message may have together: 256 KiB
    /// unless it is set. A longer one is refused when it is sent.
    #[must_use]
    pub fn max_payload(self, max_payload: usize) -> Self {
        Self {
            max_payload,
            ..self
        }
    }

    /// Keeps messages for so long after they were confirmed, in the table `outbox_history`:
    /// `"30d"`, or a `Duration`. Unless it is set, a message is deleted once it is confirmed.
    ///
    /// A setting of the relay's process: it is the relay that moves the messages there.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPolicy`] where the duration cannot be read.
    pub fn audit_retention(self, retention: impl IntoDuration) -> Result<Self, Error> {
        let audit_retention = Some(retention.into_duration()?);
        Ok(Self {
            audit_retention,
            ..self
        })
    }

    /// Sets where the W3C `traceparent` of the sender comes from. It goes with each message, to the
    /// [envelope](Envelope::traceparent) that a publisher gets.
    #[must_use]
    pub fn trace_parent(
        self,
        current: impl Fn() -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.traced(Traces::named(current))
    }

    pub(crate) fn traced(self, traces: Traces) -> Self {
        let traces = Some(traces);
        Self { traces, ..self }
    }

    #[doc(hidden)]
    #[must_use]
    pub fn clock_ahead(self, clock_ahead: i64) -> Self {
        Self {
            clock_ahead,
            ..self
        }
    }

    #[doc(hidden)]
    #[must_use]
    pub fn poll(&self) -> String {
        walk::look::<DB>(&self.tables, b"")
    }

    /// Has a text go by a clock that is ahead of the database's.
    fn by_its_clock(&self, text: String) -> String {
        dialect::by_clock::<DB>(text, self.clock_ahead)
    }

    /// Makes the tables, or brings them to what this build needs. It is safe at every start, and by
    /// several processes at once.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] where the database fails, or a newer release has made the tables.
    pub async fn migrate(&self) -> Result<(), Error> {
        const DOING: &str = "migrating an outbox";
        let how = (Some(Isolation::ReadCommitted), MIGRATION);
        self.run(DOING, how, async |connection| {
            let text = DB::lock(&self.tables) + &self.ddl();
            DB::query(connection, text, DOING).await?;
            Ok(self.tables.check::<DB>(connection, DOING).await?)
        })
        .await
    }

    /// Tells whether this build can use the tables.
    ///
    /// # Errors
    ///
    /// [`Error::Store`], of the kind [`Schema`](crate::StoreErrorKind::Schema) where it cannot.
    pub async fn check_schema(&self) -> Result<(), Error> {
        const DOING: &str = "checking an outbox";
        self.run(DOING, (None, LIMIT), async |connection| {
            Ok(self.tables.check::<DB>(connection, DOING).await?)
        })
        .await
    }

    /// The statements that [`migrate`](Self::migrate) runs on an empty database, for people who run
    /// their own migrations.
    #[must_use]
    pub fn ddl(&self) -> String {
        self.tables.ddl::<DB>()
    }

    /// Runs statements of ours in a transaction on a connection that goes back to the pool when
    /// nothing is left of it. It only reads where no isolation is given: without a transaction, a
    /// session that commits nothing by itself would read what it has seen before, and keep it.
    async fn run<T>(
        &self,
        doing: &'static str,
        (isolation, limit): (Option<Isolation>, Duration),
        work: impl AsyncFnOnce(&mut DB::Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut owned = OwnedConnection::of(self.acquire(doing).await?);
        let running = async {
            let mut tx = match isolation {
                None => owned.begin_reading().await?,
                isolation => owned.begin(isolation).await?,
            };
            let done = work(&mut tx).await?;
            let committed = tx.commit().await;
            committed.map_err(|error| DB::store_error(error, doing))?;
            owned.give_back().await;
            Ok(done)
        };
        // Dropped before its end, the connection is closed.
        let done = tokio::time::timeout(limit, running).await;
        done.unwrap_or_else(|_| Err(DB::store_error(silent(), doing).into()))
    }

    async fn acquire(
        &self,
        doing: &'static str,
    ) -> Result<sqlx::pool::PoolConnection<DB>, StoreError> {
        let acquired = self.pool.acquire().await;
        acquired.map_err(|error| DB::store_error(error, doing))
    }
}

#[cfg(test)]
mod tests {
    mod golden;
}
