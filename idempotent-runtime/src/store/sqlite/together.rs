//! Many writes after one commit, for heartbeats. The statements are those of writes that go alone,
//! so no condition stands in a second place.
//!
//! A commit waits for the disk, for many writes no longer than for one. The thread that beats runs
//! no code of users, so it can send the statements one by one: nothing keeps it from going on while
//! the file is locked. No write is answered before the commit is. If one fails, all are rolled
//! back, and each goes alone.

use sqlx::Executor;

use super::{SqliteStore, connections::Lent, failure, inner::Inner};
use crate::store::{
    StoreError, StoreErrorKind, Swap,
    together::{Answer, Write, WriteTogether},
};

const DOING: &str = "writing records together";

/// A transaction. If it is dropped before it is over, its connection is closed, and the file is
/// free again.
struct Open {
    connection: Lent,
    is_over: bool,
}

impl Open {
    async fn begin(mut connection: Lent) -> Result<Self, StoreError> {
        let begun = connection.execute("BEGIN IMMEDIATE").await;
        match begun {
            Ok(_) => Ok(Self {
                connection,
                is_over: false,
            }),
            Err(error) => connection.release(Err(failure::of(error, DOING))),
        }
    }

    async fn commit(mut self) -> Result<(), StoreError> {
        let committed = self.connection.execute("COMMIT").await;
        self.is_over = committed.is_ok();
        // It is unknown what stands.
        let unknown =
            |error| StoreError::new(StoreErrorKind::Unavailable, DOING).with_source(error);
        committed.map(drop).map_err(unknown)
    }

    async fn roll_back(mut self) {
        self.is_over = self.connection.execute("ROLLBACK").await.is_ok();
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.is_over {
            self.connection.close();
        }
    }
}

impl Inner {
    /// Writes all; `None` if nothing was written because one of them failed.
    async fn write_all(&self, writes: &[Write]) -> Result<Option<Vec<Swap>>, StoreError> {
        let mut open = Open::begin(self.connections.acquire(DOING).await?).await?;
        let mut swaps = Vec::new();
        for Write { id, seen, next } in writes {
            let connection = &mut open.connection;
            match self
                .statements
                .swap(connection, id, Some(*seen), next)
                .await
            {
                Ok(swap) => swaps.push(swap),
                Err(_) => {
                    open.roll_back().await;
                    return Ok(None);
                }
            }
        }
        open.commit().await?;
        Ok(Some(swaps))
    }
}

impl WriteTogether for SqliteStore {
    async fn write_together(&self, writes: &[Write]) -> Vec<Answer> {
        let swaps = match self.inner.write_all(writes).await {
            Ok(Some(swaps)) => swaps,
            Ok(None) => return writes.iter().map(|_| None).collect(),
            Err(error) => return writes.iter().map(|_| Some(Err(error.clone()))).collect(),
        };
        for (write, swap) in writes.iter().zip(&swaps) {
            if matches!(swap, Swap::Applied(_)) {
                self.inner.waiters.wake(&write.id);
            }
        }
        swaps.into_iter().map(|swap| Some(Ok(swap))).collect()
    }
}
