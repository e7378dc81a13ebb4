//! SIGKILL at every point of a call in a transaction of the library's, and what the next calls
//! find.

use std::{collections::BTreeMap, path::PathBuf, process, sync::Arc};

use idempotent_runtime::{
    Error, Idempotency,
    testing::{Fault, FaultyStore, Gate, On, StoreOperation},
    transaction::SqlDatabase,
};
use serde::{Deserialize, Serialize};

use super::{
    child::{Role, StopWhenRecorded, say},
    death::at_most,
    place::Place,
    process::Process,
};
use crate::{
    servers,
    transactions::{
        Placed, ours,
        shop::{MariaDbShop, PostgresShop, Remote, Shop, SqliteShop},
    },
};

/// The point at which a call stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Spot {
    BeforeClaim,
    AfterClaim,
    FirstRow,
    SecondRow,
    /// Its record is about to be written.
    BeforeRecord,
    /// Its record is written, and its commit about to be sent.
    BeforeCommit,
    /// Its caller has not heard of it.
    AfterCommit,
}

const SPOTS: [Spot; 7] = [
    Spot::BeforeClaim,
    Spot::AfterClaim,
    Spot::FirstRow,
    Spot::SecondRow,
    Spot::BeforeRecord,
    Spot::BeforeCommit,
    Spot::AfterCommit,
];

/// One call: two processes that are given the same make duplicates.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Transfer {
    folder: PathBuf,
    place: Place,
    number: usize,
    spot: Spot,
}

impl Transfer {
    /// Makes the call in this process, stops, and says so.
    pub(super) async fn stop(&self) {
        match self.place.clone() {
            Place::File => self.stop_on(SqliteShop::open(&self.folder).await).await,
            Place::Postgres(prefix) => self.stop_on(postgres(prefix).await).await,
            Place::MariaDb(prefix) => self.stop_on(mariadb(prefix).await).await,
            other => panic!("{other:?} has no transactions"),
        }
    }

    async fn stop_on<S: Shop<Database: SqlDatabase>>(&self, shop: S) {
        let (store, gate) = (FaultyStore::new(shop.store()), Gate::new());
        let held = match self.spot {
            Spot::BeforeClaim => Some((StoreOperation::Claim, Fault::Delay(gate.clone()))),
            Spot::AfterClaim => Some((StoreOperation::Claim, Fault::DelayAnswer(gate.clone()))),
            Spot::BeforeRecord => Some((StoreOperation::Ending, Fault::Delay(gate.clone()))),
            Spot::BeforeCommit => Some((StoreOperation::Ending, Fault::DelayAnswer(gate.clone()))),
            Spot::FirstRow | Spot::SecondRow | Spot::AfterCommit => None,
        };
        if let Some((operation, fault)) = held {
            store.fault(operation, On::Call(1), fault);
        }
        let idem = match self.spot {
            Spot::AfterCommit => Idempotency::builder(store).observer(StopWhenRecorded),
            _ => Idempotency::builder(store),
        };
        let idem = idem.build().expect("a handle");
        let stopped = async {
            gate.arrived(1).await;
            say(&"stopped");
        };
        let (called, ()) = tokio::join!(self.call(&shop, &idem, Some(&gate)), stopped);
        panic!("nobody opens the gate: {called:?}");
    }

    /// Moves a cent, and tells which process did.
    async fn call<S: Shop<Database: SqlDatabase>>(
        &self,
        shop: &S,
        idem: &Idempotency,
        gate: Option<&Gate>,
    ) -> Result<i64, Error> {
        let accounts = shop.prefix();
        let [from, to] = self.accounts();
        let rows = [(from, -1, Spot::FirstRow), (to, 1, Spot::SecondRow)];
        let call = idem.call("processes.transfer").key(&self.number);
        let moved: Placed = call
            .arguments(&self.number)
            .transact(shop.pool(), async |tx| {
                for (id, change, spot) in rows {
                    let update = format!(
                        "UPDATE {accounts}accounts SET cents = cents + {change} WHERE id = {id}"
                    );
                    S::run(tx, update).await?;
                    if let Some(gate) = gate.filter(|_| self.spot == spot) {
                        gate.pass().await;
                    }
                }
                Ok(process::id().into())
            })
            .await;
        ours(moved)
    }

    /// The accounts of this transfer. No other one moves anything there.
    fn accounts(&self) -> [usize; 2] {
        [2 * self.number, 2 * self.number + 1]
    }
}

