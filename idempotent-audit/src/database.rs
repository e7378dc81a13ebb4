//! The words of each database: its tables, its triggers, and how it shows them.

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::collections::BTreeMap;

use idempotent_runtime::{__audit::Dialect, StoreError};
use sqlx::pool::PoolConnection;

use crate::{
    entry::Sealed,
    error::AuditError,
    names::Names,
    source::{Change, Source, Values, Words},
};

/// The types of columns.
pub(crate) struct Types {
    pub(crate) number: &'static str,
    pub(crate) text: &'static str,
    pub(crate) bytes: &'static str,
    /// Bytes of any length.
    pub(crate) long: &'static str,
    pub(crate) hash: &'static str,
    /// A text that is a key.
    pub(crate) word: &'static str,
    /// The number that counts by itself, with its key.
    pub(crate) counted: &'static str,
    /// Stands behind a table.
    pub(crate) options: &'static str,
}

/// A trigger or a function: how it is made, and how the database shows it.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) name: String,
    pub(crate) dropped_by: Option<String>,
    pub(crate) made_by: Vec<String>,
    pub(crate) shown: String,
}

/// A database that can keep a trail.
pub(crate) trait TrailDatabase: Dialect + Words {
    const TYPES: Types;

    /// Locks each row that a statement reads before it writes what it read: the entry of a later
    /// change has a larger number.
    const SHARED: &'static str;

    /// The number of the entry that was written last.
    const LAST_NUMBER: &'static str;

    /// Stands before the condition of a look at no table.
    const DUAL: &'static str = "";

    /// Whether the bytes of outcomes stand in an entry until it is sealed.
    const HASHES_LATE: bool = false;

    /// How many entries are sealed in one transaction at most.
    const SEALED_AT_ONCE: usize = 1_000;

    /// Stands before the transaction of a sealer, which begins so.
    const BEFORE_SEALING: Option<&'static str> = None;
    const BEGIN_SEALING: &'static str;

    /// Locks a row that a look shows, or fails at once.
    const LOCKED: &'static str;

    /// Stands before a transaction of a pruning, which begins so.
    const BEFORE_PRUNING: Option<&'static str> = None;
    const BEGIN_PRUNING: &'static str;

    /// Stands behind the name of a table whose rows are changed by their numbers: no other row is
    /// waited for.
    const BY_NUMBER: &'static str = "";

    /// Looks for the last event about a hold, and lets none come until the transaction ends.
    fn last_hold(names: &Names) -> String;

    /// The statement that removes the entries with these numbers.
    fn remove_entries(names: &Names, listed: &str) -> String {
        let entries = names.entries();
        format!("DELETE FROM {entries} WHERE number IN ({listed})")
    }

    /// The insert of a row that another one may insert at the same moment.
    fn unless_there(insert: String) -> String {
        insert
    }

    /// A look at the first entries that have no place.
    fn open_entries(names: &Names, columns: &str) -> String {
        let (entries, limit) = (names.entries(), Self::SEALED_AT_ONCE);
        format!("SELECT {columns} FROM {entries} WHERE batch IS NULL ORDER BY number LIMIT {limit}")
    }

    /// The statement that gives entries their place in a batch.
    fn place_entries(names: &Names, batch: i64, entries: &[Sealed]) -> String;

    /// The statements that make what else it takes to look at a trail.
    fn helpers(names: &Names) -> Vec<String> {
        let _ = names;
        Vec::new()
    }

    /// The statements that let two users reach the tables at all.
    fn entering(names: &Names, application: &str, sealer: &str) -> Vec<String> {
        let _ = (names, application, sealer);
        Vec::new()
    }

    /// The statements that make the indexes: by one, entries are found that have no place yet, and
    /// by the other the sealed ones of a record. A call pays nothing for the latter where an index
    /// can be of some rows alone.
    fn indexes(names: &Names) -> Vec<String>;

    /// The triggers of a source, and their functions.
    fn objects(names: &Names, source: Source) -> Vec<Object>;

    /// The objects that there are on these tables, by name, as the database shows them.
    fn shown(
        connection: &mut Self::Connection,
        names: &Names,
    ) -> impl Future<Output = Result<BTreeMap<String, String>, StoreError>> + Send;

    /// A look for the users of the last calls who own the tables; `None` where there are no users.
    fn owners(names: &Names) -> Option<String>;

