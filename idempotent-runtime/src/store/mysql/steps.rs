//! The statements of steps. Parameters are numbered as
//! [`sql::step_written`](crate::store::sql::step_written) orders them.

use super::statements::Statement;
use crate::store::sql::{self, Reads, STEP_COLUMNS, TablePrefix};

/// Keeps every other write of the record out until the transaction ends. It waits for one that is
/// under way, and then sees what that wrote.
pub(super) const LOCK: &str = "LOCK IN SHARE MODE";

pub(super) fn load_steps(prefix: &TablePrefix, reads: Reads) -> Statement {
    let columns = reads.columns("''");
    Statement::new(&format!(
        "SELECT {columns} FROM {prefix}steps AS step
         JOIN {prefix}records AS record ON record.id = step.record AND record.created = step.life
         WHERE step.record = ?1 AND step.name >= ?2 AND step.name <= ?3 ORDER BY step.name"
    ))
}

/// One statement locks the record and writes the step. A row of an earlier life is written over.
///
/// The server tells one number with its answer, the last argument of `LAST_INSERT_ID`: 1 where the
/// row is new, 2 where it was written over, 3 where it stays, and 0 where the record takes no step.
/// Assignments may see each other or not, as `sql_mode` says (`SIMULTANEOUS_ASSIGNMENT`). So a
/// variable keeps what the first one has decided.
pub(super) fn write_step(prefix: &TablePrefix, lock: &str, shows: &str) -> Statement {
    let states = sql::taking_steps();
    let (table, columns) = (format!("{prefix}steps"), STEP_COLUMNS.join(", "));
    let set = sql::step_set(|it| match it {
        "version" => format!(
            "IF(LAST_INSERT_ID(IF(@idempotent_over := {table}.life <> VALUES(life)
                 OR COALESCE({table}.version = ?17, FALSE), 2, 3)) = 2, ?2, {table}.version)"
        ),
        it => format!("IF(@idempotent_over, VALUES({it}), {table}.{it})"),
    });
    Statement::new(&format!(
        "INSERT INTO {table} (record, {columns}, life)
         SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16,
                held.created + 0 * LAST_INSERT_ID(1 + 0 * held.state)
         FROM {prefix}records AS held
         WHERE held.attempt_id = ?6 AND held.state IN ({states}) AND held.id = ?1 {lock}
         ON DUPLICATE KEY UPDATE {set}{shows}"
    ))
}
