//! The statements of steps, and what runs them. Parameters are numbered as
//! [`sql::step_written`](crate::store::sql::step_written) orders them.

use std::sync::Arc;

use sqlx::sqlite::SqliteConnection;

use super::{
    calls::{all, query},
    rows,
    statements::Statements,
};
use crate::{
    identity::RecordId,
    record::{Step, StepNames, Version},
    store::{
        Snapshot, StepWrite, StoreError,
        sql::{self, Reads, STEP_COLUMNS, TablePrefix},
    },
};

pub(super) fn load_steps(prefix: &TablePrefix, reads: Reads) -> String {
    let columns = reads.columns("x''");
    format!(
        "SELECT {columns} FROM {prefix}steps AS step
         JOIN {prefix}records ON id = record AND created = life
         WHERE record = ?1 AND name >= ?2 AND name <= ?3 ORDER BY name"
    )
}

/// One statement looks at the record and writes the step: nothing comes between. A row of an
/// earlier life is written over.
pub(super) fn write_step(prefix: &TablePrefix) -> String {
    let states = sql::taking_steps();
    let columns = STEP_COLUMNS.join(", ");
    let set = sql::step_set(|column| format!("excluded.{column}"));
    format!(
        "INSERT INTO {prefix}steps AS old (record, {columns}, life)
         SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, created FROM {prefix}records
         WHERE id = ?1 AND attempt_id = ?6 AND state IN ({states})
         ON CONFLICT (record, name) DO UPDATE SET {set}
         WHERE old.life <> excluded.life OR old.version = ?17
         RETURNING 1"
    )
}

impl Statements {
    pub(super) async fn load_steps(
        &self,
        connection: &mut SqliteConnection,
        call: &RecordId,
        names: &StepNames,
        reads: Reads,
    ) -> Result<Vec<Arc<Step>>, StoreError> {
        const DOING: &str = "loading steps";
        let values = sql::steps_sought(call, names).into_iter();
        let text = match reads {
            Reads::Whole => &self.load_steps,
            Reads::Heads => &self.list_steps,
        };
        let query = values.fold(query(text), rows::bind);
        sql::steps(&all(connection, query, DOING).await?, DOING)
    }

    pub(super) async fn write_step(
        &self,
        connection: &mut SqliteConnection,
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> Result<StepWrite, StoreError> {
        const DOING: &str = "writing a step";
        for _ in 0..sql::ROUNDS {
            let values = sql::step_written(call, seen, next).into_iter();
            let query = values.fold(query(&self.write_step), rows::bind);
            if !all(connection, query, DOING).await?.is_empty() {
                return Ok(StepWrite::Written);
            }
            let snapshot = self.load(connection, call).await?;
            let (names, reads) = (next.name.alone(), Reads::Whole);
            let steps = self.load_steps(connection, call, &names, reads).await?;
            if let Some(refused) = sql::step_refused(next, snapshot, steps.first()) {
                return Ok(refused);
            }
        }
        Err(sql::step_is_dropped(DOING))
    }

    /// The same inside a transaction of the application's. The file is locked by it as a whole.
    pub(super) async fn write_step_in(
        &self,
        connection: &mut SqliteConnection,
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> Result<StepWrite, StoreError> {
        let written = self.write_step(connection, call, seen, next).await?;
        match written {
            StepWrite::Lost(Snapshot { record: None, .. })
                if self.is_elsewhere(connection).await? =>
            {
                Err(sql::version::is_elsewhere("writing a step"))
            }
            written => Ok(written),
        }
    }
}
