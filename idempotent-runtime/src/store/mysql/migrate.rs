//! Our tables, and how they come to be: a migrator of our own, with a version table of its own, so
//! that the application's migrations never meet it.

use sqlx::{
    AssertSqlSafe, Executor, Row,
    mysql::{MySqlConnection, MySqlRow},
};

use super::{failure, statements::NOW};
use crate::store::{
    StoreError, StoreErrorKind,
    sql::{
        TablePrefix,
        version::{self as schema, Found, SchemaStep},
    },
};

const DOING: &str = "migrating the schema";

/// How many seconds a start waits for another one that migrates.
const PATIENCE: u32 = 30;

/// Every step that was ever released, oldest first: the version of the schema is the number of
/// steps. A released step never changes.
///
/// A change of a table commits by itself here, so a process may die between a step and the note
/// that it was done. So a step is one statement. When it is repeated, it changes nothing, or is
/// refused because what it makes is there.
pub(super) fn steps(prefix: &TablePrefix) -> [SchemaStep; 2] {
    let records = format!(
        "CREATE TABLE IF NOT EXISTS {prefix}records (
    id BINARY(32) NOT NULL PRIMARY KEY,
    version BINARY(16) NOT NULL,
    operation MEDIUMTEXT NOT NULL,
    scope MEDIUMBLOB NOT NULL,
    call_key MEDIUMBLOB NOT NULL,
    fingerprint BINARY(32) NOT NULL,
    digests MEDIUMBLOB NOT NULL,
    state BIGINT NOT NULL,
    token BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    attempt_id BINARY(16) NOT NULL,
    holder MEDIUMTEXT NOT NULL,
    trace_parent MEDIUMTEXT,
    on_crash BIGINT NOT NULL,
    lease_end BIGINT NOT NULL,
    created BIGINT NOT NULL,
    finished BIGINT,
    expires BIGINT NOT NULL,
    outcome_kind BIGINT,
    outcome_schema BIGINT,
    outcome LONGBLOB,
    purge_from BIGINT NOT NULL,
    KEY {prefix}records_purge (purge_from)
) {OF_TABLES};
"
    );
    let steps = format!(
        "CREATE TABLE IF NOT EXISTS {prefix}steps (
    record BINARY(32) NOT NULL,
    version BINARY(16) NOT NULL,
    name BINARY(32) NOT NULL,
    label MEDIUMTEXT NOT NULL,
    state BIGINT NOT NULL,
    attempt_id BINARY(16) NOT NULL,
    on_crash BIGINT NOT NULL,
    fingerprint BINARY(32) NOT NULL,
    digests MEDIUMBLOB NOT NULL,
    outcome_kind BIGINT,
    outcome_schema BIGINT,
    outcome LONGBLOB,
    undo_number BIGINT,
    life BIGINT NOT NULL,
    PRIMARY KEY (record, name)
) {OF_TABLES};
"
    );
    [records, steps].map(|text| SchemaStep {
        text,
        usable_from: 1,
    })
}

/// Rows that are locked one by one, and texts that are equal only when they are the same.
const OF_TABLES: &str =
    "ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin";

/// The statements that make the tables, for people who run their own migrations.
pub(super) fn ddl(prefix: &TablePrefix) -> String {
    schema::ddl(schema_table(prefix), &steps(prefix), |reached| {
        applied(prefix, reached)
    })
}

/// Tells whether there is nothing to do, as at most starts. A look takes no lock and needs no right
/// to create.
pub(super) async fn is_done(
    connection: &mut MySqlConnection,
    prefix: &TablePrefix,
) -> Result<bool, StoreError> {
    let found = find_schema(connection, prefix, DOING).await?;
    if !schema::is_usable(found, steps(prefix).len(), DOING)? {
        return Ok(false);
    }
    find_records(connection, prefix, DOING).await?;
    Ok(true)
}

/// Brings the tables to this build's version. Safe to call at every start, and by several processes
/// at once.
pub(super) async fn migrate(
    connection: &mut MySqlConnection,
    prefix: &TablePrefix,
) -> Result<(), StoreError> {
    migrate_by(&steps(prefix), connection, prefix).await
}

