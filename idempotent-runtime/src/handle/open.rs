//! Handles over the stores that come with the crate, each by one line.

use crate::{error::Error, handle::Idempotency};

#[cfg(feature = "sqlite")]
#[cfg_attr(docsrs, doc(cfg(feature = "sqlite")))]
impl Idempotency {
    /// A handle over a SQLite file, which is made where it is missing: the embedded default, which
    /// needs no server.
    ///
    /// A path that begins with `sqlite:` is read as the URL that it is, such as
    /// `sqlite:payments.db?mode=rw`. The path `":memory:"` names no file: it opens a store in
    /// memory, without a word, that forgets everything when the handle is gone. Say
    /// [`Idempotency::memory`] where that is meant.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] when the path is the URL of something else, the file cannot be opened, or
    /// its tables cannot be brought up to date.
    pub async fn sqlite(path: impl AsRef<std::path::Path>) -> Result<Self, Error> {
        Ok(Self::new(crate::store::SqliteStore::open(path).await?))
    }
}

#[cfg(feature = "postgres")]
#[cfg_attr(docsrs, doc(cfg(feature = "postgres")))]
impl Idempotency {
    /// A handle over the Postgres server that a URL names, such as `postgres://app@localhost/shop`.
    /// The tables are brought up to date. With a pool of the application's, it is
    /// `Idempotency::new(PostgresStore::new(pool))`.
    ///
    /// # Errors
    ///
    /// [`Error::Store`], as
    /// [`PostgresBuilder::connect`](crate::store::postgres::PostgresBuilder::connect) says.
    pub async fn postgres(url: &str) -> Result<Self, Error> {
        Ok(Self::new(crate::store::PostgresStore::connect(url).await?))
    }
}

#[cfg(feature = "mysql")]
#[cfg_attr(docsrs, doc(cfg(feature = "mysql")))]
impl Idempotency {
    /// A handle over the MariaDB or MySQL server that a URL names, such as
    /// `mysql://app@localhost/shop`. The tables are brought up to date. With a pool of the
    /// application's, it is `Idempotency::new(MySqlStore::new(pool))`.
    ///
    /// # Errors
    ///
    /// [`Error::Store`], as [`MySqlBuilder::connect`](crate::store::mysql::MySqlBuilder::connect)
    /// says.
    pub async fn mysql(url: &str) -> Result<Self, Error> {
        Ok(Self::new(crate::store::MySqlStore::connect(url).await?))
    }
}

#[cfg(feature = "redis")]
#[cfg_attr(docsrs, doc(cfg(feature = "redis")))]
impl Idempotency {
    /// A handle over the Redis or Valkey server that a URL names, such as
    /// `redis://localhost:6379/0`. With a client of the application's, it is
    /// `Idempotency::new(RedisStore::builder().client(client).await?)`.
    ///
    /// # Errors
    ///
    /// [`Error::Store`], as [`RedisBuilder::connect`](crate::store::redis::RedisBuilder::connect)
    /// says.
    pub async fn redis(url: &str) -> Result<Self, Error> {
        Ok(Self::new(crate::store::RedisStore::connect(url).await?))
    }
}

/// The same methods where a build has no such store: they do not compile, and say which feature is
/// missing.
macro_rules! missing {
    ($($method:ident $marker:ident $feature:literal $message:literal)*) => {$(
        /// Holds for nothing.
        #[cfg(not(feature = $feature))]
        #[doc(hidden)]
        #[diagnostic::on_unimplemented(
            message = $message,
            label = "this feature is not switched on",
            note = "in Cargo.toml, add it to the `features` of `idempotent-runtime`"
        )]
        pub trait $marker {}

        #[cfg(not(feature = $feature))]
        impl Idempotency {
            #[doc = $message]
            ///
            /// # Errors
            ///
            /// It does not compile.
            pub fn $method<U: $marker>(_: U) -> std::future::Ready<Result<Self, Error>> {
                std::future::ready(Ok(Self::memory()))
            }
        }
    )*};
}

missing! {
    sqlite NeedsSqlite "sqlite" "`Idempotency::sqlite` needs the feature `sqlite` of `idempotent-runtime`"
    postgres NeedsPostgres "postgres" "`Idempotency::postgres` needs the feature `postgres` of `idempotent-runtime`"
    mysql NeedsMySql "mysql" "`Idempotency::mysql` needs the feature `mysql` of `idempotent-runtime`"
    redis NeedsRedis "redis" "`Idempotency::redis` needs the feature `redis` of `idempotent-runtime`"
}
