//! How a store on a server is set up: the common part of the builders of Postgres and of MySQL.

use crate::store::{StoreError, pool::Limits, sql::TablePrefix};

pub(crate) const DOING: &str = "setting up the store";

/// The settings that are the same for every server.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) prefix: Result<TablePrefix, StoreError>,
    pub(crate) limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            prefix: Ok(TablePrefix::default()),
            limits: Limits::default(),
        }
    }
}

/// Makes the methods that every builder of a store on a server has. Its texts say where the servers
/// differ.
///
/// The builder has its [`Settings`] in a field `settings`, and a method `place` that makes the
/// store.
macro_rules! sets_up_a_server {
    (
        $builder:ty, $store:ident, $options:ty, $pool:ty,
        schemes: $schemes:expr, url: $url:literal, names: $names:literal, beside: $beside:literal,
        locks: $locks:literal, refuses: $refuses:literal $(,)?
    ) => {
        impl $builder {
            /// Sets how the names of the store's tables begin: `idempotent_` unless set. One to 40
            /// ASCII letters, digits and underscores, not beginning with a digit, `sqlite_` or
            /// `pg_`; anything else is refused when the store is made.
            #[doc = $names]
            pub fn table_prefix(mut self, prefix: &str) -> Self {
                self.settings.prefix = $crate::store::sql::chosen(prefix, DOING);
                self
            }

            /// Sets how many connections the calls may use at once: ten unless set, at least one.
            /// Heartbeats have up to two more
            #[doc = concat!($beside, ".")]
            /// A body that runs and a call that waits hold none. A connection that has lain idle
            /// for three minutes is not used again.
            pub fn max_connections(mut self, connections: u32) -> Self {
                self.settings.limits.connections = connections;
                self
            }

            /// Sets how long a call waits for a connection to be free, and for a new one to be
            /// open: ten seconds unless set. Then the error is of the kind [`Busy`], or
            /// [`Unavailable`].
            ///
            /// [`Busy`]: crate::store::StoreErrorKind::Busy
            /// [`Unavailable`]: crate::store::StoreErrorKind::Unavailable
            pub fn connect_timeout(mut self, connect_timeout: Duration) -> Self {
                self.settings.limits.connect = connect_timeout;
                self
            }

            /// Sets how long a statement may take: thirty seconds unless set. Then the error is of
            /// the kind [`Unavailable`], and the connection is closed. For a lock that another
            /// connection holds it waits half as long
            #[doc = concat!($locks, "; then it is [`Busy`].")]
            ///
            /// [`Busy`]: crate::store::StoreErrorKind::Busy
            /// [`Unavailable`]: crate::store::StoreErrorKind::Unavailable
            pub fn answer_timeout(mut self, answer_timeout: Duration) -> Self {
                self.settings.limits.answer = answer_timeout;
                self
            }

            #[doc = concat!("Connects to the server that a URL names, such as `", $url, "`, and brings the")]
            /// store's tables up to date.
            ///
            /// # Errors
            ///
            /// [`Configuration`] for an option that cannot be used, a wrong password, a database
            /// that is not there,
            #[doc = concat!($refuses, "a certificate that is not trusted,")]
            /// [`Unavailable`] where no server answers in time, and as
            #[doc = concat!("[`", stringify!($store), "::migrate`].")]
            ///
            /// [`Configuration`]: crate::store::StoreErrorKind::Configuration
            /// [`Unavailable`]: crate::store::StoreErrorKind::Unavailable
            pub async fn connect(self, url: &str) -> Result<$store, StoreError> {
                $crate::store::sql::url::is_for($schemes, url, DOING)?;
                let options: $options = url.parse().map_err(|error| failure::of(error, DOING))?;
                let server = format!("{}:{}", options.get_host(), options.get_port());
                let store = self.options(options)?;
                let migrated = store.migrate().await;
                migrated.map_err(|error| error.at(server))?;
                Ok(store)
            }

            /// Opens connections with these options, when they are needed.
            #[doc = concat!("[`", stringify!($store), "::migrate`] makes the tables.")]
            ///
            /// # Errors
            ///
            /// [`Configuration`] for an option that cannot be used.
            ///
            /// [`Configuration`]: crate::store::StoreErrorKind::Configuration
            pub fn options(self, options: $options) -> Result<$store, StoreError> {
                self.place(ServerPlace::of_options(options))
            }

            /// Opens connections of the store's own to where the application's pool connects to,
            /// with the same options, asked anew for
            #[doc = concat!("each one. [`", stringify!($store), "::migrate`] makes the tables. See [`", stringify!($store), "::new`].")]
            ///
            /// # Errors
            ///
            /// [`Configuration`] for an option that cannot be used.
            ///
            /// [`Configuration`]: crate::store::StoreErrorKind::Configuration
            pub fn pool(self, pool: $pool) -> Result<$store, StoreError> {
                self.place(ServerPlace::of_pool(pool))
            }
        }
    };
}
pub(crate) use sets_up_a_server;
