//! The functions that run the statements over a connection, the store's own or the application's.

use std::{sync::Arc, time::Duration};

use sqlx::{AssertSqlSafe, Connection, Executor, MySql, mysql::MySqlConnection};

use super::{
    beside_triggers::shown,
    connection::{self, About, Session},
    failure,
    rows::{found, keeps, query, run, stamped},
    statements::{ANYWHERE, Statement, Statements},
};
use crate::{
    identity::RecordId,
    record::{Draft, Record, State, Step, StepNames, Version, micros},
    store::{
        Snapshot, Stamp, StepWrite, Store, StoreError, StoreErrorKind, Swap,
        lane::{Answer, Job, Kind},
        sql::{self, Reads, Value, bytes, server::ServerDialect},
        version_cache::CachedVersion,
    },
};

const PURGING: &str = "purging expired records";

const WRITING: &str = "writing a record";

/// Why a record that no look shows cannot be claimed.
const HIDDEN: &str =
    "nothing can be written there, and nothing is shown: a view or a proxy hides the record";

/// How many records are deleted in one round trip.
const BATCH: usize = 500;

impl ServerDialect for Statements {
    type Database = MySql;
    type Server = connection::MySql;
    type About = About;
    type Listener = ();

    const KIND: &'static str = "one of MariaDB or MySQL";

    fn inside(&self, here: Option<&str>) -> Self {
        let text = self.load.text.replace(ANYWHERE, here.unwrap_or(ANYWHERE));
        let load = Statement {
            text: text.into(),
            places: self.load.places.clone(),
        };
        Self {
            load,
            ..self.clone()
        }
    }

    fn has_lanes(&self) -> bool {
        true
    }

    /// MySQL does not show the rows that it wrote, and has no statement that waits for no lock.
    fn does_many(about: &About, kind: Kind) -> bool {
        about.shows || matches!(kind, Kind::Again | Kind::Look)
    }

    async fn do_many(
        &self,
        session: &mut Session<'_>,
        kind: Kind,
        jobs: &[&Job],
    ) -> Result<Vec<Option<Answer>>, StoreError> {
        self.send_many(session, kind, jobs).await
    }

    fn is_undone(error: &StoreError) -> bool {
        failure::was_undone(error)
    }

    async fn load(&self, session: &mut Session<'_>, id: &RecordId) -> Result<Snapshot, StoreError> {
        look(session, &self.load, id).await
    }

    /// The known record of a call that is done, with its outcome; `None` where it no longer stands
    /// so.
    async fn again(
        &self,
        session: &mut Session<'_>,
        id: &RecordId,
        known: &CachedVersion,
    ) -> Result<Option<Snapshot>, StoreError> {
        const DOING: &str = "loading an outcome";
        let answer = run(session, &self.again, &sql::known(id, known), DOING).await?;
        let row = answer.rows.first();
        row.map_or(Ok(None), |row| sql::again(row, known, DOING))
    }

    /// Puts `next` where nothing stands. It looks first: an insert that meets a row locks it, also
    /// where it changes nothing, and inside a transaction until that ends.
    async fn create(
        &self,
        session: &mut Session<'_>,
        id: &RecordId,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        const DOING: &str = "claiming a record";
        let mut snapshot = self.load(session, id).await?;
        if let Some(outside) = session.outside {
            snapshot = self.confirm(session, outside, id, snapshot).await?;
        }
        let mut rounds = 0..sql::ROUNDS;
        while snapshot.record.is_none() {
            if rounds.next().is_none() {
                return Err(StoreError::new(StoreErrorKind::Denied, DOING).with_source(HIDDEN));
            }
            let values = sql::written(id, None, next);
            let create = (&self.create, Some(&self.create_and_show));
            let answer = self.write(session, create, &values, DOING).await?;
            let number = shown(&answer, next.version, DOING)?;
            if let Some(stamp) = stamped(next, None, number) {
                return Ok(Swap::Applied(stamp));
            }
            let looked = self.load_current(session, id).await;
            snapshot = looked.map_err(StoreError::after_a_write)?;
            if let Some(stamp) = found(next, &snapshot) {
                self.triggers.met();
                return Ok(Swap::Applied(stamp));
            }
        }
        Ok(Swap::Refused(snapshot))
    }

