//! The functions that run the statements over a connection, the store's own or the application's.

use std::{sync::Arc, time::Duration};

use sqlx::{AssertSqlSafe, Executor, Postgres, Row};

use super::{
    connection::{self, Right, Session},
    failure,
    packed::Unpacked,
    rows::{MAX_SERIALIZATION_RETRIES, Protocol},
    statements::{ANYWHERE, Statement, Statements, place},
};
use crate::{
    identity::RecordId,
    record::{Draft, Record, Step, StepNames, Version, micros},
    store::{
        ListenerHealth, Snapshot, StepWrite, StoreError, StoreErrorKind, Swap,
        lane::{Answer, Job, Kind},
        notifications::Listener,
        sql::{self, Reads, Value, bytes, server::ServerDialect},
        version_cache::CachedVersion,
    },
};

/// The result of noting in a record that a call waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// It is noted: the next write of the record tells.
    Stands,
    /// Another transaction has locked the record.
    Locked,
    /// Another version stands there, or nothing.
    Moved,
}

/// Why a record that no look shows cannot be claimed.
const HIDDEN: &str = "nothing can be written there, and nothing is shown: a policy of row-level security hides the record, or a trigger or rule drops it";

impl ServerDialect for Statements {
    type Database = Postgres;
    type Server = connection::Postgres;
    type About = Option<Right>;
    type Listener = Arc<Listener>;

    fn listening(listener: &Self::Listener) -> Option<ListenerHealth> {
        Some(listener.health())
    }

    const KIND: &'static str = "one of Postgres";

    /// The same for a connection that is not ours, on which nothing of ours keeps a name. It claims
    /// only if `here` gives a row.
    fn inside(&self, here: Option<&str>) -> Self {
        let create = &self.create;
        let text = match here {
            Some(here) => create
                .text
                .replace(ANYWHERE, &format!("WHERE EXISTS ({here})")),
            None => create.text.to_string(),
        };
        Self {
            protocol: Protocol::Simple,
            create: Statement {
                text: text.into(),
                name: create.name,
            },
            here: here.map(Arc::from),
            ..self.clone()
        }
    }

    /// Behind a proxy each statement would be one long text.
    fn has_lanes(&self) -> bool {
        self.protocol == Protocol::Extended
    }

    fn does_many(_: &Option<Right>, _: Kind) -> bool {
        true
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
        const DOING: &str = "loading a record";
        let id = [bytes(id.as_bytes())];
        let rows = self.run(session, &self.load, &id, DOING).await?;
        let row = rows.first().ok_or_else(|| sql::no_row(DOING))?;
        sql::snapshot(&Unpacked::of(row, DOING)?, place::NOW, place::RECORD, DOING)
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
        let values = sql::known(id, known);
        let rows = self.run(session, &self.again, &values, DOING).await?;
        let row = rows.first();
        row.map_or(Ok(None), |row| sql::again(row, known, DOING))
    }

    /// Puts `next` where nothing stands. A user that could not record how a call ends is shown what
    /// stands, and begins none.
    async fn create(
        &self,
        session: &mut Session<'_>,
        id: &RecordId,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        const DOING: &str = "claiming a record";
        if let Some(right) = session.about.clone() {
            let snapshot = self.load(session, id).await?;
            return match snapshot.record {
                Some(_) => Ok(Swap::Refused(snapshot)),
                None => Err(StoreError::new(StoreErrorKind::Denied, DOING).with_source(right)),
            };
        }
        for _ in 0..sql::ROUNDS {
            // The last one is the version that was seen, and none was.
            let [values @ .., _] = sql::written(id, None, next);
            let rows = self.run(session, &self.create, &values, DOING).await?;
            if let Some(row) = rows.first() {
                let row = Unpacked::of(row, DOING)?;
                return sql::swapped(&row, place::RECORD, next.version, DOING);
            }
            // Another call was quicker, after this statement began. A new statement sees its
            // record, unless it is gone again.
            let snapshot = self.load(session, id).await?;
            if snapshot.record.is_some() {
                return Ok(Swap::Refused(snapshot));
            }
            if self.is_elsewhere(session, DOING).await? {
                return Err(sql::version::is_elsewhere(DOING));
            }
        }
        Err(StoreError::new(StoreErrorKind::Denied, DOING).with_source(HIDDEN))
    }

    /// Puts `next` where version `seen` stands, of which `known` is what this process knows.
    async fn replace(
        &self,
        session: &mut Session<'_>,
        id: &RecordId,
        seen: Version,
        next: &Draft,
        known: Option<&CachedVersion>,
    ) -> Result<Swap, StoreError> {
        const DOING: &str = "writing a record";
        let channel = [Value::Text(Some(&*self.channel))];
        let (statement, values): (_, Vec<_>) = match known {
            Some(known) if next.only_completes(known.record()) => {
                let values = sql::completed(id, seen, next);
                (&self.complete, values.into_iter().chain(channel).collect())
            }
            _ => {
                let values = sql::written(id, Some(seen), next);
                (&self.replace, values.into_iter().chain(channel).collect())
            }
        };
        let written = self.run_and_tell(session, statement, values, 0, DOING);
        match written.await?.first() {
            Some(row) => sql::swapped(row, place::RECORD, next.version, DOING),
            // The look is not in the same statement: the snapshot of that may be older than the
            // version that was in the way.
            None => self.load(session, id).await.map(Swap::Refused),
        }
    }

