//! SQLite.

use sqlx::sqlite::{Sqlite, SqliteConnectOptions, SqliteConnection};

use super::{by_clock, sealed::KeepsMessages, written_out};
use crate::{
    outbox::{
        send::{COLUMNS, DOING, Writing, Written},
        tables::{Column, Tables},
    },
    store::{StoreError, sql::Dialect as _},
};

const NOW: &str = "CAST(unixepoch('subsec') * 1000000 AS INTEGER)";

impl KeepsMessages for Sqlite {
    fn column(column: Column) -> &'static str {
        match column {
            Column::Short | Column::Long => "BLOB",
            Column::Number => "INTEGER",
        }
    }

    const TABLE: &'static str = " STRICT";
    const LOCKING: &'static str = "";
    const SESSION: &'static str = "SELECT 1";
    const BEGIN: &'static str = "BEGIN IMMEDIATE";
    const NOW: &'static str = NOW;

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