async fn migrate_by(
    steps: &[SchemaStep],
    connection: &mut MySqlConnection,
    prefix: &TablePrefix,
) -> Result<(), StoreError> {
    take_lock(connection, prefix).await?;
    let migrated = migrate_alone(steps, connection, prefix).await;
    let released = one(connection, release(prefix)).await;
    migrated?;
    released.map_err(|error| failure::of(error, DOING))?;
    Ok(())
}

async fn migrate_alone(
    steps: &[SchemaStep],
    connection: &mut MySqlConnection,
    prefix: &TablePrefix,
) -> Result<(), StoreError> {
    let found = find_schema(connection, prefix, DOING).await?;
    if schema::is_usable(found, steps.len(), DOING)? {
        return Ok(());
    }
    run(connection, schema_table(prefix)).await?;
    for (reached, step) in schema::missing(steps, found) {
        take(connection, step.text.clone()).await?;
        run(connection, applied(prefix, reached)).await?;
    }
    Ok(())
}

/// Tells whether this build can use the tables.
pub(super) async fn check_schema(
    connection: &mut MySqlConnection,
    prefix: &TablePrefix,
) -> Result<(), StoreError> {
    const DOING: &str = "checking the schema";
    let found = find_schema(connection, prefix, DOING).await?;
    schema::check(found, steps(prefix).len(), DOING)?;
    find_records(connection, prefix, DOING).await
}

/// Tells the id of the store.
pub(super) async fn find_id(
    connection: &mut MySqlConnection,
    prefix: &TablePrefix,
) -> Result<String, StoreError> {
    let found = row(connection, schema::id(prefix)).await;
    let id = found.and_then(|row| row.try_get(0));
    id.map_err(|error| failure::of(error, DOING))
}

/// Finds the table of the records, which may be gone whatever that of the versions says. A look at
/// the table itself would wait for a lock on it.
async fn find_records(
    connection: &mut MySqlConnection,
    prefix: &TablePrefix,
    doing: &'static str,
) -> Result<(), StoreError> {
    let tables = one(connection, stands(prefix)).await;
    match tables.map_err(|error| failure::of(error, doing))? {
        Some(0) => Err(schema::records_are_missing(prefix, doing)),
        _ => Ok(()),
    }
}

/// Counts the tables of the records.
pub(super) fn stands(prefix: &TablePrefix) -> String {
    format!(
        "SELECT COUNT(*) FROM information_schema.tables
         WHERE table_schema = DATABASE() AND table_name = '{prefix}records'"
    )
}

/// Takes a lock of the server's, which has one list of names for all databases. The server answers
/// whether it gave the lock. If it is asked to wait for ever, MariaDB does not wait at all.
pub(super) fn lock(prefix: &TablePrefix) -> String {
    format!("SELECT GET_LOCK({}, {PATIENCE})", name(prefix))
}

/// Gives the lock back.
pub(super) fn release(prefix: &TablePrefix) -> String {
    format!("SELECT RELEASE_LOCK({})", name(prefix))
}

async fn take_lock(
    connection: &mut MySqlConnection,
    prefix: &TablePrefix,
) -> Result<(), StoreError> {
    let given = one(connection, lock(prefix))
        .await
        .map_err(|error| failure::of(error, DOING))?;
    if given == Some(1) {
        return Ok(());
    }
    let source = format!("another process has migrated for {PATIENCE} seconds");
    Err(StoreError::new(StoreErrorKind::Busy, DOING).with_source(source))
}

/// The name of the lock: of at most 64 characters, whatever the database is called. `MD5` is no
/// longer there on MySQL 9.7.
fn name(prefix: &TablePrefix) -> String {
    format!("CONCAT('idempotent.', LEFT(SHA2(CONCAT(DATABASE(), '.{prefix}schema'), 256), 32))")
}

/// The schema that stands there.
async fn find_schema(
    connection: &mut MySqlConnection,
    prefix: &TablePrefix,
    doing: &'static str,
) -> Result<Found, StoreError> {
    let found = row(connection, schema::look(prefix)).await.and_then(|row| {
        Ok(Found {
            version: row.try_get(0)?,
            usable_from: row.try_get(1)?,
        })
    });
    match found {
        Err(error) if failure::is_missing_table(&error) => Ok(Found::default()),
        found => found.map_err(|error| failure::of(error, doing)),
    }
}