pub(super) async fn postgres(prefix: String) -> PostgresShop {
    PostgresShop::open(&servers::url(PostgresShop::URL), prefix).await
}

pub(super) async fn mariadb(prefix: String) -> MariaDbShop {
    MariaDbShop::open(&servers::url(MariaDbShop::URL), prefix).await
}

/// The process that lives on.
struct Survivor<S> {
    shop: S,
    handles: [Idempotency; 2],
}

impl<S: Shop<Database: SqlDatabase>> Survivor<S> {
    async fn open(shop: S, accounts: usize) -> Self {
        let prefix = shop.prefix();
        let mut connection = shop.pool().acquire().await.expect("a connection");
        let create =
            format!("CREATE TABLE {prefix}accounts (id BIGINT PRIMARY KEY, cents BIGINT NOT NULL)");
        S::run(&mut connection, create).await.expect("a table");
        let values: Vec<String> = (0..accounts).map(|id| format!("({id}, 100)")).collect();
        let fill = format!("INSERT INTO {prefix}accounts VALUES {}", values.join(", "));
        S::run(&mut connection, fill).await.expect("accounts");
        drop(connection);
        let handles = [
            Idempotency::new(shop.store()),
            Idempotency::new(shop.store()),
        ];
        Self { shop, handles }
    }

    async fn cents(&self, which: &str) -> Vec<i64> {
        let prefix = self.shop.prefix();
        let query = format!("SELECT cents FROM {prefix}accounts {which} ORDER BY id");
        let mut connection = self.shop.pool().acquire().await.expect("a connection");
        let cents = S::numbers(&mut connection, query).await;
        cents.expect("the accounts are read")
    }

    /// Lets a process stop in the call, kills it, and calls after it.
    async fn assert_after_kill(&self, transfer: &Transfer) {
        let child = Process::stopped(&Role::Transfer(transfer.clone())).await;
        let dead = i64::from(child.id());
        child.kill().await;

        let [from, to] = transfer.accounts();
        let both = format!("WHERE id IN ({from}, {to})");
        let (left, answer) = match transfer.spot {
            Spot::AfterCommit => ([99, 101], dead),
            _ => ([100, 100], process::id().into()),
        };
        assert_eq!(self.cents(&both).await, left, "{transfer:?}");
        // A lease would last longer than the call waits.
        for idem in &self.handles {
            let moved = transfer.call(&self.shop, idem, None).await;
            assert_eq!(moved, Ok(answer), "{transfer:?}");
            assert_eq!(self.cents(&both).await, [99, 101], "{transfer:?}");
        }
    }
}

/// Kills processes at each point, so many at a time.
async fn kill_at_each_point<S: Shop<Database: SqlDatabase>>(
    shop: S,
    at_once: usize,
    (folder, place): (PathBuf, Place),
) {
    let kills = match std::env::var("IDEMPOTENT_TEST_ROUNDS").as_deref() {
        Ok("full") => 100,
        _ => 2,
    };
    let accounts = 2 * kills * SPOTS.len();
    let survivor = Arc::new(Survivor::open(shop, accounts).await);
    let transfers = (0..kills * SPOTS.len()).map(|number| Transfer {
        folder: folder.clone(),
        place: place.clone(),
        number,
        spot: SPOTS[number % SPOTS.len()],
    });
    at_most(at_once, transfers, |transfer| {
        let survivor = Arc::clone(&survivor);
        async move { survivor.assert_after_kill(&transfer).await }
    })
    .await;
    let mut times = BTreeMap::new();
    for cents in survivor.cents("").await {
        *times.entry(cents).or_insert(0) += 1;
    }
    assert_eq!(
        times,
        BTreeMap::from([(99, accounts / 2), (101, accounts / 2)])
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v14_a_transaction_of_sqlite_is_killed_at_each_point() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let shop = SqliteShop::open(folder.path()).await;
    // A process that has stopped keeps the others from writing.
    kill_at_each_point(shop, 1, (folder.path().to_owned(), Place::File)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn v14_a_transaction_of_postgres_is_killed_at_each_point() {
    let prefix = servers::prefix();
    let place = Place::Postgres(prefix.clone());
    kill_at_each_point(postgres(prefix).await, 4, (PathBuf::new(), place)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn v14_a_transaction_of_mariadb_is_killed_at_each_point() {
    let prefix = servers::prefix();
    let place = Place::MariaDb(prefix.clone());
    kill_at_each_point(mariadb(prefix).await, 4, (PathBuf::new(), place)).await;
}