    /// Counts the tables of this name.
    fn count(table: &str) -> String;

    /// The place of the tables, as it stands before their names.
    fn place(
        connection: &mut Self::Connection,
        names: &Names,
    ) -> impl Future<Output = Result<String, StoreError>> + Send {
        let _ = (connection, names);
        async { Ok(String::new()) }
    }

    /// Prepares a connection for [changes](Self::change).
    fn prepare(
        connection: &mut PoolConnection<Self>,
        names: &Names,
    ) -> impl Future<Output = Result<(), AuditError>> + Send {
        let _ = (connection, names);
        async { Ok(()) }
    }

    /// Runs statements as one, where the database can. None waits longer than two seconds for a
    /// lock.
    fn change(
        connection: &mut Self::Connection,
        names: &Names,
        statements: &[String],
    ) -> impl Future<Output = Result<(), AuditError>> + Send;

    /// Whether an error says that a lock was not to be had in time.
    fn is_locked(error: &StoreError) -> bool {
        error.kind() == idempotent_runtime::StoreErrorKind::Busy
    }

    /// The statements as a script for people who run their own migrations.
    fn script(names: &Names, statements: impl Fn(&Names) -> Vec<String>) -> String {
        statements(names).into_iter().map(|it| it + ";\n").collect()
    }
}

/// The columns of an entry, and the expressions for them.
fn columns(values: &Values) -> (String, String) {
    let columns: Vec<_> = values.iter().map(|(column, _)| *column).collect();
    let expressions: Vec<_> = values.iter().map(|(_, it)| it.as_str()).collect();
    (columns.join(", "), expressions.join(", "))
}

/// The statements of a trigger: they write the entry of a change, and keep its outcome.
pub(crate) fn written<DB: TrailDatabase>(names: &Names, source: Source, change: Change) -> String {
    let entries = names.entries();
    let (columns, values) = columns(&source.entry::<DB>(change));
    let entry = format!("INSERT INTO {entries} ({columns}) VALUES ({values});");
    if !names.keeps_outcomes || !source.has_outcomes() || change == Change::Delete {
        return entry;
    }
    let (outcomes, number, dual) = (names.outcomes(), DB::LAST_NUMBER, DB::DUAL);
    format!(
        "{entry} INSERT INTO {outcomes} (number, outcome) SELECT {number}, NEW.outcome{dual} WHERE NEW.outcome IS NOT NULL;"
    )
}

/// The statement that writes an entry for each row whose key is in this range: behind the first
/// one, up to the last one.
pub(crate) fn found<DB: TrailDatabase>(
    names: &Names,
    source: Source,
    (key, after, last): (&str, Option<&[u8]>, &[u8]),
) -> String {
    let (entries, table) = (names.entries(), names.of(source));
    let (columns, values) = columns(&source.found::<DB>());
    let after = after.map_or(String::new(), |after| {
        format!("{key} > {} AND ", DB::bytes(after))
    });
    let last = DB::bytes(last);
    format!(
        "INSERT INTO {entries} ({columns}) SELECT {values} FROM {table} AS seen WHERE {after}{key} <= {last} ORDER BY {key}{shared}",
        shared = DB::SHARED,
    )
}

/// The users of the application, if the ends of these rows need the approval of a second person.
pub(crate) fn guarded(names: &Names, source: Source) -> Option<&[String]> {
    let users = names.four_eyes.as_deref();
    users.filter(|_| source == Source::Record)
}

/// The users of the last thousand changes by calls.
#[cfg(any(feature = "mysql", feature = "postgres"))]
fn callers(names: &Names) -> String {
    let entries = names.entries();
    format!(
        "(SELECT db_user FROM {entries} WHERE source IN ('record', 'step') AND kind IN ('call', 'takeover') ORDER BY number DESC LIMIT 1000) AS caller"
    )
}

/// The last event about a hold.
fn newest_hold(names: &Names) -> String {
    let events = names.of(Source::Event);
    format!("SELECT COALESCE(max(number), 0) FROM {events} WHERE event IN ('hold', 'release')")
}

/// The name of the trigger for a change, where each change has one of its own.
#[cfg(any(feature = "mysql", feature = "sqlite"))]
fn trigger(names: &Names, source: Source, change: Change) -> String {
    names.named(source, &change.word().to_ascii_lowercase())
}
