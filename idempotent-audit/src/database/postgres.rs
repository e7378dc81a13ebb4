//! Postgres: a function for each table, which runs with the rights of its owner.

use std::collections::BTreeMap;

use idempotent_runtime::{
    __audit::{Dialect as _, Row as _},
    StoreError,
};
use sqlx::{Connection as _, Postgres, postgres::PgConnection};

use super::{Object, TrailDatabase, Types, callers, guarded, newest_hold, written};
use crate::{
    entry::{Sealed, listed},
    error::AuditError,
    four_eyes,
    names::Names,
    source::{Change, Source, Words},
};

const CHANGING: &str = "making the audit";

impl Words for Postgres {
    const NOW: &'static str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
    const USER: &'static str = "session_user";

    fn differs(one: &str, other: &str) -> String {
        format!("{one} IS DISTINCT FROM {other}")
    }

    fn hash(bytes: &str) -> String {
        format!("sha256({bytes})")
    }

    fn user_name(user: &str) -> Option<String> {
        Some(user.to_owned())
    }

    fn digits(bytes: &str) -> String {
        format!("encode({bytes}, 'hex')")
    }

    fn joined(values: &[String]) -> String {
        format!("concat_ws(' ', {})", values.join(", "))
    }

    fn as_text(bytes: &str) -> String {
        format!("convert_from({bytes}, 'UTF8')")
    }

    fn first_byte(bytes: &str) -> String {
        format!("encode(substr({bytes}, 1, 1), 'hex')")
    }

    fn eight_bytes(bytes: &str, from: i32) -> String {
        let from = match from {
            0.. => from.to_string(),
            _ => format!("length({bytes}) - {}", -from - 1),
        };
        format!("substr({bytes}, {from}, 8)")
    }
}

impl TrailDatabase for Postgres {
    const TYPES: Types = Types {
        number: "bigint",
        text: "text",
        bytes: "bytea",
        long: "bytea",
        hash: "bytea",
        word: "text",
        counted: "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        options: "",
    };

    const BEGIN_SEALING: &'static str = "BEGIN ISOLATION LEVEL READ COMMITTED";
    const BEGIN_PRUNING: &'static str = "BEGIN ISOLATION LEVEL READ COMMITTED";
    const LOCKED: &'static str = " FOR UPDATE NOWAIT";
    const SHARED: &'static str = " FOR SHARE";
    const LAST_NUMBER: &'static str = "lastval()";

    fn unless_there(insert: String) -> String {
        insert + " ON CONFLICT DO NOTHING"
    }

    fn last_hold(names: &Names) -> String {
        let (events, look) = (names.of(Source::Event), newest_hold(names));
        format!("LOCK TABLE {events} IN SHARE MODE; {look}")
    }

    fn indexes(names: &Names) -> Vec<String> {
        let (entries, open) = (names.entries(), names.plain("audit_open"));
        let of_record = names.plain("audit_record");
        vec![
            format!("CREATE INDEX IF NOT EXISTS {open} ON {entries} (batch, number)"),
            format!(
                "CREATE INDEX IF NOT EXISTS {of_record} ON {entries} (record, number) WHERE batch IS NOT NULL"
            ),
        ]
    }

    fn place_entries(names: &Names, batch: i64, entries: &[Sealed]) -> String {
        let rows = listed(entries, |place, sealed| {
            let (number, leaf) = (sealed.entry.number(), Self::bytes(&sealed.leaf));
            format!("({number}::bigint, {place}::bigint, {leaf})")
        });
        let table = names.entries();
        format!(
            "UPDATE {table} AS entry SET batch = {batch}, place = sealed.place, leaf = sealed.leaf
             FROM (VALUES {rows}) AS sealed (number, place, leaf)
             WHERE entry.number = sealed.number AND entry.batch IS NULL"
        )
    }

    fn entering(names: &Names, application: &str, sealer: &str) -> Vec<String> {
        let schema = names.place.trim_end_matches('.');
        [application, sealer]
            .map(|role| format!("GRANT USAGE ON SCHEMA {schema} TO {role}"))
            .into()
    }

