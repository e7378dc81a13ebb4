//! MariaDB and MySQL.

use std::{collections::HashSet, error::Error as _};

use sqlx::mysql::{MySql, MySqlConnectOptions, MySqlConnection};

use super::{LONGEST_TEXT, by_clock, claims, sealed::KeepsMessages, written_out};
use crate::{
    framing::Hex,
    outbox::{
        send::{COLUMNS, DOING, Writing, Written},
        tables::{Column, Tables},
        walk::{self, MOST, PendingKey, damaged, free},
    },
    sha256::sha256,
    store::{
        MYSQL_SESSION, StoreError,
        sql::{Dialect as _, Row as _, sent, url::place},
    },
};

const NOW: &str = "CAST(FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000) AS SIGNED)";

impl KeepsMessages for MySql {
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
    const CURRENT: &'static str = "LOCK IN SHARE MODE";
    const LOCKING: &'static str = "FOR UPDATE";
    const SESSION: &'static str = MYSQL_SESSION;
    const BEGIN: &'static str = "START TRANSACTION";
    const NOW: &'static str = NOW;

    fn number(number: i64) -> String {
        format!("CAST({number} AS SIGNED)")
    }

    /// The token is set first, and the lease depends on it.
    fn claim(tables: &Tables, keys: &[&[u8]], token: i64, lease: i64) -> String {
        let table = &tables.claims;
        let rows = claims::<Self>(keys, token, lease);
        format!(
            "INSERT INTO {table} (message_key, token, lease_end, attempts, next_attempt, blocked_since)
             VALUES {rows}
             ON DUPLICATE KEY UPDATE
                 token = CASE WHEN lease_end <= {NOW} AND next_attempt <= {NOW} AND blocked_since = 0 THEN {token} ELSE token END,
                 lease_end = CASE WHEN token = {token} THEN {NOW} + {lease} ELSE lease_end END"
        )
    }

    /// A variable that was set before is a constant for the next statement, which reads one row of
    /// the index for it. In a recursive query each step would read the index from its beginning.
    async fn walk(
        connection: &mut MySqlConnection,
        tables: &Tables,
        after: &[u8],
    ) -> Result<Vec<PendingKey>, StoreError> {
        let (messages, mut places) = (&tables.messages, Vec::new());
        for steps in [8, 120, MOST - 128] {
            let after = Self::bytes(places.last().map_or(after, |last: &Vec<u8>| last));
            let mut text = format!("SET @idempotent_outbox_0 = {after}");
            for step in 1..=steps {
                let before = step - 1;
                text += &format!(
                    ";\nSELECT @idempotent_outbox_{step} := (SELECT message_key FROM {messages}
                         WHERE message_key > @idempotent_outbox_{before} ORDER BY message_key LIMIT 1)"
                );
            }
            let rows = Self::query(connection, text, walk::DOING).await?;
            let read: Result<Vec<_>, _> = rows.iter().map(|row| row.bytes(0)).collect();
            let met = places.len();
            places.extend(read.map_err(damaged)?.into_iter().flatten());
            if places.len() < met + steps {
                break;
            }
        }
        let taken = taken(connection, tables, &places).await?;
        let met = places.into_iter().map(|place| PendingKey {
            is_due: !taken.contains(&place),
            place,
        });
        Ok(met.collect())
    }

    fn rows(keys: &[&[u8]]) -> String {
        let rows: Vec<_> = keys
            .iter()
            .map(|key| format!("SELECT {}", Self::bytes(key)))
            .collect();
        rows.join(" UNION ALL ")
    }

    fn place(options: &MySqlConnectOptions) -> String {
        place(
            options.get_username(),
            (options.get_host(), options.get_port()),
            options.get_socket(),
            options.get_database(),
        )
    }

    /// A long payload is compared by its hash, because the text has to fit into a packet.
    fn holds(column: &str, bytes: &[u8]) -> String {
        match bytes.len() > LONGEST_TEXT {
            true => {
                let hash = sha256(&mut bytes.to_vec());
                format!("SHA2({column}, 256) = '{}'", Hex(&hash))
            }
            false => format!("{column} = {}", Self::bytes(bytes)),
        }
    }

    const FINDS_OUT: bool = true;

    /// All statements go in one message, and the first one that fails is the last. Only a long
    /// payload follows by itself, as bytes: written out it would take twice the room in its packet.
    /// Outside a transaction, a savepoint is forgotten at once. `INSERT IGNORE` would swallow other
    /// errors than that of an id which is there.
    async fn write(
        connection: &mut MySqlConnection,
        tables: &Tables,
        message: &Writing<'_>,
        ahead: i64,
    ) -> Result<Written, StoreError> {
        let key = Self::bytes(message.key);
        let (text, insert) = texts(tables, message, &key);
        let at = |text| by_clock::<Self>(text, ahead);
        let counted = async {
            let counts = counts(connection, at(text)).await?;
            if let Some(insert) = insert {
                insert_bytes(connection, at(insert), message).await?;
            }
            Ok(counts)
        };
        let (written, may_be_new) = match counted.await {
            Ok(counts) => (Written::New, counts.get(2) == Some(&1)),
            Err(error) => match said(&error) {
                Some(DUPLICATE) => (Written::Old, true),
                Some(NO_SAVEPOINT) => return Ok(Written::Outside),
                _ => return Err(error),
            },
        };
        if message.is_numbered && may_be_new {
            let id = (written == Written::New).then_some(message.id);
            raise(connection, tables, &key, id).await?;
        }
        Ok(written)
    }
}

