//! The state that the store and its clones share, and the work over its own connections.

use std::{sync::Arc, time::Duration};

use sqlx::{Sqlite, SqliteConnection};
use tokio::sync::SemaphorePermit;

use super::{
    SqliteStore,
    calls::finishes,
    connections::{Connections, PATIENCE},
    group_commit::Queue,
    migrate,
    statements::Statements,
};
use crate::{
    clock::{SystemTimer, Timer},
    identity::RecordId,
    record::{Draft, Record, Step, StepNames, Version},
    store::{
        JoinedConnection, ListedPage, Snapshot, StepWrite, StoreError, StoreErrorKind, StoreHealth,
        Swap,
        sql::{
            self, Reads, TablePrefix, list,
            version::{self as schema, Inside},
        },
        transaction::connection_of,
        waiters::Waiters,
    },
};

/// The kind of database in whose transactions it takes part.
const KIND: &str = "one of SQLite";

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) connections: Connections,
    pub(super) statements: Arc<Statements>,
    pub(super) prefix: TablePrefix,
    pub(super) waiters: Arc<Waiters>,
    pub(super) inside: Inside<Statements>,
    /// `None` if the connections are the application's, or for heartbeats, or the database is in no
    /// file with a log.
    pub(super) queue: Option<Queue>,
}

