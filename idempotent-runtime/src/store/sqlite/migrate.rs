//! Our tables in SQLite, and who makes them.

use sqlx::{AssertSqlSafe, Connection, Executor, Row, Sqlite, sqlite::SqliteConnection};

use super::{failure, statements::NOW};
use crate::store::{
    StoreError, StoreErrorKind,
    sql::{
        self, Dialect, TablePrefix,
        migrate::{DOING, Schema, is_done, take_missing},
        version::SchemaStep,
    },
};

impl Schema for Sqlite {
    const NOW: &'static str = NOW;

    /// The table keeps its rowid: outcomes may be large, and a `WITHOUT ROWID` table would carry
    /// them in the tree that is searched.
    fn steps(prefix: &TablePrefix) -> [SchemaStep; 3] {
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
        // The build before parked records without a word to the index of the purge.
        let (max, attention) = (i64::MAX, sql::attention());
        let notes = format!(
            "CREATE INDEX IF NOT EXISTS {prefix}records_operation ON {prefix}records (operation, created, id);
ALTER TABLE {prefix}records ADD COLUMN note TEXT;
ALTER TABLE {prefix}records ADD COLUMN note_by TEXT;
ALTER TABLE {prefix}records ADD COLUMN note_of BLOB;
ALTER TABLE {prefix}steps ADD COLUMN note TEXT;
ALTER TABLE {prefix}steps ADD COLUMN note_by TEXT;
ALTER TABLE {prefix}steps ADD COLUMN note_of BLOB;
UPDATE {prefix}records SET purge_from = {max} WHERE state IN ({attention});
"
        );
        [records, steps, notes].map(SchemaStep::first)
    }

    fn schema_table(prefix: &TablePrefix) -> String {
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

    fn by_index(index: &str) -> String {
        format!("INDEXED BY {index}")
    }

    /// Names are the same in upper and lower case.
    fn stands(table: &str) -> String {
        format!("SELECT count(*) FROM sqlite_master WHERE name = '{table}' COLLATE NOCASE")
    }

    /// Each column may be there: SQLite has no `ADD COLUMN IF NOT EXISTS`. So each of them is a
    /// message of its own.
    async fn take(
        connection: &mut SqliteConnection,
        step: &SchemaStep,
        applied: String,
    ) -> Result<(), StoreError> {
        let lines = step.text.split_inclusive('\n');
        let (columns, rest): (Vec<_>, Vec<_>) = lines.partition(|it| it.starts_with("ALTER TABLE"));
        for column in columns {
            match Self::send(connection, column.to_owned()).await {
                Err(error) if !failure::is_there_already(&error) => {
                    return Err(failure::of(error, DOING));
                }
                _ => {}
            }
        }
        let rest = rest.concat() + &applied;
        Self::query(connection, rest, DOING).await.map(drop)
    }

    async fn migrate_by(
        steps: &[SchemaStep],
        connection: &mut SqliteConnection,
        prefix: &TablePrefix,
    ) -> Result<(), StoreError> {
        let failed = |error| failure::of(error, DOING);
        check_library(connection, DOING).await?;
        // A look takes no lock: at most starts there is nothing to do.
        match is_done::<Self>(steps, connection, prefix).await {
            Ok(true) => return Ok(()),
            Err(error) if error.kind() == StoreErrorKind::Schema => return Err(error),
            _ => {}
        }
        let mut transaction = connection.begin_with(LOCK).await.map_err(failed)?;
        take_missing::<Self>(steps, &mut transaction, prefix).await?;
        transaction.commit().await.map_err(failed)
    }
}

/// Begins the transaction of a migration, and takes the lock of the file.
pub(super) const LOCK: &str = "BEGIN IMMEDIATE";

/// Tells whether this build can use the tables.
pub(super) async fn check(
    connection: &mut SqliteConnection,
    prefix: &TablePrefix,
) -> Result<(), StoreError> {
    check_library(connection, "checking the schema").await?;
    sql::migrate::check::<Sqlite>(connection, prefix).await
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sqlx::{ConnectOptions, sqlite::SqliteConnectOptions};
    use tempfile::TempDir;
    use tokio::sync::Barrier;

    use super::*;
    use crate::store::{
        SqliteStore,
        sql::{
            Value,
            tests::{
                earlier,
                upgrade::{self, Upgrade},
            },
        },
        sqlite::{calls::query, rows},
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
            let steps = [Sqlite::steps(&self.prefix).as_slice(), &later].concat();
            others.wait().await;
            Sqlite::migrate_by(&steps, &mut connection, &self.prefix).await
        }

        async fn begin(&self, steps: usize) {
            let options = SqliteConnectOptions::new().filename(self.folder.path().join("db"));
            let mut made = options
                .create_if_missing(true)
                .connect()
                .await
                .expect("a file");
            let steps = &Sqlite::steps(&self.prefix)[..steps];
            let begun = Sqlite::migrate_by(steps, &mut made, &self.prefix).await;
            begun.expect("the first steps are taken");
        }

        async fn write(&self, statement: &str, values: Vec<Value<'_>>) {
            let golden = include_str!("tests/golden/statements_of_step_2.sql");
            let (text, _) = earlier::statement(golden, statement, &self.prefix);
            let query = values.into_iter().fold(query(&text.into()), rows::bind);
            let sent = self.connection().await.fetch_all(query).await;
            sent.expect("the tables are those that it knows");
        }

        async fn count(&self, rows: String) -> i64 {
            let counted = Sqlite::send(&mut self.connection().await, rows).await;
            counted.expect("an answer")[0].get(0)
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

    /// As the error says where a table is gone: the other one has its columns by then.
    #[tokio::test]
    async fn a_table_of_steps_that_was_lost_is_made_with_every_column() {
        let next = Next {
            folder: TempDir::new().expect("a folder"),
            prefix: upgrade::prefix(),
        };
        drop(next.open().await.expect("a first start"));
        let mut connection = next.connection().await;
        let drop = format!("DROP TABLE {0}steps; DROP TABLE {0}schema", next.prefix);
        let dropped = Sqlite::send(&mut connection, drop).await;
        dropped.expect("both tables are there");

        let migrated = sql::migrate::migrate::<Sqlite>(&mut connection, &next.prefix).await;

        migrated.expect("the steps are made again");
        let columns = format!(
            "SELECT count(note) + count(note_by) + count(note_of) FROM {}steps",
            next.prefix
        );
        assert_eq!(next.count(columns).await, 0);
    }

    #[tokio::test]
    async fn f27_the_build_before_works_beside_this_one() {
        let next = Next {
            folder: TempDir::new().expect("a folder"),
            prefix: upgrade::prefix(),
        };
        earlier::works_beside_this_build(next).await;
    }
}
