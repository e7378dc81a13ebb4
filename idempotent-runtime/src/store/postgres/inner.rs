//! The state that the store and its clones share, and the work over its own connections.

use std::{sync::Arc, time::Duration};

use sqlx::postgres::PgConnection;

use super::{
    calls::Mark,
    connection::{Connected, Postgres},
    migrate,
    rows::Protocol,
    statements::Statements,
};
use crate::{
    identity::RecordId,
    record::{Draft, Record, Step, StepNames, Version},
    store::{
        Snapshot, StepWrite, StoreError, StoreErrorKind, Swap,
        moment::Moment,
        notifications::Listener,
        pool::ConnectionPool,
        sql::{
            Reads, TablePrefix,
            version::{self as schema, Inside},
        },
        version_cache::VersionCache,
        waiters::Waiters,
    },
};

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) connections: ConnectionPool<Postgres>,
    pub(super) statements: Arc<Statements>,
    pub(super) prefix: TablePrefix,
    pub(super) inside: Inside<Statements>,
    pub(super) waiters: Arc<Waiters>,
    pub(super) listener: Arc<Listener>,
    pub(super) versions: Arc<VersionCache>,
}

impl Inner {
    /// Takes note of the id of the store, whose tables are there.
    pub(super) async fn learn(&self, connection: &mut PgConnection) -> Result<(), StoreError> {
        let id = migrate::find_id(connection, &self.prefix).await?;
        let here = schema::here(&self.prefix, &id);
        self.inside.set(self.statements.inside(Some(&here)));
        Ok(())
    }

    /// The statements for a transaction of the application's.
    pub(super) fn inside(&self) -> Arc<Statements> {
        let inside = self.inside.get();
        inside.unwrap_or_else(|| Arc::new(self.statements.inside(None)))
    }

    pub(super) fn tells(&self) -> bool {
        self.statements.protocol == Protocol::Extended
    }

    pub(super) async fn load(&self, id: &RecordId) -> Result<Snapshot, StoreError> {
        let loading = async |connection: &mut Connected| self.statements.load(connection, id).await;
        let sent_at = Moment::now();
        let snapshot = self
            .connections
            .run_again("loading a record", loading)
            .await?;
        self.versions.observe(id, &snapshot, sent_at);
        Ok(snapshot)
    }

    pub(super) async fn swap(
        &self,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        if seen.is_none() && next.subject.is_none() {
            // Nothing can begin without a subject.
            return self.load(id).await.map(Swap::Refused);
        }
        let writing = async |connection: &mut Connected| match seen {
            None => {
                if let Some(known) = self.versions.done(id)
                    && let Some(snapshot) = self.statements.again(connection, id, &known).await?
                {
                    return Ok(Swap::Refused(snapshot));
                }
                self.create(connection, id, next).await
            }
            Some(seen) => {
                let known = self.versions.version(id, Some(seen));
                let statements = &self.statements;
                statements
                    .replace(connection, id, seen, next, known.as_deref())
                    .await
            }
        };
        let sent_at = Moment::now();
        let answer = self.connections.run("writing a record", writing).await?;
        self.note(id, seen, next, &answer, sent_at);
        Ok(answer)
    }

    /// Takes note of the answer to a write that was sent at this moment.
    pub(super) fn note(
        &self,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
        answer: &Swap,
        sent_at: Moment,
    ) {
        self.versions.record_write(id, seen, next, answer, sent_at);
        if matches!(answer, Swap::Applied(_)) {
            self.waiters.wake(id);
        }
    }

    /// Puts `next` where nothing stands. A user that could not record how a call ends is shown
    /// what stands, and begins none.
    async fn create(
        &self,
        connection: &mut Connected,
        id: &RecordId,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        let Some(right) = connection.lacks.clone() else {
            return self.statements.create(connection, id, next).await;
        };
        let snapshot = self.statements.load(connection, id).await?;
        if snapshot.record.is_some() {
            return Ok(Swap::Refused(snapshot));
        }
        Err(StoreError::new(StoreErrorKind::Denied, "claiming a record").with_source(right))
    }

    pub(super) async fn load_steps(
        &self,
        call: &RecordId,
        names: &StepNames,
        reads: Reads,
    ) -> Result<Vec<Arc<Step>>, StoreError> {
        let loading = async |connection: &mut Connected| {
            self.statements
                .load_steps(connection, call, names, reads)
                .await
        };
        self.connections.run_again("loading steps", loading).await
    }

    pub(super) async fn write_step(
        &self,
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> Result<StepWrite, StoreError> {
        let writing = async |connection: &mut Connected| {
            let statements = &self.statements;
            statements.write_step(connection, call, seen, next).await
        };
        self.connections.run("writing a step", writing).await
    }

    /// Notes that a call waits while version `seen` stands.
    pub(super) async fn mark(&self, id: &RecordId, seen: Version) -> Result<Mark, StoreError> {
        let marking =
            async |connection: &mut Connected| self.statements.mark(connection, id, seen).await;
        self.connections.run("waiting for a record", marking).await
    }

    pub(super) async fn purge(&self, limit: u32, keep: Duration) -> Result<u64, StoreError> {
        let purging =
            async |connection: &mut Connected| self.statements.purge(connection, limit, keep).await;
        let gone = self
            .connections
            .run_again("purging expired records", purging)
            .await?;
        for id in &gone {
            self.waiters.wake(id);
        }
        Ok(gone.len() as u64)
    }

    pub(super) async fn scan(
        &self,
        after: Option<RecordId>,
        limit: u32,
    ) -> Result<Vec<(RecordId, Arc<Record>)>, StoreError> {
        let listing =
            async |connection: &mut Connected| self.statements.scan(connection, after, limit).await;
        self.connections.run_again("listing records", listing).await
    }
}