    fn objects(names: &Names, source: Source) -> Vec<Object> {
        let writes = names.named(source, "writes");
        let refuses = names.plain("audit_refuses");
        let changes = source.changes().iter();
        let when = changes
            .map(|change| format!("{} OR ", change.word()))
            .collect::<String>();
        let when = when.trim_end_matches(" OR ");
        let rows = source
            .changes()
            .iter()
            .fold(ROW, |bits, change| bits | bit(*change));
        let mut all = vec![
            function(names, &writes, &body(names, source)),
            function(names, &refuses, &refusal()),
            trigger(
                names,
                source,
                &writes,
                &format!("AFTER {when}"),
                ("ROW", rows),
                &writes,
            ),
            trigger(
                names,
                source,
                &names.named(source, "truncate"),
                "BEFORE TRUNCATE",
                ("STATEMENT", BEFORE | TRUNCATE),
                &refuses,
            ),
        ];
        if let Some(users) = guarded(names, source) {
            let guards = names.named(source, "guards");
            let rows = ROW | BEFORE | bit(Change::Update) | bit(Change::Delete);
            all.push(function(names, &guards, &guard(names, users)));
            all.push(trigger(
                names,
                source,
                &guards,
                "BEFORE UPDATE OR DELETE",
                ("ROW", rows),
                &guards,
            ));
        }
        if source == Source::Event {
            all.push(trigger(
                names,
                source,
                &names.named(source, "refuses"),
                "BEFORE UPDATE OR DELETE",
                (
                    "ROW",
                    ROW | BEFORE | bit(Change::Update) | bit(Change::Delete),
                ),
                &refuses,
            ));
        }
        all
    }

    async fn shown(
        connection: &mut PgConnection,
        names: &Names,
    ) -> Result<BTreeMap<String, String>, StoreError> {
        const DOING: &str = "looking at the audit";
        let (records, entries) = (names.plain("records"), names.entries());
        let like = Self::text(
            &names
                .plain("audit_")
                .to_ascii_lowercase()
                .replace('_', "\\_"),
        );
        let place =
            format!("(SELECT relnamespace FROM pg_class WHERE oid = to_regclass('{records}'))");
        let text = format!(
            "SELECT trigger.tgname::text, concat_ws(' ', called.proname, owner.relname, trigger.tgtype, trigger.tgenabled,
                 trigger.tgqual IS NULL AND trigger.tgattr::text = '')
             FROM pg_trigger AS trigger JOIN pg_class AS owner ON owner.oid = trigger.tgrelid
             JOIN pg_proc AS called ON called.oid = trigger.tgfoid
             WHERE NOT trigger.tgisinternal AND owner.relnamespace = {place}
               AND called.pronamespace = {place} AND trigger.tgname LIKE {like} || '%'
             UNION ALL
             SELECT called.proname::text || '()', concat_ws(' ', language.lanname, called.prosecdef, array_to_string(called.proconfig, ';'),
                 called.proowner = (SELECT relowner FROM pg_class WHERE oid = to_regclass('{entries}')), called.prosrc)
             FROM pg_proc AS called JOIN pg_language AS language ON language.oid = called.prolang
             WHERE called.pronamespace = {place} AND called.proname LIKE {like} || '%'"
        );
        let rows = Self::query(connection, text, DOING).await?;
        let text =
            |row: &sqlx::postgres::PgRow, place| row.text(place).ok().flatten().unwrap_or_default();
        Ok(rows
            .iter()
            .map(|row| (text(row, 0), text(row, 1)))
            .collect())
    }

    /// One with the rights of a superuser has those of the owner, too.
    fn owners(names: &Names) -> Option<String> {
        let (callers, entries) = (callers(names), names.entries());
        Some(format!(
            "SELECT DISTINCT rolname::text FROM {callers} JOIN pg_catalog.pg_roles ON rolname = db_user
             WHERE pg_has_role(oid, (SELECT relowner FROM pg_catalog.pg_class WHERE oid = to_regclass('{entries}')), 'USAGE')"
        ))
    }

    fn count(table: &str) -> String {
        format!("SELECT count(*) FROM pg_catalog.pg_class WHERE oid = to_regclass('{table}')")
    }

    async fn place(connection: &mut PgConnection, names: &Names) -> Result<String, StoreError> {
        const DOING: &str = "looking for the store";
        let look = format!("SELECT {}", schema_of(names));
        let rows = Self::query(connection, look, DOING).await?;
        let schema = rows.first().and_then(|row| row.text(0).ok().flatten());
        Ok(schema.map_or(String::new(), |schema| schema + "."))
    }

    async fn change(
        connection: &mut PgConnection,
        names: &Names,
        statements: &[String],
    ) -> Result<(), AuditError> {
        let failed = |error| Self::store_error(error, CHANGING);
        let begun = connection
            .begin_with("BEGIN ISOLATION LEVEL READ COMMITTED")
            .await;
        let mut transaction = begun.map_err(failed)?;
        let lock = names.plain("audit_schema");
        let mut text = format!(
            "SET LOCAL lock_timeout = '2s'; SELECT pg_advisory_xact_lock(hashtextextended('{lock}', 7091));"
        );
        for statement in statements {
            text.push_str(statement);
            text.push(';');
        }
        Self::query(&mut transaction, text, CHANGING).await?;
        transaction.commit().await.map_err(failed)?;
        Ok(())
    }

    /// The schema is that of the records, which is known only there.
    fn script(names: &Names, statements: impl Fn(&Names) -> Vec<String>) -> String {
        const PLACE: &str = "@schema@";
        let statements = statements(&names.at(format!("{PLACE}.")));
        let schema = schema_of(names);
        let made = statements.into_iter().map(|statement| {
            format!("    EXECUTE replace(replace($made${statement}$made$, '{PLACE}.', place || '.'), '{PLACE}', place);\n")
        });
        format!(
            "DO $script$\nDECLARE place text := {schema};\nBEGIN\n{}END\n$script$;\n",
            made.collect::<String>()
        )
    }
}

