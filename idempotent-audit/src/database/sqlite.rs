//! SQLite: a trigger for each change. It has no users, and no SHA-256.

use std::collections::BTreeMap;

use idempotent_runtime::{
    __audit::{Dialect as _, Row as _},
    StoreError,
};
use sqlx::{Sqlite, SqliteConnection};

use super::{Object, TrailDatabase, Types, guarded, newest_hold, trigger, written};
use crate::{
    entry::{Sealed, listed},
    error::AuditError,
    four_eyes::{lacks_approval, refusal},
    names::Names,
    source::{Change, Source, Words},
};

const CHANGING: &str = "making the audit";

impl Words for Sqlite {
    const NOW: &'static str = "CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000";
    const USER: &'static str = "NULL";

    fn differs(one: &str, other: &str) -> String {
        format!("{one} IS NOT {other}")
    }

    fn hash(bytes: &str) -> String {
        bytes.to_owned()
    }

    fn user_name(_: &str) -> Option<String> {
        None
    }

    fn digits(bytes: &str) -> String {
        format!("lower(hex({bytes}))")
    }

    fn digest(_: &str) -> String {
        "'-'".to_owned()
    }

    fn joined(values: &[String]) -> String {
        values.join(" || ' ' || ")
    }

    fn as_text(bytes: &str) -> String {
        format!("CAST({bytes} AS TEXT)")
    }

    fn first_byte(bytes: &str) -> String {
        format!("hex(substr({bytes}, 1, 1))")
    }

    fn eight_bytes(bytes: &str, from: i32) -> String {
        format!("substr({bytes}, {from}, 8)")
    }
}

impl TrailDatabase for Sqlite {
    const TYPES: Types = Types {
        number: "INTEGER",
        text: "TEXT",
        bytes: "BLOB",
        long: "BLOB",
        hash: "BLOB",
        word: "TEXT",
        counted: "INTEGER PRIMARY KEY AUTOINCREMENT",
        options: " STRICT",
    };

    const HASHES_LATE: bool = true;
    const SEALED_AT_ONCE: usize = 200;
    const BEGIN_SEALING: &'static str = "BEGIN IMMEDIATE";
    const BEGIN_PRUNING: &'static str = "BEGIN IMMEDIATE";
    const LOCKED: &'static str = "";
    const SHARED: &'static str = "";
    const LAST_NUMBER: &'static str = "last_insert_rowid()";

    fn last_hold(names: &Names) -> String {
        newest_hold(names)
    }

    fn indexes(names: &Names) -> Vec<String> {
        let entries = names.entries();
        vec![
            format!("CREATE INDEX IF NOT EXISTS {entries}_open ON {entries} (batch, number)"),
            format!(
                "CREATE INDEX IF NOT EXISTS {entries}_record ON {entries} (record, number) WHERE batch IS NOT NULL"
            ),
        ]
    }

