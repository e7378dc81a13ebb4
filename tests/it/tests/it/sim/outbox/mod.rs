//! Senders in transactions, relays and operators on an outbox: drawn from a seed, on a file of
//! SQLite. Time goes on by itself here, so a seed draws the scripts and not how they meet.

mod broker;
mod judge;

use std::{collections::BTreeMap, time::Duration};

use idempotent_runtime::outbox::{Message, OnPoison, Outbox, Relay};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use sqlx::{
    Sqlite, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions},
};
use tokio::{task::JoinSet, time::sleep};

use self::{broker::Broker, judge::Evidence};
use super::for_each_seed;

/// How many writers there are, and how many transactions each of them has.
const WRITERS: u32 = 3;
const TRANSACTIONS: u32 = 6;

const KEYS: [&str; 3] = ["a", "b", "c"];

/// Every duration of a relay that a broker may stay beyond.
const LEASE: Duration = Duration::from_millis(100);

/// How many simulations run, unless another number is asked for.
const USUALLY: u64 = 16;

/// The events that so many simulations show.
const SEEN: &[&str] = &[
    "a copy",
    "a message discarded, or set aside",
    "a message of a transaction that was rolled back",
    "a message that arrived",
    "a panic",
    "a rejection",
    "an outage",
    "an unknown answer",
];

#[test]
fn the_outbox_loses_nothing_in_the_simulation() {
    for_each_seed("outbox", USUALLY, SEEN, async |seed, tally| {
        let simulation = Simulation::new(seed).await;
        let evidence = tokio::time::timeout(Duration::from_secs(60), simulation.run()).await;
        let evidence = evidence.unwrap_or_else(|_| panic!("seed {seed}: it does not end"));
        evidence.judge(&format!("seed {seed}"));
        evidence.count(tally);
    });
}

/// A message that was given to a transaction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Sent {
    id: String,
    key: Option<&'static str>,
    /// Names the message: those of one writer count up.
    number: u32,
}

struct Simulation {
    seed: u64,
    rng: StdRng,
    pool: SqlitePool,
    outbox: Outbox<Sqlite>,
    broker: Broker,
    _folder: tempfile::TempDir,
}

