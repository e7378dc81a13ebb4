//! The connections of the application whose transactions a call can share, and how a store knows its own kind.

use std::any::Any;

use crate::{
    error::Error,
    store::{StoreError, StoreErrorKind},
};

/// A connection of sqlx on which a transaction was begun, as
/// [`run_in_transaction`](crate::CallBuilder::run_in_transaction) takes it: `&mut *transaction`, where `pool.begin()` or
/// `connection.begin()` gave `transaction`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no connection that a call can share a transaction on",
    label = "needs the connection of a database whose feature is on",
    note = "pass `&mut *transaction`, where `pool.begin().await?` gave `transaction`"
)]
pub trait SqlConnection: sealed::Sealed {}

pub(crate) mod sealed {
    use std::any::Any;

    pub trait Sealed: Any + Send {
        /// As its store knows it again.
        fn connection(&mut self) -> &mut (dyn Any + Send);

        /// Whether a transaction is open on it, as far as sqlx knows.
        fn is_in_transaction(&mut self) -> impl Future<Output = bool> + Send;
    }
}

/// The connections, and whether a transaction that was dropped is counted until a thread has rolled it back.
macro_rules! connections {
    ($($feature:literal $connection:ident $counts_dropped:literal,)*) => { $(
        #[cfg(feature = $feature)]
        #[cfg_attr(docsrs, doc(cfg(feature = $feature)))]
        impl SqlConnection for sqlx::$connection {}

        #[cfg(feature = $feature)]
        impl sealed::Sealed for sqlx::$connection {
            fn connection(&mut self) -> &mut (dyn Any + Send) {
                self
            }

            async fn is_in_transaction(&mut self) -> bool {
                if $counts_dropped {
                    // The thread answers when it has done so. Where it does not, nor is the claim written, which says why.
                    let _ = sqlx::Connection::ping(self).await;
                }
                sqlx::Connection::is_in_transaction(self)
            }
        }
    )* };
}

connections! {
    "mysql" MySqlConnection false,
    "postgres" PgConnection false,
    "sqlite" SqliteConnection true,
}

/// Refuses what would commit every statement by itself.
pub(crate) async fn check_open(connection: &mut impl SqlConnection) -> Result<(), Error> {
    if sealed::Sealed::is_in_transaction(connection).await {
        return Ok(());
    }
    Err(Error::InvalidPolicy(
        "no transaction is open on the connection, so that record and rows would not commit together: pass `&mut *transaction`, where `begin()` gave `transaction`",
    ))
}

/// The connection that a store of this kind can use.
pub(crate) fn connection_of<'a, C: Any>(
    connection: &'a mut (dyn Any + Send),
    kind: &str,
) -> Result<&'a mut C, StoreError> {
    connection.downcast_mut().ok_or_else(|| {
        StoreError::new(StoreErrorKind::Configuration, "writing a record").with_source(format!(
            "the transaction is one of another kind of database than the store, which is {kind}"
        ))
    })
}
