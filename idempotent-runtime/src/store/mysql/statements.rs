//! The statements that MariaDB and MySQL know. Parameters are numbered as
//! [`sql::written`](crate::store::sql::written) orders them, or
//! [`sql::completed`](crate::store::sql::completed), and a number may stand in several places.

use std::sync::Arc;

use super::{
    beside_triggers::Triggers,
    steps::{LOCK, load_steps, write_step},
};
use crate::{
    policy::OnCrash,
    record::State,
    store::sql::{self, COLUMNS, Reads, TablePrefix},
};

/// The time in microseconds, when the statement began: the same everywhere in it, where `SYSDATE()`
/// is another at each place. An exact integer, and free of the session's time zone, whose clock
/// shows an hour of every autumn twice.
pub(super) const NOW: &str = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";

/// The source of a look. Inside a transaction of the application's it is the database of the store
/// alone, else there is no row.
pub(super) const ANYWHERE: &str = "SELECT 1";

/// The text of every statement, for one table.
///
/// Beside the columns of a record the table has `purge_from`, the least moment at which the record
/// can expire. This column is indexed, and the operation with `created` and the id. As a rule only
/// a claim changes them, so that a completion writes no index.
#[derive(Clone, Debug)]
pub(super) struct Statements {
    pub(super) load: Statement,
    pub(super) load_locked: Statement,
    pub(super) load_shared: Statement,
    pub(super) again: Statement,
    pub(super) create: Statement,
    /// The same on MariaDB, where the answer has version and time.
    pub(super) create_and_show: Statement,
    pub(super) replace: Statement,
    pub(super) complete: Statement,
    pub(super) replace_and_show: Statement,
    pub(super) expired: Statement,
    pub(super) scan: Statement,
    pub(super) load_steps: Statement,
    pub(super) list_steps: Statement,
    pub(super) write_step: Statement,
    /// The same on MariaDB, where the answer has version and time.
    pub(super) write_step_and_show: Statement,
    /// The same without a lock on the record.
    pub(super) begin_step: Statement,
    pub(super) table: String,
    pub(super) steps: String,
    pub(super) triggers: Triggers,
}

/// A statement as the servers want it, with unnumbered parameters.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    pub(super) text: Arc<str>,
    /// Which value stands at each of its places.
    pub(super) places: Box<[usize]>,
}

impl Statement {
    /// Takes the numbers out of a text whose parameters are `?1`, `?2` and so on.
    pub(super) fn new(numbered: &str) -> Self {
        let mut parts = numbered.split('?');
        let mut text = parts.next().unwrap_or_default().to_owned();
        let mut places = Vec::new();
        for part in parts {
            let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
            let number = part[..part.len() - rest.len()].parse::<usize>();
            places.push(number.map_or(0, |number| number.saturating_sub(1)));
            text.push('?');
            text.push_str(rest);
        }
        Self {
            text: text.into(),
            places: places.into(),
        }
    }
}

