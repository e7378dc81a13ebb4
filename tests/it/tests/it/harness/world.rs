//! One store, its users, and the effects outside it.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use idempotent_runtime::{
    Builder, Store,
    identity::RecordId,
    record::{Record, State},
    testing::{EffectLog, FaultyStore, ManualClock, conformance::StoreUnderTest},
};

use super::{Log, Owner};
use crate::{
    conformance::{File, Memory, Pool},
    servers::{MariaDb, Postgres, Redis, RedisCluster},
};

/// A store that was empty when the scenario began. Clones are the same world.
#[derive(Clone)]
pub(crate) struct World {
    subject: Arc<dyn StoreUnderTest>,
    forgets: bool,
    at_hand: bool,
    effects: EffectLog,
    log: Log,
    timers: Arc<Mutex<Vec<ManualClock>>>,
    owners: Arc<AtomicUsize>,
}

impl World {
    /// The reference store, with a manual clock, asked as if it were elsewhere.
    #[expect(clippy::unused_async, reason = "every store is made in the same way")]
    pub(crate) async fn memory() -> Self {
        Self::over(Memory::new())
    }

    /// The same, but calls see what stands there before they ask.
    pub(crate) async fn memory_at_hand() -> Self {
        Self {
            at_hand: true,
            ..Self::memory().await
        }
    }

    /// SQLite in memory: the owners have connections of their own.
    pub(crate) async fn sqlite_memory() -> Self {
        Self::over(Pool::new(1).await)
    }

    /// A SQLite file: the owners stand for two processes.
    #[expect(clippy::unused_async, reason = "every store is made in the same way")]
    pub(crate) async fn sqlite_file() -> Self {
        Self::over(File::new())
    }

    /// Postgres: the owners stand for two processes.
    pub(crate) async fn postgres() -> Self {
        Self::over(Postgres::new().await)
    }

    /// MariaDB: the owners stand for two processes.
    pub(crate) async fn mariadb() -> Self {
        Self::over(MariaDb::new().await)
    }

    /// Redis: the owners stand for two processes.
    pub(crate) async fn redis() -> Self {
        Self {
            forgets: true,
            ..Self::over(Redis::new().await)
        }
    }

    /// Redis Cluster: likewise, and each record is on one of its nodes.
    #[expect(clippy::unused_async, reason = "every store is made in the same way")]
    pub(crate) async fn redis_cluster() -> Self {
        Self {
            forgets: true,
            ..Self::over(RedisCluster::new())
        }
    }

    fn over(subject: impl StoreUnderTest + 'static) -> Self {
        Self {
            subject: Arc::new(subject),
            forgets: false,
            at_hand: false,
            effects: EffectLog::new(),
            log: Log::new(),
            timers: Arc::default(),
            owners: Arc::default(),
        }
    }

    /// Another client of the store, as another process would be: a handle, connections, a timer and
    /// a label of its own.
    pub(crate) async fn owner(&self) -> Owner {
        self.owner_with(|builder| builder).await
    }

    /// The same, set up further.
    pub(crate) async fn owner_with(&self, set_up: impl FnOnce(Builder) -> Builder) -> Owner {
        let number = self.owners.fetch_add(1, Ordering::Relaxed) + 1;
        let store = FaultyStore::new(self.subject.store().await);
        let store = match self.at_hand {
            true => store.peeking(),
            false => store,
        };
        let (timer, label) = (ManualClock::new(), format!("owner-{number}"));
        self.timers().push(timer.clone());
        Owner::new(&label, store, timer, self.log.clone(), set_up)
    }

    fn timers(&self) -> MutexGuard<'_, Vec<ManualClock>> {
        self.timers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the time of the store and of every owner.
    pub(crate) async fn advance(&self, by: Duration) {
        self.advance_store(by).await;
        let timers = self.timers().clone();
        for timer in timers {
            timer.advance(by);
        }
    }

    /// Moves the time of the store only: every owner's own timer falls behind.
    pub(crate) async fn advance_store(&self, by: Duration) {
        self.subject.advance(by).await;
    }

    /// The reports of all owners, in one order.
    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// The effects outside the store.
    pub(crate) fn effects(&self) -> &EffectLog {
        &self.effects
    }

    /// Writes down that the body ran for this key, in the attempt at hand.
    pub(crate) fn happened(&self, key: &str) {
        let attempt = idempotent_runtime::try_current().map_or(0, |attempt| attempt.number());
        self.effects
            .record(key, attempt, "")
            .expect("memory takes an entry");
    }

    /// How often the body ran for this key.
    pub(crate) fn runs(&self, key: &str) -> usize {
        self.effects.count(key).expect("memory is read")
    }

    /// A client of the store without a handle, for looking past the library.
    pub(crate) async fn store(&self) -> Arc<dyn Store> {
        self.subject.store().await
    }

    /// How many round trips a replay makes.
    pub(crate) fn round_trips_of_a_replay(&self) -> u64 {
        if self.at_hand { 0 } else { 1 }
    }

    /// How many of so many finished and expired records a purge finds. It finds none if the store
    /// forgets them by itself.
    pub(crate) fn to_purge(&self, expired: u64) -> u64 {
        if self.forgets { 0 } else { expired }
    }

    /// Whether its records have no order by their age.
    pub(crate) fn lists_by_id(&self) -> bool {
        self.forgets
    }

    /// Everything that stands in the store.
    pub(crate) async fn records(&self) -> Vec<(RecordId, Arc<Record>)> {
        let scanned = self.store().await.scan(None, 10_000).await;
        scanned.expect("the store lists its records")
    }

    /// The record that stands in the store. There must be exactly one.
    pub(crate) async fn record(&self) -> Arc<Record> {
        let records = self.records().await;
        assert_eq!(records.len(), 1, "one record: {records:?}");
        Arc::clone(&records[0].1)
    }

    /// The record that stands in the store under this key.
    pub(crate) async fn record_of(&self, key: &str) -> Option<Arc<Record>> {
        let records = self.records().await.into_iter();
        let mut of_key = records.filter(|(_, record)| record.subject.key == key.as_bytes());
        of_key.next().map(|(_, record)| record)
    }

    /// The state of everything that stands in the store.
    pub(crate) async fn states(&self) -> Vec<State> {
        let records = self.records().await;
        records.iter().map(|(_, record)| record.state).collect()
    }

    /// The readable keys that stand in the store, in order.
    pub(crate) async fn record_keys(&self) -> Vec<String> {
        let records = self.records().await;
        let mut keys: Vec<_> = records
            .iter()
            .map(|(_, record)| String::from_utf8_lossy(&record.subject.key).into_owned())
            .collect();
        keys.sort();
        keys
    }
}
