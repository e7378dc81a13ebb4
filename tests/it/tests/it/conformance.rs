//! The conformance suite on every store and every wrapper that needs no server.

use std::{path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use idempotent_runtime::{
    store::{MemoryStore, OutcomeCache, OutcomeTier, SqliteStore, Store, TieredStore},
    testing::{FaultyStore, ManualClock, conformance::StoreUnderTest},
};
use sqlx::{Connection, SqliteConnection};
use tempfile::TempDir;

pub(crate) struct Memory {
    store: Arc<dyn Store>,
    clock: ManualClock,
}

impl Memory {
    pub(crate) fn new() -> Self {
        Self::wrapped(|store| Arc::new(store))
    }

    fn wrapped(wrap: impl FnOnce(MemoryStore) -> Arc<dyn Store>) -> Self {
        Self::timed(|store, _| wrap(store))
    }

    fn timed(wrap: impl FnOnce(MemoryStore, &ManualClock) -> Arc<dyn Store>) -> Self {
        let clock = ManualClock::new();
        Self {
            store: wrap(MemoryStore::with_clock(clock.clone()), &clock),
            clock,
        }
    }

    /// Behind copies of its finished records that are given for longer than any case takes.
    pub(crate) fn behind<F: OutcomeTier>(fast: impl FnOnce(&ManualClock) -> F) -> Self {
        Self::timed(|store, clock| {
            let tiered = TieredStore::builder(store, fast(clock)).age(Duration::MAX);
            let tiered = tiered.timer(clock.clone());
            Arc::new(tiered.build())
        })
    }
}

#[async_trait]
impl StoreUnderTest for Memory {
    async fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }
    async fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }
}

/// A file, and a store of its own for every client. Its clock is the machine's, so its records age
/// instead.
pub(crate) struct File {
    folder: TempDir,
}

impl File {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("records.db")
    }
}

#[async_trait]
impl StoreUnderTest for File {
    async fn store(&self) -> Arc<dyn Store> {
        let opened = SqliteStore::open(self.path()).await;
        Arc::new(opened.expect("the file opens"))
    }
    async fn advance(&self, by: Duration) {
        let url = format!("sqlite:{}", self.path().display());
        let side = SqliteConnection::connect(&url).await;
        let mut side = side.expect("the file opens");
        age(&mut side, by).await;
        side.close().await.expect("the connection closes");
    }
}

/// One named memory, reached through an application's pool and through connections of the store's
/// own.
pub(crate) struct Pool {
    pool: sqlx::SqlitePool,
    store: SqliteStore,
}

impl Pool {
    pub(crate) async fn new(size: u32) -> Self {
        let name = format!(
            "file:/conformance-{:032x}?vfs=memdb",
            rand::random::<u128>()
        );
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(name);
        let options = options.create_if_missing(true);
        let pool = sqlx::sqlite::SqlitePoolOptions::new()
            .max_connections(size)
            .min_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_with(options)
            .await
            .expect("memory opens");
        let store = SqliteStore::new(pool.clone());
        store.migrate().await.expect("the tables are made");
        Self { pool, store }
    }
}

#[async_trait]
impl StoreUnderTest for Pool {
    async fn store(&self) -> Arc<dyn Store> {
        let own = self.store.for_heartbeats().await;
        let own = own.expect("memory opens again");
        own.expect("a named memory has room for a second connection")
    }
    async fn advance(&self, by: Duration) {
        let connection = self.pool.acquire().await;
        age(&mut connection.expect("a connection"), by).await;
    }
}

/// The store's own database in memory: only its own connections reach it, so nothing can age its
/// records, and the cases that need time run on the other subjects.
async fn age(connection: &mut SqliteConnection, by: Duration) {
    sqlx::query(
        "UPDATE idempotent_records SET lease_end = lease_end - ?1, created = created - ?1,
                finished = finished - ?1, expires = expires - ?1,
                purge_from = CASE purge_from WHEN 9223372036854775807 THEN purge_from ELSE purge_from - ?1 END;
         UPDATE idempotent_steps SET life = life - ?1",
    )
    .bind(i64::try_from(by.as_micros()).expect("a short time"))
    .execute(connection)
    .await
    .expect("records age");
}

mod memory {
    use super::Memory;
    idempotent_runtime::conformance_tests!(Memory::new());
}

mod behind_an_arc {
    use super::{Arc, Memory, Store};
    idempotent_runtime::conformance_tests!(Memory::wrapped(|store| {
        let store: Arc<dyn Store> = Arc::new(store);
        Arc::new(store)
    }));
}

mod behind_an_arc_of_its_type {
    use super::{Arc, Memory};
    idempotent_runtime::conformance_tests!(Memory::wrapped(|store| Arc::new(Arc::new(store))));
}

mod faulty_without_faults {
    use super::{Arc, FaultyStore, Memory};
    idempotent_runtime::conformance_tests!(Memory::wrapped(|store| Arc::new(FaultyStore::new(
        store
    ))));
}

mod behind_copies_in_memory {
    use super::{Memory, OutcomeCache};
    idempotent_runtime::conformance_tests!(Memory::behind(
        |clock| OutcomeCache::new(100).timer(clock.clone())
    ));
}

mod behind_a_tier_that_fails {
    use super::Memory;
    use crate::tiered::{Failing, How};
    idempotent_runtime::conformance_tests!(Memory::behind(|clock| {
        let failing = Failing::new(clock);
        failing.now(How::Fails);
        failing
    }));
}

mod sqlite_file {
    use super::File;
    idempotent_runtime::conformance_tests!(File::new());
}

mod sqlite_memory {
    use super::Pool;
    idempotent_runtime::conformance_tests!(Pool::new(4).await);
}
