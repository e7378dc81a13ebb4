//! SQLite.

use sqlx::sqlite::{Sqlite, SqliteConnectOptions, SqliteConnection};

use super::{by_clock, claims, sealed::KeepsMessages, written_out};
use crate::{
    outbox::{
        send::{COLUMNS, DOING, Writing, Written},
        tables::{Column, Tables},
    },
    store::{StoreError, sql::Dialect as _},
};

const NOW: &str = "CAST(unixepoch('subsec') * 1000000 AS INTEGER)";

impl KeepsMessages for Sqlite {
    async fn migrate(
        connection: &mut SqliteConnection,
        tables: &Tables,
        doing: &'static str,
    ) -> Result<(), StoreError> {
        Self::query(connection, tables.ddl::<Self>(), doing)
            .await
            .map(drop)
    }

    fn column(column: Column) -> &'static str {
        match column {
            Column::Short | Column::Long => "BLOB",
            Column::Number => "INTEGER",
        }
    }

    fn unless_there(_: &str) -> String {
        "ON CONFLICT DO NOTHING".to_owned()
    }

    const TABLE: &'static str = " STRICT";
    const HAS_INDEXES_INSIDE: bool = false;
    const LOCKING: &'static str = "";
    const SESSION: &'static str = "SELECT 1";
    const BEGIN: &'static str = "BEGIN IMMEDIATE";
    const NOW: &'static str = NOW;

    fn number(number: i64) -> String {
        number.to_string()
    }

    fn claim(tables: &Tables, keys: &[&[u8]], token: i64, lease: i64) -> String {
        let table = &tables.claims;
        let rows = claims::<Self>(keys, token, lease);
        format!(
            "INSERT INTO {table} (message_key, token, lease_end, attempts, next_attempt, blocked_since)
             VALUES {rows}
             ON CONFLICT (message_key) DO UPDATE SET token = excluded.token, lease_end = excluded.lease_end
             WHERE {table}.lease_end <= {NOW} AND {table}.next_attempt <= {NOW} AND {table}.blocked_since = 0"
        )
    }

    fn place(options: &SqliteConnectOptions) -> String {
        options.get_filename().display().to_string()
    }

    /// One writer at a time has the database until its commit, so that two statements are as good
    /// as one.
    async fn write(
        connection: &mut SqliteConnection,
        tables: &Tables,
        message: &Writing<'_>,
        ahead: i64,
    ) -> Result<Written, StoreError> {
        let Tables {
            messages, counters, ..
        } = tables;
        let (key, values) = (Self::bytes(message.key), written_out::<Self>(message));
        let (count, number) = match message.is_numbered {
            false => (String::new(), NOW.to_owned()),
            true => (
                format!(
                    "INSERT INTO {counters} (message_key, number)
                     SELECT {key}, max({NOW}, 1 + coalesce((SELECT number FROM {counters} WHERE message_key = x''), 0)) WHERE true
                     ON CONFLICT (message_key) DO UPDATE SET number = max(number + 1, {NOW});\n"
                ),
                format!("(SELECT number FROM {counters} WHERE message_key = {key})"),
            ),
        };
        let text = format!(
            "{count}INSERT INTO {messages} ({COLUMNS}, number, created)
             SELECT {values}, {number}, {NOW} WHERE true
             ON CONFLICT (id) DO NOTHING RETURNING 1"
        );
        let rows = Self::query(connection, by_clock::<Self>(text, ahead), DOING).await?;
        Ok(match rows.is_empty() {
            true => Written::Old,
            false => Written::New,
        })
    }
}
