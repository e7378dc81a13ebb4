//! The databases whose transactions the library can own, and what their errors mean for one.

use std::error::Error as StdError;

use sqlx::error::DatabaseError;

use super::Isolation;
use crate::store::{SqlConnection, sql::Dialect};

/// A database of sqlx whose transactions [`transact`](crate::CallBuilder::transact) runs: Postgres,
/// MySQL (which stands for MariaDB, too) or SQLite.
pub trait SqlDatabase: Dialect<Connection: SqlConnection> + sealed::OwnsTransactions {}

pub(crate) mod sealed {
    use super::{Isolation, StdError};

    pub trait OwnsTransactions {
        /// The statements that prepare the session, before a transaction begins.
        fn prepare(isolation: Option<Isolation>) -> Vec<String>;

        /// The statement by which it begins.
        fn begin(isolation: Option<Isolation>) -> String;

        /// The statement by which one begins that only reads.
        const BEGIN_READING: &'static str;

        /// The statement that undoes them, after the transaction.
        const RESTORE: Option<&'static str>;

        /// Whether a transaction locks the whole database for all others from its beginning.
        const ONE_WRITER: bool;

        /// Whether this error says that another transaction was in the way.
        fn is_conflict(cause: &(dyn StdError + 'static)) -> bool;

        /// Whether this error says that the server, or the session, may only be read.
        fn only_reads(cause: &(dyn StdError + 'static)) -> bool;

        /// Whether the connection is gone. The last statement may or may not have been carried out.
        fn is_broken(error: &sqlx::Error) -> bool;
    }
}

/// The code of an error of the driver, `D`: itself, or inside one of sqlx. A transparent wrapper
/// around that one shows the box in which sqlx keeps it.
#[cfg(feature = "_sql")]
fn code<D: DatabaseError>(
    cause: &(dyn StdError + 'static),
    code: impl Fn(&D) -> i64,
) -> Option<i64> {
    let boxed = cause.downcast_ref::<Box<dyn DatabaseError>>();
    let inside = match cause.downcast_ref::<sqlx::Error>() {
        Some(error) => error.as_database_error(),
        None => boxed.map(|boxed| &**boxed),
    };
    let said = match inside {
        Some(inside) => inside.try_downcast_ref(),
        None => cause.downcast_ref(),
    };
    said.map(code)
}

#[cfg(any(feature = "mysql", feature = "postgres"))]
fn level(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::ReadCommitted => "READ COMMITTED",
        Isolation::RepeatableRead => "REPEATABLE READ",
        Isolation::Serializable => "SERIALIZABLE",
    }
}

fn is_cut(error: &sqlx::Error) -> bool {
    matches!(
        error,
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed
    )
}

#[cfg(feature = "postgres")]
impl SqlDatabase for sqlx::Postgres {}

#[cfg(feature = "postgres")]
impl sealed::OwnsTransactions for sqlx::Postgres {
    fn prepare(_: Option<Isolation>) -> Vec<String> {
        Vec::new()
    }

    fn begin(isolation: Option<Isolation>) -> String {
        match isolation {
            None => "BEGIN".to_owned(),
            Some(isolation) => format!("BEGIN ISOLATION LEVEL {}", level(isolation)),
        }
    }

    const BEGIN_READING: &'static str = "BEGIN";

    const RESTORE: Option<&'static str> = None;

    const ONE_WRITER: bool = false;

    /// `serialization_failure`, `deadlock_detected`, and `lock_not_available`: a lock was waited
    /// for for too long.
    fn is_conflict(cause: &(dyn StdError + 'static)) -> bool {
        let is_one = |said: &sqlx::postgres::PgDatabaseError| {
            i64::from(matches!(said.code(), "40001" | "40P01" | "55P03"))
        };
        code(cause, is_one) == Some(1)
    }

    /// `read_only_sql_transaction`.
    fn only_reads(cause: &(dyn StdError + 'static)) -> bool {
        let is_one = |said: &sqlx::postgres::PgDatabaseError| i64::from(said.code() == "25006");
        code(cause, is_one) == Some(1)
    }

    /// Class 08, and a server that shuts down or ended the connection, as for the age of a
    /// transaction.
    fn is_broken(error: &sqlx::Error) -> bool {
        use sqlx::postgres::PgSeverity::{Fatal, Panic};
        let is_one = |said: &sqlx::postgres::PgDatabaseError| {
            let is_end = matches!(said.severity(), Fatal | Panic)
                || matches!(said.code(), "25P03" | "25P04");
            i64::from(is_end || said.code().starts_with("08") || said.code().starts_with("57P0"))
        };
        is_cut(error) || code(error, is_one) == Some(1)
    }
}

#[cfg(feature = "mysql")]
impl SqlDatabase for sqlx::MySql {}

/// The database may undo a transaction while the body goes on. Without `autocommit`, the statements
/// after that are a part of another transaction, which is rolled back.
#[cfg(feature = "mysql")]
impl sealed::OwnsTransactions for sqlx::MySql {
    fn prepare(isolation: Option<Isolation>) -> Vec<String> {
        let set = |isolation| format!("SET TRANSACTION ISOLATION LEVEL {}", level(isolation));
        // Where it was off, or commits chain, a transaction may be open: it ends when this is set.
        let autocommit = "SET @idempotent_autocommit = @@SESSION.autocommit, SESSION autocommit = 0, SESSION autocommit = 1, SESSION autocommit = 0";
        let autocommit = autocommit.to_owned();
        [autocommit].into_iter().chain(isolation.map(set)).collect()
    }

    fn begin(_: Option<Isolation>) -> String {
        "START TRANSACTION".to_owned()
    }

    const BEGIN_READING: &'static str = "START TRANSACTION";

    const RESTORE: Option<&'static str> = Some("SET SESSION autocommit = @idempotent_autocommit");

    const ONE_WRITER: bool = false;

    /// A deadlock, a lock that was waited for too long, and a record that has changed since it was
    /// read.
    fn is_conflict(cause: &(dyn StdError + 'static)) -> bool {
        let number = |said: &sqlx::mysql::MySqlDatabaseError| i64::from(said.number());
        matches!(code(cause, number), Some(1213 | 1205 | 1020))
    }

    /// A server that runs with `--read-only`, a transaction or a session that only reads, and
    /// InnoDB that only reads.
    fn only_reads(cause: &(dyn StdError + 'static)) -> bool {
        let number = |said: &sqlx::mysql::MySqlDatabaseError| i64::from(said.number());
        matches!(code(cause, number), Some(1290 | 1792 | 1836 | 1874))
    }

    /// A server that shuts down, a connection that was killed or timed out, and a proxy whose
    /// server has gone.
    fn is_broken(error: &sqlx::Error) -> bool {
        let number = |said: &sqlx::mysql::MySqlDatabaseError| i64::from(said.number());
        let is_end = |number| matches!(number, 1053 | 1152 | 1158..=1161 | 1184 | 1927 | 2000..=2999 | 3169 | 4031 | 9001);
        is_cut(error) || code(error, number).is_some_and(is_end)
    }
}

#[cfg(feature = "sqlite")]
impl SqlDatabase for sqlx::Sqlite {}

#[cfg(feature = "sqlite")]
impl sealed::OwnsTransactions for sqlx::Sqlite {
    fn prepare(_: Option<Isolation>) -> Vec<String> {
        Vec::new()
    }

    fn begin(_: Option<Isolation>) -> String {
        "BEGIN IMMEDIATE".to_owned()
    }

    const BEGIN_READING: &'static str = "BEGIN";

    const RESTORE: Option<&'static str> = None;

    const ONE_WRITER: bool = true;

    /// `SQLITE_BUSY` and `SQLITE_LOCKED`, with their extended codes.
    fn is_conflict(cause: &(dyn StdError + 'static)) -> bool {
        let number = |said: &sqlx::sqlite::SqliteError| {
            let code = said.code().and_then(|code| code.parse::<i64>().ok());
            code.unwrap_or_default() & 0xff
        };
        matches!(code(cause, number), Some(5 | 6))
    }

    /// A file has one server: a new connection finds the same.
    fn only_reads(_: &(dyn StdError + 'static)) -> bool {
        false
    }

    fn is_broken(error: &sqlx::Error) -> bool {
        is_cut(error)
    }
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use std::time::Duration;

    use sqlx::{
        ConnectOptions, Connection, Executor, Sqlite,
        sqlite::{SqliteConnectOptions, SqliteError},
    };

    use super::sealed::OwnsTransactions;

    #[tokio::test]
    async fn mend_41_a_conflict_is_known_in_each_wrapping_and_another_error_is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = SqliteConnectOptions::new()
            .filename(folder.path().join("shop.db"))
            .create_if_missing(true)
            .busy_timeout(Duration::ZERO);
        let mut holder = options.connect().await.expect("a connection");
        let mut other = options.connect().await.expect("a connection");
        let begun = holder.execute("BEGIN IMMEDIATE").await;
        begun.expect("nobody else writes");
        let conflict = other.execute("BEGIN IMMEDIATE").await;
        let conflict = conflict.expect_err("the file is locked");
        let mistake = other.execute("SELECT n FROM missing").await;
        let mistake = mistake.expect_err("there is no such table");

        for (error, is_conflict) in [(conflict, true), (mistake, false)] {
            assert_eq!(Sqlite::is_conflict(&error), is_conflict, "{error:?}");
            let sqlx::Error::Database(boxed) = error else {
                panic!("{error:?} is none of the database");
            };
            assert_eq!(Sqlite::is_conflict(&boxed), is_conflict, "{boxed:?}");
            let itself = boxed.downcast::<SqliteError>();
            assert_eq!(Sqlite::is_conflict(&*itself), is_conflict, "{itself:?}");
        }
        holder.close().await.expect("it is closed");
        other.close().await.expect("it is closed");
    }
}
