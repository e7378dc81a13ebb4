//! A trail in one database: it is made, its older rows are found, and it is looked at.

use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;
use idempotent_runtime::{__audit::Row as _, StoreError, StoreErrorKind};
use sqlx::{Pool, pool::PoolConnection};

use crate::{
    anchor::Anchor,
    asked::Asked,
    database::{Object, TrailDatabase, found},
    error::AuditError,
    event::{self, Event, NewEvent},
    export::{Manifest, Write, export},
    names::Names,
    prune::{Pruned, prune},
    report::Report,
    seal::{anchor, seal_batch},
    source::Source,
    tables::{made, noted, roles, script, tables},
    verify::{changeable_by, verify},
};

/// How often a change of tables is tried that finds one locked, and how long each try waits.
const TRIES: u32 = 10;
const WAIT: Duration = Duration::from_secs(2);

/// The pause between two tries, in which the writers that queued behind the first one go on.
const PAUSE: Duration = Duration::from_secs(1);

/// How many older rows get their entries at once: calls of these wait meanwhile.
const BATCH: u32 = 1_000;

const FINDING: &str = "writing the entries of older records";
const LOOKING: &str = "looking at the audit";

/// A trail, whatever its database.
#[async_trait]
pub(crate) trait Trail: Send + Sync {
    async fn migrate(&self, names: &Names) -> Result<(), AuditError>;
    /// Returns the id of the store.
    async fn check(&self, names: &Names) -> Result<String, AuditError>;
    async fn write(&self, names: &Names, event: &NewEvent<'_>) -> Result<(), AuditError>;
    /// The events with these names.
    async fn events(&self, names: &Names, events: &[&str]) -> Result<Vec<Event>, AuditError>;
    /// The user who is logged in; `None` where there are no users.
    async fn user(&self) -> Result<Option<String>, AuditError>;
    async fn prune(&self, names: &Names, keep: Duration) -> Result<Pruned, AuditError>;
    /// Seals the entries of one batch, and returns how many there were.
    async fn seal(&self, names: &Names) -> Result<usize, AuditError>;
    async fn verify(&self, names: &Names, asked: &Asked) -> Result<Report, AuditError>;
    async fn changeable_by(&self, names: &Names) -> Result<Option<String>, AuditError>;
    async fn anchor(&self, names: &Names) -> Result<Option<Anchor>, AuditError>;
    async fn export(
        &self,
        names: &Names,
        asked: &Asked,
        write: Write<'_>,
    ) -> Result<Manifest, AuditError>;
    fn script(&self, names: &Names) -> String;
    fn roles(&self, names: &Names, application: &str, sealer: &str) -> String;
}

/// A trail that is reached through a pool.
pub(crate) struct Over<DB: sqlx::Database>(pub(crate) Pool<DB>);

#[async_trait]
impl<DB: TrailDatabase> Trail for Over<DB> {
    async fn migrate(&self, names: &Names) -> Result<(), AuditError> {
        let mut connection = self.connection().await?;
        DB::prepare(&mut connection, names).await?;
        let names = &names.at(DB::place(&mut connection, names).await?);
        let sources = sources::<DB>(&mut connection, names).await?;
        if !there::<DB>(&mut connection, &names.versions()).await? {
            let made = tables::<DB>(names);
            try_to_change::<DB>(&mut connection, names, &names.entries(), &made).await?;
        }
        // First: a table that is noted has its triggers.
        let noted = noted_sources::<DB>(&mut connection, names).await?;
        let shown = DB::shown(&mut connection, names).await?;
        let mut made_again = Vec::new();
        for source in sources {
            let lacking = lacking(DB::objects(names, source), &shown);
            if !lacking.is_empty() {
                make::<DB>(&mut connection, names, source, (&lacking, &shown)).await?;
                let is_again = noted.iter().any(|noted| noted == source.name());
                made_again.extend(lacking.into_iter().filter(|_| is_again).map(|it| it.name));
            }
            find_older::<DB>(&mut connection, names, source).await?;
        }
        if !made_again.is_empty() {
            let detail = made_again.join(", ");
            let event = NewEvent::new("migrate", &detail);
            event::add::<DB>(&mut connection, names, &event).await?;
        }
        check::<DB>(&mut connection, names).await
    }

    async fn check(&self, names: &Names) -> Result<String, AuditError> {
        let mut connection = self.connection().await?;
        let names = &names.at(DB::place(&mut connection, names).await?);
        check::<DB>(&mut connection, names).await?;
        store_id::<DB>(&mut connection, names).await
    }

    async fn write(&self, names: &Names, event: &NewEvent<'_>) -> Result<(), AuditError> {
        const WRITING: &str = "writing an event of the audit";
        let failed = |error| DB::store_error(error, WRITING);
        let mut transaction = self.0.begin().await.map_err(failed)?;
        let names = names.at(DB::place(&mut transaction, names).await?);
        event::add::<DB>(&mut transaction, &names, event).await?;
        transaction.commit().await.map_err(failed)?;
        Ok(())
    }

    async fn events(&self, names: &Names, events: &[&str]) -> Result<Vec<Event>, AuditError> {
        let mut connection = self.connection().await?;
        let names = &names.at(DB::place(&mut connection, names).await?);
        Ok(event::named::<DB>(&mut connection, names, events).await?)
    }