    async fn purge(
        &self,
        session: &mut Session<'_>,
        limit: u32,
        keep: Duration,
    ) -> Result<Vec<RecordId>, StoreError> {
        const DOING: &str = "purging expired records";
        let values = vec![
            Value::Number(Some(limit.into())),
            Value::Number(Some(micros(keep))),
            Value::Text(Some(&*self.channel)),
        ];
        let retries = MAX_SERIALIZATION_RETRIES;
        let rows = self.run_and_tell(session, &self.purge, values, retries, DOING);
        rows.await?.iter().map(|row| sql::id(row, DOING)).collect()
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
        let rows = self.run(session, &self.scan, &values, DOING).await?;
        rows.iter().map(|row| sql::listed(row, DOING)).collect()
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
        let rows = self.run(session, statement, &values, DOING).await?;
        sql::steps(&rows, DOING)
    }

    async fn write_step(
        &self,
        session: &mut Session<'_>,
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> Result<StepWrite, StoreError> {
        const DOING: &str = "writing a step";
        let without = (seen.is_none() && !session.is_alone()).then(|| self.begin_step());
        let statement = without.as_ref().unwrap_or(&self.write_step);
        for _ in 0..sql::ROUNDS {
            let values = sql::step_written(call, seen, next);
            let rows = self.run(session, statement, &values, DOING).await?;
            if !rows.is_empty() {
                return Ok(StepWrite::Written);
            }
            let snapshot = self.load(session, call).await?;
            if snapshot.record.is_none() && self.is_elsewhere(session, DOING).await? {
                return Err(sql::version::is_elsewhere(DOING));
            }
            let names = next.name.alone();
            let steps = self.load_steps(session, call, &names, Reads::Whole).await?;
            if let Some(refused) = sql::step_refused(next, snapshot, steps.first()) {
                return Ok(refused);
            }
        }
        Err(sql::step_is_dropped(DOING))
    }
}

impl Statements {
    async fn is_elsewhere(
        &self,
        session: &mut Session<'_>,
        doing: &'static str,
    ) -> Result<bool, StoreError> {
        let Some(here) = &self.here else {
            return Ok(false);
        };
        let here = sqlx::raw_sql(AssertSqlSafe(Arc::clone(here)));
        let here = session.connection.fetch_optional(here).await;
        here.map(|row| row.is_none())
            .map_err(|error| failure::of(error, doing))
    }

    /// Notes that a call waits while version `seen` stands.
    pub(super) async fn mark(
        &self,
        session: &mut Session<'_>,
        id: &RecordId,
        seen: Version,
    ) -> Result<Mark, StoreError> {
        const DOING: &str = "waiting for a record";
        let seen = seen.to_bytes();
        let values = [bytes(id.as_bytes()), bytes(&seen)];
        let rows = self.run(session, &self.mark, &values, DOING).await?;
        let Some(row) = rows.first() else {
            return Ok(Mark::Moved);
        };
        let stands = row.try_get(0).map_err(|error| failure::of(error, DOING))?;
        Ok(if stands { Mark::Stands } else { Mark::Locked })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        record::draft::tests::claim,
        store::{PostgresStore, Store, sql::tests::upgrade},
    };

    /// Whether a waiting call is noted, and which transaction wrote the record last.
    async fn marked(store: &PostgresStore) -> (bool, i64) {
        let inner = &store.inner;
        let mut connection = inner.connections.acquire("testing").await.expect("one");
        let query = format!(
            "SELECT waited, xmin::text::bigint FROM {}records",
            inner.prefix
        );
        let row = sqlx::query_as(AssertSqlSafe(query))
            .fetch_one(&mut connection.connection)
            .await;
        connection.release(Ok(())).expect("it is free again");
        row.expect("one record")
    }

    #[tokio::test]
    #[ignore = "needs a server: cargo xtask test"]
    async fn a_record_is_marked_once_at_the_version_that_was_seen() {
        let url = std::env::var("IDEMPOTENT_TEST_POSTGRES_URL");
        let url = url.expect("`cargo xtask test` says where Postgres is");
        let prefix = upgrade::prefix().to_string();
        let builder = PostgresStore::builder().table_prefix(&prefix);
        let store = builder.connect(&url).await.expect("the server answers");
        let id = RecordId::from_bytes([1; 32]);
        let draft = claim(b"key");
        let swap = store.swap(&id, None, &draft).await;
        assert!(matches!(swap, Ok(Swap::Applied(_))), "{swap:?}");
        let mark = async |seen| store.inner.mark(&id, seen).await;
        let untouched = marked(&store).await;

        assert_eq!(mark(Version::random()).await, Ok(Mark::Moved));
        assert_eq!(marked(&store).await, untouched);

        assert_eq!(mark(draft.version).await, Ok(Mark::Stands));
        let once = marked(&store).await;
        assert!(once.0);

        assert_eq!(mark(draft.version).await, Ok(Mark::Stands));
        assert_eq!(marked(&store).await, once, "it is written once");
    }
}
