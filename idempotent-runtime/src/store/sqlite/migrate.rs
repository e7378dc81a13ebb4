//! Our tables, and how they come to be: a migrator of our own, with a version table of its own, so
//! that the application's migrations never meet it.

use sqlx::{AssertSqlSafe, Connection, Executor, Row, sqlite::SqliteConnection};

use super::{failure, statements::NOW};
use crate::store::{
    StoreError, StoreErrorKind,
    sql::{
        TablePrefix,
        version::{self as schema, Found, SchemaStep},
    },
};

/// Every step that was ever released, oldest first: the version of the schema is the number of
/// steps. A released step never changes.
///
/// A step changes nothing where what it makes is there: the versions may have been deleted with all
/// other rows, as test suites do.
///
/// The table keeps its rowid: outcomes may be large, and a `WITHOUT ROWID` table would carry them
/// in the tree that is searched.
pub(super) fn steps(prefix: &TablePrefix) -> [SchemaStep; 2] {
    let records = format!(
        "CREATE TABLE IF NOT EXISTS {prefix}records (
    id BLOB NOT NULL PRIMARY KEY,
    version BLOB NOT NULL,
    operation TEXT NOT NULL,
    scope BLOB NOT NULL,
    call_key BLOB NOT NULL,
    fingerprint BLOB NOT NULL,
    digests BLOB NOT NULL,
    state INTEGER NOT NULL,
    token INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    attempt_id BLOB NOT NULL,
    holder TEXT NOT NULL,
    trace_parent TEXT,
    on_crash INTEGER NOT NULL,
    lease_end INTEGER NOT NULL,
    created INTEGER NOT NULL,
    finished INTEGER,
    expires INTEGER NOT NULL,
    outcome_kind INTEGER,
    outcome_schema INTEGER,
    outcome BLOB,
    purge_from INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS {prefix}records_purge ON {prefix}records (purge_from);
"
    );
    // A step goes with its record, by whatever means that is deleted.
    let steps = format!(
        "CREATE TABLE IF NOT EXISTS {prefix}steps (
    record BLOB NOT NULL,
    version BLOB NOT NULL,
    name BLOB NOT NULL,
    label TEXT NOT NULL,
    state INTEGER NOT NULL,
    attempt_id BLOB NOT NULL,
    on_crash INTEGER NOT NULL,
    fingerprint BLOB NOT NULL,
    digests BLOB NOT NULL,
    outcome_kind INTEGER,
    outcome_schema INTEGER,
    outcome BLOB,
    undo_number INTEGER,
    life INTEGER NOT NULL,
    PRIMARY KEY (record, name)
) STRICT;
CREATE TRIGGER IF NOT EXISTS {prefix}records_steps AFTER DELETE ON {prefix}records BEGIN
    DELETE FROM {prefix}steps WHERE record = OLD.id;
END;
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

/// Brings the tables to this build's version. Safe to call at every start, and by several processes
/// at once.
pub(super) async fn migrate(
    connection: &mut SqliteConnection,
    prefix: &TablePrefix,
) -> Result<(), StoreError> {
    migrate_by(&steps(prefix), connection, prefix).await
}

async fn migrate_by(
    steps: &[SchemaStep],
    connection: &mut SqliteConnection,
    prefix: &TablePrefix,
) -> Result<(), StoreError> {
    const DOING: &str = "migrating the schema";
    let failed = |error| failure::of(error, DOING);
    check_library(connection, DOING).await?;
    // A look takes no lock: at most starts there is nothing to do.
    let found = find_schema(connection, prefix).await.unwrap_or_default();
    if schema::is_usable(found, steps.len(), DOING)? {
        return find_records(connection, prefix, DOING).await;
    }
    let mut transaction = connection.begin_with(LOCK).await.map_err(failed)?;
    run(&mut transaction, schema_table(prefix))
        .await
        .map_err(failed)?;
    let found = find_schema(&mut transaction, prefix)
        .await
        .map_err(failed)?;
    if !schema::is_usable(found, steps.len(), DOING)? {
        for (reached, step) in schema::missing(steps, found) {
            let step = taken(prefix, reached, step);
            run(&mut transaction, step).await.map_err(failed)?;
        }
    }
    transaction.commit().await.map_err(failed)
}

/// Begins the transaction of a migration, and takes the lock of the file.
pub(super) const LOCK: &str = "BEGIN IMMEDIATE";

/// Tells whether this build can use the tables.
pub(super) async fn check_schema(
    connection: &mut SqliteConnection,
    prefix: &TablePrefix,
) -> Result<(), StoreError> {
    const DOING: &str = "checking the schema";
    check_library(connection, DOING).await?;
    let found = find_schema(connection, prefix)
        .await
        .map_err(|error| failure::of(error, DOING))?;
    schema::check(found, steps(prefix).len(), DOING)?;
    find_records(connection, prefix, DOING).await
}

/// Tells the id of the store.
pub(super) async fn find_id(
    connection: &mut SqliteConnection,
    prefix: &TablePrefix,
) -> Result<String, StoreError> {
    let found = connection
        .fetch_one(AssertSqlSafe(schema::id(prefix)))
        .await;
    let id = found.and_then(|row| row.try_get(0));
    id.map_err(|error| failure::of(error, "looking for the store"))
}

/// Counts the tables of the records. Names are the same in upper and lower case.
pub(super) fn stands(prefix: &TablePrefix) -> String {
    format!("SELECT count(*) FROM sqlite_master WHERE name = '{prefix}records' COLLATE NOCASE")
}

/// Finds the table of the records, which may be gone although that of the versions says that it was
/// made.
async fn find_records(
    connection: &mut SqliteConnection,
    prefix: &TablePrefix,
    doing: &'static str,
) -> Result<(), StoreError> {
    let failed = |error| failure::of(error, doing);
    let query = AssertSqlSafe(stands(prefix));
    let row = connection.fetch_one(query).await.map_err(failed)?;
    match row.try_get(0).map_err(failed)? {
        0_i64 => Err(schema::records_are_missing(prefix, doing)),
        _ => Ok(()),
    }
}

/// Tells the release of the library, and the time by its clock.
pub(super) fn library() -> String {
    format!("SELECT sqlite_version(), {NOW}")
}

/// SQLite before 3.42 answers `unixepoch('subsec')` with NULL, without an error.
async fn check_library(
    connection: &mut SqliteConnection,
    doing: &'static str,
) -> Result<(), StoreError> {
    let failed = |error| failure::of(error, doing);
    let query = AssertSqlSafe(library());
    let row = connection.fetch_one(query).await.map_err(failed)?;
    let release: String = row.try_get(0).map_err(failed)?;
    match row.try_get::<Option<i64>, _>(1).map_err(failed)? {
        Some(_) => Ok(()),
        None => Err(
            StoreError::new(StoreErrorKind::Configuration, doing).with_source(format!(
                "SQLite {release} has no clock finer than a second, take 3.42 or newer"
            )),
        ),
    }
}

async fn find_schema(
    connection: &mut SqliteConnection,
    prefix: &TablePrefix,
) -> sqlx::Result<Found> {
    let query = AssertSqlSafe(schema::look(prefix));
    let row = connection.fetch_one(query).await?;
    Ok(Found {
        version: row.try_get(0)?,
        usable_from: row.try_get(1)?,
    })
}

async fn run(connection: &mut SqliteConnection, statements: String) -> sqlx::Result<()> {
    connection
        .execute(AssertSqlSafe(statements))
        .await
        .map(drop)
}

pub(super) fn schema_table(prefix: &TablePrefix) -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS {prefix}schema (
    version INTEGER NOT NULL PRIMARY KEY,
    applied INTEGER NOT NULL,
    usable_from INTEGER NOT NULL,
    store TEXT NOT NULL DEFAULT (lower(hex(randomblob(16))))
) STRICT;
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
    use std::time::Duration;

    use sqlx::{ConnectOptions, sqlite::SqliteConnectOptions};
    use tempfile::TempDir;
    use tokio::sync::Barrier;

    use super::*;
    use crate::store::{
        SqliteStore,
        sql::upgrade::{self, Upgrade},
    };

    struct Next {
        folder: TempDir,
        prefix: TablePrefix,
    }

    impl Next {
        async fn connection(&self) -> SqliteConnection {
            let options = SqliteConnectOptions::new().filename(self.folder.path().join("db"));
            let connected = options
                .busy_timeout(Duration::from_secs(30))
                .connect()
                .await;
            connected.expect("the file is there")
        }
    }

    impl Upgrade for Next {
        type Store = SqliteStore;

        async fn open(&self) -> Result<SqliteStore, StoreError> {
            let builder = SqliteStore::builder().table_prefix(&self.prefix.to_string());
            builder.open(self.folder.path().join("db")).await
        }

        async fn check(&self, store: &SqliteStore) -> Result<(), StoreError> {
            store.check_schema().await
        }

        async fn upgrade(
            &self,
            later: Vec<SchemaStep>,
            others: &Barrier,
        ) -> Result<(), StoreError> {
            let mut connection = self.connection().await;
            let steps = [steps(&self.prefix).as_slice(), &later].concat();
            others.wait().await;
            migrate_by(&steps, &mut connection, &self.prefix).await
        }

        async fn count(&self, rows: String) -> i64 {
            let mut connection = self.connection().await;
            let counted = connection.fetch_one(AssertSqlSafe(rows)).await;
            counted.expect("an answer").get(0)
        }

        fn prefix(&self) -> &TablePrefix {
            &self.prefix
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_upgrade_under_traffic_keeps_every_record() {
        let next = Next {
            folder: TempDir::new().expect("a folder"),
            prefix: upgrade::prefix(),
        };
        upgrade::keeps_every_record(next).await;
    }
}