    /// Puts `next` where version `seen` stands, of which `known` is what this process knows.
    ///
    /// The server does not tell what a draft keeps unless it is asked. The known record of the
    /// version that is replaced holds what was kept.
    async fn replace(
        &self,
        session: &mut Session<'_>,
        id: &RecordId,
        seen: Version,
        next: &Draft,
        known: Option<&CachedVersion>,
    ) -> Result<Swap, StoreError> {
        let known = known.map(CachedVersion::record);
        let is_untold = self.triggers.are_there() || known.is_none() && keeps(next);
        let applied = match known {
            _ if is_untold && session.about.shows => {
                self.replace_and_show(session, id, seen, next).await?
            }
            None if keeps(next) => self.look_and_update(session, id, seen, next).await?,
            previous => self.update(session, id, seen, next, previous).await?,
        };
        match applied {
            Some(stamp) => Ok(Swap::Applied(stamp)),
            None => self.load_current(session, id).await.map(Swap::Refused),
        }
    }

    async fn purge(
        &self,
        session: &mut Session<'_>,
        limit: u32,
        keep: Duration,
    ) -> Result<Vec<RecordId>, StoreError> {
        let failed = |error| failure::of(error, PURGING);
        let mut transaction = session.connection.begin().await.map_err(failed)?;
        match self.delete_expired(&mut transaction, limit, keep).await {
            Ok(gone) => {
                transaction.commit().await.map_err(failed)?;
                Ok(gone)
            }
            Err(error) => {
                // Dropped, it would keep its locks until the connection is used again. If the
                // connection is gone, so is the transaction.
                let _ = transaction.rollback().await;
                Err(error)
            }
        }
    }

    async fn scan(
        &self,
        session: &mut Session<'_>,
        after: Option<RecordId>,
        limit: u32,
    ) -> Result<Vec<(RecordId, Arc<Record>)>, StoreError> {
        const DOING: &str = "listing records";
        // Shorter than every id, and so before all of them.
        let after = after.map_or(Vec::new(), |after| after.as_bytes().to_vec());
        let values = [bytes(&after), Value::Number(Some(limit.into()))];
        let answer = run(session, &self.scan, &values, DOING).await?;
        let rows = answer.rows.iter();
        rows.map(|row| sql::listed(row, DOING)).collect()
    }

