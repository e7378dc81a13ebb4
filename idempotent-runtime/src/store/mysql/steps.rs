//! The statements of steps, and what runs them. Parameters are numbered as
//! [`sql::step_written`](crate::store::sql::step_written) orders them.

use std::sync::Arc;

use super::{
    connection::Session,
    rows::run,
    statements::{Statement, Statements},
};
use crate::{
    identity::RecordId,
    record::{Step, StepNames, Version},
    store::{
        StepWrite, StoreError,
        sql::{self, Reads, STEP_COLUMNS, TablePrefix},
    },
};

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
pub(super) fn write_step(prefix: &TablePrefix, lock: &str) -> Statement {
    let states = sql::taking_steps();
    let (table, columns) = (format!("{prefix}steps"), STEP_COLUMNS.join(", "));
    let set = sql::step_set(|it| match it {
        "version" => format!(
            "IF(LAST_INSERT_ID(IF(@idempotent_over := {table}.life <> VALUES(life)
                 OR COALESCE({table}.version = ?14, FALSE), 2, 3)) = 2, ?2, {table}.version)"
        ),
        it => format!("IF(@idempotent_over, VALUES({it}), {table}.{it})"),
    });
    Statement::new(&format!(
        "INSERT INTO {table} (record, {columns}, life)
         SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13,
                held.created + 0 * LAST_INSERT_ID(1 + 0 * held.state)
         FROM {prefix}records AS held
         WHERE held.attempt_id = ?6 AND held.state IN ({states}) AND held.id = ?1 {lock}
         ON DUPLICATE KEY UPDATE {set}"
    ))
}

impl Statements {
    pub(super) async fn load_steps(
        &self,
        session: &mut Session<'_>,
        call: &RecordId,
        names: &StepNames,
        reads: Reads,
    ) -> Result<Vec<Arc<Step>>, StoreError> {
        const DOING: &str = "loading steps";
        let values = sql::steps_sought(call, names);
        let statement = match reads {
            Reads::Whole => &self.load_steps,
            Reads::Heads => &self.list_steps,
        };
        let answer = run(session, statement, &values, DOING).await?;
        sql::steps(&answer.rows, DOING)
    }

    /// Inside a transaction of the application's, what it writes first locks no record.
    pub(super) async fn write_step(
        &self,
        session: &mut Session<'_>,
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> Result<StepWrite, StoreError> {
        const DOING: &str = "writing a step";
        let statement = match seen {
            None if !session.is_alone() => &self.begin_step,
            _ => &self.write_step,
        };
        for _ in 0..sql::ROUNDS {
            let values = sql::step_written(call, seen, next);
            let answer = run(session, statement, &values, DOING).await?;
            if matches!(answer.server_time, 1 | 2) {
                return Ok(StepWrite::Written);
            }
            let snapshot = self.load_current(session, call).await?;
            let steps = self
                .load_steps(session, call, &next.name.alone(), Reads::Whole)
                .await?;
            // Beside a trigger of the application's the server forgets what it was to tell.
            let stands = steps.first();
            if stands.is_some_and(|step| step.version == next.version) {
                return Ok(StepWrite::Written);
            }
            if let Some(refused) = sql::step_refused(next, snapshot, steps.first()) {
                return Ok(refused);
            }
        }
        Err(sql::step_is_dropped(DOING))
    }
}
