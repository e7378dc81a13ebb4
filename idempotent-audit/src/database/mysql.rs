//! MariaDB and MySQL: a trigger for each change, which runs with the rights of its maker.

use std::{collections::BTreeMap, time::Duration};

use idempotent_runtime::{
    __audit::{Dialect as _, Row as _},
    StoreError, StoreErrorKind,
};
use sqlx::{
    MySql,
    mysql::{MySqlConnection, MySqlDatabaseError},
    pool::PoolConnection,
};

use super::{Object, TrailDatabase, Types, callers, guarded, newest_hold, trigger, written};
use crate::{
    entry::{Sealed, hex, listed},
    error::AuditError,
    four_eyes::{lacks_approval, refusal},
    merkle::sha256,
    names::Names,
    source::{Change, Source, Words},
};

const CHANGING: &str = "making the audit";

/// A session of the application's may have any settings. A trigger keeps the mode in which it was
/// made. No statement waits longer than two seconds for a table.
const SESSION: &str =
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', SESSION autocommit = 1,
    SESSION lock_wait_timeout = 2, SESSION innodb_lock_wait_timeout = 2";

/// How many seconds a start waits for another one that makes the trail.
const PATIENCE: u32 = 30;

impl Words for MySql {
    const NOW: &'static str = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";
    const USER: &'static str = "USER()";

    fn differs(one: &str, other: &str) -> String {
        format!("NOT ({one} <=> {other})")
    }

    fn hash(bytes: &str) -> String {
        format!("UNHEX(SHA2({bytes}, 256))")
    }

    fn user_name(user: &str) -> Option<String> {
        Some(format!(
            "CONVERT(SUBSTRING_INDEX({user}, '@', 1) USING utf8mb4) COLLATE utf8mb4_bin"
        ))
    }

    fn digits(bytes: &str) -> String {
        format!("LOWER(HEX({bytes}))")
    }

    fn joined(values: &[String]) -> String {
        format!("CONCAT_WS(' ', {})", values.join(", "))
    }

    fn as_text(bytes: &str) -> String {
        format!("CONVERT({bytes} USING utf8mb4)")
    }

    fn first_byte(bytes: &str) -> String {
        format!("HEX(SUBSTR({bytes}, 1, 1))")
    }

    fn eight_bytes(bytes: &str, from: i32) -> String {
        format!("SUBSTR({bytes}, {from}, 8)")
    }
}

