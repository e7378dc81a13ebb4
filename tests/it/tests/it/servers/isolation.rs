//! Servers that isolate transactions more strictly by default: callers that meet would fail, and
//! none does.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use idempotent_runtime::{
    StoreError,
    identity::RecordId,
    record::{Draft, Record, Version},
    store::{
        MySqlStore, PostgresStore, Snapshot, Store, Swap, mysql::as_mysql,
        postgres::PostgresBuilder,
    },
};
use sqlx::{AssertSqlSafe, Connection, MySqlConnection, PgConnection, Row};
use tokio::task::JoinSet;

use super::{
    crowds::sixty_four_callers_meet,
    spare::{Product, Spare},
};
use crate::harness::{applied, claim, in_time};

/// A failure is tried again by the caller of the store, and would not be seen there. So it is
/// written down here.
#[derive(Clone, Debug)]
struct Watched {
    store: Arc<dyn Store>,
    failures: Arc<Mutex<Vec<StoreError>>>,
}

impl Watched {
    fn watch<T>(&self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(failure) = &answer {
            let mut failures = self.failures.lock().expect("nobody panicked");
            failures.push(failure.clone());
        }
        answer
    }
}

#[async_trait]
impl Store for Watched {
    async fn load(&self, id: &RecordId) -> Result<Snapshot, StoreError> {
        self.watch(self.store.load(id).await)
    }

    async fn swap(
        &self,
        id: &RecordId,
        seen: Option<Version>,
        next: &Draft,
    ) -> Result<Swap, StoreError> {
        self.watch(self.store.swap(id, seen, next).await)
    }

    async fn wait(
        &self,
        id: &RecordId,
        seen: Version,
        at_most: Duration,
    ) -> Result<(), StoreError> {
        self.watch(self.store.wait(id, seen, at_most).await)
    }

    async fn purge(&self, limit: u32, keep: Duration) -> Result<u64, StoreError> {
        self.watch(self.store.purge(limit, keep).await)
    }

    async fn scan(
        &self,
        after: Option<RecordId>,
        limit: u32,
    ) -> Result<Vec<(RecordId, Arc<Record>)>, StoreError> {
        self.watch(self.store.scan(after, limit).await)
    }

    async fn for_heartbeats(&self) -> Result<Option<Arc<dyn Store>>, StoreError> {
        let own = self.watch(self.store.for_heartbeats().await)?;
        Ok(own.map(|store| {
            let failures = Arc::clone(&self.failures);
            Arc::new(Self { store, failures }) as Arc<dyn Store>
        }))
    }
}

/// Lets callers of these stores meet; none of them fails, at first or when it is asked again.
async fn none_fails(stores: Vec<Arc<dyn Store>>) {
    let failures = Arc::new(Mutex::new(Vec::new()));
    let watched = stores.into_iter().map(|store| {
        let failures = Arc::clone(&failures);
        Arc::new(Watched { store, failures }) as Arc<dyn Store>
    });
    let watched: Vec<_> = watched.collect();
    let purging = Arc::clone(&watched[0]);
    // Nothing has expired yet, and the purge must be in no caller's way.
    let purging = tokio::spawn(async move {
        loop {
            let purged = purging.purge(100, Duration::ZERO).await;
            assert!(purged.is_err() || purged == Ok(0), "{purged:?}");
        }
    });
    in_time(sixty_four_callers_meet(watched)).await;
    purging.abort();
    let ended = purging.await.expect_err("it has no end");
    assert!(ended.is_cancelled(), "{ended:?}");
    let failures = failures.lock().expect("nobody panicked");
    assert!(
        failures.is_empty(),
        "{} of them: {:?}",
        failures.len(),
        failures[0]
    );
}

/// The tests' server, for connections that ask for this isolation.
fn postgres(level: &str) -> String {
    let level = level.replace(' ', "%5C%20");
    let url = super::url("IDEMPOTENT_TEST_POSTGRES_URL");
    format!("{url}?options=-c%20default_transaction_isolation%3D{level}")
}

