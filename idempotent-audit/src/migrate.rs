//! A trail is made or brought up to date, and its older rows are found.

use std::{collections::BTreeMap, time::Duration};

use idempotent_runtime::__audit::Row as _;
use sqlx::pool::PoolConnection;

use crate::{
    database::{TrailDatabase, found},
    error::AuditError,
    event::{self, NewEvent},
    names::Names,
    source::Source,
    standing::{LOOKING, check, damaged, lacking, number, sources, there},
    tables::{made, noted, tables},
};

/// How often a change of tables is tried that finds one locked, and how long each try waits.
const TRIES: u32 = 10;
const WAIT: Duration = Duration::from_secs(2);

/// The pause between two tries, in which the writers that queued behind the first one go on.
const PAUSE: Duration = Duration::from_secs(1);

/// How many older rows get their entries at once: calls of these wait meanwhile.
const BATCH: u32 = 1_000;

const FINDING: &str = "writing the entries of older records";

/// Makes what is lacking.
pub(crate) async fn migrate<DB: TrailDatabase>(
    connection: &mut PoolConnection<DB>,
    names: &Names,
) -> Result<(), AuditError> {
    DB::prepare(connection, names).await?;
    let names = &names.at(DB::place(connection, names).await?);
    let sources = sources::<DB>(connection, names).await?;
    if !there::<DB>(connection, &names.versions()).await? {
        let made = tables::<DB>(names);
        try_to_change::<DB>(connection, names, &names.entries(), &made).await?;
    }
    // First: a table that is noted has its triggers.
    let noted = noted_sources::<DB>(connection, names).await?;
    let shown = DB::shown(connection, names).await?;
    let mut made_again = Vec::new();
    for source in sources {
        let made = make::<DB>(connection, names, source, shown.clone()).await?;
        let is_again = noted.iter().any(|noted| noted == source.name());
        made_again.extend(made.into_iter().filter(|_| is_again));
        find_older::<DB>(connection, names, source).await?;
    }
    if !made_again.is_empty() {
        let detail = made_again.join(", ");
        let event = event::insert::<DB>(names, &NewEvent::new("migrate", &detail));
        DB::query(connection, event, event::WRITING).await?;
    }
    check::<DB>(connection, names).await
}

/// The tables whose trail was made before.
async fn noted_sources<DB: TrailDatabase>(
    connection: &mut DB::Connection,
    names: &Names,
) -> Result<Vec<String>, AuditError> {
    let noted = format!("SELECT source FROM {}", names.versions());
    let rows = DB::query(connection, noted, LOOKING).await?;
    let noted = rows.iter().filter_map(|row| row.text(0).ok().flatten());
    Ok(noted.collect())
}

/// Makes the triggers and functions of a source that are lacking, and returns their names.
async fn make<DB: TrailDatabase>(
    connection: &mut DB::Connection,
    names: &Names,
    source: Source,
    mut shown: BTreeMap<String, String>,
) -> Result<Vec<String>, AuditError> {
    // Another process may make them at the same moment, or others: then it is looked again.
    const LOOKS: usize = 3;
    let mut all = Vec::new();
    for look in 1.. {
        let lacking = lacking(DB::objects(names, source), &shown);
        if lacking.is_empty() {
            break;
        }
        let mut made = made(&lacking, |name| shown.contains_key(name));
        made.insert(0, noted::<DB>(names, source));
        let made = try_to_change::<DB>(connection, names, &names.of(source), &made).await;
        if made.is_ok() {
            all.extend(lacking.into_iter().map(|object| object.name));
            break;
        }
        if look == LOOKS {
            return made.map(|()| all);
        }
        shown = DB::shown(connection, names).await?;
    }
    Ok(all)
}

/// Changes tables, and gives way again and again to those who have one locked.
async fn try_to_change<DB: TrailDatabase>(
    connection: &mut DB::Connection,
    names: &Names,
    table: &str,
    statements: &[String],
) -> Result<(), AuditError> {
    for tried in 1.. {
        match DB::change(connection, names, statements).await {
            Err(AuditError::Store(error)) if DB::is_locked(&error) => {
                if tried == TRIES {
                    return Err(AuditError::Locked {
                        table: table.to_owned(),
                        tries: TRIES,
                        waited: WAIT * TRIES,
                    });
                }
                tokio::time::sleep(PAUSE).await;
            }
            changed => return changed,
        }
    }
    Ok(())
}

/// Writes an entry for each row that is older than the trail. Done again after it was cut off, it
/// writes some a second time, which changes nothing that an entry says.
async fn find_older<DB: TrailDatabase>(
    connection: &mut DB::Connection,
    names: &Names,
    source: Source,
) -> Result<(), AuditError> {
    let Some(key) = source.found_by() else {
        return Ok(());
    };
    let (versions, name) = (names.versions(), source.name());
    let look = format!("SELECT found FROM {versions} WHERE source = '{name}'");
    if number::<DB>(&DB::query(connection, look, FINDING).await?)? != 0 {
        return Ok(());
    }
    let mut after: Option<Vec<u8>> = None;
    while let Some(last) = last_of_batch::<DB>(connection, names, source, after.as_deref()).await? {
        let text = found::<DB>(names, source, (key, after.as_deref(), &last));
        try_to_change::<DB>(connection, names, &names.of(source), &[text]).await?;
        after = Some(last);
    }
    // Up to this number, a row may have changed before its turn came.
    let entries = names.entries();
    let done = format!(
        "UPDATE {versions} SET found = (SELECT coalesce(max(number), 0) + 1 FROM {entries}) WHERE source = '{name}'"
    );
    try_to_change::<DB>(connection, names, &versions, &[done]).await
}

/// The last key of the next batch.
async fn last_of_batch<DB: TrailDatabase>(
    connection: &mut DB::Connection,
    names: &Names,
    source: Source,
    after: Option<&[u8]>,
) -> Result<Option<Vec<u8>>, AuditError> {
    let (table, key) = (names.of(source), source.found_by().unwrap_or("id"));
    let after = after.map_or(String::new(), |after| {
        format!("WHERE {key} > {}", DB::bytes(after))
    });
    let text = format!(
        "SELECT {key} FROM (SELECT {key} FROM {table} {after} ORDER BY {key} LIMIT {BATCH}) AS batch ORDER BY {key} DESC LIMIT 1"
    );
    let rows = DB::query(connection, text, FINDING).await?;
    let last = rows.first().map(|row| row.bytes(0));
    Ok(last.transpose().map_err(damaged)?.flatten())
}
