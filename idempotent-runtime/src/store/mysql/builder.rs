//! How a MySQL store is set up.

use std::time::Duration;

use sqlx::{MySqlPool, mysql::MySqlConnectOptions};

use super::{MySqlStore, beside_triggers::Triggers, connection::MySql, failure};
use crate::store::{
    StoreError,
    pool::ServerPlace,
    sql::server::builder::{DOING, Settings, sets_up_a_server},
};

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
    settings: Settings,
    plain: bool,
}

sets_up_a_server! {
    MySqlBuilder, MySqlStore, MySqlConnectOptions, MySqlPool,
    schemes: ["mysql", "mariadb"], url: "mysql://app@localhost/shop?ssl-mode=VERIFY_CA",
    names: "", beside: "", locks: ", and at least a second", refuses: "a server that is too old, ",
}

impl MySqlBuilder {
    pub(super) fn new() -> Self {
        Self {
            settings: Settings::default(),
            plain: false,
        }
    }

    fn place(self, place: ServerPlace<MySqlConnectOptions>) -> Result<MySqlStore, StoreError> {
        let Settings { limits, prefix } = self.settings;
        let server = MySql {
            place,
            lock_wait: limits.answer / 2,
            plain: self.plain,
            prefix: prefix?,
            triggers: Triggers::default(),
        };
        Ok(MySqlStore::over(server, limits))
    }
}

/// Speaks to MariaDB as if it were MySQL, for the tests of what MySQL is told.
#[cfg(feature = "testing")]
#[doc(hidden)]
pub fn as_mysql(builder: MySqlBuilder) -> MySqlBuilder {
    MySqlBuilder {
        plain: true,
        ..builder
    }
}