impl TrailDatabase for MySql {
    const TYPES: Types = Types {
        number: "BIGINT",
        text: "LONGTEXT",
        bytes: "VARBINARY(256)",
        long: "LONGBLOB",
        hash: "VARBINARY(32)",
        word: "VARCHAR(64)",
        counted: "BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY",
        options: " ENGINE = InnoDB ROW_FORMAT = DYNAMIC DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    };

    const BEFORE_SEALING: Option<&'static str> =
        Some("SET autocommit = 1; SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
    const BEFORE_PRUNING: Option<&'static str> =
        Some("SET autocommit = 1; SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    const BEGIN_PRUNING: &'static str = "START TRANSACTION";
    const BY_NUMBER: &'static str = " FORCE INDEX (PRIMARY)";
    const BEGIN_SEALING: &'static str = "START TRANSACTION";
    const LOCKED: &'static str = " FOR UPDATE NOWAIT";
    const SHARED: &'static str = " LOCK IN SHARE MODE";
    const LAST_NUMBER: &'static str = "LAST_INSERT_ID()";
    const DUAL: &'static str = " FROM DUAL";

    fn unless_there(insert: String) -> String {
        insert.replacen("INSERT", "INSERT IGNORE", 1)
    }

    /// It locks the end of the table, too.
    fn last_hold(names: &Names) -> String {
        newest_hold(names) + Self::SHARED
    }

    fn remove_entries(names: &Names, listed: &str) -> String {
        let entries = names.entries();
        format!(
            "DELETE entry FROM {entries} AS entry FORCE INDEX (PRIMARY) WHERE entry.number IN ({listed})"
        )
    }

    fn indexes(names: &Names) -> Vec<String> {
        let entries = names.entries();
        vec![
            format!("ALTER TABLE {entries} ADD KEY {entries}_open (batch, number)"),
            format!("ALTER TABLE {entries} ADD KEY {entries}_record (record, number)"),
        ]
    }

    /// Both servers read a list of rows from JSON. Along the index of open entries, they would wait
    /// for those that are not committed yet.
    fn place_entries(names: &Names, batch: i64, entries: &[Sealed]) -> String {
        let rows = listed(entries, |place, sealed| {
            format!(
                "[{}, {place}, \"{}\"]",
                sealed.entry.number(),
                hex(&sealed.leaf)
            )
        });
        let table = names.entries();
        format!(
            "UPDATE JSON_TABLE('[{rows}]', '$[*]' COLUMNS (
                 number BIGINT PATH '$[0]', place BIGINT PATH '$[1]', leaf CHAR(64) PATH '$[2]')) AS sealed
             STRAIGHT_JOIN {table} AS entry FORCE INDEX (PRIMARY) ON entry.number = sealed.number
             SET entry.batch = {batch}, entry.place = sealed.place, entry.leaf = UNHEX(sealed.leaf)
             WHERE entry.batch IS NULL"
        )
    }

    fn objects(names: &Names, source: Source) -> Vec<Object> {
        let changes = source.changes().iter().map(|change| {
            let written = written::<Self>(names, source, *change);
            let body = match change {
                Change::Update => {
                    format!(
                        "BEGIN IF {} THEN {written} END IF; END",
                        source.is_changed::<Self>()
                    )
                }
                _ => format!("BEGIN {written} END"),
            };
            let name = trigger(names, source, *change);
            object(names, source, name, ("AFTER", *change), &body)
        });
        let mut all: Vec<_> = changes.collect();
        if let Some(users) = guarded(names, source) {
            all.extend([Change::Update, Change::Delete].map(|change| {
                let name = names.named(source, &format!("guards_{}", change.word().to_lowercase()));
                let lacks = lacks_approval::<Self>(names, users, change);
                let refusal = refusal::<Self>(change);
                let body = format!(
                    "BEGIN DECLARE refusal VARCHAR(128); IF {lacks} THEN SET refusal = {refusal}; SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = refusal; END IF; END"
                );
                object(names, source, name, ("BEFORE", change), &body)
            }));
        }
        if source == Source::Event {
            all.extend([Change::Update, Change::Delete].map(|change| {
                let word = change.word();
                let body = format!(
                    "BEGIN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the audit refuses {word} of events'; END"
                );
                let name = trigger(names, source, change);
                object(names, source, name, ("BEFORE", change), &body)
            }));
        }
        all
    }

    async fn shown(
        connection: &mut MySqlConnection,
        names: &Names,
    ) -> Result<BTreeMap<String, String>, StoreError> {
        const DOING: &str = "looking at the audit";
        let function = names.plain("audit_shown");
        let there = format!(
            "SELECT COUNT(*) FROM information_schema.routines WHERE routine_schema = DATABASE() AND routine_name = '{function}'"
        );
        let there = Self::query(connection, there, DOING).await?;
        let is_there = there.first().and_then(|row| row.number(0).ok().flatten()) != Some(0);
        let text = match is_there {
            true => format!("SELECT {function}()"),
            false => shown_text(names),
        };
        let rows = look(connection, text, DOING).await?;
        let shown = rows.first().and_then(|row| row.text(0).ok().flatten());
        let shown = shown.unwrap_or_default();
        let lines = shown
            .split('"')
            .filter_map(|line| line.trim().split_once(' '));
        Ok(lines
            .map(|(name, hash)| (name.to_owned(), hash.to_owned()))
            .collect())
    }

    /// Only a user who may make triggers sees them, and an application may not. A function with the
    /// rights of the owner looks for it.
    fn helpers(names: &Names) -> Vec<String> {
        let function = names.plain("audit_shown");
        vec![
            format!("DROP FUNCTION IF EXISTS {function}"),
            format!(
                "CREATE FUNCTION {function}() RETURNS LONGTEXT READS SQL DATA SQL SECURITY DEFINER RETURN ({})",
                shown_text(names)
            ),
        ]
    }

    fn entering(names: &Names, application: &str, sealer: &str) -> Vec<String> {
        let function = names.plain("audit_shown");
        [application, sealer]
            .map(|role| format!("GRANT EXECUTE ON FUNCTION {function} TO {role}"))
            .into()
    }

    /// The owner has made the function that shows the triggers.
    fn owners(names: &Names) -> Option<String> {
        let (callers, function) = (callers(names), names.plain("audit_shown"));
        let user = |of: &str| {
            format!("CONVERT(SUBSTRING_INDEX({of}, '@', 1) USING utf8mb4) COLLATE utf8mb4_bin")
        };
        let (caller, owner) = (user("db_user"), user("definer"));
        Some(format!(
            "SELECT DISTINCT {caller} FROM {callers} JOIN information_schema.routines AS made ON {owner} = {caller}
             WHERE made.routine_schema = DATABASE() AND made.routine_name = '{function}'"
        ))
    }

    fn count(table: &str) -> String {
        format!(
            "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = '{table}'"
        )
    }

    /// Settings and lock end with the connection.
    async fn prepare(
        connection: &mut PoolConnection<Self>,
        names: &Names,
    ) -> Result<(), AuditError> {
        connection.close_on_drop();
        let name = Self::text(&names.versions());
        let lock = format!(
            "{SESSION}; SELECT GET_LOCK(CONCAT('idempotent.', LEFT(SHA2(CONCAT(DATABASE(), {name}), 256), 32)), {PATIENCE})"
        );
        let given = Self::query(connection, lock, CHANGING).await?;
        match given.first().and_then(|row| row.number(0).ok().flatten()) {
            Some(1) => Ok(()),
            _ => Err(StoreError::new(StoreErrorKind::Busy, CHANGING)
                .with_source(format!(
                    "another process has made it for {PATIENCE} seconds"
                ))
                .into()),
        }
    }

    /// Each change of a table or a trigger is a transaction of its own.
    async fn change(
        connection: &mut MySqlConnection,
        _: &Names,
        statements: &[String],
    ) -> Result<(), AuditError> {
        for statement in statements {
            match Self::send(connection, statement.clone()).await {
                Err(error) if number(&error) == Some(1419) => {
                    return Err(AuditError::NeedsSuper {});
                }
                Err(error) if !is_there_already(&error) => {
                    return Err(Self::store_error(error, CHANGING).into());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The client of the servers ends a statement at each semicolon unless it is told otherwise.
    fn script(names: &Names, statements: impl Fn(&Names) -> Vec<String>) -> String {
        let statements = statements(names).into_iter().map(|it| it + "\n//\n");
        format!(
            "DELIMITER //\n{}DELIMITER ;\n",
            statements.collect::<String>()
        )
    }
}

/// Looks again while a table of any database is being changed, of which a function may not read
/// (error 1684).
async fn look(
    connection: &mut MySqlConnection,
    text: String,
    doing: &'static str,
) -> Result<Vec<sqlx::mysql::MySqlRow>, StoreError> {
    for _ in 0..20 {
        match MySql::send(connection, text.clone()).await {
            Err(error) if number(&error) == Some(1684) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            rows => return rows.map_err(|error| MySql::store_error(error, doing)),
        }
    }
    MySql::query(connection, text, doing).await
}

/// Each table and trigger, and the SHA-256 of what a trigger does, because the text of all would be
/// too long for a server.
fn shown_text(names: &Names) -> String {
    let begin = MySql::text(&names.plain("audit").to_ascii_lowercase());
    format!(
        "SELECT JSON_ARRAYAGG(line) FROM (
             SELECT CONCAT(LOWER(trigger_name), ' ', SHA2(CONCAT(action_timing, ' ', event_manipulation, ' ', LOWER(event_object_table), ' ', action_statement), 256)) AS line
             FROM information_schema.triggers WHERE trigger_schema = DATABASE() AND LOCATE({begin}, LOWER(trigger_name)) = 1
             UNION ALL SELECT CONCAT(LOWER(table_name), ' table')
             FROM information_schema.tables WHERE table_schema = DATABASE() AND LOCATE({begin}, LOWER(table_name)) = 1) AS shown"
    )
}

fn number(error: &sqlx::Error) -> Option<u16> {
    let said = error.as_database_error()?;
    said.try_downcast_ref().map(MySqlDatabaseError::number)
}

/// An index that is there, or a statement that is for the other server.
fn is_there_already(error: &sqlx::Error) -> bool {
    matches!(number(error), Some(1061 | 1065))
}

fn object(
    names: &Names,
    source: Source,
    name: String,
    (moment, change): (&str, Change),
    body: &str,
) -> Object {
    let (table, word) = (names.of(source), change.word());
    Object {
        // MariaDB replaces one without a moment in which there is none.
        dropped_by: Some(format!("/*!80000 DROP TRIGGER IF EXISTS {name} */")),
        made_by: vec![format!(
            "CREATE /*M! OR REPLACE */ TRIGGER {name} {moment} {word} ON {table} FOR EACH ROW {body}"
        )],
        shown: hex(&sha256(
            format!("{moment} {word} {} {body}", table.to_ascii_lowercase()).as_bytes(),
        )),
        name: name.to_ascii_lowercase(),
    }
}
