//! Our tables in MariaDB and MySQL, and who makes them.

use sqlx::{MySql, mysql::MySqlConnection};

use super::{failure, statements::NOW};
use crate::store::{
    StoreError, StoreErrorKind,
    sql::{
        Dialect, INDEXED_NAME, TablePrefix,
        migrate::{DOING, Schema, numbers, numbers_of, take_missing},
        version::{self, Found, SchemaStep},
    },
};

/// How many seconds a start waits for another one that migrates.
const PATIENCE: u32 = 30;

/// Rows that are locked one by one, and texts that are equal only when they are the same.
const OF_TABLES: &str =
    "ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin";

impl Schema for MySql {
    const NOW: &'static str = NOW;

    /// A change of a table commits by itself here, so a process may die between a statement and the
    /// note that its step was taken. So each statement may have been run.
    fn steps(prefix: &TablePrefix) -> [SchemaStep; 3] {
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
        // An index needs a bound for its texts, and only a column that is indexed whole has an
        // order.
        let notes = format!(
            "ALTER TABLE {prefix}records ADD COLUMN note MEDIUMTEXT, ADD COLUMN note_by MEDIUMTEXT,
    ADD COLUMN note_of BINARY(16);
ALTER TABLE {prefix}steps ADD COLUMN note MEDIUMTEXT, ADD COLUMN note_by MEDIUMTEXT,
    ADD COLUMN note_of BINARY(16);
ALTER TABLE {prefix}records ADD COLUMN operation_name VARCHAR({INDEXED_NAME})
    CHARACTER SET utf8mb4 COLLATE utf8mb4_bin GENERATED ALWAYS AS (LEFT(operation, {INDEXED_NAME})) VIRTUAL;
ALTER TABLE {prefix}records ADD KEY {prefix}records_operation (operation_name, created, id);
"
        );
        [records, steps, notes].map(SchemaStep::first)
    }

    fn schema_table(prefix: &TablePrefix) -> String {
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

    fn of_operation(name: &str) -> String {
        let name = Self::text(name);
        format!("operation_name = LEFT({name}, {INDEXED_NAME}) AND operation = {name}")
    }

    fn by_index(index: &str) -> String {
        format!("FORCE INDEX ({index})")
    }

    fn stands(table: &str) -> String {
        format!(
            "SELECT COUNT(*) FROM information_schema.tables
         WHERE table_schema = DATABASE() AND table_name = '{table}'"
        )
    }

    /// It looks at the table itself, whose error tells that no database is chosen.
    async fn find(
        connection: &mut MySqlConnection,
        prefix: &TablePrefix,
        doing: &'static str,
    ) -> Result<Found, StoreError> {
        match Self::send(connection, version::look(prefix)).await {
            Ok(rows) => numbers_of(&rows, doing).map(Found::from),
            Err(error) if failure::is_missing_table(&error) => Ok(Found::default()),
            Err(error) => Err(failure::of(error, doing)),
        }
    }

    fn applied(prefix: &TablePrefix, reached: Found) -> String {
        let (note, version) = (version::note(prefix, reached, NOW), reached.version);
        format!("{note}\n    ON DUPLICATE KEY UPDATE version = {version};\n")
    }

    /// Each of its statements may have been run: MySQL, unlike MariaDB, has no
    /// `ADD COLUMN IF NOT EXISTS`.
    async fn take(
        connection: &mut MySqlConnection,
        step: &SchemaStep,
        applied: String,
    ) -> Result<(), StoreError> {
        let statements = step.text.split_inclusive(";\n");
        for statement in statements.map(str::to_owned) {
            match Self::send(connection, statement).await {
                Err(error) if !failure::is_there_already(&error) => {
                    return Err(failure::of(error, DOING));
                }
                _ => {}
            }
        }
        Self::query(connection, applied, DOING).await.map(drop)
    }

    async fn migrate_by(
        steps: &[SchemaStep],
        connection: &mut MySqlConnection,
        prefix: &TablePrefix,
    ) -> Result<(), StoreError> {
        let given = numbers::<Self, 1>(connection, lock(prefix), DOING).await?;
        if given != [1] {
            let source = format!("another process has migrated for {PATIENCE} seconds");
            return Err(StoreError::new(StoreErrorKind::Busy, DOING).with_source(source));
        }
        let migrated = take_missing::<Self>(steps, connection, prefix).await;
        let released = Self::query(connection, release(prefix), DOING).await;
        migrated.and(released.map(drop))
    }
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

/// The name of the lock: of at most 64 characters, whatever the database is called. `MD5` is no
/// longer there on MySQL 9.7.
fn name(prefix: &TablePrefix) -> String {
    format!("CONCAT('idempotent.', LEFT(SHA2(CONCAT(DATABASE(), '.{prefix}schema'), 256), 32))")
}

#[cfg(test)]
mod tests {
    use sqlx::Row;
    use tokio::sync::Barrier;

    use super::*;
    use crate::store::{
        MySqlStore,
        mysql::{statements::Statement, together::written_out},
        sql::{
            Value,
            tests::{
                earlier,
                upgrade::{self, Upgrade},
            },
        },
    };

    upgrade::upgrades_on_a_server!(MySqlStore, MySql, "IDEMPOTENT_TEST_MARIADB_URL", |(
        text,
        places,
        values,
    )| {
        let places = places.trim_matches(['[', ']']).split(", ");
        let places = places.map(|place| place.parse().expect("a number"));
        let statement = Statement {
            text: text.into(),
            places: places.collect(),
        };
        written_out(&statement, values)
    });

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
                let died = MySql::send(&mut connection, step.clone()).await;
                died.expect("the step itself is done");
                let found = MySql::find(&mut connection, &next.prefix, DOING).await;
                let taken = found.expect("a schema").version.try_into();
                let mut steps = vec![String::new(); taken.expect("a few")];
                steps.push(step);
                let steps = released(steps);

                let others = MySql::migrate_by(&steps, &mut connection, &next.prefix).await;

                others.expect("the next start goes on");
                let found = MySql::find(&mut connection, &next.prefix, DOING).await;
                let version = found.map(|found| found.version);
                assert_eq!(version.ok(), i64::try_from(steps.len()).ok());
            }
            let wrong = [vec![String::new(); 6], vec![format!("{table} ADD COLUMN")]].concat();
            let refused = MySql::migrate_by(&released(wrong), &mut connection, &next.prefix).await;
            assert!(refused.is_err(), "what is wrong otherwise is said");
        }
    }

    fn released(steps: Vec<String>) -> Vec<SchemaStep> {
        steps.into_iter().map(SchemaStep::first).collect()
    }
}
