//! The statements of steps, and what runs them. Parameters are numbered as
//! [`sql::step_written`](crate::store::sql::step_written) orders them.

use std::sync::Arc;

use sqlx::postgres::PgConnection;

use super::{
    rows,
    statements::{NAME, Statement, Statements},
};
use crate::{
    identity::RecordId,
    record::{Step, StepNames, Version},
    store::{
        Snapshot, StepWrite, StoreError,
        sql::{self, Reads, STEP_COLUMNS, TablePrefix},
    },
};

const WRITING: &str = "writing a step";

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
                $9::bytea, $10::bigint, $11::bigint, $12::bytea, $13::bigint, created
         FROM held
         ON CONFLICT (record, name) DO UPDATE SET {set}
         WHERE old.life <> excluded.life OR old.version = $14::bytea
         RETURNING {NAME}"
    ))
}

impl Statements {
    pub(super) async fn load_steps(
        &self,
        connection: &mut PgConnection,
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
        let rows = rows::run(connection, self.protocol, statement, &values, DOING).await?;
        sql::steps(&rows, DOING)
    }

    pub(super) async fn write_step(
        &self,
        connection: &mut PgConnection,
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> Result<StepWrite, StoreError> {
        let statement = &self.write_step;
        self.write_step_by(statement, connection, call, seen, next)
            .await
    }

    /// Writes a step without a lock on the record.
    pub(super) fn begin_step(&self) -> Statement {
        let locking = &self.write_step;
        Statement {
            text: locking.text.replace(LOCK, "").into(),
            name: locking.name,
        }
    }

    /// The same inside a transaction of the application's: what it writes first locks no record.
    pub(super) async fn write_step_in(
        &self,
        connection: &mut PgConnection,
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> Result<StepWrite, StoreError> {
        let without = self.begin_step();
        let statement = seen.map_or(&without, |_| &self.write_step);
        let written = self.write_step_by(statement, connection, call, seen, next);
        match written.await? {
            StepWrite::Lost(Snapshot { record: None, .. })
                if self.is_elsewhere(connection, WRITING).await? =>
            {
                Err(sql::version::is_elsewhere(WRITING))
            }
            written => Ok(written),
        }
    }

    async fn write_step_by(
        &self,
        statement: &Statement,
        connection: &mut PgConnection,
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> Result<StepWrite, StoreError> {
        for _ in 0..sql::ROUNDS {
            let values = sql::step_written(call, seen, next);
            let rows = rows::run(connection, self.protocol, statement, &values, WRITING).await?;
            if !rows.is_empty() {
                return Ok(StepWrite::Written);
            }
            let snapshot = self.load(connection, call).await?;
            let steps = self
                .load_steps(connection, call, &next.name.alone(), Reads::Whole)
                .await?;
            if let Some(refused) = sql::step_refused(next, snapshot, steps.first()) {
                return Ok(refused);
            }
        }
        Err(sql::step_is_dropped(WRITING))
    }
}
