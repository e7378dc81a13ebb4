//! The store for people who run MariaDB or MySQL.

mod beside_triggers;
mod builder;
mod calls;
pub(super) mod connection;
pub(super) mod failure;
mod many;
mod migrate;
#[cfg(all(test, feature = "testing"))]
mod mutants;
mod rows;
mod statements;
mod steps;
mod together;

use std::sync::Arc;

use sqlx::MySqlPool;

pub use self::builder::MySqlBuilder;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub use self::builder::as_mysql;
pub(crate) use self::connection::has_transaction;
use self::{connection::MySql, statements::Statements};
use crate::store::{
    Store, StoreError,
    pool::Limits,
    sql::{server, store::sql_store},
    together::{CONNECTIONS, Together},
};

type Inner = server::Inner<Statements>;

/// Keeps records in a table of a MariaDB or MySQL database: MariaDB 10.6 or newer, or MySQL 8 or
/// newer. Every run of the tests has MariaDB. They last had MySQL in version 9.7.4, and with
/// earlier statements in 8.0.46. Clones are the same store.
///
/// The clock is the server's. Every write is one statement that commits by itself, at READ
/// COMMITTED, on the primary. Heartbeats that are due together are sent together, up to 256 records
/// in one message. If more than four callers of a process look at the same time, or on MariaDB
/// claim or complete, up to 64 of them share a message. A replay is one statement, which takes no
/// lock and writes nothing. A first call is three: one looks, one claims, one records. The store
/// remembers records that it has lately written or seen, without their outcomes, in up to 16 MiB:
/// about 20,000. Their replays cost the driver about half, and their completions the server four
/// fifths. If such a record went before its time, the first call is one statement more. It is also
/// one more on MySQL if a record is not remembered, as one whose scope and key have more than 512
/// bytes: MySQL does not show what a statement wrote. Durability is that of the database: an
/// outcome that was recorded survives a crash of the server unless `innodb_flush_log_at_trx_commit`
/// was changed. The record of a version never changes, so a row that is edited by hand needs
/// another `version`. An outcome is written in one packet, so `max_allowed_packet` bounds it: 16
/// MiB on MariaDB and 64 MiB on MySQL unless set.
///
/// These servers notify no client. A call that waits is woken at once by its own process. It finds
/// the writes of other processes by looking, at most half a second later. One call looks for all
/// that wait for the same record in this process; if that one is not polled, it takes at most three
/// seconds.
///
/// The store opens connections of its own: see [`new`](Self::new).
///
/// # Tables
///
/// `idempotent_records` has a row for each record, `idempotent_steps` one for each
/// [step](crate::guide::steps) of a body, and `idempotent_schema` says which builds can use them.
/// The user needs SELECT, INSERT, UPDATE and DELETE on the first two, and SELECT on the third one.
/// A purge deletes steps together with their record. A record that is deleted by hand leaves its
/// steps, which no call sees any more: delete those of the same `record`, too.
///
/// # Failover
///
/// One server at a time may take writes. In a cluster with several, name one of them, because
/// leases count by the clock of the one that writes. A replica that takes over without what the
/// primary acknowledged has lost it. A call whose record is gone so runs again, also under
/// `on_crash = uncertain`, and is not told so. A call whose body was running gets
/// [`Error::LeaseLost`](crate::Error::LeaseLost) in place of its value. To prevent that, use
/// semi-synchronous replication that never gives up waiting, and promote only a replica that it
/// waits for.
///
/// # Encryption
///
/// With one of the `tls-` features, the URL switches it on, for heartbeats too:
/// `mysql://app@db.example/shop?ssl-mode=VERIFY_IDENTITY`, with `&ssl-ca=/path/authority.pem` for
/// an authority of your own. If the URL says nothing, sqlx encrypts only if the server offers it,
/// and does not verify which server answers. A certificate that is not trusted, and a server
/// without encryption, are of the kind
/// [`Configuration`](crate::store::StoreErrorKind::Configuration). MySQL wants its passwords
/// encrypted: without a `tls-` feature, take sqlx's own `mysql-rsa`.
///
/// # Examples
///
/// ```no_run
/// # use idempotent_runtime::{Idempotency, store::MySqlStore};
/// # async fn set_up() -> Result<(), Box<dyn std::error::Error>> {
/// let store = MySqlStore::connect("mysql://app@localhost/shop").await?;
/// Idempotency::new(store).install()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct MySqlStore {
    inner: Arc<Inner>,
}

impl MySqlStore {
    /// Connects to the server that a URL names, and brings the store's tables up to date.
    ///
    /// # Errors
    ///
    /// As [`MySqlBuilder::connect`].
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::builder().connect(url).await
    }

    /// Makes a store beside the application's own pool. Call [`migrate`](Self::migrate) once.
    ///
    /// The store opens connections of its own, at most ten unless set, with the options of the
    /// pool; it takes none out of the pool and never closes it. A pool pings connections that come
    /// and go, which is the larger part of a replay's time. A connection in it may wait in a
    /// transaction that a cancelled `begin()` left open, where a write is answered and then lost
    /// (sqlx 0.9.0, issue 4385). Bodies that hold all of its connections would keep a heartbeat
    /// waiting. The options must name a database. The pool's `after_connect` does not run for these
    /// connections: they set isolation, SQL mode, how transactions end, and character set
    /// themselves.
    #[must_use]
    pub fn new(pool: MySqlPool) -> Self {
        let made = Self::builder().pool(pool);
        made.expect("the options of a new builder can be used")
    }

    /// Sets up a store with options.
    pub fn builder() -> MySqlBuilder {
        MySqlBuilder::new()
    }

    fn over(mut server: MySql, limits: Limits) -> Self {
        let prefix = server.prefix.clone();
        let statements = Arc::new(Statements::new(&prefix));
        server.triggers = statements.triggers.clone();
        Self {
            inner: Arc::new(Inner::new(server, limits, statements, prefix)),
        }
    }

    /// Connections of its own, on the thread that beats: blocked user code keeps the others from
    /// being read.
    async fn heartbeats(&self) -> Result<Option<Arc<dyn Store>>, StoreError> {
        let inner = Arc::new(self.inner.another(CONNECTIONS));
        Ok(Some(Arc::new(Together::new(Self { inner }))))
    }
}

sql_store! {
    MySqlStore, MySql, name: "mysql", wait: wait_alone, one_writer: false,
    together: (pass_look, pass_swap)
}

#[cfg(test)]
mod tests {
    mod golden;
}
