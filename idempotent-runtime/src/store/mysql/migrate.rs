//! Our tables, and how they come to be: a migrator of our own, with a version table of its own, so that the application's
//! migrations never meet it.

use sqlx::{AssertSqlSafe, Executor, Row, mysql::MySqlConnection};

use super::{failure, statements::NOW};
use crate::store::{
    StoreError, StoreErrorKind,
    sql::{TablePrefix, version as schema},
};

const DOING: &str = "migrating the schema";

/// How many seconds a start waits for another one that migrates.
const PATIENCE: u32 = 30;

/// Every step that was ever released, oldest first: the version of the schema is the number of steps. A released step
/// never changes.
///
/// A change of a table commits by itself here, so a process may die between a step and the note that it was done: a step is
/// one statement, which when it is repeated changes nothing, or is refused because what it makes is there.
fn steps(prefix: &TablePrefix) -> [String; 1] {
    [format!(
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
    )]
}

/// Rows that are locked one by one, and texts that are equal only when they are the same.
const OF_TABLES: &str =
    "ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin";

/// The statements that make the tables, for people who run their own migrations.
pub(super) fn ddl(prefix: &TablePrefix) -> String {
    schema::ddl(schema_table(prefix), &steps(prefix), |version| {
        applied(prefix, version)
    })
}

/// Tells whether there is nothing to do, as at most starts. A look takes no lock and needs no right to create.
pub(super) async fn is_done(
    connection: &mut MySqlConnection,
    prefix: &TablePrefix,
) -> Result<bool, StoreError> {
    let found = version(connection, prefix, DOING).await?;
    if !schema::is_current(found, steps(prefix).len(), DOING)? {
        return Ok(false);
    }
    find_records(connection, prefix, DOING).await?;
    Ok(true)
}

/// Brings the tables to this build's version. Safe to call at every start, and by several processes at once.
pub(super) async fn migrate(
    connection: &mut MySqlConnection,
    prefix: &TablePrefix,
) -> Result<(), StoreError> {
    migrate_by(&steps(prefix), connection, prefix).await
}

async fn migrate_by(
    steps: &[String],
    connection: &mut MySqlConnection,
    prefix: &TablePrefix,
) -> Result<(), StoreError> {
    lock(connection, prefix).await?;
    let migrated = migrate_alone(steps, connection, prefix).await;
    let released = one(connection, format!("SELECT RELEASE_LOCK({})", name(prefix))).await;
    migrated?;
    released.map_err(|error| failure::of(error, DOING))?;
    Ok(())
}

async fn migrate_alone(
    steps: &[String],
    connection: &mut MySqlConnection,
    prefix: &TablePrefix,
) -> Result<(), StoreError> {
    let found = version(connection, prefix, DOING).await?;
    if schema::is_current(found, steps.len(), DOING)? {
        return Ok(());
    }
    run(connection, schema_table(prefix)).await?;
    for (version, step) in schema::missing(steps, found) {
        take(connection, step.clone()).await?;
        run(connection, applied(prefix, version)).await?;
    }
    Ok(())
}

/// Tells whether the tables are those of this build.
pub(super) async fn check_schema(
    connection: &mut MySqlConnection,
    prefix: &TablePrefix,
) -> Result<(), StoreError> {
    const DOING: &str = "checking the schema";
    let found = version(connection, prefix, DOING).await?;
    schema::check(found, steps(prefix).len(), DOING)?;
    find_records(connection, prefix, DOING).await
}

/// Finds the table of the records, which may be gone whatever that of the versions says. A look at the table itself would wait for
/// who has locked it.
async fn find_records(
    connection: &mut MySqlConnection,
    prefix: &TablePrefix,
    doing: &'static str,
) -> Result<(), StoreError> {
    let query = format!(
        "SELECT COUNT(*) FROM information_schema.tables
         WHERE table_schema = DATABASE() AND table_name = '{prefix}records'"
    );
    let tables = one(connection, query).await;
    match tables.map_err(|error| failure::of(error, doing))? {
        Some(0) => Err(schema::records_are_missing(prefix, doing)),
        _ => Ok(()),
    }
}

/// Takes a lock of the server's, which has one list of names for all databases. It answers whether it gave it, and where it
/// was asked to wait for ever, MariaDB does not wait at all.
async fn lock(connection: &mut MySqlConnection, prefix: &TablePrefix) -> Result<(), StoreError> {
    let lock = format!("SELECT GET_LOCK({}, {PATIENCE})", name(prefix));
    let given = one(connection, lock)
        .await
        .map_err(|error| failure::of(error, DOING))?;
    if given == Some(1) {
        return Ok(());
    }
    let source = format!("somebody else has migrated for {PATIENCE} seconds");
    Err(StoreError::new(StoreErrorKind::Busy, DOING).with_source(source))
}

/// The name of the lock: of at most 64 characters, whatever the database is called. `MD5` is no longer there on MySQL 9.7.
fn name(prefix: &TablePrefix) -> String {
    format!("CONCAT('idempotent.', LEFT(SHA2(CONCAT(DATABASE(), '.{prefix}schema'), 256), 32))")
}

/// The version of the schema that stands there; zero where none does.
async fn version(
    connection: &mut MySqlConnection,
    prefix: &TablePrefix,
    doing: &'static str,
) -> Result<i64, StoreError> {
    let query = format!("SELECT COALESCE(MAX(version), 0) FROM {prefix}schema");
    match one(connection, query).await {
        Ok(version) => Ok(version.unwrap_or(0)),
        Err(error) if failure::is_missing_table(&error) => Ok(0),
        Err(error) => Err(failure::of(error, doing)),
    }
}

/// Takes a step, if nobody has: MySQL, unlike MariaDB, has no `ADD COLUMN IF NOT EXISTS`.
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
    connection
        .fetch_one(sqlx::raw_sql(AssertSqlSafe(query)))
        .await?
        .try_get(0)
}

fn schema_table(prefix: &TablePrefix) -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS {prefix}schema (
    version BIGINT NOT NULL PRIMARY KEY,
    applied BIGINT NOT NULL
) {OF_TABLES};
"
    )
}

fn applied(prefix: &TablePrefix, version: i64) -> String {
    format!(
        "INSERT INTO {prefix}schema (version, applied) VALUES ({version}, {NOW})
    ON DUPLICATE KEY UPDATE version = {version};\n"
    )
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
                let found = version(&mut connection, &next.prefix, DOING).await;
                let mut steps =
                    vec![String::new(); found.expect("a version").try_into().expect("a few")];
                steps.push(step);

                let others = migrate_by(&steps, &mut connection, &next.prefix).await;

                others.expect("the next start goes on");
                let version = version(&mut connection, &next.prefix, DOING).await;
                assert_eq!(version.ok(), i64::try_from(steps.len()).ok());
            }
            let wrong = [vec![String::new(); 4], vec![format!("{table} ADD COLUMN")]].concat();
            let refused = migrate_by(&wrong, &mut connection, &next.prefix).await;
            assert!(refused.is_err(), "what is wrong otherwise is said");
        }
    }
}
