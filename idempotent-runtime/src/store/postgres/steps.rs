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
    record::{State, Step, StepName, Version},
    store::{
        Snapshot, StepWrite, StoreError,
        sql::{self, STEP_COLUMNS, TablePrefix},
    },
};

const WRITING: &str = "writing a step";

/// Keeps every other write of the record out until the transaction ends. It waits for one that is
/// under way, and then sees what that wrote.
const LOCK: &str = "FOR SHARE";

pub(super) fn load_step(prefix: &TablePrefix) -> Statement {
    let columns = STEP_COLUMNS
        .map(|column| format!("step.{column}"))
        .join(", ");
    Statement::new(&format!(
        "SELECT {columns}, {NAME} FROM {prefix}steps AS step
         JOIN {prefix}records ON id = record AND created = life
         WHERE record = $1::bytea AND step.name = $2::bytea"
    ))
}

/// One statement locks the record and writes the step. A row of an earlier life is written over.
pub(super) fn write_step(prefix: &TablePrefix) -> Statement {
    let (running, uncertain) = (State::Running.code(), State::Uncertain.code());
    let columns = STEP_COLUMNS.join(", ");
    let set = sql::step_set(|column| format!("excluded.{column}"));
    Statement::new(&format!(
        "WITH held AS (
             SELECT created FROM {prefix}records
             WHERE id = $1::bytea AND attempt_id = $6::bytea AND state IN ({running}, {uncertain})
             {LOCK})
         INSERT INTO {prefix}steps AS old (record, {columns}, life)
         SELECT $1::bytea, $2::bytea, $3::bytea, $4::text, $5::bigint, $6::bytea, $7::bigint, $8::bytea,
                $9::bytea, $10::bigint, $11::bigint, $12::bytea, created
         FROM held
         ON CONFLICT (record, name) DO UPDATE SET {set}
         WHERE old.life <> excluded.life OR old.version = $13::bytea
         RETURNING {NAME}"
    ))
}

impl Statements {
    pub(super) async fn load_step(
        &self,
        connection: &mut PgConnection,
        call: &RecordId,
        name: &StepName,
    ) -> Result<Option<Arc<Step>>, StoreError> {
        const DOING: &str = "loading a step";
        let values = sql::step_sought(call, name);
        let (protocol, statement) = (self.protocol, &self.load_step);
        let rows = rows::run(connection, protocol, statement, &values, DOING).await?;
        sql::step(rows.first(), DOING)
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

    /// The same inside a transaction of the application's: what it writes first locks no record.
    pub(super) async fn write_step_in(
        &self,
        connection: &mut PgConnection,
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> Result<StepWrite, StoreError> {
        let locking = &self.write_step;
        let without = Statement {
            text: locking.text.replace(LOCK, "").into(),
            name: locking.name,
        };
        let statement = seen.map_or(&without, |_| locking);
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
            let step = self.load_step(connection, call, &next.name).await?;
            if let Some(refused) = sql::step_refused(next, snapshot, step) {
                return Ok(refused);
            }
        }
        Err(sql::step_is_dropped(WRITING))
    }
}
