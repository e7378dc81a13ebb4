//! The databases of an outbox: how each says what all of them do.

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

use super::{send::Writing, walk::damaged};
use crate::{
    error::BoxError,
    store::{StoreError, sql::Dialect},
    transaction::SqlDatabase,
};

/// A database of sqlx in which an outbox can stand.
pub trait OutboxDatabase: SqlDatabase + sealed::KeepsMessages {}

pub(crate) mod sealed {
    use std::future::Future;

    use sqlx::{Connection, Pool};

    use super::super::{
        relay::sleep::WakeSignal,
        send::{Writing, Written},
        tables::{Column, Tables},
        walk::{DOING, PendingKey, look, met},
    };
    use super::claims;
    use crate::{store::StoreError, transaction::SqlDatabase};

    pub trait KeepsMessages: SqlDatabase {
        /// The statements that keep every other process from making the tables, until the
        /// transaction that is open ends.
        fn lock(_: &Tables) -> String {
            String::new()
        }

        /// The type of a column.
        fn column(column: Column) -> &'static str;

        /// Says behind an `INSERT` of a first row that it changes nothing where the row is there.
        fn unless_there(_: &str) -> String {
            "ON CONFLICT DO NOTHING".to_owned()
        }

        /// Stands behind the columns of a table.
        const TABLE: &'static str;

        /// Whether the indexes of a table are made with it.
        const HAS_INDEXES_INSIDE: bool = false;

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
        fn number(number: i64) -> String {
            number.to_string()
        }

        /// The text that claims these keys for so many microseconds, where no other relay does.
        fn claim(tables: &Tables, keys: &[&[u8]], token: i64, lease: i64) -> String {
            let (table, now) = (&tables.claims, Self::NOW);
            let rows = claims::<Self>(keys, token, lease);
            format!(
                "INSERT INTO {table} (message_key, token, lease_end, attempts, next_attempt, blocked_since)
             VALUES {rows}
             ON CONFLICT (message_key) DO UPDATE SET token = excluded.token, lease_end = excluded.lease_end
             WHERE {table}.lease_end <= {now} AND {table}.next_attempt <= {now} AND {table}.blocked_since = 0"
            )
        }

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

        /// The condition under which a column holds these bytes, however many they are.
        fn holds(column: &str, bytes: &[u8]) -> String {
            format!("{column} = {}", Self::bytes(bytes))
        }

        /// The condition under which these bytes are a part of a column.
        fn contains(column: &str, part: &[u8]) -> String {
            format!("instr({column}, {}) > 0", Self::bytes(part))
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

/// Runs one text, and reads its rows one by one, so that none of them is kept.
pub(super) async fn read<DB: Dialect, T: Send>(
    connection: &mut DB::Connection,
    text: String,
    doing: &'static str,
    read: fn(&DB::Row) -> Result<T, BoxError>,
) -> Result<Vec<T>, StoreError> {
    let mut all = Vec::new();
    let reading = DB::each(connection, text, |next| {
        all.extend(next.right().map(|row| read(&row).map_err(damaged)));
    });
    let done = reading.await;
    done.map_err(|error| DB::store_error(error, doing))?;
    all.into_iter().collect()
}

/// Has a text go by a clock that is so far ahead of the database's.
pub(super) fn by_clock<DB: sealed::KeepsMessages>(text: String, ahead: i64) -> String {
    match ahead {
        0 => text,
        ahead => text.replace(DB::NOW, &format!("({} + {ahead})", DB::NOW)),
    }
}

/// How many bytes of a payload are written out at most.
#[cfg(any(feature = "mysql", feature = "postgres"))]
const LONGEST_TEXT: usize = 256 * 1024;

/// The columns that are given, and their values written out.
fn written_out<DB: sealed::KeepsMessages>(message: &Writing<'_>) -> String {
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

/// The rows of claims on these keys.
fn claims<DB: sealed::KeepsMessages>(keys: &[&[u8]], token: i64, lease: i64) -> String {
    let row = |key: &&[u8]| {
        let (key, now) = (DB::bytes(key), DB::NOW);
        format!("({key}, {token}, {now} + {lease}, 0, 0, 0)")
    };
    let rows: Vec<_> = keys.iter().map(row).collect();
    rows.join(", ")
}