/// Takes a step, if it is not taken yet: MySQL, unlike MariaDB, has no `ADD COLUMN IF NOT EXISTS`.
async fn take(connection: &mut MySqlConnection, step: String) -> Result<(), StoreError> {
    match execute(connection, step).await {
        Err(error) if !failure::is_there_already(&error) => Err(failure::of(error, DOING)),
        _ => Ok(()),
    }
}

async fn run(connection: &mut MySqlConnection, statement: String) -> Result<(), StoreError> {
    let run = execute(connection, statement).await;
    run.map_err(|error| failure::of(error, DOING))
}

async fn execute(connection: &mut MySqlConnection, statement: String) -> sqlx::Result<()> {
    let statement = sqlx::raw_sql(AssertSqlSafe(statement));
    connection.execute(statement).await.map(drop)
}

async fn one(connection: &mut MySqlConnection, query: String) -> sqlx::Result<Option<i64>> {
    row(connection, query).await?.try_get(0)
}

async fn row(connection: &mut MySqlConnection, query: String) -> sqlx::Result<MySqlRow> {
    let query = sqlx::raw_sql(AssertSqlSafe(query));
    connection.fetch_one(query).await
}

pub(super) fn schema_table(prefix: &TablePrefix) -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS {prefix}schema (
    version BIGINT NOT NULL PRIMARY KEY,
    applied BIGINT NOT NULL,
    usable_from BIGINT NOT NULL,
    store CHAR(32) NOT NULL DEFAULT (REPLACE(UUID(), '-', ''))
) {OF_TABLES};
"
    )
}

pub(super) fn applied(prefix: &TablePrefix, reached: Found) -> String {
    let (note, version) = (schema::note(prefix, reached, NOW), reached.version);
    format!("{note}\n    ON DUPLICATE KEY UPDATE version = {version};\n")
}

#[cfg(test)]
mod tests {
    use sqlx::Connection;
    use tokio::sync::Barrier;

    use super::*;
    use crate::store::{
        MySqlStore,
        sql::upgrade::{self, Upgrade},
    };

    upgrade::upgrades_on_a_server!(MySqlStore, MySqlConnection, "IDEMPOTENT_TEST_MARIADB_URL");

    /// MySQL, where there is one.
    fn mysql() -> String {
        let url = std::env::var("IDEMPOTENT_TEST_MYSQL_URL");
        url.unwrap_or_else(|_| url_of_server())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "needs a server: cargo xtask test"]
    async fn an_upgrade_of_mysql_under_traffic_keeps_every_record() {
        upgrade::keeps_every_record(Next::at(mysql())).await;
    }

    #[tokio::test]
    #[ignore = "needs a server: cargo xtask test"]
    async fn a_step_that_nobody_noted_is_noted() {
        for url in [url_of_server(), mysql()] {
            let next = Next::at(url);
            next.open().await.expect("a first start");
            let table = format!("ALTER TABLE {}records", next.prefix);
            let mut connection = next.connection().await;
            let column = format!("{table} ADD COLUMN added INTEGER NOT NULL DEFAULT 7");
            let index = format!("{table} ADD KEY added_index (finished)");
            let gone = format!("{table} DROP COLUMN holder");
            for step in [column, index, gone] {
                let died = run(&mut connection, step.clone()).await;
                died.expect("the step itself is done");
                let found = find_schema(&mut connection, &next.prefix, DOING).await;
                let taken = found.expect("a schema").version.try_into();
                let mut steps = vec![String::new(); taken.expect("a few")];
                steps.push(step);
                let steps = released(steps);

                let others = migrate_by(&steps, &mut connection, &next.prefix).await;

                others.expect("the next start goes on");
                let found = find_schema(&mut connection, &next.prefix, DOING).await;
                let version = found.map(|found| found.version);
                assert_eq!(version.ok(), i64::try_from(steps.len()).ok());
            }
            let wrong = [vec![String::new(); 5], vec![format!("{table} ADD COLUMN")]].concat();
            let refused = migrate_by(&released(wrong), &mut connection, &next.prefix).await;
            assert!(refused.is_err(), "what is wrong otherwise is said");
        }
    }

    fn released(steps: Vec<String>) -> Vec<SchemaStep> {
        let step = |text| SchemaStep {
            text,
            usable_from: 1,
        };
        steps.into_iter().map(step).collect()
    }
}
