//! The store for people who run Postgres.

mod builder;
mod bytea;
mod calls;
mod connection;
pub(super) mod failure;
pub(crate) mod listen;
mod lists;
mod many;
mod migrate;
#[cfg(all(test, feature = "testing"))]
mod mutants;
mod packed;
mod rows;
mod statements;
mod steps;
mod together;
mod waiting;

use std::sync::Arc;

use sqlx::{PgPool, postgres::PgConnectOptions};

pub use self::builder::PostgresBuilder;
use self::{connection::Postgres, rows::Protocol, statements::Statements};
use crate::store::{
    Store, StoreError,
    pool::{Limits, ServerPlace},
    sql::{TablePrefix, server, store::sql_store},
    together::{CONNECTIONS, Together},
};

type Inner = server::Inner<Statements>;

/// Keeps records in a table of a Postgres database, version 13 or newer. Clones are the same store.
/// In a database whose encoding is not `UTF8`, a call whose operation has a name with other
/// characters is refused; keys and scopes may have any.
///
/// The clock is the server's. Every write is one statement that commits by itself, at READ
/// COMMITTED, on the primary. Heartbeats that are due together are one statement, of up to 256
/// records. If more than four callers claim, complete or look at the same time, up to 64 of them
/// share a statement. A first call costs two round trips. A replay costs one, takes no lock and
/// writes nothing. The store remembers records that it has lately written or seen, without their
/// outcomes, in up to 16 MiB: about 20,000. Their replays cost the server about half, and their
/// completions two thirds. The first call costs three round trips if such a record went before its
/// time. Durability is that of the database: an outcome that was recorded survives a crash of the
/// server unless `synchronous_commit` was turned off. The store opens connections of its own: see
/// [`new`](Self::new).
///
/// # Failover
///
/// A standby that takes over without what the primary acknowledged has lost it. A call whose record
/// is gone so runs again, also under `on_crash = uncertain`, and is not told so. A call whose body
/// was running gets [`Error::LeaseLost`](crate::Error::LeaseLost) in place of its value. To keep
/// that from happening, set `synchronous_standby_names`, and promote only a standby that it waits
/// for. While a primary may only be read, outcomes are kept in the processes that have them. They
/// are tried again for as long as [`max_run_time`](crate::handle::Builder::max_run_time) says;
/// after a lease, another call may take over first.
///
/// # Tables
///
/// `idempotent_records` has a row for each record, `idempotent_steps` one for each
/// [step](crate::guide::steps) of a body, and `idempotent_schema` says which builds can use them. A
/// purge deletes steps together with their record. A record that is deleted by hand leaves its
/// steps, which no call sees any more: delete those of the same `record`, too.
///
/// # Rights
///
/// The user needs SELECT, INSERT, UPDATE and DELETE on the tables of the records and of the steps,
/// and SELECT on the third one. It also needs EXECUTE on `pg_notify`, which every user has unless
/// it was revoked. A purge needs DELETE on both, also where no call has steps. A user that may not
/// update, or not tell, is given what is recorded, and runs nothing: a call that begins is refused
/// with [`Denied`](crate::store::StoreErrorKind::Denied). If the server's queue of notifications is
/// full, no call is told, and calls that wait elsewhere look. [`migrate`](Self::migrate) needs
/// CREATE on the schema if there is something to do.
///
/// # Encryption
///
/// With one of the `tls-` features, the URL switches it on, for heartbeats and notifications too:
/// `postgres://app@db.example/shop?sslmode=verify-full`, with `&sslrootcert=/path/authority.pem`
/// for an authority of your own. If the URL says nothing, sqlx encrypts only if the server offers
/// it, and does not verify the server. A certificate that is not trusted, and a server without
/// encryption, are of the kind [`Configuration`](crate::store::StoreErrorKind::Configuration).
///
/// # Examples
///
/// ```no_run
/// # use idempotent_runtime::{Idempotency, store::PostgresStore};
/// # async fn set_up() -> Result<(), Box<dyn std::error::Error>> {
/// let store = PostgresStore::connect("postgres://app@localhost/shop").await?;
/// Idempotency::new(store).install()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct PostgresStore {
    inner: Arc<Inner>,
}

impl PostgresStore {
    /// Connects to the server that a URL names, and brings the store's tables up to date.
    ///
    /// # Errors
    ///
    /// As [`PostgresBuilder::connect`].
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::builder().connect(url).await
    }

    /// Makes a store beside the application's own pool. Call [`migrate`](Self::migrate) once.
    ///
    /// The store opens connections of its own, at most ten unless set, with the options of the
    /// pool; it takes none out of the pool and never closes it. A pool pings connections that come
    /// and go, which is the larger part of a replay's time. A connection in it may wait in a
    /// transaction that a cancelled `begin()` left open, where a write is answered and then lost
    /// (sqlx 0.9.0, issue 4385). And bodies that hold all of its connections would keep a heartbeat
    /// waiting. The pool's `after_connect` is not run for these connections: put a `search_path` or
    /// a role into the options.
    #[must_use]
    pub fn new(pool: PgPool) -> Self {
        let made = Self::builder().pool(pool);
        made.expect("the options of a new builder can be used")
    }

    /// Sets up a store with options.
    pub fn builder() -> PostgresBuilder {
        PostgresBuilder::new()
    }

    fn over(
        place: ServerPlace<PgConnectOptions>,
        limits: Limits,
        protocol: Protocol,
        prefix: TablePrefix,
    ) -> Self {
        let server = Postgres {
            place,
            protocol,
            lock_wait: limits.answer / 2,
            prefix: prefix.clone(),
        };
        let statements = Arc::new(Statements::new(&prefix, protocol));
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
    PostgresStore, Postgres, name: "postgres", wait: wait_for, one_writer: false,
    together: (pass_look, pass_swap)
}

#[cfg(test)]
mod tests {
    mod golden;
}
