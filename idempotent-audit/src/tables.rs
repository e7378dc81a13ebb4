//! The tables of a trail, and the statements that make all of it.

use crate::{
    database::{Object, TrailDatabase, Types},
    names::Names,
    source::Source,
};

/// The version of the tables and triggers, of which there has been one.
pub(crate) const VERSION: i64 = 1;

/// The statements that make the tables. Each changes nothing where its table is.
pub(crate) fn tables<DB: TrailDatabase>(names: &Names) -> Vec<String> {
    let Types {
        number,
        text,
        bytes,
        long,
        hash,
        word,
        counted,
        options,
    } = DB::TYPES;
    let (entries, events) = (names.entries(), names.of(Source::Event));
    let (outcomes, versions, seals) = (names.outcomes(), names.versions(), names.seals());
    let mut all = vec![
        format!(
            "CREATE TABLE IF NOT EXISTS {entries} (
    number {counted},
    written {number} NOT NULL,
    source {word} NOT NULL,
    kind {word} NOT NULL,
    record {bytes},
    operation {text},
    step {bytes},
    label {text},
    stream {bytes},
    state_before {number},
    state_after {number},
    attempt {number},
    token {number},
    holder {text},
    db_user {text},
    note {text},
    note_by {text},
    forgettable {number},
    outcome_kind {number},
    outcome_hash {hash},
    hash_before {hash},
    batch {number},
    place {number},
    leaf {bytes}
){options}"
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS {seals} (
    batch {number} NOT NULL PRIMARY KEY,
    format {number} NOT NULL,
    entries {number} NOT NULL,
    root {hash} NOT NULL,
    previous {hash} NOT NULL,
    sealed {number} NOT NULL,
    hash {hash} NOT NULL,
    held {number} NOT NULL DEFAULT 0
){options}"
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS {outcomes} (
    number {number} NOT NULL PRIMARY KEY,
    outcome {long} NOT NULL
){options}"
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS {events} (
    number {counted},
    event {word} NOT NULL,
    holder {text},
    detail {text},
    person {text},
    written {number} NOT NULL DEFAULT ({now}),
    db_user {text} DEFAULT ({user})
){options}",
            now = DB::NOW,
            user = DB::USER,
        ),
        // The trail itself, and each table that is audited; `found` says whether its older rows
        // have their entries.
        format!(
            "CREATE TABLE IF NOT EXISTS {versions} (
    source {word} NOT NULL PRIMARY KEY,
    version {number} NOT NULL,
    found {number} NOT NULL
){options}"
        ),
    ];
    all.extend(DB::indexes(names));
    all.extend(DB::helpers(names));
    all
}

/// The statements that give an application and a sealer their rights, and no other.
///
/// A lock on a seal needs the right to change a column of it. `held` is one that nothing reads.
pub(crate) fn roles<DB: TrailDatabase>(
    names: &Names,
    (application, sealer): (&str, &str),
) -> Vec<String> {
    let (entries, seals, events) = (names.entries(), names.seals(), names.of(Source::Event));
    let (records, steps) = (names.of(Source::Record), names.of(Source::Step));
    let (store, versions) = (names.placed("schema"), names.versions());
    let grant = |rights: &str, tables: &[&String], role: &str| {
        let grants = tables
            .iter()
            .map(|table| format!("GRANT {rights} ON {table} TO {role}"));
        grants.collect::<Vec<_>>()
    };
    [
        DB::entering(names, application, sealer),
        grant("SELECT", &[&store], application),
        grant(
            "SELECT, INSERT, UPDATE, DELETE",
            &[&records, &steps],
            application,
        ),
        grant(
            "SELECT, INSERT (event, holder, detail, person)",
            &[&events],
            application,
        ),
        grant("INSERT (event, holder, detail, person)", &[&events], sealer),
        grant(
            "SELECT",
            &[&store, &records, &steps, &entries, &seals, &versions],
            sealer,
        ),
        grant("UPDATE (batch, place, leaf)", &[&entries], sealer),
        grant("INSERT, UPDATE (held)", &[&seals], sealer),
    ]
    .concat()
}

/// The statements that make these triggers and functions, in place of those that are there: to drop
/// one would keep calls waiting that only read.
pub(crate) fn made(objects: &[Object], is_there: impl Fn(&str) -> bool) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for object in objects {
        let dropped = object.dropped_by.iter().filter(|_| is_there(&object.name));
        for statement in dropped.chain(&object.made_by) {
            if !all.contains(statement) {
                all.push(statement.clone());
            }
        }
    }
    all
}

/// The statement that notes that a table is audited, before its older rows are found.
pub(crate) fn noted<DB: TrailDatabase>(names: &Names, source: Source) -> String {
    let (versions, name) = (names.versions(), source.name());
    let found = i64::from(source.found_by().is_none());
    let unless = format!("SELECT '{name}', {VERSION}, {found}{dual}", dual = DB::DUAL);
    format!(
        "INSERT INTO {versions} (source, version, found) {unless} WHERE NOT EXISTS (SELECT 1 FROM {versions} WHERE source = '{name}')"
    )
}

/// The statements that make a whole trail, for people who run their own migrations.
pub(crate) fn script<DB: TrailDatabase>(names: &Names, sources: &[Source]) -> String {
    DB::script(names, |names| {
        let mut all = tables::<DB>(names);
        for source in sources {
            all.extend(made(&DB::objects(names, *source), |_| true));
            all.push(noted::<DB>(names, *source));
        }
        all
    })
}