    async fn user(&self) -> Result<Option<String>, AuditError> {
        let mut connection = self.connection().await?;
        let look = format!("SELECT {}", DB::USER);
        let rows = DB::query(&mut connection, look, LOOKING).await?;
        let user = rows.first().map(|row| row.text(0));
        Ok(user.transpose().map_err(damaged)?.flatten())
    }

    async fn prune(&self, names: &Names, keep: Duration) -> Result<Pruned, AuditError> {
        let mut connection = self.connection().await?;
        let names = &names.at(DB::place(&mut connection, names).await?);
        prune::<DB>(&mut connection, names, keep).await
    }

    async fn seal(&self, names: &Names) -> Result<usize, AuditError> {
        let mut connection = self.connection().await?;
        let names = &names.at(DB::place(&mut connection, names).await?);
        seal_batch::<DB>(&mut connection, names).await
    }

    async fn verify(&self, names: &Names, asked: &Asked) -> Result<Report, AuditError> {
        let mut connection = self.connection().await?;
        let names = &names.at(DB::place(&mut connection, names).await?);
        let store = store_id::<DB>(&mut connection, names).await?;
        if let Some(other) = asked.anchors.iter().find(|anchor| !anchor.is_of(&store)) {
            let origin = other.origin().to_owned();
            return Err(AuditError::OtherAnchor { origin });
        }
        verify::<DB>(&mut connection, names, asked).await
    }

    async fn changeable_by(&self, names: &Names) -> Result<Option<String>, AuditError> {
        let mut connection = self.connection().await?;
        let names = &names.at(DB::place(&mut connection, names).await?);
        changeable_by::<DB>(&mut connection, names).await
    }

    async fn anchor(&self, names: &Names) -> Result<Option<Anchor>, AuditError> {
        let mut connection = self.connection().await?;
        let names = &names.at(DB::place(&mut connection, names).await?);
        let store = store_id::<DB>(&mut connection, names).await?;
        anchor::<DB>(&mut connection, names, &store).await
    }

    async fn export(
        &self,
        names: &Names,
        asked: &Asked,
        write: Write<'_>,
    ) -> Result<Manifest, AuditError> {
        let mut connection = self.connection().await?;
        let names = &names.at(DB::place(&mut connection, names).await?);
        let store = store_id::<DB>(&mut connection, names).await?;
        let anchor = anchor::<DB>(&mut connection, names, &store).await?;
        export::<DB>(&mut connection, names, (asked, anchor), write).await
    }

    fn script(&self, names: &Names) -> String {
        let of_store = Source::ALL
            .into_iter()
            .filter(|source| !source.is_of_outbox());
        script::<DB>(names, &of_store.collect::<Vec<_>>())
    }

    fn roles(&self, names: &Names, application: &str, sealer: &str) -> String {
        DB::script(names, |names| roles::<DB>(names, (application, sealer)))
    }
}

impl<DB: TrailDatabase> Over<DB> {
    async fn connection(&self) -> Result<PoolConnection<DB>, StoreError> {
        let acquired = self.0.acquire().await;
        acquired.map_err(|error| DB::store_error(error, LOOKING))
    }
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

/// Makes the triggers and functions of a source that are lacking.
async fn make<DB: TrailDatabase>(
    connection: &mut DB::Connection,
    names: &Names,
    source: Source,
    (lacking, shown): (&[Object], &BTreeMap<String, String>),
) -> Result<(), AuditError> {
    let mut made = made(lacking, |name| shown.contains_key(name));
    made.insert(0, noted::<DB>(names, source));
    let made = try_to_change::<DB>(connection, names, &names.of(source), &made).await;
    // Another process may have made them meanwhile.
    if made.is_err() {
        let shown = DB::shown(connection, names).await?;
        if lacking.iter().any(|object| !stands(object, &shown)) {
            return made;
        }
    }
    Ok(())
}

/// Whether it is there, as it is to be.
fn stands(object: &Object, shown: &BTreeMap<String, String>) -> bool {
    shown.get(&object.name) == Some(&object.shown)
}

/// Those of these that are not.
fn lacking(objects: Vec<Object>, shown: &BTreeMap<String, String>) -> Vec<Object> {
    let lacking = objects.into_iter().filter(|it| !stands(it, shown));
    lacking.collect()
}

/// Looks at every table, trigger and function. Outcomes may be kept or not: each says so itself.
async fn check<DB: TrailDatabase>(
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
async fn store_id<DB: TrailDatabase>(
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
async fn sources<DB: TrailDatabase>(
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

async fn there<DB: TrailDatabase>(
    connection: &mut DB::Connection,
    table: &str,
) -> Result<bool, StoreError> {
    let rows = DB::query(connection, DB::count(table), LOOKING).await?;
    Ok(number::<DB>(&rows)? != 0)
}

fn number<DB: TrailDatabase>(rows: &[DB::Row]) -> Result<i64, StoreError> {
    let number = rows.first().map(|row| row.number(0));
    let number = number.transpose().map_err(damaged)?.flatten();
    number.ok_or_else(|| damaged("it answered with no number".into()))
}

fn damaged(error: idempotent_runtime::BoxError) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, LOOKING).with_source(error)
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