    async fn load_steps(
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
    async fn write_step(
        &self,
        session: &mut Session<'_>,
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> Result<StepWrite, StoreError> {
        const DOING: &str = "writing a step";
        let statement = match seen {
            None if !session.is_alone() => (&self.begin_step, None),
            _ => (&self.write_step, Some(&self.write_step_and_show)),
        };
        for _ in 0..sql::ROUNDS {
            let values = sql::step_written(call, seen, next);
            let answer = self.write(session, statement, &values, DOING).await?;
            let is_written = match answer.rows.is_empty() {
                true => matches!(answer.server_time, 1 | 2),
                false => shown(&answer, next.version, DOING)? > 0,
            };
            if is_written {
                return Ok(StepWrite::Written);
            }
            let snapshot = self.load_current(session, call).await?;
            let names = next.name.alone();
            let steps = self.load_steps(session, call, &names, Reads::Whole).await?;
            let stands = steps.first();
            if stands.is_some_and(|step| step.version == next.version) {
                self.triggers.met();
                return Ok(StepWrite::Written);
            }
            if let Some(refused) = sql::step_refused(next, snapshot, stands) {
                return Ok(refused);
            }
        }
        Err(sql::step_is_dropped(DOING))
    }
}

impl Statements {
    /// The record that stands there now. A look without a lock shows it, except inside a
    /// transaction: there such a look may show what stood when that began, or looked for the first
    /// time.
    pub(super) async fn load_current(
        &self,
        session: &mut Session<'_>,
        id: &RecordId,
    ) -> Result<Snapshot, StoreError> {
        if session.is_alone() {
            return self.load(session, id).await;
        }
        look(session, &self.load_locked, id).await
    }

    /// The record that stands there now, after a look inside a transaction showed one. Under READ
    /// UNCOMMITTED a look shows writes that are not committed yet, and may never be. An outcome
    /// counts if it is shown outside, too, or once it can be locked. It does not go by the lock
    /// alone: a replay that waited for the outcome has locked it for as long as its transaction
    /// goes on.
    async fn confirm(
        &self,
        session: &mut Session<'_>,
        outside: &dyn Store,
        id: &RecordId,
        seen: Snapshot,
    ) -> Result<Snapshot, StoreError> {
        let Some(record) = &seen.record else {
            return Ok(seen);
        };
        match record.state {
            // Only its holder changes it, and a lock would keep the holder waiting.
            State::Running if !record.lease_is_over(seen.now) => Ok(seen),
            State::Done if !record.is_expired(seen.now) => {
                let committed = outside.load(id).await.ok().and_then(|there| there.record);
                if committed.is_some_and(|committed| committed.version == record.version) {
                    return Ok(seen);
                }
                look(session, &self.load_shared, id).await
            }
            // It is written over, if it stands at all.
            _ => self.load_current(session, id).await,
        }
    }

    async fn replace_and_show(
        &self,
        session: &mut Session<'_>,
        id: &RecordId,
        seen: Version,
        next: &Draft,
    ) -> Result<Option<Stamp>, StoreError> {
        let values = sql::written(id, Some(seen), next);
        let answer = run(session, &self.replace_and_show, &values, WRITING).await?;
        let row = answer.rows.first();
        row.map(|row| sql::stamp(row, 0, next.version, WRITING))
            .transpose()
    }

    async fn look_and_update(
        &self,
        session: &mut Session<'_>,
        id: &RecordId,
        seen: Version,
        next: &Draft,
    ) -> Result<Option<Stamp>, StoreError> {
        match self.load_current(session, id).await?.record {
            Some(record) if record.version == seen => {
                self.update(session, id, seen, next, Some(&record)).await
            }
            _ => Ok(None),
        }
    }

    /// Writes `next` over version `seen`, which is `previous` where that is known or counts.
    async fn update(
        &self,
        session: &mut Session<'_>,
        id: &RecordId,
        seen: Version,
        next: &Draft,
        previous: Option<&Record>,
    ) -> Result<Option<Stamp>, StoreError> {
        let answer = if previous.is_some_and(|previous| next.only_completes(previous)) {
            let values = sql::completed(id, seen, next);
            self.write(session, (&self.complete, None), &values, WRITING)
                .await?
        } else {
            let values = sql::written(id, Some(seen), next);
            self.write(session, (&self.replace, None), &values, WRITING)
                .await?
        };
        // A version is written over another one, so a row that was found was changed: here both
        // counts are the same.
        if answer.affected == 0 {
            return Ok(None);
        }
        if let Some(stamp) = stamped(next, previous, answer.server_time) {
            return Ok(Some(stamp));
        }
        self.learn(session, id, next, WRITING).await.map(Some)
    }

    async fn delete_expired(
        &self,
        connection: &mut MySqlConnection,
        limit: u32,
        keep: Duration,
    ) -> Result<Vec<RecordId>, StoreError> {
        let failed = |error| failure::of(error, PURGING);
        let values = [limit.into(), micros(keep)].map(|number| Value::Number(Some(number)));
        let expired = connection.fetch_all(query(&self.expired, &values)).await;
        let expired = expired.map_err(failed)?;
        let gone = expired.iter().map(|row| sql::id(row, PURGING));
        let gone: Vec<_> = gone.collect::<Result<_, _>>()?;
        for batch in gone.chunks(BATCH) {
            let delete = sqlx::raw_sql(AssertSqlSafe(self.delete(batch)));
            connection.execute(delete).await.map_err(failed)?;
        }
        Ok(gone)
    }

    /// The text that deletes these records with their steps. It is not one statement with all ids:
    /// that may scan the table, and wait for rows that another purge has locked.
    pub(super) fn delete(&self, gone: &[RecordId]) -> String {
        let delete = |id: &RecordId| {
            let (records, steps, id) = (&self.table, &self.steps, id.to_hex());
            format!(
                "DELETE FROM {steps} WHERE record = x'{id}'; DELETE FROM {records} WHERE id = x'{id}';"
            )
        };
        gone.iter().map(delete).collect()
    }
}

async fn look(
    session: &mut Session<'_>,
    statement: &Statement,
    id: &RecordId,
) -> Result<Snapshot, StoreError> {
    const DOING: &str = "loading a record";
    let answer = run(session, statement, &[bytes(id.as_bytes())], DOING).await?;
    match answer.rows.first() {
        Some(row) => sql::snapshot(row, 0, 1, DOING),
        None if session.is_alone() => Err(sql::no_row(DOING)),
        None => Err(sql::version::is_elsewhere(DOING)),
    }
}