impl Simulation {
    async fn new(seed: u64) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let options = SqliteConnectOptions::new()
            .filename(folder.path().join("outbox.db"))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(sqlx::sqlite::SqliteSynchronous::Off)
            .busy_timeout(Duration::from_secs(10));
        let pool = SqlitePoolOptions::new().max_connections(8);
        let pool = pool.connect_with(options).await.expect("a file");
        let outbox = Outbox::sqlite(pool.clone())
            .prefix("sim_")
            .expect("a prefix");
        outbox.migrate().await.expect("tables");
        Self {
            seed,
            rng: StdRng::seed_from_u64(seed),
            pool,
            outbox,
            broker: Broker::new(seed),
            _folder: folder,
        }
    }

    async fn run(mut self) -> Evidence {
        let mut writers = JoinSet::new();
        for writer in 0..WRITERS {
            let rng = StdRng::seed_from_u64(self.seed << 8 | u64::from(writer));
            writers.spawn(write(self.pool.clone(), self.outbox.clone(), writer, rng));
        }
        let mut relays = vec![self.relay().await, self.relay().await];
        let mut sent = BTreeMap::new();
        while let Some(wrote) = {
            self.happen(&mut relays).await;
            match writers.try_join_next() {
                None if !writers.is_empty() => Some(Ok(Vec::new())),
                ended => ended,
            }
        } {
            sent.extend(wrote.expect("a writer does not panic"));
        }
        for _ in 0..self.rng.random_range(10..40) {
            self.happen(&mut relays).await;
        }
        self.broker.heal();
        while self.count("sim_outbox_messages").await > 0 {
            for parked in self.outbox.parked().await.expect("it lists") {
                let resumed = self.outbox.resume(&parked.key).await;
                resumed.expect("it resumes");
            }
            relays.iter().for_each(Relay::wake);
            sleep(Duration::from_millis(5)).await;
        }
        for relay in relays {
            relay.stop().await;
        }
        let aside = "SELECT CAST(id AS TEXT) FROM sim_outbox_rejected";
        let aside = sqlx::query_scalar(aside).fetch_all(&self.pool).await;
        Evidence {
            sent,
            arrived: self.broker.arrived(),
            said: self.broker.said(),
            aside: aside.expect("it lists"),
        }
    }

    /// Now and then a relay dies or is stopped, another one begins, or an operator comes.
    async fn happen(&mut self, relays: &mut Vec<Relay>) {
        sleep(Duration::from_millis(self.rng.random_range(1..10))).await;
        match self.rng.random_range(0..12) {
            0 => drop(relays.pop()),
            1 => {
                if let Some(relay) = relays.pop() {
                    relay.stop().await;
                }
            }
            2..5 if relays.len() < 3 => relays.push(self.relay().await),
            5..8 => {
                for parked in self.outbox.parked().await.unwrap_or_default() {
                    let done = match self.rng.random() {
                        true => self.outbox.resume(&parked.key).await,
                        false => {
                            let why = "an operator does not want it";
                            self.outbox
                                .discard(&parked.key, &parked.id)
                                .because(why)
                                .await
                        }
                    };
                    drop(done);
                }
            }
            _ => relays.iter().for_each(Relay::wake),
        }
        if relays.is_empty() {
            relays.push(self.relay().await);
        }
    }

    async fn relay(&mut self) -> Relay {
        let on_poison = [OnPoison::Park, OnPoison::SetAside][self.rng.random_range(0..2)];
        loop {
            let relay = self.outbox.relay(self.broker.clone()).budget(2);
            let relay = relay
                .lease(LEASE)
                .publish_timeout(LEASE)
                .on_poison(on_poison);
            let pauses = (Duration::from_millis(1), Duration::from_millis(20));
            if let Ok(relay) = relay.pauses(pauses.0, pauses.1).start().await {
                return relay;
            }
        }
    }

    async fn count(&self, table: &'static str) -> i64 {
        let count = format!("SELECT count(*) FROM {table}");
        let count = sqlx::query_scalar(sqlx::AssertSqlSafe(count)).fetch_one(&self.pool);
        count.await.expect("it counts")
    }
}

/// Every message of a writer, and whether its transaction was committed.
async fn write(
    pool: SqlitePool,
    outbox: Outbox<Sqlite>,
    writer: u32,
    mut rng: StdRng,
) -> Vec<(Sent, bool)> {
    let mut sent = Vec::new();
    for transaction in 0..TRANSACTIONS {
        sleep(Duration::from_millis(rng.random_range(0..15))).await;
        let messages: Vec<_> = (0..rng.random_range(1..4_u32))
            .map(|place| {
                let number = (writer * TRANSACTIONS + transaction) * 4 + place;
                let key = (rng.random_range(0..4) > 0).then(|| KEYS[rng.random_range(0..3)]);
                let message = Message::new("orders", &number).expect("it is JSON");
                let message = match key {
                    Some(key) => message.key(key),
                    None => message,
                };
                (key, number, message)
            })
            .collect();
        let commits = rng.random_range(0..4) > 0;
        loop {
            let tried = try_to_write(&pool, &outbox, &messages, commits).await;
            if let Ok(ids) = tried {
                let of_one = |(id, (key, number, _)): (String, &(_, u32, Message))| {
                    let (key, number) = (*key, *number);
                    (Sent { id, key, number }, commits)
                };
                sent.extend(ids.into_iter().zip(&messages).map(of_one));
                break;
            }
        }
    }
    sent
}

async fn try_to_write(
    pool: &SqlitePool,
    outbox: &Outbox<Sqlite>,
    messages: &[(Option<&'static str>, u32, Message)],
    commits: bool,
) -> Result<Vec<String>, idempotent_runtime::BoxError> {
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
    let mut ids = Vec::new();
    for (_, _, message) in messages {
        ids.push(outbox.send(&mut tx, message.clone()).await?);
    }
    match commits {
        true => tx.commit().await?,
        false => tx.rollback().await?,
    }
    Ok(ids)
}