/// The text that writes a message, and the statement behind it that takes a long one.
fn texts(tables: &Tables, message: &Writing<'_>, key: &str) -> (String, Option<String>) {
    let Tables {
        messages, counters, ..
    } = tables;
    let mut text = "SAVEPOINT idempotent_here; RELEASE SAVEPOINT idempotent_here".to_owned();
    let mut number = NOW;
    if message.is_numbered {
        number = "@idempotent_outbox_number";
        text += &format!(
            ";\nINSERT INTO {counters} (message_key, number) VALUES ({key}, {number} := {NOW})
             ON DUPLICATE KEY UPDATE number = {number} := greatest({counters}.number + 1, {NOW})"
        );
    }
    let is_long = message.payload.len() > LONGEST_TEXT;
    // A server may take an empty parameter for NULL.
    let values = match is_long {
        true if message.headers.is_empty() => "?, ?, ?, x'', ?, ?".to_owned(),
        true => "?, ?, ?, ?, ?, ?".to_owned(),
        false => written_out::<MySql>(message),
    };
    let insert = format!(
        "INSERT INTO {messages} ({COLUMNS}, number, created) VALUES ({values}, {number}, {NOW})"
    );
    if is_long {
        return (text, Some(insert));
    }
    (text + ";\n" + &insert, None)
}

/// Writes a message by a statement with parameters, which carry its bytes as they are. The
/// connection keeps no statement.
async fn insert_bytes(
    connection: &mut MySqlConnection,
    insert: String,
    message: &Writing<'_>,
) -> Result<(), StoreError> {
    let mut query = sqlx::query(sent(insert))
        .persistent(false)
        .bind(message.id.as_bytes())
        .bind(message.key)
        .bind(message.topic.as_bytes());
    if !message.headers.is_empty() {
        query = query.bind(&message.headers);
    }
    let query = query
        .bind(message.payload)
        .bind(message.trace_parent.as_deref().map(str::as_bytes));
    let inserted = sqlx::Executor::execute(connection, query).await;
    inserted
        .map(drop)
        .map_err(|error| MySql::store_error(error, DOING))
}

/// Raises a new counter above the floor, and the message that it has counted. Only a new one is
/// worth the look, and a statement that writes would lock the floor and keep a purge waiting.
async fn raise(
    connection: &mut MySqlConnection,
    tables: &Tables,
    key: &str,
    id: Option<&str>,
) -> Result<(), StoreError> {
    let Tables {
        messages, counters, ..
    } = tables;
    let mut text = format!(
        "SELECT number INTO @idempotent_outbox_floor FROM {counters} WHERE message_key = x'';
         UPDATE {counters} SET number = @idempotent_outbox_floor + 1
         WHERE message_key = {key} AND number <= @idempotent_outbox_floor"
    );
    if let Some(id) = id {
        let id = MySql::bytes(id.as_bytes());
        text += &format!(
            ";\nUPDATE {messages} SET number = @idempotent_outbox_floor + 1
             WHERE id = {id} AND number <= @idempotent_outbox_floor"
        );
    }
    MySql::query(connection, text, DOING).await.map(drop)
}

/// Runs a text of several statements, and tells how many rows each has changed: an `INSERT` that
/// found a row and changed it counts two.
async fn counts(connection: &mut MySqlConnection, text: String) -> Result<Vec<u64>, StoreError> {
    let mut counts = Vec::new();
    let counting = MySql::each(connection, text, |next| {
        counts.extend(next.left().map(|done| done.rows_affected()));
    });
    let done = counting.await;
    done.map_err(|error| MySql::store_error(error, DOING))?;
    Ok(counts)
}

/// Which of these keys no relay may claim now.
async fn taken(
    connection: &mut MySqlConnection,
    tables: &Tables,
    places: &[Vec<u8>],
) -> Result<HashSet<Vec<u8>>, StoreError> {
    if places.is_empty() {
        return Ok(HashSet::new());
    }
    let keys: Vec<_> = places.iter().map(|place| MySql::bytes(place)).collect();
    let look = format!(
        "SELECT claimed.message_key FROM {} AS claimed WHERE claimed.message_key IN ({}) AND NOT {}",
        tables.claims,
        keys.join(", "),
        free::<MySql>()
    );
    let rows = MySql::query(connection, look, walk::DOING).await?;
    let taken: Result<Vec<_>, _> = rows.iter().map(|row| row.bytes(0)).collect();
    Ok(taken.map_err(damaged)?.into_iter().flatten().collect())
}

/// The codes of a second row of one key, and of a savepoint that is not there.
const DUPLICATE: u16 = 1062;
const NO_SAVEPOINT: u16 = 1305;

/// The code by which the server says this.
fn said(error: &StoreError) -> Option<u16> {
    let mut cause = error.source();
    while let Some(one) = cause {
        let driver = one
            .downcast_ref::<sqlx::Error>()
            .and_then(sqlx::Error::as_database_error);
        let said = driver.and_then(|error| error.try_downcast_ref());
        if let Some(said) = said.map(sqlx::mysql::MySqlDatabaseError::number) {
            return Some(said);
        }
        cause = one.source();
    }
    None
}
