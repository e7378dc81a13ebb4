//! The state that the store and its clones share, and the work over its own connections.

use std::{sync::Arc, time::Duration};

use sqlx::mysql::MySqlConnection;

use super::{
    connection::{Connected, MySql},
    migrate,
    statements::Statements,
};
use crate::{
    identity::RecordId,
    record::{Draft, Record, Step, StepNames, Version},
    store::{
        Snapshot, StepWrite, StoreError, Swap,
        moment::Moment,
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
    pub(super) connections: ConnectionPool<MySql>,
    pub(super) statements: Arc<Statements>,
    pub(super) prefix: TablePrefix,
    pub(super) inside: Inside<Statements>,
    pub(super) waiters: Arc<Waiters>,
    pub(super) versions: Arc<VersionCache>,
}

impl Inner {
    /// Takes note of the id of the store, whose tables are there.
    pub(super) async fn learn(&self, connection: &mut MySqlConnection) -> Result<(), StoreError> {
        let id = migrate::find_id(connection, &self.prefix).await?;
        let here = schema::here(&self.prefix, &id);
        self.inside.set(self.statements.inside(&here));
        Ok(())
    }

    /// The statements for a transaction of the application's.
    pub(super) fn inside(&self) -> Arc<Statements> {
        let inside = self.inside.get();
        inside.unwrap_or_else(|| Arc::clone(&self.statements))
    }

    pub(super) async fn load(&self, id: &RecordId) -> Result<Snapshot, StoreError> {
        let loading = async |connected: &mut Connected| {
            self.statements.load(&mut connected.session(), id).await
        };
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
        let writing = async move |connected: &mut Connected| {
            let (session, statements) = (&mut connected.session(), &self.statements);
            match seen {
                None => {
                    if let Some(known) = self.versions.done(id)
                        && let Some(snapshot) = statements.again(session, id, &known).await?
                    {
                        return Ok(Swap::Refused(snapshot));
                    }
                    statements.create(session, id, next).await
                }
                Some(seen) => {
                    let known = self.versions.version(id, Some(seen));
                    statements
                        .replace(session, id, seen, next, known.as_deref())
                        .await
                }
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
        // No call waits yet for a record that begins, except calls that have seen it already, and
        // those would look in vain.
        if seen.is_some() && matches!(answer, Swap::Applied(_)) {
            self.waiters.wake(id);
        }
    }

    pub(super) async fn load_steps(
        &self,
        call: &RecordId,
        names: &StepNames,
        reads: Reads,
    ) -> Result<Vec<Arc<Step>>, StoreError> {
        let loading = async |connected: &mut Connected| {
            let session = &mut connected.session();
            self.statements
                .load_steps(session, call, names, reads)
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
        let writing = async |connected: &mut Connected| {
            let session = &mut connected.session();
            self.statements.write_step(session, call, seen, next).await
        };
        self.connections.run("writing a step", writing).await
    }

    pub(super) async fn purge(&self, limit: u32, keep: Duration) -> Result<u64, StoreError> {
        let purging = async |connected: &mut Connected| {
            let session = &mut connected.session();
            self.statements.purge(session, limit, keep).await
        };
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
        let listing = async |connected: &mut Connected| {
            let session = &mut connected.session();
            self.statements.scan(session, after, limit).await
        };
        self.connections.run_again("listing records", listing).await
    }
}
