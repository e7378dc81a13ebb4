//! The journal's tables, and how they come to be.

use sqlx::{Connection as _, Executor as _, Row as _, SqliteConnection};

use super::sent;
use idempotent_runtime::{
    __client::{Found, SchemaStep, TablePrefix, is_usable, missing, sqlite_failure},
    StoreError, StoreErrorKind,
};

/// Every step that was ever released, oldest first. A released step never changes.
pub(super) fn steps(prefix: &TablePrefix) -> [SchemaStep; 3] {
    let first = format!(
        "CREATE TABLE {prefix}calls (
    origin TEXT NOT NULL,
    call_key TEXT NOT NULL,
    method TEXT NOT NULL,
    url TEXT NOT NULL,
    headers BLOB NOT NULL,
    digest BLOB,
    body BLOB,
    created INTEGER NOT NULL,
    deadline INTEGER NOT NULL,
    ending INTEGER,
    status INTEGER,
    answer_headers BLOB,
    answer_body BLOB,
    PRIMARY KEY (origin, call_key)
) STRICT;
CREATE INDEX {prefix}calls_open ON {prefix}calls (created) WHERE ending IS NULL;
CREATE INDEX {prefix}calls_over ON {prefix}calls (created) WHERE ending IS NOT NULL;
"
    );
    // SQLite changes no primary key, so the table is made anew.
    let accounts = format!(
        "CREATE TABLE {prefix}calls_new (
    origin TEXT NOT NULL,
    account TEXT NOT NULL,
    call_key TEXT NOT NULL,
    method TEXT NOT NULL,
    url TEXT NOT NULL,
    headers BLOB NOT NULL,
    caller BLOB,
    digest BLOB,
    body BLOB,
    created INTEGER NOT NULL,
    deadline INTEGER NOT NULL,
    ending INTEGER,
    status INTEGER,
    answer_headers BLOB,
    answer_body BLOB,
    PRIMARY KEY (origin, account, call_key)
) STRICT;
INSERT INTO {prefix}calls_new
    SELECT origin, '', call_key, method, url, headers, NULL, digest, body, created, deadline, ending, status,
        answer_headers, answer_body FROM {prefix}calls;
DROP TABLE {prefix}calls;
ALTER TABLE {prefix}calls_new RENAME TO {prefix}calls;
CREATE INDEX {prefix}calls_open ON {prefix}calls (created) WHERE ending IS NULL;
CREATE INDEX {prefix}calls_over ON {prefix}calls (created) WHERE ending IS NOT NULL;
"
    );
    let begins = format!("ALTER TABLE {prefix}calls ADD COLUMN begun BLOB;\n");
    // An older build would send the calls of a newer journal by other rules: none of these steps
    // leaves room for older builds.
    let step = |text, usable_from| SchemaStep { text, usable_from };
    [step(first, 1), step(accounts, 2), step(begins, 3)]
}

/// Begins the transaction of a migration, and takes the lock of the file.
pub(super) const LOCK: &str = "BEGIN IMMEDIATE";

/// Brings the tables to this build's version.
pub(super) async fn migrate(
    connection: &mut SqliteConnection,
    prefix: &TablePrefix,
    doing: &'static str,
) -> Result<(), StoreError> {
    let failed = |error| sqlite_failure(error, doing);
    let steps = steps(prefix);
    let mut transaction = connection.begin_with(LOCK).await.map_err(failed)?;
    let table = format!(
        "CREATE TABLE IF NOT EXISTS {prefix}calls_schema (version INTEGER NOT NULL PRIMARY KEY) STRICT;"
    );
    transaction.execute(sent(table)).await.map_err(failed)?;
    let version = format!("SELECT coalesce(max(version), 0) FROM {prefix}calls_schema");
    let row = transaction.fetch_one(sent(version)).await;
    let version = row.and_then(|row| row.try_get(0)).map_err(failed)?;
    let found = Found {
        version,
        usable_from: version,
    };
    if version == 0 {
        clear(&mut transaction, prefix, doing).await?;
    }
    if !is_usable(found, steps.len(), doing)? {
        for (Found { version, .. }, SchemaStep { text, .. }) in missing(&steps, found) {
            let step =
                format!("{text}INSERT INTO {prefix}calls_schema (version) VALUES ({version});");
            transaction.execute(sent(step)).await.map_err(failed)?;
        }
    }
    transaction.commit().await.map_err(failed)
}

/// Drops an empty table of calls whose version was deleted, as by a test suite that empties all
/// tables. The steps make it anew.
async fn clear(
    connection: &mut SqliteConnection,
    prefix: &TablePrefix,
    doing: &'static str,
) -> Result<(), StoreError> {
    let failed = |error| sqlite_failure(error, doing);
    let table = format!("SELECT 1 FROM sqlite_master WHERE name = '{prefix}calls' COLLATE NOCASE");
    let table = connection.fetch_optional(sent(table)).await;
    if table.map_err(failed)?.is_none() {
        return Ok(());
    }
    let call = format!("SELECT 1 FROM {prefix}calls LIMIT 1");
    let call = connection.fetch_optional(sent(call)).await;
    if call.map_err(failed)?.is_some() {
        let source = format!(
            "the table `{prefix}calls_schema` is empty, although calls stand in `{prefix}calls`: restore it, or empty `{prefix}calls`, too, for `migrate()` to make both"
        );
        return Err(StoreError::new(StoreErrorKind::Schema, doing).with_source(source));
    }
    let drop = sent(format!("DROP TABLE {prefix}calls"));
    connection.execute(drop).await.map(|_| ()).map_err(failed)
}
