//! Our tables in Postgres, and who makes them.

use sqlx::{Connection, Postgres, postgres::PgConnection};

use super::{failure, rows::without_nul, statements::NOW};
use crate::store::{
    StoreError,
    sql::{
        Dialect, INDEXED_NAME, TablePrefix,
        migrate::{DOING, Schema, take_missing},
        version::SchemaStep,
    },
};

/// How long a start waits for another one that migrates.
const PATIENCE: &str = "30s";

impl Schema for Postgres {
    const NOW: &'static str = NOW;

    /// A page is not filled to the brim, so that the next version of a row finds room on it and no
    /// index is written.
    fn steps(prefix: &TablePrefix) -> [SchemaStep; 3] {
        let records = format!(
            "CREATE TABLE IF NOT EXISTS {prefix}records (
    id bytea NOT NULL PRIMARY KEY,
    version bytea NOT NULL,
    operation text NOT NULL,
    scope bytea NOT NULL,
    call_key bytea NOT NULL,
    fingerprint bytea NOT NULL,
    digests bytea NOT NULL,
    state bigint NOT NULL,
    token bigint NOT NULL,
    attempt bigint NOT NULL,
    attempt_id bytea NOT NULL,
    holder text NOT NULL,
    trace_parent text,
    on_crash bigint NOT NULL,
    lease_end bigint NOT NULL,
    created bigint NOT NULL,
    finished bigint,
    expires bigint NOT NULL,
    outcome_kind bigint,
    outcome_schema bigint,
    outcome bytea,
    purge_from bigint NOT NULL,
    waited boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);
CREATE INDEX IF NOT EXISTS {prefix}records_purge ON {prefix}records (purge_from);
"
        );
        let steps = format!(
            "CREATE TABLE IF NOT EXISTS {prefix}steps (
    record bytea NOT NULL,
    version bytea NOT NULL,
    name bytea NOT NULL,
    label text NOT NULL,
    state bigint NOT NULL,
    attempt_id bytea NOT NULL,
    on_crash bigint NOT NULL,
    fingerprint bytea NOT NULL,
    digests bytea NOT NULL,
    outcome_kind bigint,
    outcome_schema bigint,
    outcome bytea,
    undo_number bigint,
    life bigint NOT NULL,
    PRIMARY KEY (record, name)
);
"
        );
        // Names are as long as people make them, and an index row has 2,704 bytes at most. Calls
        // can still look while the index is made, and not while a column is added.
        let notes = format!(
            "CREATE INDEX IF NOT EXISTS {prefix}records_operation
    ON {prefix}records (left(operation, {INDEXED_NAME}) COLLATE \"C\", created, id);
ALTER TABLE {prefix}records ADD COLUMN IF NOT EXISTS note text,
    ADD COLUMN IF NOT EXISTS note_by text,
    ADD COLUMN IF NOT EXISTS note_of bytea;
ALTER TABLE {prefix}steps ADD COLUMN IF NOT EXISTS note text,
    ADD COLUMN IF NOT EXISTS note_by text,
    ADD COLUMN IF NOT EXISTS note_of bytea;
"
        );
        [records, steps, notes].map(SchemaStep::first)
    }

    fn schema_table(prefix: &TablePrefix) -> String {
        format!(
            "CREATE TABLE IF NOT EXISTS {prefix}schema (
    version bigint NOT NULL PRIMARY KEY,
    applied bigint NOT NULL,
    usable_from bigint NOT NULL,
    store text NOT NULL DEFAULT replace(gen_random_uuid()::text, '-', '')
);
"
        )
    }

    fn of_operation(name: &str) -> String {
        let name = Self::text(&without_nul(name));
        format!(
            "left(operation, {INDEXED_NAME}) COLLATE \"C\" = left({name}, {INDEXED_NAME}) COLLATE \"C\" AND operation = {name}"
        )
    }

    /// The planner chooses.
    fn by_index(_: &str) -> String {
        String::new()
    }

    const ID_APART: &'static str = "id || ''::bytea";

    /// Reading a table makes the connection hear of tables that others made since its transaction
    /// began; the function alone would answer from what it remembers.
    fn stands(table: &str) -> String {
        format!("SELECT count(*) FROM pg_catalog.pg_class WHERE oid = to_regclass('{table}')")
    }

    async fn migrate_by(
        steps: &[SchemaStep],
        connection: &mut PgConnection,
        prefix: &TablePrefix,
    ) -> Result<(), StoreError> {
        let mut tries = 1..MAX_TRIES;
        loop {
            match migrate_once(steps, connection, prefix).await {
                Err(error) if failure::is_deadlock(&error) && tries.next().is_some() => {}
                migrated => return migrated,
            }
        }
    }
}

/// How often a migration is tried that a call has met on both tables, in the other order.
const MAX_TRIES: u32 = 5;

async fn migrate_once(
    steps: &[SchemaStep],
    connection: &mut PgConnection,
    prefix: &TablePrefix,
) -> Result<(), StoreError> {
    let failed = |error| failure::of(error, DOING);
    let mut transaction = connection.begin_with(BEGIN).await.map_err(failed)?;
    Postgres::query(&mut transaction, lock(prefix), DOING).await?;
    take_missing::<Postgres>(steps, &mut transaction, prefix).await?;
    transaction.commit().await.map_err(failed)
}

/// Begins the transaction of a migration. In a stricter isolation, which may be the default, it
/// would see only what was there when it asked for the lock, and not what the others did for whom
/// it then waited.
pub(super) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// Takes the lock of a migration. It ends with the transaction, also behind a proxy that pools
/// them.
pub(super) fn lock(prefix: &TablePrefix) -> String {
    format!(
        "SET LOCAL lock_timeout = '{PATIENCE}';
         SELECT pg_advisory_xact_lock(hashtextextended('{prefix}schema', 7091));"
    )
}

#[cfg(test)]
mod tests {
    use sqlx::Row;
    use tokio::sync::Barrier;

    use super::*;
    use crate::store::{
        PostgresStore,
        postgres::rows::written_out,
        sql::{
            Value,
            tests::{earlier, upgrade},
        },
    };

    upgrade::upgrades_on_a_server!(
        PostgresStore,
        Postgres,
        "IDEMPOTENT_TEST_POSTGRES_URL",
        |(text, _, values)| written_out(&text, values)
    );
}
