//! Our tables, and how they come to be: a migrator of our own, with a version table of its own, so
//! that the application's migrations never meet it.

use sqlx::{
    AssertSqlSafe, Connection, Executor, Row,
    postgres::{PgConnection, PgRow},
};

use super::{failure, statements::NOW};
use crate::store::{
    StoreError,
    sql::{
        TablePrefix,
        version::{self as schema, Found, SchemaStep},
    },
};

const DOING: &str = "migrating the schema";

/// How long a start waits for another one that migrates.
const PATIENCE: &str = "30s";

/// Every step that was ever released, oldest first: the version of the schema is the number of
/// steps. A released step never changes.
///
/// A step changes nothing where what it makes is there: the versions may have been deleted with all
/// other rows, as test suites do.
///
/// A page is not filled to the brim, so that the next version of a row finds room on it and no
/// index is written.
pub(super) fn steps(prefix: &TablePrefix) -> [SchemaStep; 2] {
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
    [records, steps].map(|text| SchemaStep {
        text,
        usable_from: 1,
    })
}

/// The statements that make the tables, for people who run their own migrations.
pub(super) fn ddl(prefix: &TablePrefix) -> String {
    schema::ddl(schema_table(prefix), &steps(prefix), |reached| {
        applied(prefix, reached)
    })
}

/// Tells whether there is nothing to do, as at most starts. A look takes no lock and needs no right
/// to create.
pub(super) async fn is_done(
    connection: &mut PgConnection,
    prefix: &TablePrefix,
) -> Result<bool, StoreError> {
    let found = find_schema(connection, prefix)
        .await
        .map_err(|error| failure::of(error, DOING))?;
    if !schema::is_usable(found, steps(prefix).len(), DOING)? {
        return Ok(false);
    }
    find_records(connection, prefix, DOING).await?;
    Ok(true)
}

/// Brings the tables to this build's version. Safe to call at every start, and by several processes
/// at once.
pub(super) async fn migrate(
    connection: &mut PgConnection,
    prefix: &TablePrefix,
) -> Result<(), StoreError> {
    migrate_by(&steps(prefix), connection, prefix).await
}

async fn migrate_by(
    steps: &[SchemaStep],
    connection: &mut PgConnection,
    prefix: &TablePrefix,
) -> Result<(), StoreError> {
    let failed = |error| failure::of(error, DOING);
    let mut transaction = connection.begin_with(BEGIN).await.map_err(failed)?;
    run(&mut transaction, lock(prefix)).await.map_err(failed)?;
    let found = find_schema(&mut transaction, prefix)
        .await
        .map_err(failed)?;
    if !schema::is_usable(found, steps.len(), DOING)? {
        run(&mut transaction, schema_table(prefix))
            .await
            .map_err(failed)?;
        for (reached, step) in schema::missing(steps, found) {
            let step = taken(prefix, reached, step);
            run(&mut transaction, step).await.map_err(failed)?;
        }
    }
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

/// Tells whether this build can use the tables.
pub(super) async fn check_schema(
    connection: &mut PgConnection,
    prefix: &TablePrefix,
) -> Result<(), StoreError> {
    const DOING: &str = "checking the schema";
    let found = find_schema(connection, prefix)
        .await
        .map_err(|error| failure::of(error, DOING))?;
    schema::check(found, steps(prefix).len(), DOING)?;
    find_records(connection, prefix, DOING).await
}

/// Tells the id of the store.
pub(super) async fn find_id(
    connection: &mut PgConnection,
    prefix: &TablePrefix,
) -> Result<String, StoreError> {
    let found = row(connection, schema::id(prefix)).await;
    let id = found.and_then(|row| row.try_get(0));
    id.map_err(|error| failure::of(error, DOING))
}

/// Finds the table of the records, which may be gone whatever that of the versions says.
async fn find_records(
    connection: &mut PgConnection,
    prefix: &TablePrefix,
    doing: &'static str,
) -> Result<(), StoreError> {
    let tables = count(connection, format!("{prefix}records")).await;
    match tables.map_err(|error| failure::of(error, doing))? {
        0 => Err(schema::records_are_missing(prefix, doing)),
        _ => Ok(()),
    }
}

/// Which schema stands there.
async fn find_schema(connection: &mut PgConnection, prefix: &TablePrefix) -> sqlx::Result<Found> {
    if count(connection, format!("{prefix}schema")).await? == 0 {
        return Ok(Found::default());
    }
    let row = row(connection, schema::look(prefix)).await?;
    Ok(Found {
        version: row.try_get(0)?,
        usable_from: row.try_get(1)?,
    })
}

/// How many tables of this name there are where we look for ours.
async fn count(connection: &mut PgConnection, table: String) -> sqlx::Result<i64> {
    row(connection, stands(&table)).await?.try_get(0)
}

/// Counts the tables of this name. Reading a table makes the connection hear of tables that others
/// made since its transaction began; the function alone would answer from what it remembers.
pub(super) fn stands(table: &str) -> String {
    format!("SELECT count(*) FROM pg_catalog.pg_class WHERE oid = to_regclass('{table}')")
}

/// Runs statements without preparing them, because a proxy may send the second half of a
/// preparation elsewhere.
async fn run(connection: &mut PgConnection, statements: String) -> sqlx::Result<()> {
    connection
        .execute(sqlx::raw_sql(AssertSqlSafe(statements)))
        .await
        .map(drop)
}

async fn row(connection: &mut PgConnection, query: String) -> sqlx::Result<PgRow> {
    let query = sqlx::raw_sql(AssertSqlSafe(query));
    connection.fetch_one(query).await
}

pub(super) fn schema_table(prefix: &TablePrefix) -> String {
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

/// A step, and the note that it is taken.
pub(super) fn taken(prefix: &TablePrefix, reached: Found, step: &SchemaStep) -> String {
    format!("{}{}", step.text, applied(prefix, reached))
}

fn applied(prefix: &TablePrefix, reached: Found) -> String {
    format!("{};\n", schema::note(prefix, reached, NOW))
}

#[cfg(test)]
mod tests {
    use tokio::sync::Barrier;

    use super::*;
    use crate::store::{PostgresStore, sql::upgrade};

    upgrade::upgrades_on_a_server!(PostgresStore, PgConnection, "IDEMPOTENT_TEST_POSTGRES_URL");
}