    /// They hold outcomes, of which a few may be large.
    fn open_entries(names: &Names, columns: &str) -> String {
        const ROOM: usize = 4 * 1024 * 1024;
        let (entries, limit) = (names.entries(), Self::SEALED_AT_ONCE);
        let bytes = "coalesce(length(outcome_hash), 0) + coalesce(length(hash_before), 0)";
        format!(
            "SELECT {columns} FROM {entries} WHERE number IN (
                 SELECT number FROM (
                     SELECT number, {bytes} AS own, sum({bytes}) OVER (ORDER BY number) AS sum FROM (
                         SELECT * FROM {entries} WHERE batch IS NULL ORDER BY number LIMIT {limit}))
                 WHERE sum - own < {ROOM})
             ORDER BY number"
        )
    }

    /// The hashes take the place of the bytes.
    fn place_entries(names: &Names, batch: i64, entries: &[Sealed]) -> String {
        let bytes = |sealed: &Sealed, field| match sealed.entry.bytes_of(field) {
            Some(bytes) => Self::bytes(bytes),
            None => "NULL".to_owned(),
        };
        let rows = listed(entries, |place, sealed| {
            let [record, hash, before] =
                ["record", "outcome_hash", "hash_before"].map(|field| bytes(sealed, field));
            let (number, leaf) = (sealed.entry.number(), Self::bytes(&sealed.leaf));
            format!("({number}, {place}, {leaf}, {record}, {hash}, {before})")
        });
        let table = names.entries();
        format!(
            "UPDATE {table} SET batch = {batch}, place = column2, leaf = column3, record = column4,
                 outcome_hash = column5, hash_before = column6
             FROM (VALUES {rows}) WHERE {table}.number = column1 AND batch IS NULL"
        )
    }

    fn objects(names: &Names, source: Source) -> Vec<Object> {
        let changes = source.changes().iter().map(|change| {
            let when = match change {
                Change::Update => format!(" WHEN {}", source.is_changed::<Self>()),
                _ => String::new(),
            };
            let written = written::<Self>(names, source, *change);
            let name = trigger(names, source, *change);
            object(
                names,
                source,
                &name,
                ("AFTER", *change),
                &format!("{when} BEGIN {written} END"),
            )
        });
        let mut all: Vec<_> = changes.collect();
        if let Some(users) = guarded(names, source) {
            all.extend([Change::Update, Change::Delete].map(|change| {
                let name = names.named(source, &format!("guards_{}", change.word().to_lowercase()));
                let lacks = lacks_approval::<Self>(names, users, change);
                let refusal = refusal::<Self>(change);
                let guard = format!(" WHEN {lacks} BEGIN SELECT RAISE(ABORT, {refusal}); END");
                object(names, source, &name, ("BEFORE", change), &guard)
            }));
        }
        if source == Source::Event {
            all.extend([Change::Update, Change::Delete].map(|change| {
                let (name, word) = (trigger(names, source, change), change.word());
                let refused = format!(
                    " BEGIN SELECT RAISE(ABORT, 'the audit refuses {word} of events'); END"
                );
                object(names, source, &name, ("BEFORE", change), &refused)
            }));
        }
        all
    }

    async fn shown(
        connection: &mut SqliteConnection,
        names: &Names,
    ) -> Result<BTreeMap<String, String>, StoreError> {
        const DOING: &str = "looking at the audit";
        let begin = Self::text(&names.plain("audit_").to_ascii_lowercase());
        let text = format!(
            "SELECT lower(name), sql FROM sqlite_master WHERE type = 'trigger' AND instr(lower(name), {begin}) = 1"
        );
        let rows = Self::query(connection, text, DOING).await?;
        let text = |row: &sqlx::sqlite::SqliteRow, place| {
            row.text(place).ok().flatten().unwrap_or_default()
        };
        Ok(rows
            .iter()
            .map(|row| (text(row, 0), text(row, 1)))
            .collect())
    }

    fn owners(_: &Names) -> Option<String> {
        None
    }

    fn count(table: &str) -> String {
        format!("SELECT count(*) FROM sqlite_master WHERE name = '{table}' COLLATE NOCASE")
    }

    /// It waits for the lock of the file as long as the connection does.
    async fn change(
        connection: &mut SqliteConnection,
        _: &Names,
        statements: &[String],
    ) -> Result<(), AuditError> {
        let text = format!("BEGIN IMMEDIATE; {}; COMMIT", statements.join("; "));
        let patience = Self::query(connection, "PRAGMA busy_timeout".to_owned(), CHANGING).await?;
        let patience = patience
            .first()
            .and_then(|row| row.number(0).ok().flatten());
        Self::query(
            connection,
            "PRAGMA busy_timeout = 2000".to_owned(),
            CHANGING,
        )
        .await?;
        let changed = Self::query(connection, text, CHANGING).await;
        if changed.is_err() {
            // Nothing may be open.
            let _ = Self::query(connection, "ROLLBACK".to_owned(), CHANGING).await;
        }
        let patience = format!("PRAGMA busy_timeout = {}", patience.unwrap_or(0));
        Self::query(connection, patience, CHANGING).await?;
        changed?;
        Ok(())
    }
}

fn object(
    names: &Names,
    source: Source,
    name: &str,
    (moment, change): (&str, Change),
    rest: &str,
) -> Object {
    let (table, word) = (names.of(source), change.word());
    let shown = format!("CREATE TRIGGER {name} {moment} {word} ON {table}{rest}");
    Object {
        name: name.to_ascii_lowercase(),
        dropped_by: Some(format!("DROP TRIGGER IF EXISTS {name}")),
        made_by: vec![shown.clone()],
        shown,
    }
}
