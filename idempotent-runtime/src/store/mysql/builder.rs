//! How a MySQL store is set up.

use std::{str::FromStr, time::Duration};

use sqlx::{MySqlPool, mysql::MySqlConnectOptions};

use super::{MySqlStore, connection::MySql, failure};
use crate::store::{
    StoreError,
    lending::{Limits, Place},
    sql::{self, TablePrefix},
};

const DOING: &str = "setting up the store";

/// Sets up a [`MySqlStore`].
///
/// # Examples
///
/// ```no_run
/// # use std::time::Duration;
/// # use idempotent_runtime::store::MySqlStore;
/// # async fn set_up() -> Result<(), Box<dyn std::error::Error>> {
/// let store = MySqlStore::builder()
///     .table_prefix("billing_")
///     .max_connections(20)
///     .answer_timeout(Duration::from_secs(5))
///     .connect("mysql://app@localhost/shop")
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct MySqlBuilder {
    prefix: Result<TablePrefix, StoreError>,
    limits: Limits,
    plain: bool,
}

impl MySqlBuilder {
    pub(super) fn new() -> Self {
        Self {
            prefix: Ok(TablePrefix::default()),
            limits: Limits::default(),
            plain: false,
        }
    }

    /// Sets how the names of the store's tables begin: `idempotent_` unless set. One to 40 ASCII letters, digits and
    /// underscores, not beginning with a digit, `sqlite_` or `pg_`; anything else is refused when the store is made.
    pub fn table_prefix(mut self, prefix: &str) -> Self {
        self.prefix = sql::chosen(prefix, DOING);
        self
    }

    /// Sets how many connections the calls may use at once: ten unless set, at least one. Heartbeats have up to two more. A
    /// body that runs and a call that waits hold none. One that has lain idle for three minutes is not used again.
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

    /// Sets how long a statement may take: thirty seconds unless set. Then the error is of the kind [`Unavailable`], and the
    /// connection is closed. A lock that somebody else holds it awaits for half as long, and at least a second; then it is
    /// [`Busy`].
    ///
    /// [`Busy`]: crate::store::StoreErrorKind::Busy
    /// [`Unavailable`]: crate::store::StoreErrorKind::Unavailable
    pub fn answer_timeout(mut self, answer_timeout: Duration) -> Self {
        self.limits.answer = answer_timeout;
        self
    }

    /// Speaks to MariaDB as if it were MySQL, for the tests of what MySQL is told.
    #[doc(hidden)]
    pub fn as_mysql(mut self) -> Self {
        self.plain = true;
        self
    }

    /// Connects to the server that a URL names, such as `mysql://app@localhost/shop?ssl-mode=VERIFY_CA`, and brings the
    /// store's tables up to date.
    ///
    /// # Errors
    ///
    /// [`Configuration`] for an option that cannot be used, a wrong password, a database that is not there,
    /// a server that is too old, a certificate that is not trusted, [`Unavailable`] where nobody answers in time, and as
    /// [`MySqlStore::migrate`].
    ///
    /// [`Configuration`]: crate::store::StoreErrorKind::Configuration
    /// [`Unavailable`]: crate::store::StoreErrorKind::Unavailable
    pub async fn connect(self, url: &str) -> Result<MySqlStore, StoreError> {
        sql::url::is_for(["mysql", "mariadb"], url, DOING)?;
        let options =
            MySqlConnectOptions::from_str(url).map_err(|error| failure::of(error, DOING))?;
        let server = format!("{}:{}", options.get_host(), options.get_port());
        let store = self.options(options)?;
        let migrated = store.migrate().await;
        migrated.map_err(|error| error.at(server))?;
        Ok(store)
    }

    /// Opens connections with these options, when they are needed. [`MySqlStore::migrate`] makes the tables.
    ///
    /// # Errors
    ///
    /// [`Configuration`] for an option that cannot be used.
    ///
    /// [`Configuration`]: crate::store::StoreErrorKind::Configuration
    pub fn options(self, options: MySqlConnectOptions) -> Result<MySqlStore, StoreError> {
        self.place(Place::of_options(options))
    }

    /// Opens connections of the store's own to where the application's pool connects to, with the same options, asked anew for
    /// each one. [`MySqlStore::migrate`] makes the tables. See [`MySqlStore::new`].
    ///
    /// # Errors
    ///
    /// [`Configuration`] for an option that cannot be used.
    ///
    /// [`Configuration`]: crate::store::StoreErrorKind::Configuration
    pub fn pool(self, pool: MySqlPool) -> Result<MySqlStore, StoreError> {
        self.place(Place::of_pool(pool))
    }

    fn place(self, place: Place<MySqlConnectOptions>) -> Result<MySqlStore, StoreError> {
        let server = MySql {
            place,
            lock_wait: self.limits.answer / 2,
            plain: self.plain,
        };
        Ok(MySqlStore::over(server, self.limits, self.prefix?))
    }
}
