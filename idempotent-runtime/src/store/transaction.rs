//! The connections of the application whose transactions a call can share, and how a store knows
//! its own kind.

use std::any::Any;

use crate::{
    error::Error,
    record::Version,
    store::{
        JoinedConnection, StoreError, StoreErrorKind,
        sql::{self, Dialect as _},
    },
};

/// A transaction of sqlx, or the connection on which one was begun, as
/// [`run_in`](crate::CallBuilder::run_in) and the attribute's `tx` take it: `&mut transaction` or
/// `&mut *transaction`, where `pool.begin()` or `connection.begin()` gave `transaction`. Anything
/// else does not compile:
///
/// ```compile_fail,E0277
/// use idempotent_runtime::{Error, idempotent};
///
/// #[idempotent(key = id, tx = tx)]
/// async fn post(tx: &mut String, id: u64) -> Result<u64, Error> {
///     let _ = tx;
///     Ok(id)
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no connection that a call can share a transaction on",
    label = "needs the connection of a database whose feature is on",
    note = "pass `&mut *transaction`, where `pool.begin().await?` gave `transaction`"
)]
pub trait SqlConnection: sealed::Sealed {}

pub(crate) mod sealed {
    use crate::store::{JoinedConnection, StoreError};

    pub trait Sealed: Send {
        /// As its store knows it again.
        fn connection(&mut self) -> JoinedConnection<'_>;

        /// Whether a transaction is open on it, as sqlx knows and, where the database may have
        /// ended it by itself, as that does.
        fn is_in_transaction(&mut self) -> impl Future<Output = Result<bool, StoreError>> + Send;

        /// Runs a statement that answers nothing.
        fn execute(
            &mut self,
            statement: String,
        ) -> impl Future<Output = Result<(), StoreError>> + Send;

        /// Runs statements in one message, and returns the bytes that their rows hold.
        fn query(
            &mut self,
            statements: String,
        ) -> impl Future<Output = Result<Vec<Vec<u8>>, StoreError>> + Send;
    }
}

/// The connections, and what a database is asked that may have ended a transaction by itself.
macro_rules! connections {
    ($($feature:literal $database:ident $connection:ident $(asks $has_transaction:path)?,)*) => { $(
        #[cfg(feature = $feature)]
        #[cfg_attr(docsrs, doc(cfg(feature = $feature)))]
        impl SqlConnection for sqlx::$connection {}

        #[cfg(feature = $feature)]
        impl sealed::Sealed for sqlx::$connection {
            fn connection(&mut self) -> JoinedConnection<'_> {
                JoinedConnection::new(self)
            }

            async fn is_in_transaction(&mut self) -> Result<bool, StoreError> {
                // An error may be how a database says, and only once, that it has ended the
                // transaction.
                $(if !$has_transaction(self, "writing a record").await? {
                    return Ok(false);
                })?
                // Only now: what counts a transaction of SQLite that was dropped is a thread, which
                // has answered.
                Ok(sqlx::Connection::is_in_transaction(self))
            }

            async fn execute(&mut self, statement: String) -> Result<(), StoreError> {
                const DOING: &str = "marking a place in a transaction";
                sqlx::$database::query(self, statement, DOING).await.map(drop)
            }

            async fn query(&mut self, statements: String) -> Result<Vec<Vec<u8>>, StoreError> {
                const DOING: &str = "looking at what a transaction wrote";
                let rows = sqlx::$database::query(self, statements, DOING).await?;
                let damaged = |source| StoreError::new(StoreErrorKind::Corrupt, DOING).with_source(source);
                let bytes = rows.iter().map(|row| sql::Row::bytes(row, 0).map_err(damaged));
                bytes.map(|bytes| Ok(bytes?.unwrap_or_default())).collect()
            }
        }

        #[cfg(feature = $feature)]
        #[cfg_attr(docsrs, doc(cfg(feature = $feature)))]
        impl SqlConnection for sqlx::Transaction<'_, sqlx::$database> {}

        #[cfg(feature = $feature)]
        impl sealed::Sealed for sqlx::Transaction<'_, sqlx::$database> {
            fn connection(&mut self) -> JoinedConnection<'_> {
                JoinedConnection::new(&mut **self)
            }

            async fn is_in_transaction(&mut self) -> Result<bool, StoreError> {
                sealed::Sealed::is_in_transaction(&mut **self).await
            }

            async fn execute(&mut self, statement: String) -> Result<(), StoreError> {
                sealed::Sealed::execute(&mut **self, statement).await
            }

            async fn query(&mut self, statements: String) -> Result<Vec<Vec<u8>>, StoreError> {
                sealed::Sealed::query(&mut **self, statements).await
            }
        }
    )* };
}

connections! {
    "mysql" MySql MySqlConnection asks super::mysql::has_transaction,
    "postgres" Postgres PgConnection,
    "sqlite" Sqlite SqliteConnection asks super::sqlite::has_transaction,
}

