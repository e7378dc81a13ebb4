//! Relays in processes of their own, which are killed and stopped while two processes write.

mod plan;
mod relay;

use std::{
    collections::BTreeSet,
    fs::File,
    path::{Path, PathBuf},
    sync::Mutex,
    time::Duration,
};

use idempotent_runtime::{
    Error, Idempotency,
    consumer::Disposition,
    outbox::{Outbox, OutboxDatabase},
    testing::EffectLog,
};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use self::{
    plan::{Arrival, assert_in_order, expected, write},
    relay::{End, FATES, Logging},
};
use super::{
    child::{Role, say},
    place::Place,
    process::Process,
    transfers::{mariadb, postgres},
};
use crate::{
    harness::in_time,
    outbox::{broker::drained, outbox},
    servers,
    transactions::shop::{Shop, SqliteShop},
};

/// One of the processes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Staff {
    folder: PathBuf,
    place: Place,
    part: Part,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Part {
    /// Four of the eight writers: the first or the second four.
    Writers(u32),
    /// A relay, and so many others of this fate were there before it.
    Relay(End, u32),
}

impl Staff {
    /// Does its part in this process.
    pub(super) async fn work(&self) {
        match self.place.clone() {
            Place::File => self.work_on(SqliteShop::open(&self.folder).await).await,
            Place::Postgres(prefix) => self.work_on(postgres(prefix).await).await,
            Place::MariaDb(prefix) => self.work_on(mariadb(prefix).await).await,
            other => panic!("{other:?} has no transactions"),
        }
    }

    async fn work_on<S: Shop<Database: OutboxDatabase>>(&self, shop: S) {
        let outbox = outbox(&shop).await;
        match self.part {
            Part::Writers(half) => {
                write(shop, &outbox, half, &self.enough()).await;
                say(&"written");
            }
            Part::Relay(fate, before) => {
                let relay = self.relay(&outbox, Some((fate, before)));
                let _relay = relay.start().await.expect("it starts");
                std::future::pending::<()>().await;
            }
        }
    }

    fn relay<DB: OutboxDatabase>(
        &self,
        outbox: &Outbox<DB>,
        fate: Option<(End, u32)>,
    ) -> idempotent_runtime::outbox::RelayBuilder<DB, Logging> {
        let publisher = Logging::new(self.log(), fate, self.folder.clone());
        let relay = outbox.relay(publisher).lease("1s");
        // A relay that waits longer and longer would leave all keys to those that have just begun.
        relay.pauses(Duration::from_millis(20), Duration::from_millis(100))
    }

    /// The published messages, in order.
    fn log(&self) -> EffectLog {
        EffectLog::on_disk(self.folder.join("published")).expect("the log opens")
    }

    /// A file that tells the writers that all relays have died.
    fn enough(&self) -> PathBuf {
        self.folder.join("enough")
    }

    /// Begins so many relays of this fate, one after the other.
    async fn oversee(mut self, fate: End) {
        for before in 0..rounds() {
            self.part = Part::Relay(fate, before);
            let mut process = Process::start(&Role::Outbox(self.clone()));
            match fate {
                End::DiesBehindABatch | End::DiesInABatch => process.gone().await,
                End::IsKilled => {
                    process.hear::<String>().await;
                    pause(0..50).await;
                    process.kill().await;
                }
                End::IsStopped => self.stop(process).await,
            }
        }
    }

