//! The databases of an outbox: how each says what all of them do.

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

use super::send::Writing;
use crate::transaction::SqlDatabase;

/// A database of sqlx in which an outbox can stand.
pub trait OutboxDatabase: SqlDatabase + sealed::Dialect {}

pub(crate) mod sealed {
    use std::future::Future;

    use sqlx::{Connection, Pool};

    use super::super::{
        relay::sleep::WakeSignal,
        send::{Writing, Written},
        tables::{Column, Tables},
        walk::{DOING, PendingKey, look, met},
    };
    use crate::{
        error::BoxError,
        store::{StoreError, sql::Row},
        transaction::SqlDatabase,
    };

    #[expect(private_bounds, reason = "nobody else implements it")]
    pub trait Dialect: SqlDatabase<Row: Row> {
        /// Runs one text, whose values are written out in it. So a connection of the application's
        /// keeps no prepared statement of ours, and a proxy may pool transactions.
        fn query(
            connection: &mut Self::Connection,
            text: String,
            doing: &'static str,
        ) -> impl Future<Output = Result<Vec<Self::Row>, StoreError>> + Send;

        /// Runs one text, and reads its rows one by one, so that none of them is kept.
        fn read<T: Send>(
            connection: &mut Self::Connection,
            text: String,
            doing: &'static str,
            read: fn(&Self::Row) -> Result<T, BoxError>,
        ) -> impl Future<Output = Result<Vec<T>, StoreError>> + Send;

        /// Makes the tables, by one process at a time, in a transaction that is open.
        fn migrate(
            connection: &mut Self::Connection,
            tables: &Tables,
            doing: &'static str,
        ) -> impl Future<Output = Result<(), StoreError>> + Send;

        /// The type of a column.
        fn column(column: Column) -> &'static str;

        /// Says behind an `INSERT` of a first row that it changes nothing where the row is there.
        fn unless_there(column: &str) -> String;

        /// Stands behind the columns of a table.
        const TABLE: &'static str;

        /// Whether the indexes of a table are made with it.
        const HAS_INDEXES_INSIDE: bool;

        /// The text that prepares a connection of a relay: each statement sees what was committed
        /// before it.
        const SESSION: &'static str;

        /// The statement that begins a transaction which writes.
        const BEGIN: &'static str;

        /// Stands behind a `SELECT` whose rows no other transaction may change before the commit.
        const LOCKING: &'static str;

        /// Stands behind a `SELECT` that sees what was committed last, whatever the transaction has
        /// seen before.
        const CURRENT: &'static str = "";

        /// The time in microseconds, by the database.
        const NOW: &'static str;

        /// A number of 64 bits, written out.
        fn number(number: i64) -> String;

        /// The text that claims these keys for so many microseconds, where no other relay does.
        fn claim(tables: &Tables, keys: &[&[u8]], token: i64, lease: i64) -> String;

        /// Wakes a relay whenever the server says that there are messages, for as long as it is
        /// polled.
        fn listen(_: Pool<Self>, _: String, _: WakeSignal) -> impl Future<Output = ()> + Send {
            std::future::pending()
        }

        /// The place to which these options lead, without a password.
        fn place(options: &<Self::Connection as Connection>::Options) -> String;

        /// The keys behind `after` that have messages, in their order.
        fn walk(
            connection: &mut Self::Connection,
            tables: &Tables,
            after: &[u8],
        ) -> impl Future<Output = Result<Vec<PendingKey>, StoreError>> + Send {
            let text = look::<Self>(tables, after);
            async { met::<Self>(&Self::query(connection, text, DOING).await?) }
        }

        /// A query that tells these keys, one a row.
        fn rows(keys: &[&[u8]]) -> String {
            let rows: Vec<_> = keys
                .iter()
                .map(|key| format!("({})", Self::bytes(key)))
                .collect();
            format!("VALUES {}", rows.join(", "))
        }

        /// Bytes, written out.
        fn bytes(bytes: &[u8]) -> String;