/// Clients that all have this isolation by default.
async fn postgres_at(level: &str, builder: PostgresBuilder) -> Vec<Arc<dyn Store>> {
    let url = postgres(level);
    let mut side = PgConnection::connect(&url).await.expect("a connection");
    let told = sqlx::raw_sql("SHOW transaction_isolation").fetch_one(&mut side);
    let told = told.await.and_then(|row| row.try_get::<String, _>(0));
    assert_eq!(
        told.expect("a level"),
        level,
        "what connections have by default"
    );

    let prefix = super::prefix();
    let mut stores: Vec<Arc<dyn Store>> = Vec::new();
    for _ in 0..4 {
        let builder = builder.clone().table_prefix(&prefix);
        let store = builder.connect(&url).await;
        stores.push(Arc::new(store.expect("the server answers")));
    }
    stores
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn postgres_with_serializable_transactions_fails_nobody() {
    none_fails(postgres_at("serializable", PostgresStore::builder()).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn postgres_with_repeatable_reads_fails_nobody() {
    none_fails(postgres_at("repeatable read", PostgresStore::builder()).await).await;
}

/// Behind a proxy that pools transactions the store can set nothing. Some of its statements fail
/// there, and are sent again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn postgres_that_is_told_no_isolation_fails_no_caller() {
    for level in ["serializable", "repeatable read"] {
        let pooled = PostgresStore::builder().transaction_pooling();
        let stores = postgres_at(level, pooled).await;
        in_time(sixty_four_callers_meet(stores)).await;
    }
}

/// The others see the tables that the first one makes, although their transactions began before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn postgres_that_is_told_no_isolation_takes_eight_first_starts_at_once() {
    for level in ["serializable", "repeatable read"] {
        let prefix = super::prefix();
        let mut starts = JoinSet::new();
        for _ in 0..8 {
            let builder = PostgresStore::builder().transaction_pooling();
            let (builder, url) = (builder.table_prefix(&prefix), postgres(level));
            starts.spawn(async move { builder.connect(&url).await });
        }
        for store in in_time(starts.join_all()).await {
            let store = store.expect("every start succeeds");
            store.check_schema().await.expect("the tables are right");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn mariadb_with_serializable_transactions_fails_nobody() {
    let strict = ["--transaction-isolation=SERIALIZABLE"];
    let server = Spare::with(Product::MariaDb, &strict).await;
    let side = MySqlConnection::connect(&server.url()).await;
    let mut side = side.expect("a connection");
    let told = sqlx::raw_sql("SELECT @@session.tx_isolation").fetch_one(&mut side);
    let told = told.await.and_then(|row| row.try_get::<String, _>(0));
    assert_eq!(told.expect("a level"), "SERIALIZABLE", "by default");

    for builder in [MySqlStore::builder(), as_mysql(MySqlStore::builder())] {
        let prefix = super::prefix();
        let mut stores: Vec<Arc<dyn Store>> = Vec::new();
        for _ in 0..4 {
            let builder = builder.clone().table_prefix(&prefix);
            let store = builder.connect(&server.url()).await;
            stores.push(Arc::new(store.expect("the server answers")));
        }
        none_fails(stores.clone()).await;
        assert_eq!(
            level_of(&*stores[0], &prefix, &mut side).await,
            "READ-COMMITTED"
        );
    }
}

/// The isolation in which a store writes, as a trigger sees it.
async fn level_of(store: &dyn Store, prefix: &str, side: &mut MySqlConnection) -> String {
    let told = format!(
        "CREATE TABLE {prefix}told (level VARCHAR(20)) ENGINE = MyISAM;
         CREATE TRIGGER {prefix}tells BEFORE INSERT ON {prefix}records FOR EACH ROW
             INSERT INTO {prefix}told VALUES (@@session.tx_isolation)"
    );
    let made = sqlx::raw_sql(AssertSqlSafe(told)).execute(&mut *side).await;
    made.expect("the trigger is made");
    applied(store, &RecordId::from_bytes([7; 32]), None, &claim()).await;
    let level = format!("SELECT DISTINCT level FROM {prefix}told");
    let level = sqlx::raw_sql(AssertSqlSafe(level)).fetch_one(side).await;
    level.and_then(|row| row.try_get(0)).expect("a level")
}
