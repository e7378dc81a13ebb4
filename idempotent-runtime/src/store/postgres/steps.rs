//! The statements of steps. Parameters are numbered as
//! [`sql::step_written`](crate::store::sql::step_written) orders them.

use super::statements::{NAME, Statement, Statements};
use crate::store::sql::{self, Reads, STEP_COLUMNS, TablePrefix};

/// Keeps every other write of the record out until the transaction ends. It waits for one that is
/// under way, and then sees what that wrote.
const LOCK: &str = "FOR SHARE";

pub(super) fn load_steps(prefix: &TablePrefix, reads: Reads) -> Statement {
    let columns = reads.columns("''::bytea");
    Statement::new(&format!(
        "SELECT {columns}, {NAME} FROM {prefix}steps AS step
         JOIN {prefix}records ON id = record AND created = life
         WHERE record = $1::bytea AND step.name >= $2::bytea AND step.name <= $3::bytea ORDER BY step.name"
    ))
}

/// One statement locks the record and writes the step. A row of an earlier life is written over.
pub(super) fn write_step(prefix: &TablePrefix) -> Statement {
    let states = sql::taking_steps();
    let columns = STEP_COLUMNS.join(", ");
    let set = sql::step_set(|column| format!("excluded.{column}"));
    Statement::new(&format!(
        "WITH held AS (
             SELECT created FROM {prefix}records
             WHERE id = $1::bytea AND attempt_id = $6::bytea AND state IN ({states})
             {LOCK})
         INSERT INTO {prefix}steps AS old (record, {columns}, life)
         SELECT $1::bytea, $2::bytea, $3::bytea, $4::text, $5::bigint, $6::bytea, $7::bigint, $8::bytea,
                $9::bytea, $10::bigint, $11::bigint, $12::bytea, $13::bigint, $14::text, $15::text, $16::bytea, created
         FROM held
         ON CONFLICT (record, name) DO UPDATE SET {set}
         WHERE old.life <> excluded.life OR old.version = $17::bytea
         RETURNING {NAME}"
    ))
}

impl Statements {
    /// Writes a step without a lock on the record.
    pub(super) fn begin_step(&self) -> Statement {
        let locking = &self.write_step;
        Statement {
            text: locking.text.replace(LOCK, "").into(),
            name: locking.name,
        }
    }
}