        /// The condition under which a column holds these bytes, however many they are.
        fn holds(column: &str, bytes: &[u8]) -> String {
            format!("{column} = {}", Self::bytes(bytes))
        }

        /// Whether [`write`](Self::write) finds out that no transaction is open.
        const FINDS_OUT: bool = false;

        /// Writes a message by a clock that is so far ahead of the database's.
        fn write(
            connection: &mut Self::Connection,
            tables: &Tables,
            message: &Writing<'_>,
            ahead: i64,
        ) -> impl Future<Output = Result<Written, StoreError>> + Send;
    }
}

#[cfg(feature = "mysql")]
impl OutboxDatabase for sqlx::MySql {}
#[cfg(feature = "postgres")]
impl OutboxDatabase for sqlx::Postgres {}
#[cfg(feature = "sqlite")]
impl OutboxDatabase for sqlx::Sqlite {}

/// Passes a text on to the driver. A test of ours notes it.
fn sent(text: String) -> sqlx::AssertSqlSafe<String> {
    #[cfg(test)]
    super::golden::note(&text);
    sqlx::AssertSqlSafe(text)
}

/// Runs one text on a connection of this driver.
macro_rules! query {
    ($database:ident) => {
        async fn query(
            connection: &mut <sqlx::$database as sqlx::Database>::Connection,
            text: String,
            doing: &'static str,
        ) -> Result<Vec<<sqlx::$database as sqlx::Database>::Row>, StoreError> {
            let query = sqlx::raw_sql(super::sent(text));
            let rows = sqlx::Executor::fetch_all(connection, query).await;
            rows.map_err(|error| {
                <sqlx::$database as crate::transaction::Dialect>::store_error(error, doing)
            })
        }

        async fn read<T: Send>(
            connection: &mut <sqlx::$database as sqlx::Database>::Connection,
            text: String,
            doing: &'static str,
            read: fn(&<sqlx::$database as sqlx::Database>::Row) -> Result<T, BoxError>,
        ) -> Result<Vec<T>, StoreError> {
            let query = sqlx::raw_sql(super::sent(text));
            let mut rows = sqlx::Executor::fetch(connection, query);
            let mut all = Vec::new();
            while let Some(row) =
                std::future::poll_fn(|cx| futures_core::Stream::poll_next(rows.as_mut(), cx)).await
            {
                let failed = <sqlx::$database as crate::transaction::Dialect>::store_error;
                let row = row.map_err(|error| failed(error, doing))?;
                all.push(read(&row).map_err(damaged)?);
            }
            Ok(all)
        }
    };
}
use query;

/// Has a text go by a clock that is so far ahead of the database's.
pub(super) fn by_clock<DB: sealed::Dialect>(text: String, ahead: i64) -> String {
    match ahead {
        0 => text,
        ahead => text.replace(DB::NOW, &format!("({} + {ahead})", DB::NOW)),
    }
}

/// How many bytes of a payload are written out at most.
#[cfg(any(feature = "mysql", feature = "postgres"))]
const LONGEST_TEXT: usize = 256 * 1024;

/// The columns that are given, and their values written out.
fn written_out<DB: sealed::Dialect>(message: &Writing<'_>) -> String {
    let values = [
        DB::bytes(message.id.as_bytes()),
        DB::bytes(message.key),
        DB::bytes(message.topic.as_bytes()),
        DB::bytes(&message.headers),
        DB::bytes(message.payload),
        match &message.trace_parent {
            Some(trace_parent) => DB::bytes(trace_parent.as_bytes()),
            None => "NULL".to_owned(),
        },
    ];
    values.join(", ")
}

/// Bytes as hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    crate::framing::Hex(bytes).to_string()
}

/// The rows of claims on these keys.
fn claims<DB: sealed::Dialect>(keys: &[&[u8]], token: i64, lease: i64) -> String {
    let row = |key: &&[u8]| {
        let (key, now) = (DB::bytes(key), DB::NOW);
        format!("({key}, {token}, {now} + {lease}, 0, 0, 0)")
    };
    let rows: Vec<_> = keys.iter().map(row).collect();
    rows.join(", ")
}
