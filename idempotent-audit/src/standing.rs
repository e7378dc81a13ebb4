//! Whether a trail stands: its tables, its triggers, and their text.

use std::collections::BTreeMap;

use idempotent_runtime::{__audit::Row as _, StoreError, StoreErrorKind};

use crate::{
    database::{Object, TrailDatabase},
    error::AuditError,
    names::Names,
    source::Source,
};

pub(crate) const LOOKING: &str = "looking at the audit";

/// Whether it is there, as it is to be.
pub(crate) fn stands(object: &Object, shown: &BTreeMap<String, String>) -> bool {
    shown.get(&object.name) == Some(&object.shown)
}

/// Those of these that are not.
pub(crate) fn lacking(objects: Vec<Object>, shown: &BTreeMap<String, String>) -> Vec<Object> {
    let lacking = objects.into_iter().filter(|it| !stands(it, shown));
    lacking.collect()
}

/// Looks at every table, trigger and function. Outcomes may be kept or not: each says so itself.
pub(crate) async fn check<DB: TrailDatabase>(
    connection: &mut DB::Connection,
    names: &Names,
) -> Result<(), AuditError> {
    let sources = sources::<DB>(connection, names).await?;
    let tables = [
        names.entries(),
        names.seals(),
        names.outcomes(),
        names.of(Source::Event),
        names.versions(),
    ];
    let shown = DB::shown(connection, names).await?;
    for table in tables {
        // A user without a right to a table may not see it.
        let plain = table.trim_start_matches(&names.place).to_ascii_lowercase();
        if !shown.contains_key(&plain) && !there::<DB>(connection, &table).await? {
            return Err(broken(table, "is missing"));
        }
    }
    for source in sources {
        let plain = DB::objects(&names.keeping(false), source);
        let keeping = DB::objects(&names.keeping(true), source);
        for (plain, keeping) in plain.into_iter().zip(keeping) {
            match shown.get(&plain.name) {
                None => return Err(broken(plain.name, "is missing")),
                Some(shown) if *shown == plain.shown || *shown == keeping.shown => {}
                Some(_) => return Err(broken(plain.name, "is disabled or has another text")),
            }
        }
    }
    Ok(())
}

/// The id of the store whose records are audited.
pub(crate) async fn store_id<DB: TrailDatabase>(
    connection: &mut DB::Connection,
    names: &Names,
) -> Result<String, AuditError> {
    let schema = names.placed("schema");
    let store = format!("SELECT store FROM {schema} WHERE version = 1");
    let rows = DB::query(connection, store, LOOKING).await?;
    let store = rows.first().map(|row| row.text(0));
    let store = store.transpose().map_err(damaged)?.flatten();
    Ok(store.ok_or_else(|| damaged("the store has no id".into()))?)
}

fn broken(object: String, flaw: &'static str) -> AuditError {
    AuditError::Broken { object, flaw }
}

/// The tables that are there to be audited.
pub(crate) async fn sources<DB: TrailDatabase>(
    connection: &mut DB::Connection,
    names: &Names,
) -> Result<Vec<Source>, AuditError> {
    let mut sources = Vec::new();
    for source in Source::ALL {
        let table = names.of(source);
        if source == Source::Event || there::<DB>(connection, &table).await? {
            sources.push(source);
        } else if !source.is_of_outbox() {
            return Err(AuditError::NoRecords { table });
        }
    }
    Ok(sources)
}

pub(crate) async fn there<DB: TrailDatabase>(
    connection: &mut DB::Connection,
    table: &str,
) -> Result<bool, StoreError> {
    let rows = DB::query(connection, DB::count(table), LOOKING).await?;
    Ok(number::<DB>(&rows)? != 0)
}

pub(crate) fn number<DB: TrailDatabase>(rows: &[DB::Row]) -> Result<i64, StoreError> {
    let number = rows.first().map(|row| row.number(0));
    let number = number.transpose().map_err(damaged)?.flatten();
    number.ok_or_else(|| damaged("it answered with no number".into()))
}

pub(crate) fn damaged(error: idempotent_runtime::BoxError) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, LOOKING).with_source(error)
}
