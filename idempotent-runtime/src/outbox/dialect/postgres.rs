//! Postgres.

use sqlx::postgres::{PgConnection, Postgres};

use super::{hex, query, rows, sealed::Dialect};
use crate::{
    outbox::{
        send::Writing,
        tables::{Column, Tables},
    },
    store::StoreError,
};

const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

impl Dialect for Postgres {
    query!(Postgres);

    /// All statements of one text are a transaction.
    async fn migrate(
        connection: &mut PgConnection,
        tables: &Tables,
        doing: &'static str,
    ) -> Result<(), StoreError> {
        let lock = format!(
            "SELECT pg_advisory_xact_lock(hashtextextended('{}', 7091));\n",
            tables.schema
        );
        let text = lock + &Self::ddl(tables);
        Self::query(connection, text, doing).await.map(drop)
    }

    fn ddl(tables: &Tables) -> String {
        tables.ddl(
            |column| match column {
                Column::Short | Column::Long => "bytea",
                Column::Number => "bigint",
            },
            ("", false),
            "ON CONFLICT DO NOTHING",
        )
    }

    const SESSION: &'static str =
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED";
    const BEGIN: &'static str = "BEGIN";
    const NOW: &'static str = NOW;

    fn number(number: i64) -> String {
        format!("{number}::bigint")
    }

    fn claim(tables: &Tables, keys: &[Vec<u8>], token: i64, lease: i64) -> String {
        let claims = &tables.claims;
        let rows = rows::<Self>(keys, token, lease);
        format!(
            "INSERT INTO {claims} (message_key, token, lease_end, attempts, next_attempt, blocked_since)
             VALUES {rows}
             ON CONFLICT (message_key) DO UPDATE SET token = excluded.token, lease_end = excluded.lease_end
             WHERE {claims}.lease_end <= {NOW} AND {claims}.next_attempt <= {NOW} AND {claims}.blocked_since = 0"
        )
    }

    fn bytes(bytes: &[u8]) -> String {
        format!("'\\x{}'::bytea", hex(bytes))
    }

    /// One statement takes the number and writes the message: the counter stays locked until the
    /// commit.
    fn write(tables: &Tables, message: &Writing) -> String {
        let Tables {
            messages, counters, ..
        } = tables;
        let Writing {
            columns,
            values,
            key,
            ..
        } = message;
        let insert = |number: &str, from: &str| {
            format!(
                "INSERT INTO {messages} ({columns}, number, created)
                 SELECT {values}, {number}, {NOW} {from}
                 ON CONFLICT (id) DO NOTHING RETURNING 1::bigint"
            )
        };
        match message.is_numbered {
            false => insert(NOW, ""),
            true => format!(
                "WITH counted AS (
                     INSERT INTO {counters} AS counter (message_key, number)
                     SELECT {key}, greatest({NOW}, 1 + coalesce((SELECT number FROM {counters} WHERE message_key = ''::bytea), 0))
                     ON CONFLICT (message_key) DO UPDATE SET number = greatest(counter.number + 1, {NOW})
                     RETURNING number AS taken)
                 {}",
                insert("counted.taken", "FROM counted")
            ),
        }
    }

    fn is_there(_: &StoreError) -> bool {
        false
    }
}
