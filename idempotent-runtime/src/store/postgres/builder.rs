//! How a Postgres store is set up.

use std::time::Duration;

use sqlx::{PgPool, postgres::PgConnectOptions};

use super::{PostgresStore, failure, rows::Protocol};
use crate::store::{
    StoreError,
    pool::ServerPlace,
    sql::server::builder::{DOING, Settings, sets_up_a_server},
};

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
    settings: Settings,
    protocol: Protocol,
}

sets_up_a_server! {
    PostgresBuilder, PostgresStore, PgConnectOptions, PgPool,
    schemes: ["postgres", "postgresql"], url: "postgres://app@localhost/shop?sslmode=require",
    names: "Prefixes that differ only by upper and lower case name the same tables.",
    beside: ", and while a call waits two more listen", locks: "", refuses: "",
}

impl PostgresBuilder {
    pub(super) fn new() -> Self {
        Self {
            settings: Settings::default(),
            protocol: Protocol::Extended,
        }
    }

    /// Says that the server is behind a proxy that pools transactions, such as PgBouncer in
    /// transaction mode. Then nothing is prepared, no setting is made, and waiters look by
    /// themselves because notifications do not come through.
    ///
    /// Always set it there. Otherwise statements fail with [`Configuration`] or [`Unavailable`], or
    /// meet one that another client has prepared under the same name, as a store with another table
    /// prefix does. A row of its answer is not taken for one of ours and is an error of the kind
    /// [`Other`]. But a list that finds nothing there ends early, and the other statement has done
    /// its work: a claim stands in its table, or its expired records are purged. If the proxy keeps
    /// prepared statements apart, the settings of the store stay with connections that other
    /// clients get, too. These are the isolation by default, how plans are made, and how long locks
    /// are awaited.
    ///
    /// If the database's own default is a stricter isolation than READ COMMITTED, the store cannot
    /// set another one then. Some of its statements fail under contention and are sent again: a
    /// caller sees that only in its latency.
    ///
    /// [`Configuration`]: crate::store::StoreErrorKind::Configuration
    /// [`Other`]: crate::store::StoreErrorKind::Other
    /// [`Unavailable`]: crate::store::StoreErrorKind::Unavailable
    pub fn transaction_pooling(mut self) -> Self {
        self.protocol = Protocol::Simple;
        self
    }

    fn place(self, place: ServerPlace<PgConnectOptions>) -> Result<PostgresStore, StoreError> {
        let Settings { limits, prefix } = self.settings;
        Ok(PostgresStore::over(place, limits, self.protocol, prefix?))
    }
}