impl Inner {
    /// None: a call that goes away must not keep the connection that all share.
    #[expect(clippy::unused_self, reason = "a store over a server has some")]
    pub(super) fn inline_permit(&self) -> Option<SemaphorePermit<'_>> {
        None
    }

    /// One connection takes the work of all callers, one after the other.
    #[expect(clippy::unused_self, reason = "a store over a server knows something")]
    pub(super) fn health(&self) -> StoreHealth {
        StoreHealth::default()
    }

    pub(super) async fn migrate(&self) -> Result<(), StoreError> {
        let mut connection = self.connections.acquire(sql::migrate::DOING).await?;
        let migrated = sql::migrate::migrate::<Sqlite>(&mut connection, &self.prefix).await;
        let answer = self.learn(&mut connection, migrated).await;
        connection.release(answer)
    }

    pub(super) async fn store_id(&self) -> Result<String, StoreError> {
        let mut connection = self.connections.acquire("looking for the store").await?;
        let found = sql::migrate::find_id::<Sqlite>(&mut connection, &self.prefix).await;
        connection.release(found)
    }

    pub(super) async fn check_schema(&self) -> Result<(), StoreError> {
        let mut connection = self.connections.acquire("checking the schema").await?;
        let checked = migrate::check(&mut connection, &self.prefix).await;
        let answer = self.learn(&mut connection, checked).await;
        connection.release(answer)
    }

    /// Takes note of the id of the store, once its tables are there.
    async fn learn(
        &self,
        connection: &mut SqliteConnection,
        found: Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        found?;
        let id = sql::migrate::find_id::<Sqlite>(connection, &self.prefix).await?;
        let here = schema::here(&self.prefix, &id);
        self.inside.set(self.statements.inside(&here));
        Ok(())
    }

    /// The statements for a transaction of the application's.
    fn inside(&self) -> Arc<Statements> {
        let inside = self.inside.get();
        inside.unwrap_or_else(|| Arc::clone(&self.statements))
    }

    /// Looks at the table. It waits for a lock that another connection has on the file for a
    /// moment, because that does not tell whether the table can be reached.
    pub(super) async fn wait_for_a_look(&self) -> Result<(), StoreError> {
        let began = SystemTimer.now();
        loop {
            let seen = self.load(&RecordId::from_bytes([0; 32])).await;
            let waited = SystemTimer.now().saturating_sub(began);
            match seen {
                Err(error) if error.kind() == StoreErrorKind::Busy && waited < PATIENCE => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                seen => return seen.map(drop),
            }
        }
    }

    pub(super) async fn load(&self, id: &RecordId) -> Result<Snapshot, StoreError> {
        let mut connection = self.connections.acquire("loading a record").await?;
        let answer = self.statements.load(&mut connection, id).await;
        connection.release(answer)
    }

    pub(super) async fn swap(
        self: &Arc<Self>,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        if seen.is_none() && next.subject.is_none() {
            // Nothing can begin without a subject.
            return self.load(id).await.map(Swap::Refused);
        }
        let answer = match &self.queue {
            Some(queue) if can_be_grouped(seen, next) && self.connections.is_in_use() => {
                self.swap_among_others(queue, id, seen, next).await
            }
            _ => self.swap_alone(id, seen, next).await,
        };
        if matches!(answer, Ok(Swap::Applied(_))) {
            self.waiters.wake(id);
        }
        answer
    }

    async fn swap_among_others(
        self: &Arc<Self>,
        queue: &Queue,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        match self.swap_together(queue, id, seen, next).await {
            // The record that was in the way is gone already, or it was only the bound on
            // `purge_from`.
            Some(Ok(Swap::Refused(snapshot))) if stands(&snapshot) == seen => {}
            Some(answer) => return answer,
            None => {}
        }
        self.swap_alone(id, seen, next).await
    }

    async fn swap_alone(
        &self,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        let mut connection = self.connections.acquire("writing a record").await?;
        let answer = self.statements.swap(&mut connection, id, seen, next).await;
        connection.release(answer)
    }

    pub(super) async fn swap_in(
        &self,
        _: &SqliteStore,
        connection: &mut JoinedConnection<'_>,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        let connection = connection_of(connection, KIND)?;
        self.inside().swap(connection, id, seen, next).await
    }

    pub(super) async fn write_step_in(
        &self,
        _: &SqliteStore,
        connection: &mut JoinedConnection<'_>,
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> Result<StepWrite, StoreError> {
        let (connection, statements) = (connection_of(connection, KIND)?, self.inside());
        statements.write_step_in(connection, call, seen, next).await
    }

    pub(super) async fn load_steps(
        &self,
        call: &RecordId,
        names: &StepNames,
        reads: Reads,
    ) -> Result<Vec<Arc<Step>>, StoreError> {
        let mut connection = self.connections.acquire("loading steps").await?;
        let (lent, statements) = (&mut connection, &self.statements);
        let answer = statements.load_steps(lent, call, names, reads).await;
        connection.release(answer)
    }

    pub(super) async fn write_step(
        &self,
        call: &RecordId,
        seen: Option<Version>,
        next: &Step,
    ) -> Result<StepWrite, StoreError> {
        let mut connection = self.connections.acquire("writing a step").await?;
        let (lent, statements) = (&mut connection, &self.statements);
        let answer = statements.write_step(lent, call, seen, next).await;
        connection.release(answer)
    }

    pub(super) async fn purge(&self, limit: u32, keep: Duration) -> Result<u64, StoreError> {
        const DOING: &str = "purging expired records";
        let mut connection = self.connections.acquire(DOING).await?;
        let answer = self.statements.purge(&mut connection, limit, keep).await;
        let gone = connection.release(answer)?;
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
        let mut connection = self.connections.acquire("listing records").await?;
        let answer = self.statements.scan(&mut connection, after, limit).await;
        connection.release(answer)
    }

    pub(super) async fn list(&self, text: String, limit: u32) -> Result<ListedPage, StoreError> {
        let mut connection = self.connections.acquire(list::DOING).await?;
        let answer = list::list::<Sqlite>(&mut connection, text, limit).await;
        connection.release(answer)
    }
}

/// Whether a write is a claim where nothing stands, or one that sets the expiry of an outcome:
/// there is one statement for several of each.
fn can_be_grouped(seen: Option<Version>, next: &Draft) -> bool {
    seen.is_none() || finishes(next)
}

fn stands(snapshot: &Snapshot) -> Option<Version> {
    snapshot.record.as_ref().map(|record| record.version)
}