impl Statements {
    pub(super) fn new(prefix: &TablePrefix) -> Self {
        let table = format!("{prefix}records");
        let columns = COLUMNS.join(", ");
        let running = State::Running.code();
        let (done, released) = (State::Done.code(), State::Released.code());
        let attention = sql::attention();
        let rerun = OnCrash::Rerun.code();
        let max = i64::MAX;
        // A plain look is a consistent read: it takes no lock and waits for none.
        let load = format!(
            "SELECT {NOW}, {columns} FROM ({ANYWHERE}) AS one LEFT JOIN {table} ON id = ?1"
        );
        let again = format!(
            "SELECT {NOW}, outcome FROM {table}
             WHERE id = ?1 AND version = ?2 AND state = {done} AND expires = ?3"
        );
        // The server tells one number with its answer, the last argument of `LAST_INSERT_ID`: the
        // time where the row is new, 0 where one stood there. How many rows were affected depends
        // on how the connection was opened. The second half changes nothing, and unlike `IGNORE` it
        // swallows no error and meets no deadlock.
        let create = format!(
            "INSERT INTO {table} ({columns}, purge_from)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, COALESCE(GREATEST(?9, {NOW}), 0), ?10, ?11, ?12, ?13, ?14,
                    {NOW} + COALESCE(LEAST(?15, {max} - {NOW}), 0), LAST_INSERT_ID({NOW}),
                    IF(?8 = {running}, NULL, {NOW}),
                    {NOW} + COALESCE(LEAST(?16, {max} - {NOW}), 0), ?17, ?18, ?19, ?20, ?21, ?22,
                    {NOW} + GREATEST(0, COALESCE(LEAST(?16, {max} - {NOW}), 0) - COALESCE(?15, 0)))
             ON DUPLICATE KEY UPDATE state = {table}.state + LAST_INSERT_ID(0 * {table}.state)"
        );
        // Assignments happen from left to right and see each other, so none reads what another one
        // writes. A claim says anew when the record can expire at the earliest; every other write
        // can only make it earlier. A record that needs somebody never expires, and stands behind
        // everything that a purge looks at, until it goes on.
        let written = |of: &str, version: &str| {
            format!(
                "version = {version}, operation = COALESCE(?3, {of}operation),
                 scope = COALESCE(?4, {of}scope), call_key = COALESCE(?5, {of}call_key),
                 fingerprint = COALESCE(?6, {of}fingerprint), digests = COALESCE(?7, {of}digests),
                 state = ?8, token = COALESCE(GREATEST(?9, {NOW}), {of}token),
                 attempt = ?10, attempt_id = ?11, holder = ?12, trace_parent = ?13, on_crash = ?14,
                 lease_end = COALESCE({NOW} + LEAST(?15, {max} - {NOW}), {of}lease_end),
                 created = IF(?3 IS NULL, {of}created, {NOW}),
                 finished = IF(?8 = {running}, NULL, {NOW}),
                 expires = COALESCE({NOW} + LEAST(?16, {max} - {NOW}), {of}expires),
                 outcome_kind = ?17, outcome_schema = ?18, outcome = ?19,
                 note = ?20, note_by = ?21, note_of = ?22,
                 purge_from = CASE WHEN ?8 IN ({attention}) THEN {max}
                     WHEN ?16 IS NULL THEN {of}purge_from
                     WHEN ?15 IS NULL THEN LEAST({of}purge_from, {NOW} + LEAST(?16, {max} - {NOW}))
                     WHEN ?3 IS NULL AND {of}purge_from < {max} THEN {of}purge_from
                     ELSE {NOW} + GREATEST(0, LEAST(?16, {max} - {NOW}) - ?15) END"
            )
        };
        let replace = format!(
            "UPDATE {table} SET {written} WHERE id = ?1 AND version = ?23",
            written = written(
                "",
                &format!("IF(LAST_INSERT_ID({NOW} + 0 * state) = 0, version, ?2)")
            ),
        );
        // The same for the second write of most calls, for four fifths of the server's work.
        let complete = format!(
            "UPDATE {table} SET
                 version = ?2, state = {done}, finished = LAST_INSERT_ID({NOW} + 0 * state),
                 expires = {NOW} + LEAST(?4, {max} - {NOW}),
                 outcome_kind = ?5, outcome_schema = ?6, outcome = ?7,
                 purge_from = LEAST(purge_from, {NOW} + LEAST(?4, {max} - {NOW}))
             WHERE id = ?1 AND version = ?3"
        );
        // MariaDB shows what an insert wrote, and not yet what an update wrote. The row is locked
        // while it is looked at, so it stands until it is written. If it does not stand, nothing is
        // inserted.
        let kept = COLUMNS.map(|column| if column == "outcome" { "NULL" } else { column });
        let replace_and_show = format!(
            "INSERT INTO {table} ({columns}, purge_from)
             SELECT {kept}, purge_from FROM {table} AS seen WHERE id = ?1 AND version = ?23 FOR UPDATE
             ON DUPLICATE KEY UPDATE {written}
             RETURNING {NOW}, token, lease_end, expires",
            kept = kept.join(", "),
            written = written(&format!("{table}."), "?2"),
        );
        // Several may purge at once, and a row that is being written at this moment is left alone.
        // It goes by the index, whatever the server thinks of it: a scan would lock every row for a
        // moment.
        let expired = format!(
            "SELECT id FROM {table} FORCE INDEX ({table}_purge)
             WHERE purge_from <= {NOW} - ?2 AND expires <= {NOW} - ?2
               AND (state IN ({done}, {released})
                    OR state = {running} AND on_crash = {rerun} AND lease_end <= {NOW})
             ORDER BY purge_from LIMIT ?1 FOR UPDATE SKIP LOCKED"
        );
        let scan = format!("SELECT {columns} FROM {table} WHERE id > ?1 ORDER BY id LIMIT ?2");
        Self {
            load_locked: Statement::new(&format!("{load} FOR UPDATE")),
            load_shared: Statement::new(&format!("{load} LOCK IN SHARE MODE")),
            load: Statement::new(&load),
            again: Statement::new(&again),
            create_and_show: Statement::new(&format!("{create} RETURNING version, {NOW}")),
            create: Statement::new(&create),
            replace: Statement::new(&replace),
            complete: Statement::new(&complete),
            replace_and_show: Statement::new(&replace_and_show),
            expired: Statement::new(&expired),
            scan: Statement::new(&scan),
            load_steps: load_steps(prefix, Reads::Whole),
            list_steps: load_steps(prefix, Reads::Heads),
            write_step: write_step(prefix, LOCK, ""),
            write_step_and_show: write_step(prefix, LOCK, &format!(" RETURNING version, {NOW}")),
            begin_step: write_step(prefix, "", ""),
            steps: format!("{prefix}steps"),
            table,
            triggers: Triggers::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_numbered_parameter_may_stand_anywhere_and_twice() {
        let statement = Statement::new("SELECT ?2, a + ?10 FROM t WHERE b = ?2");
        assert_eq!(&*statement.text, "SELECT ?, a + ? FROM t WHERE b = ?");
        assert_eq!(*statement.places, [1, 9, 1]);
    }
}