/// Refuses what would commit every statement by itself.
pub(crate) async fn check_open(connection: &mut impl SqlConnection) -> Result<(), Error> {
    if sealed::Sealed::is_in_transaction(connection).await? {
        return Ok(());
    }
    Err(NOT_OPEN)
}

/// Says that no transaction is open.
pub(crate) const NOT_OPEN: Error = Error::InvalidPolicy(
    "no transaction is open on the connection, so that record and rows would not commit together: pass `&mut *transaction`, where `begin()` gave `transaction` and the database has not ended it since, as it may after a deadlock or a DDL statement",
);

/// A place in a transaction, before the body of a call: behind it are the rows of the body.
#[derive(Debug)]
pub(crate) struct Savepoint(String);

impl Savepoint {
    /// Marks the place. Its name is drawn, so that no other in the transaction has it.
    pub(crate) async fn set(connection: &mut impl SqlConnection) -> Result<Self, StoreError> {
        let drawn = u128::from_be_bytes(Version::random().to_bytes());
        let name = format!("idempotent_{drawn:032x}");
        connection.execute(format!("SAVEPOINT {name}")).await?;
        Ok(Self(name))
    }

    /// Undoes the rows of the body. It fails where the transaction has ended, or has gone back
    /// behind the place.
    pub(crate) async fn roll_back(
        &self,
        connection: &mut impl SqlConnection,
    ) -> Result<(), StoreError> {
        let Self(name) = self;
        let statement = format!("ROLLBACK TO SAVEPOINT {name}");
        connection.execute(statement).await
    }

    /// Forgets the place, and keeps the rows. It fails as [`roll_back`](Self::roll_back) does, and
    /// where the transaction takes no more statements.
    pub(crate) async fn release(
        self,
        connection: &mut impl SqlConnection,
    ) -> Result<(), StoreError> {
        let Self(name) = self;
        let statement = format!("RELEASE SAVEPOINT {name}");
        connection.execute(statement).await
    }

    /// The same, and returns the bytes that these queries find behind it, all in one message.
    pub(crate) async fn release_and_query(
        self,
        connection: &mut impl SqlConnection,
        queries: &[String],
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        let Self(name) = self;
        let mut statements = vec![format!("RELEASE SAVEPOINT {name}")];
        statements.extend_from_slice(queries);
        connection.query(statements.join("; ")).await
    }
}

/// Whether the transaction takes no statement any more, as after one that failed on Postgres.
pub(crate) async fn is_aborted(connection: &mut impl SqlConnection) -> bool {
    connection.execute("SELECT 1".to_owned()).await.is_err()
}

/// Whether a statement was refused because an earlier one had failed: `in_failed_sql_transaction`
/// of Postgres.
pub(crate) fn says_aborted(error: &StoreError) -> bool {
    let source = std::error::Error::source(error);
    let source = source.and_then(|source| source.downcast_ref::<sqlx::Error>());
    let code = source.and_then(|error| error.as_database_error()?.code());
    code.is_some_and(|code| code == "25P02")
}

/// The connection that a store of this kind can use.
pub(crate) fn connection_of<'a, C: Any>(
    connection: &'a mut JoinedConnection<'_>,
    kind: &str,
) -> Result<&'a mut C, StoreError> {
    connection.downcast().ok_or_else(|| {
        StoreError::new(StoreErrorKind::Configuration, "writing a record").with_source(format!(
            "the transaction is one of another kind of database than the store, which is {kind}"
        ))
    })
}

#[cfg(test)]
mod tests {
    mod golden;

    use super::*;

    /// A connection of which this is found out.
    #[derive(Debug)]
    struct Found(Result<bool, StoreError>);

    impl SqlConnection for Found {}

    impl sealed::Sealed for Found {
        fn connection(&mut self) -> JoinedConnection<'_> {
            JoinedConnection::new(self)
        }

        async fn is_in_transaction(&mut self) -> Result<bool, StoreError> {
            self.0.clone()
        }

        async fn execute(&mut self, _: String) -> Result<(), StoreError> {
            Ok(())
        }

        async fn query(&mut self, _: String) -> Result<Vec<Vec<u8>>, StoreError> {
            Ok(Vec::new())
        }
    }

    #[tokio::test]
    async fn only_an_answer_that_a_transaction_is_open_lets_a_call_join_it() {
        let deadlock = StoreError::new(StoreErrorKind::Busy, "writing a record");
        assert_eq!(check_open(&mut Found(Ok(true))).await, Ok(()));
        let closed = check_open(&mut Found(Ok(false))).await;
        assert!(matches!(closed, Err(Error::InvalidPolicy(_))), "{closed:?}");
        let undone = check_open(&mut Found(Err(deadlock.clone()))).await;
        assert_eq!(undone, Err(Error::Store(deadlock)));
    }
}
