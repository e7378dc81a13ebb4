//! Postgres.

use sqlx::{
    PgPool,
    postgres::{PgConnectOptions, PgConnection, Postgres},
};

use super::{LONGEST_TEXT, by_clock, sealed::KeepsMessages, written_out};
use crate::{
    outbox::{
        relay::sleep::WakeSignal,
        send::{COLUMNS, DOING, Writing, Written},
        tables::{Column, Tables},
    },
    store::{
        StoreError,
        notifications::{Audience, HELLO, listen},
        pool::{Limits, ServerPlace},
        postgres::listen::{Notifications, place},
        sql::{Dialect as _, sent},
    },
};

const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

impl KeepsMessages for Postgres {
    /// The lock ends with the transaction.
    fn lock(tables: &Tables) -> String {
        format!(
            "SELECT pg_advisory_xact_lock(hashtextextended('{}', 7091));\n",
            tables.schema
        )
    }

    fn column(column: Column) -> &'static str {
        match column {
            Column::Short | Column::Long => "bytea",
            Column::Number => "bigint",
        }
    }

    const TABLE: &'static str = "";
    const LOCKING: &'static str = "FOR UPDATE";
    /// It sets nothing where nothing is to be set: behind a proxy that pools transactions, others
    /// would have the setting, too.
    const SESSION: &'static str =
        "SELECT set_config('default_transaction_isolation', 'read committed', false)
         WHERE current_setting('default_transaction_isolation') <> 'read committed'";
    const BEGIN: &'static str = "BEGIN";
    const NOW: &'static str = NOW;

    fn number(number: i64) -> String {
        format!("{number}::bigint")
    }

    fn contains(column: &str, part: &[u8]) -> String {
        format!("position({} IN {column}) > 0", Self::bytes(part))
    }

    async fn listen(pool: PgPool, channel: String, signal: WakeSignal) {
        let place = ServerPlace::of_pool(pool);
        let mut notifications = Notifications::of(&channel.into(), place, Limits::default());
        listen(&mut notifications, &signal, &signal.is_live).await;
    }

    fn place(options: &PgConnectOptions) -> String {
        place(options)
    }

    /// One statement takes the number and writes the message: the counter stays locked until the
    /// commit. The server notifies only where a relay sleeps, because that costs a lock of all at
    /// the commit.
    ///
    /// The connection keeps no statement of it: it may forget what was prepared there, and a proxy
    /// may send the next transaction elsewhere. A long payload goes as bytes, in a message of its
    /// own.
    async fn write(
        connection: &mut PgConnection,
        tables: &Tables,
        message: &Writing<'_>,
        ahead: i64,
    ) -> Result<Written, StoreError> {
        let is_long = message.payload.len() > LONGEST_TEXT;
        let (key, values) = match is_long {
            true => ("$2".to_owned(), "$1, $2, $3, $4, $5, $6".to_owned()),
            false => (Self::bytes(message.key), written_out::<Self>(message)),
        };
        let text = write(tables, message.is_numbered, &key, &values);
        let text = by_clock::<Self>(text, ahead);
        let new = |is_empty| match is_empty {
            true => Written::Old,
            false => Written::New,
        };
        if !is_long {
            let rows = Self::query(connection, text, DOING).await?;
            return Ok(new(rows.is_empty()));
        }
        let query = sqlx::query(sent(text))
            .persistent(false)
            .bind(message.id.as_bytes())
            .bind(message.key)
            .bind(message.topic.as_bytes())
            .bind(&message.headers)
            .bind(message.payload)
            .bind(message.trace_parent.as_deref().map(str::as_bytes));
        let rows = sqlx::Executor::fetch_all(connection, query).await;
        let failed = |error| Self::store_error(error, DOING);
        Ok(new(rows.map_err(failed)?.is_empty()))
    }
}

fn write(tables: &Tables, is_numbered: bool, key: &str, values: &str) -> String {
    let Tables {
        messages,
        counters,
        relays,
        channel,
        ..
    } = tables;
    let (count, number, from) = match is_numbered {
        false => (String::new(), NOW, ""),
        true => (
            format!(
                "counted AS (
                     INSERT INTO {counters} AS counter (message_key, number)
                     SELECT {key}, greatest({NOW}, 1 + (SELECT number FROM {counters} WHERE message_key = ''::bytea))
                     ON CONFLICT (message_key) DO UPDATE SET number = greatest(counter.number + 1, {NOW})
                     RETURNING number AS taken),"
            ),
            "counted.taken",
            "FROM counted",
        ),
    };
    format!(
        "WITH {count} written AS (
             INSERT INTO {messages} ({COLUMNS}, number, created)
             SELECT {values}, {number}, {NOW} {from}
             ON CONFLICT (id) DO NOTHING RETURNING 1)
         SELECT CASE WHEN EXISTS (SELECT 1 FROM {relays} WHERE sleeps_until > {NOW})
             THEN pg_notify('{channel}', '')::text END FROM written"
    )
}

impl Audience for WakeSignal {
    fn told(&self, message: &str) {
        if message != HELLO {
            self.wake.notify_one();
        }
    }

    fn look(&self) {
        self.wake.notify_one();
    }

    fn is_there(&self) -> bool {
        true
    }
}
