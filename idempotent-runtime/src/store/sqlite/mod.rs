//! The embedded store: one SQLite file, or memory, and no server.

mod builder;
mod calls;
pub(crate) mod connections;
pub(crate) mod failure;
mod group_commit;
mod inner;
mod migrate;
#[cfg(all(test, feature = "testing"))]
mod mutants;
mod rows;
mod statements;
mod steps;

use std::{path::Path, sync::Arc};

use sqlx::SqlitePool;

pub use self::builder::SqliteBuilder;
pub(crate) use self::connections::{Connections, has_transaction};
use self::{group_commit::Queue, inner::Inner, statements::Statements};
use crate::{
    race::race,
    store::{
        Store, StoreError,
        sql::{TablePrefix, store::sql_store, version::Inside},
    },
};

/// Keeps records in a SQLite file, shared by every process that opens it, or in memory. Clones are
/// the same store.
///
/// The file is in WAL mode with full synchronisation: an outcome that was recorded survives a loss
/// of power. The clock is that of the machine, read by SQLite, in milliseconds.
///
/// Every statement stands alone. Only in a file that the store opened itself, claims that had to
/// wait for each other stand after one commit, and outcomes likewise. That is one message to the
/// thread behind the connection. If one of them fails, the file stays locked until the runtime has
/// come to undo the others: leave no runtime behind that lives on and is not driven.
///
/// Move, replace or delete the file only while no process has it open. A process that has it open
/// goes on in the old one, a process that opens it then begins in another, and neither sees the
/// other's calls.
///
/// The file, and those that SQLite keeps beside it, are made with the permissions that the umask of
/// the process leaves. Keys, scopes and outcomes are readable in it, so set the umask, or the
/// permissions of the folder, if others must not read them;
/// [`Builder::redact_keys`](crate::Builder::redact_keys) leaves keys and scopes out.
///
/// The table `idempotent_records` has a row for each record, `idempotent_steps` one for each
/// [step](crate::guide::steps) of a body, and `idempotent_schema` says which builds can use them. A
/// trigger deletes the steps of a record that is deleted, by a purge or by hand.
///
/// Outcomes may be as large as SQLite's limit on a value, a thousand million bytes unless it was
/// built otherwise; beyond it, a completion fails with
/// [`StoreErrorKind::Full`](crate::store::StoreErrorKind::Full).
///
/// # Examples
///
/// ```
/// # use idempotent_runtime::store::SqliteStore;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("idempotency.db");
/// let store = SqliteStore::open(path).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

impl SqliteStore {
    /// Opens the file at `path`, or makes it, and brings its tables up to date. `":memory:"` names
    /// no file, but a database in memory, which heartbeats share with the calls;
    /// [`in_memory`](Self::in_memory) says so and gives them a connection of their own.
    ///
    /// # Errors
    ///
    /// [`Configuration`] where the folder is missing or the file cannot be opened, [`Denied`] where
    /// it may not be written, [`Corrupt`] where it is no database, [`Schema`] where a newer release
    /// left no room for this one or a table is gone, [`Busy`] where it stays locked, and [`Full`]
    /// where there is no room.
    ///
    /// [`Configuration`]: crate::store::StoreErrorKind::Configuration
    /// [`Denied`]: crate::store::StoreErrorKind::Denied
    /// [`Corrupt`]: crate::store::StoreErrorKind::Corrupt
    /// [`Schema`]: crate::store::StoreErrorKind::Schema
    /// [`Busy`]: crate::store::StoreErrorKind::Busy
    /// [`Full`]: crate::store::StoreErrorKind::Full
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::builder().open(path).await
    }

    /// Makes a database in memory, which lives as long as the store and its clones.
    ///
    /// # Errors
    ///
    /// It fails if SQLite cannot be used at all.
    pub async fn in_memory() -> Result<Self, StoreError> {
        Self::builder().in_memory().await
    }

    /// Takes connections from the application's own pool, which is never closed. Call
    /// [`migrate`](Self::migrate) once.
    ///
    /// Heartbeats have one of their own, with the options of the pool: its `after_connect` is not
    /// run for it. The table may not be found over it, for example if `after_connect` gives the key
    /// of an encrypted file. The pool may also lock the file for itself (`locking_mode =
    /// EXCLUSIVE`). In either case heartbeats take connections from the pool, too: have one more
    /// there than bodies can hold at once.
    ///
    /// A connection that lies in the pool with a transaction open is refused with
    /// [`Configuration`](crate::store::StoreErrorKind::Configuration), and nothing is written.
    /// Leave `read_uncommitted` off if connections share a cache: a call would be answered with
    /// what another transaction may still roll back.
    #[must_use]
    pub fn new(pool: SqlitePool) -> Self {
        Self::over(Connections::Pool(pool), TablePrefix::default(), None)
    }

    /// Sets up a store with options.
    pub fn builder() -> SqliteBuilder {
        SqliteBuilder::new()
    }

    fn over(connections: Connections, prefix: TablePrefix, queue: Option<Queue>) -> Self {
        let statements = Arc::new(Statements::new(&prefix));
        Self {
            inner: Arc::new(Inner {
                connections,
                statements,
                prefix,
                waiters: Arc::default(),
                inside: Inside::default(),
                queue,
            }),
        }
    }

    /// The same over a connection of its own, which has looked at the table: the table may be found
    /// only after the set-up that a pool gives to its connections.
    async fn another(&self) -> Result<Option<Self>, StoreError> {
        const DOING: &str = "opening a connection for heartbeats";
        let inner = &self.inner;
        let Some(connections) = inner.connections.another(DOING).await? else {
            return Ok(None);
        };
        let own = Inner {
            connections,
            statements: Arc::clone(&inner.statements),
            prefix: inner.prefix.clone(),
            waiters: Arc::clone(&inner.waiters),
            inside: Inside::default(),
            queue: None,
        };
        own.wait_for_a_look().await?;
        Ok(Some(Self {
            inner: Arc::new(own),
        }))
    }

    /// A connection of its own: the one that calls share may be in the hands of a task that blocked
    /// code keeps from running. There is none if the application's connection keeps every other one
    /// from the file.
    async fn heartbeats(&self) -> Result<Option<Arc<dyn Store>>, StoreError> {
        let own = race(self.another(), self.inner.connections.keep_others_out()).await;
        let own = own.transpose()?.flatten();
        Ok(own.map(|own| Arc::new(own) as Arc<dyn Store>))
    }
}

sql_store! {
    SqliteStore, Sqlite, name: "sqlite", wait: wait_alone, one_writer: true
}

#[cfg(test)]
mod tests;
