//! Servers whose disk is full, that take no more connections, or that may only be read: a typed
//! error each, in time, and no body runs.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use idempotent_runtime::{
    Error, Idempotency, OnCrash, OnOutage,
    store::{MySqlStore, PostgresStore, Store, StoreErrorKind},
};
use sqlx::{Connection, MySqlConnection, PgConnection};

use super::spare::{Ending, Product, Spare};
use crate::harness::in_time;

/// Room in MiB for the data of each server, and for not much more.
const DISK: u32 = 100;

/// Bytes of an outcome: more than fits on pages that are there already.
const LARGE: usize = 100_000;

/// Makes calls that must not run twice.
struct Caller {
    idem: Idempotency,
    runs: AtomicU32,
}

impl Caller {
    fn over(store: Arc<dyn Store>) -> Self {
        Self {
            idem: Idempotency::new(store),
            runs: AtomicU32::new(0),
        }
    }

    async fn of(server: &Spare) -> Self {
        Self::over(server.store().await)
    }

    /// A call with an outcome of so many bytes.
    async fn charge(
        &self,
        key: u32,
        size: usize,
        in_body: impl FnOnce(),
    ) -> Result<Vec<u8>, Error> {
        self.idem
            .call("charge")
            .key(&key)
            .on_crash(OnCrash::Uncertain)
            .run(|_| async {
                self.runs.fetch_add(1, Ordering::SeqCst);
                in_body();
                // A server cannot make these bytes small.
                Ok((0..size).map(|_| rand::random()).collect())
            })
            .await
    }

    fn runs(&self) -> u32 {
        self.runs.load(Ordering::SeqCst)
    }

    /// Calls until the store refuses. Returns the kind of the error.
    async fn is_refused(&self) -> StoreErrorKind {
        for key in 1_000..2_000 {
            let (began, runs) = (Instant::now(), self.runs());
            match self.charge(key, 1, || ()).await {
                Ok(_) => {}
                Err(Error::Store(error)) => {
                    assert_eq!(self.runs(), runs, "its body ran");
                    assert!(began.elapsed() < Duration::from_secs(20));
                    return error.kind();
                }
                Err(error) => panic!("{error:?}"),
            }
        }
        panic!("it is never refused")
    }

    /// Calls until the store takes calls again.
    async fn is_answered(&self) {
        let mut key = 2_000;
        while self.charge(key, 1, || ()).await.is_err() {
            key += 1;
        }
    }
}

/// An outcome that is returned while the disk is full is recorded when there is room again. Until
/// then nothing new begins, and finished calls are replayed.
async fn is_survived(server: Spare) {
    let (caller, disk) = (Caller::of(&server).await, server.disk());
    let old = caller.charge(1, 10, || ()).await;

    let new = caller.charge(2, LARGE, || disk.fill()).await;
    assert!(new.is_ok(), "its body ran: {new:?}");
    assert_eq!(caller.is_refused().await, StoreErrorKind::Full);
    assert_eq!(caller.charge(1, 10, || ()).await, old);

    disk.free();
    goes_on(&caller, &server, [(1, old), (2, new)]).await;
}

