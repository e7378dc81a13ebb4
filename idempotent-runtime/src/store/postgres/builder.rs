//! How a Postgres store is set up.

use std::{str::FromStr, time::Duration};

use sqlx::{PgPool, postgres::PgConnectOptions};

use super::{PostgresStore, failure, rows::Way};
use crate::store::{
    StoreError,
    lending::{Limits, Place},
    sql::{self, TablePrefix},
};

const DOING: &str = "setting up the store";

/// Sets up a [`PostgresStore`].
///
/// # Examples
///
/// ```no_run
/// # use std::time::Duration;
/// # use idempotent_runtime::store::PostgresStore;
/// # async fn set_up() -> Result<(), Box<dyn std::error::Error>> {
/// let store = PostgresStore::builder()
///     .table_prefix("billing_")
///     .max_connections(20)
///     .answer_timeout(Duration::from_secs(5))
///     .connect("postgres://app@localhost/shop")
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct PostgresBuilder {
    prefix: Result<TablePrefix, StoreError>,
    limits: Limits,
    way: Way,
}

impl PostgresBuilder {
    pub(super) fn new() -> Self {
        Self {
            prefix: Ok(TablePrefix::default()),
            limits: Limits::default(),
            way: Way::Prepared,
        }
    }

    /// Sets how the names of the store's tables begin: `idempotent_` unless set. One to 40 ASCII letters, digits and
    /// underscores, not beginning with a digit, `sqlite_` or `pg_`; anything else is refused when the store is made. Prefixes that differ only
    /// by upper and lower case name the same tables.
    pub fn table_prefix(mut self, prefix: &str) -> Self {
        self.prefix = sql::chosen(prefix, DOING);
        self
    }

    /// Sets how many connections the calls may use at once: ten unless set, at least one. Heartbeats have up to two more,
    /// and while somebody waits two more listen. A body that runs and a call that waits hold none. One that has lain idle for three
    /// minutes is not used again.
    pub fn max_connections(mut self, connections: u32) -> Self {
        self.limits.connections = connections;
        self
    }

    /// Sets how long a call waits for a connection to be free, and for a new one to be open: ten seconds unless set. Then the
    /// error is of the kind [`Busy`], or [`Unavailable`].
    ///
    /// [`Busy`]: crate::store::StoreErrorKind::Busy
    /// [`Unavailable`]: crate::store::StoreErrorKind::Unavailable
    pub fn connect_timeout(mut self, connect_timeout: Duration) -> Self {
        self.limits.connect = connect_timeout;
        self
    }

    /// Sets how long a statement may take: thirty seconds unless set. Then the error is of the kind
    /// [`Unavailable`], and the connection is closed. A lock that somebody else holds it awaits for half as long; then it is
    /// [`Busy`].
    ///
    /// [`Busy`]: crate::store::StoreErrorKind::Busy
    /// [`Unavailable`]: crate::store::StoreErrorKind::Unavailable
    pub fn answer_timeout(mut self, answer_timeout: Duration) -> Self {
        self.limits.answer = answer_timeout;
        self
    }

    /// Says that the server is behind a proxy that pools transactions, such as PgBouncer in transaction mode: nothing is
    /// prepared, no setting is made, and waiters look by themselves because notifications do not come through.
    ///
    /// Never leave it unsaid there. Statements fail then with [`Configuration`] or [`Unavailable`], or meet one that another client has
    /// prepared under the same name, as a store with another table prefix does. A row of its answer is known for none and is an error of
    /// the kind [`Other`], but a list that finds nothing there ends early, and the other one has done what it does: a claim stands in its
    /// table, or its expired records are purged. Where the proxy keeps apart what is prepared, what the store sets stays with connections
    /// that others get, too: the isolation by default, how plans are made, and how long locks are awaited.
    ///
    /// Where the database's own default is a stricter isolation than READ COMMITTED, the store cannot set another one then: some
    /// of its statements fail under contention and are sent again, which no caller sees but in its latency.
    ///
    /// [`Configuration`]: crate::store::StoreErrorKind::Configuration
    /// [`Other`]: crate::store::StoreErrorKind::Other
    /// [`Unavailable`]: crate::store::StoreErrorKind::Unavailable
    pub fn transaction_pooling(mut self) -> Self {
        self.way = Way::Text;
        self
    }

    /// Connects to the server that a URL names, such as `postgres://app@localhost/shop?sslmode=require`, and brings the
    /// store's tables up to date.
    ///
    /// # Errors
    ///
    /// [`Configuration`] for an option that cannot be used, a wrong password, a database that is not there, a certificate that is
    /// not trusted, [`Unavailable`] where nobody answers in time, and as [`PostgresStore::migrate`].
    ///
    /// [`Configuration`]: crate::store::StoreErrorKind::Configuration
    /// [`Unavailable`]: crate::store::StoreErrorKind::Unavailable
    pub async fn connect(self, url: &str) -> Result<PostgresStore, StoreError> {
        sql::url::is_for(["postgres", "postgresql"], url, DOING)?;
        let options = PgConnectOptions::from_str(url).map_err(|error| failure::of(error, DOING))?;
        let server = format!("{}:{}", options.get_host(), options.get_port());
        let store = self.options(options)?;
        let migrated = store.migrate().await;
        migrated.map_err(|error| error.at(server))?;
        Ok(store)
    }

    /// Opens connections with these options, when they are needed. [`PostgresStore::migrate`] makes the tables.
    ///
    /// # Errors
    ///
    /// [`Configuration`] for an option that cannot be used.
    ///
    /// [`Configuration`]: crate::store::StoreErrorKind::Configuration
    pub fn options(self, options: PgConnectOptions) -> Result<PostgresStore, StoreError> {
        self.place(Place::of_options(options))
    }

    /// Opens connections of the store's own to where the application's pool connects to, with the same options, asked anew for
    /// each one. [`PostgresStore::migrate`] makes the tables. See [`PostgresStore::new`].
    ///
    /// # Errors
    ///
    /// [`Configuration`] for an option that cannot be used.
    ///
    /// [`Configuration`]: crate::store::StoreErrorKind::Configuration
    pub fn pool(self, pool: PgPool) -> Result<PostgresStore, StoreError> {
        self.place(Place::of_pool(pool))
    }

    fn place(self, place: Place<PgConnectOptions>) -> Result<PostgresStore, StoreError> {
        Ok(PostgresStore::over(
            place,
            self.limits,
            self.way,
            self.prefix?,
        ))
    }
}