/// An expression for the schema of the records, quoted.
fn schema_of(names: &Names) -> String {
    let records = names.plain("records");
    format!(
        "(SELECT quote_ident(nspname) FROM pg_catalog.pg_namespace WHERE oid = (SELECT relnamespace FROM pg_catalog.pg_class WHERE oid = to_regclass('{records}')))"
    )
}

/// Bits of `pg_trigger.tgtype`.
const ROW: u8 = 1;
const BEFORE: u8 = 1 << 1;
const TRUNCATE: u8 = 1 << 5;

fn bit(change: Change) -> u8 {
    match change {
        Change::Insert => 1 << 2,
        Change::Delete => 1 << 3,
        Change::Update => 1 << 4,
    }
}

fn body(names: &Names, source: Source) -> String {
    let changed = source.is_changed::<Postgres>();
    let branches = source.changes().iter().map(|change| {
        let also = match change {
            Change::Update => format!(" AND ({changed})"),
            _ => String::new(),
        };
        let written = written::<Postgres>(names, source, *change);
        format!(
            "    IF TG_OP = '{}'{also} THEN {written} END IF;\n",
            change.word()
        )
    });
    format!(
        "\nBEGIN\n{}    RETURN NULL;\nEND\n",
        branches.collect::<String>()
    )
}

/// The end of a record by a person needs the approval of another one.
fn guard(names: &Names, users: &[String]) -> String {
    let branches = [Change::Update, Change::Delete].map(|change| {
        let lacks = four_eyes::lacks_approval::<Postgres>(names, users, change);
        let refusal = four_eyes::refusal::<Postgres>(change);
        format!(
            "    IF TG_OP = '{}' AND {lacks} THEN RAISE EXCEPTION '%', {refusal}; END IF;\n",
            change.word()
        )
    });
    format!(
        "\nBEGIN\n{}    IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;\n    RETURN NEW;\nEND\n",
        branches.concat()
    )
}

/// `TRUNCATE` would leave no entries, and events are only added.
fn refusal() -> String {
    "\nBEGIN\n    RAISE EXCEPTION 'the audit refuses % of %', TG_OP, TG_TABLE_NAME;\nEND\n"
        .to_owned()
}

fn function(names: &Names, name: &str, body: &str) -> Object {
    let called = format!("{}{name}", names.place);
    const SET: &str = "search_path=pg_catalog, pg_temp";
    Object {
        name: format!("{}()", name.to_ascii_lowercase()),
        dropped_by: None,
        made_by: vec![
            format!(
                "CREATE OR REPLACE FUNCTION {called}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $audit${body}$audit$"
            ),
            format!("REVOKE ALL ON FUNCTION {called}() FROM PUBLIC"),
        ],
        shown: format!("plpgsql t {SET} t {body}"),
    }
}

fn trigger(
    names: &Names,
    source: Source,
    name: &str,
    when: &str,
    (each, bits): (&str, u8),
    calls: &str,
) -> Object {
    let (table, called) = (names.of(source), format!("{}{calls}", names.place));
    let plain = names.plain(source.table());
    Object {
        name: name.to_ascii_lowercase(),
        dropped_by: Some(format!("DROP TRIGGER IF EXISTS {name} ON {table}")),
        made_by: vec![
            format!(
                "CREATE TRIGGER {name} {when} ON {table} FOR EACH {each} EXECUTE FUNCTION {called}()"
            ),
            format!("ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}"),
        ],
        shown: format!("{calls} {plain} ").to_ascii_lowercase() + &format!("{bits} A t"),
    }
}
