//! Deletes rows that are no longer needed.

use super::{Outbox, dialect::OutboxDatabase, relay::connect, tables::Tables};
use crate::{
    error::Error,
    record::micros,
    store::{StoreError, StoreErrorKind, sql::Row as _},
};

/// How many rows are deleted at once.
const BATCH: usize = 1_000;

/// How old the number of a counter is that is deleted, in microseconds: a day.
const OLD: i64 = 24 * 60 * 60 * 1_000_000;

const DOING: &str = "purging an outbox";

impl<DB: OutboxDatabase> Outbox<DB> {
    /// Deletes the counters of keys to which nothing was sent for a day, claims of keys without
    /// messages, and messages that were kept for longer than
    /// [`audit_retention`](Self::audit_retention). A relay does it about every hour. It opens a
    /// connection of its own, as a relay does.
    ///
    /// The numbers of a key go on growing after its counter was deleted. For that, each purge notes
    /// the largest number that the next one may delete, and a new counter starts above it.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] where the database fails.
    ///
    /// # Cancel safety
    ///
    /// Dropped at any time, it may have deleted a part. It is safe beside writers and other purges.
    pub async fn purge(&self) -> Result<(), Error> {
        let mut connection = connect(self).await?;
        self.purge_on(&mut connection).await?;
        let closed = sqlx::Connection::close(connection).await;
        Ok(closed.map_err(|error| DB::store_error(error, DOING))?)
    }

    pub(super) async fn purge_on(&self, connection: &mut DB::Connection) -> Result<(), StoreError> {
        self.purge_counters(connection).await?;
        self.purge_claims(connection).await?;
        match self.audit_retention {
            Some(retention) => self.purge_history(connection, micros(retention)).await,
            None => Ok(()),
        }
    }

    /// Deletes what the floor covers, and raises the floor for the next time. Every writer that
    /// began since the last purge has seen that floor.
    async fn purge_counters(&self, connection: &mut DB::Connection) -> Result<(), StoreError> {
        let (Tables { counters, .. }, now) = (&*self.tables, DB::NOW);
        let floor = DB::bytes(b"");
        let mut after = floor.clone();
        loop {
            let old = format!(
                "number <= (SELECT number FROM {counters} WHERE message_key = {floor}) AND number < {now} - {OLD}"
            );
            let look = format!(
                "SELECT message_key, number FROM {counters} WHERE message_key > {after} AND {old}
                 ORDER BY message_key LIMIT {BATCH}"
            );
            let look = self.by_its_clock(look);
            let found = DB::query(connection, look, DOING).await?;
            let (mut keys, mut largest) = (Vec::new(), 0);
            for row in &found {
                keys.push(DB::bytes(
                    &row.bytes(0).map_err(damaged)?.unwrap_or_default(),
                ));
                largest = largest.max(row.number(1).map_err(damaged)?.unwrap_or_default());
            }
            let Some(last) = keys.last() else {
                break;
            };
            after.clone_from(last);
            // A counter that was counted up meanwhile is not old any more.
            let delete = format!(
                "DELETE FROM {counters} WHERE message_key IN ({}) AND number <= {largest}",
                keys.join(", ")
            );
            DB::query(connection, delete, DOING).await?;
            if keys.len() < BATCH {
                break;
            }
        }
        let look = format!(
            "SELECT max(number) FROM {counters} WHERE message_key > {floor} AND number < {now} - {OLD}"
        );
        let found = DB::query(connection, self.by_its_clock(look), DOING).await?;
        let largest = found.first().map_or(Ok(None), |row| row.number(0));
        let Some(largest) = largest.map_err(damaged)? else {
            return Ok(());
        };
        let raise = format!(
            "UPDATE {counters} SET number = {largest} WHERE message_key = {floor} AND number < {largest}"
        );
        DB::query(connection, raise, DOING).await.map(drop)
    }

    /// Deletes the claims of keys that have no message, which a relay left behind.
    async fn purge_claims(&self, connection: &mut DB::Connection) -> Result<(), StoreError> {
        let Tables {
            claims, messages, ..
        } = &*self.tables;
        let now = DB::NOW;
        let delete = format!(
            "DELETE FROM {claims} WHERE lease_end < {now} AND blocked_since = 0 AND NOT EXISTS
                 (SELECT 1 FROM {messages} WHERE {messages}.message_key = {claims}.message_key)"
        );
        let delete = self.by_its_clock(delete);
        DB::query(connection, delete, DOING).await.map(drop)
    }

    async fn purge_history(
        &self,
        connection: &mut DB::Connection,
        retention: i64,
    ) -> Result<(), StoreError> {
        let (Tables { history, .. }, now) = (&*self.tables, DB::NOW);
        loop {
            let look = format!(
                "SELECT max(sent), count(*) FROM (SELECT sent FROM {history} WHERE sent < {now} - {retention}
                     ORDER BY sent LIMIT {BATCH}) AS oldest"
            );
            let look = self.by_its_clock(look);
            let found = DB::query(connection, look, DOING).await?;
            let number = |place| found.first().map_or(Ok(None), |row| row.number(place));
            let Some(sent) = number(0).map_err(damaged)? else {
                return Ok(());
            };
            let delete = format!("DELETE FROM {history} WHERE sent <= {sent}");
            DB::query(connection, delete, DOING).await?;
        }
    }
}

fn damaged(source: crate::error::BoxError) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, DOING).with_source(source)
}