/// The server takes calls again, and another client gets the same answers as these calls.
async fn goes_on(caller: &Caller, server: &Spare, answered: [(u32, Result<Vec<u8>, Error>); 2]) {
    caller.is_answered().await;
    assert!(caller.idem.shutdown(Duration::from_secs(20)).await);
    let other = Caller::of(server).await;
    for (key, expected) in answered {
        assert_eq!(other.charge(key, 10, || ()).await, expected, "call {key}");
    }
    assert_eq!(other.runs(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn postgres_on_a_full_disk() {
    let server = Spare::on_disk_of(DISK, Product::Postgres, &[]).await;
    in_time(is_survived(server)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn mariadb_on_a_full_disk() {
    let server = Spare::on_disk_of(DISK, Product::MariaDb, &[]).await;
    in_time(is_survived(server)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn redis_on_a_full_disk() {
    let settings = ["--appendonly", "yes", "--appendfsync", "everysec"];
    let server = Spare::on_disk_of(4, Product::Redis, &settings).await;
    in_time(is_survived(server)).await;
}

/// Redis ends itself if it cannot keep what it is about to acknowledge.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn redis_that_synchronises_always_on_a_full_disk() {
    let settings = ["--appendonly", "yes", "--appendfsync", "always"];
    let mut server = Spare::on_disk_of(4, Product::Redis, &settings).await;
    let (caller, disk) = (Caller::of(&server).await, server.disk());
    let old = caller.charge(1, 10, || ()).await;

    let new = caller.charge(2, LARGE, || disk.fill()).await;
    assert!(new.is_ok(), "its body ran: {new:?}");
    assert_eq!(caller.is_refused().await, StoreErrorKind::Unavailable);
    assert!(server.has_ended());

    disk.free();
    server.start().await;
    goes_on(&caller, &server, [(1, old), (2, new)]).await;
}

/// Other clients hold every connection of the server, until they give them back.
async fn waits_for_a_connection<C: Connection>(server: &Spare, store: impl Store) {
    let caller = Caller::over(Arc::new(store));
    let mut others = Vec::new();
    while let Ok(other) = C::connect(&server.url()).await {
        others.push(other);
    }

    assert_eq!(caller.is_refused().await, StoreErrorKind::Unavailable);
    drop(others);
    in_time(caller.is_answered()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn postgres_without_a_connection_to_spare() {
    let server = Spare::with(Product::Postgres, &["-cmax_connections=6"]).await;
    let _migrated = server.store().await;
    let options = server.url().parse().expect("a URL");
    let store = PostgresStore::builder().options(options);
    let store = store.expect("the options can be used");
    waits_for_a_connection::<PgConnection>(&server, store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn mariadb_without_a_connection_to_spare() {
    let server = Spare::with(Product::MariaDb, &["--max-connections=10"]).await;
    let _migrated = server.store().await;
    let options = server.url().parse().expect("a URL");
    let store = MySqlStore::builder().options(options);
    let store = store.expect("the options can be used");
    waits_for_a_connection::<MySqlConnection>(&server, store).await;
}

/// Nothing is decided on a standby. A replay is given there only to a call that an outage may not
/// keep from it. Once promoted, the server goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn postgres_that_is_a_standby_until_it_is_promoted() {
    let mut server = Spare::new(Product::Postgres).await;
    let caller = Caller::of(&server).await;
    let old = caller.charge(1, 10, || ()).await;
    server.end(Ending::Orderly).await;
    server.write("data/standby.signal", "");
    server.start().await;

    assert_eq!(caller.is_refused().await, StoreErrorKind::Denied);
    let replay = caller.idem.call("charge").key(&1_u32);
    let replay = replay.on_crash(OnCrash::Uncertain);
    let replay = replay.on_outage(OnOutage::ReadOnly);
    let replay = replay.run(|_| async { Ok::<Vec<u8>, Error>(Vec::new()) });
    assert_eq!(replay.await, old);

    let mut side = PgConnection::connect(&server.url()).await.expect("a side");
    let promoted = sqlx::query_scalar::<_, bool>("SELECT pg_promote()").fetch_one(&mut side);
    assert!(promoted.await.expect("an answer"), "it is promoted");
    in_time(caller.is_answered()).await;
    assert_eq!(caller.charge(1, 10, || ()).await, old);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn mariadb_that_may_only_be_read() {
    let server = Spare::new(Product::MariaDb).await;
    let side = MySqlConnection::connect(&server.url()).await;
    let mut side = side.expect("a side");
    let mut tell = async |words: &'static str| {
        let told = sqlx::raw_sql(words).execute(&mut side).await;
        told.expect("the server does it");
    };
    tell("CREATE USER app@localhost; GRANT ALL ON test.* TO app@localhost").await;
    let app = server.url().replacen("root@", "app@", 1);
    let app = MySqlStore::connect(&app).await;
    let caller = Caller::over(Arc::new(app.expect("the server answers")));
    let old = caller.charge(1, 10, || ()).await;

    tell("SET GLOBAL read_only = 1").await;
    assert_eq!(caller.is_refused().await, StoreErrorKind::Denied);
    assert_eq!(caller.charge(1, 10, || ()).await, old, "a replay is a look");
    tell("SET GLOBAL read_only = 0").await;
    in_time(caller.is_answered()).await;
}
