//! MariaDB and MySQL.

use std::error::Error as _;

use sqlx::mysql::{MySql, MySqlConnection};

use super::{by_clock, hex, query, rows, sealed::Dialect, written_out};
use crate::{
    outbox::{
        send::{COLUMNS, DOING, Writing},
        tables::{Column, Tables},
    },
    store::StoreError,
};

const NOW: &str = "CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED)";

impl Dialect for MySql {
    query!(MySql);

    /// Each statement commits by itself here, and changes nothing when it is repeated.
    async fn migrate(
        connection: &mut MySqlConnection,
        tables: &Tables,
        doing: &'static str,
    ) -> Result<(), StoreError> {
        Self::query(connection, tables.ddl::<Self>(), doing)
            .await
            .map(drop)
    }

    fn column(column: Column) -> &'static str {
        match column {
            Column::Short => "VARBINARY(256)",
            Column::Long => "LONGBLOB",
            Column::Number => "BIGINT",
        }
    }

    fn unless_there(column: &str) -> String {
        format!("ON DUPLICATE KEY UPDATE {column} = {column}")
    }

    const TABLE: &'static str = " ENGINE = InnoDB";
    const HAS_INDEXES_INSIDE: bool = true;
    const LOCKING: &'static str = "FOR UPDATE";
    const SESSION: &'static str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";
    const BEGIN: &'static str = "START TRANSACTION";
    const NOW: &'static str = NOW;

    fn number(number: i64) -> String {
        format!("CAST({number} AS SIGNED)")
    }

    /// What is set first decides about what is set next.
    fn claim(tables: &Tables, keys: &[Vec<u8>], token: i64, lease: i64) -> String {
        let claims = &tables.claims;
        let rows = rows::<Self>(keys, token, lease);
        format!(
            "INSERT INTO {claims} (message_key, token, lease_end, attempts, next_attempt, blocked_since)
             VALUES {rows}
             ON DUPLICATE KEY UPDATE
                 token = CASE WHEN lease_end <= {NOW} AND next_attempt <= {NOW} AND blocked_since = 0 THEN {token} ELSE token END,
                 lease_end = CASE WHEN token = {token} THEN {NOW} + {lease} ELSE lease_end END"
        )
    }

    fn bytes(bytes: &[u8]) -> String {
        match bytes {
            [] => "''".to_owned(),
            bytes => format!("x'{}'", hex(bytes)),
        }
    }

    /// All statements go in one message. The floor goes into a variable, because a statement that
    /// writes would lock the row, and keep a purge waiting. `INSERT IGNORE` would swallow other
    /// errors than that of an id which is there.
    async fn write(
        connection: &mut MySqlConnection,
        tables: &Tables,
        message: &Writing<'_>,
        ahead: i64,
    ) -> Result<bool, StoreError> {
        let Tables {
            messages, counters, ..
        } = tables;
        let (key, values) = (Self::bytes(message.key), written_out::<Self>(message));
        let (count, number, from) = match message.is_numbered {
            false => (String::new(), NOW.to_owned(), String::new()),
            true => (
                format!(
                    "SELECT number INTO @idempotent_outbox_floor FROM {counters} WHERE message_key = '';
                     INSERT INTO {counters} (message_key, number)
                     VALUES ({key}, greatest({NOW}, 1 + @idempotent_outbox_floor))
                     ON DUPLICATE KEY UPDATE number = greatest({counters}.number + 1, {NOW});\n"
                ),
                "number".to_owned(),
                format!("FROM {counters} WHERE message_key = {key}"),
            ),
        };
        let text = format!(
            "{count}INSERT INTO {messages} ({COLUMNS}, number, created)
             SELECT {values}, {number}, {NOW} {from}"
        );
        match Self::query(connection, by_clock::<Self>(text, ahead), DOING).await {
            Ok(_) => Ok(true),
            Err(error) if is_there(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Whether this error says that a message of this id is there.
fn is_there(error: &StoreError) -> bool {
    let mut cause = error.source();
    while let Some(one) = cause {
        let driver = one
            .downcast_ref::<sqlx::Error>()
            .and_then(sqlx::Error::as_database_error);
        let said = driver.and_then(|error| error.try_downcast_ref());
        if said.is_some_and(|said: &sqlx::mysql::MySqlDatabaseError| said.number() == 1062) {
            return true;
        }
        cause = one.source();
    }
    false
}