    /// Stops a relay between the taking and the publishing of a batch, until another one has
    /// published of it, and lets it go on.
    async fn stop(&self, mut process: Process) {
        let held: Vec<String> = process.hear().await;
        process.freeze();
        let part = Part::Relay(End::IsKilled, 0);
        let follower = Process::start(&Role::Outbox(Self {
            part,
            ..self.clone()
        }));
        in_time(async {
            while !self.arrivals().iter().any(|it| held.contains(&it.id)) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
        File::create(self.folder.join(process.id().to_string())).expect("a file");
        process.wake();
        assert_eq!(process.hear::<String>().await, "published");
        pause(100..300).await;
        process.kill().await;
        follower.kill().await;
    }

    fn arrivals(&self) -> Vec<Arrival> {
        let entries = self.log().entries().expect("the log is read");
        let arrivals = entries.iter();
        arrivals
            .map(|entry| serde_json::from_str(&entry.value).expect("an arrival"))
            .collect()
    }
}

async fn pause(milliseconds: std::ops::Range<u64>) {
    let pause = rand::random_range(milliseconds);
    tokio::time::sleep(Duration::from_millis(pause)).await;
}

/// How many relays have each fate.
fn rounds() -> u32 {
    match std::env::var("IDEMPOTENT_TEST_ROUNDS").as_deref() {
        Ok("full") => 25,
        _ => 2,
    }
}

async fn with_orders<S: Shop>(shop: &S) {
    let create = format!(
        "CREATE TABLE {}orders (item BIGINT NOT NULL)",
        shop.prefix()
    );
    let mut connection = shop.pool().acquire().await.expect("a connection");
    S::run(&mut connection, create).await.expect("a table");
}

async fn nothing_is_lost<S: Shop<Database: OutboxDatabase>>(shop: S, folder: &Path, place: Place) {
    let staff = Staff {
        folder: folder.to_owned(),
        place,
        part: Part::Writers(0),
    };
    with_orders(&shop).await;
    let outbox = outbox(&shop).await;
    let writers = [0, 1].map(|half| {
        let part = Part::Writers(half);
        Process::start(&Role::Outbox(Staff {
            part,
            ..staff.clone()
        }))
    });
    let mut relays = JoinSet::new();
    for fate in FATES {
        relays.spawn(staff.clone().oversee(fate));
    }
    relays.join_all().await;
    File::create(staff.enough()).expect("a file");
    for mut writer in writers {
        assert_eq!(writer.hear::<String>().await, "written");
    }
    let last = staff.relay(&outbox, None).start().await;
    let last = last.expect("it starts");
    in_time(drained(&shop)).await;
    last.stop().await;

    assert_eq!(outbox.parked().await, Ok(Vec::new()));
    let (arrivals, expected) = (staff.arrivals(), expected(&shop.orders().await));
    let distinct = assert_in_order(&arrivals, &expected);
    assert!(arrivals.len() > distinct, "copies came, too");
    assert_applied_once(&shop, &arrivals, expected.len()).await;
}

/// Gives all that arrived to a receiver with an inbox.
async fn assert_applied_once<S: Shop>(shop: &S, arrivals: &[Arrival], expected: usize) {
    let consumer = Idempotency::new(shop.store()).consumer("receiver");
    let consumer = consumer.broker_retention("3d").build();
    let consumer = consumer.expect("a consumer");
    let effects = Mutex::new(Vec::new());
    for arrival in arrivals {
        let message = consumer.message(&*arrival.id).payload(&arrival.order);
        let disposition = message
            .run(async |_| {
                let mut effects = effects.lock().expect("nobody panics");
                effects.push(arrival.id.clone());
                Ok::<_, Error>(())
            })
            .await;
        assert!(
            matches!(disposition, Disposition::Ack { .. }),
            "{disposition:?}"
        );
    }
    let effects = effects.into_inner().expect("nobody panics");
    let distinct: BTreeSet<_> = effects.iter().collect();
    assert_eq!((effects.len(), distinct.len()), (expected, expected));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g15_relays_on_sqlite_are_killed_and_stopped() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let shop = SqliteShop::open(folder.path()).await;
    nothing_is_lost(shop, folder.path(), Place::File).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn g15_relays_on_postgres_are_killed_and_stopped() {
    let (folder, prefix) = (tempfile::tempdir(), servers::prefix());
    let folder = folder.expect("a temporary folder");
    let shop = postgres(prefix.clone()).await;
    nothing_is_lost(shop, folder.path(), Place::Postgres(prefix)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask test"]
async fn g15_relays_on_mariadb_are_killed_and_stopped() {
    let (folder, prefix) = (tempfile::tempdir(), servers::prefix());
    let folder = folder.expect("a temporary folder");
    let shop = mariadb(prefix.clone()).await;
    nothing_is_lost(shop, folder.path(), Place::MariaDb(prefix)).await;
}
