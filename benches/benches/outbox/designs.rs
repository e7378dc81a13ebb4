//! How designs of a relay treat the same writers: how many committed messages they lose, and how
//! many arrive behind a later one of their key.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use idempotent_runtime::outbox::{Envelope, Message, Outbox, PublishError, Publisher};
use sqlx::Pool;
use tokio::{runtime::Runtime, task::JoinSet, time::sleep};

use crate::{Measured, tables};

const WRITERS: usize = 8;
const KEYS: i64 = 20;
const EACH: usize = 250;

/// A way to bring messages from the database to a publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Design {
    /// Reads on behind the largest id so far.
    Cursor,
    /// Reads on in the order of transactions, up to the oldest one that is open.
    Horizon,
    /// Three relays lock rows, skip those that are locked, and delete them.
    SkipLocked,
    /// So many relays of this crate.
    Ours(usize),
}

impl Design {
    fn name(self) -> String {
        match self {
            Self::Cursor => "cursor behind the largest id".to_owned(),
            Self::Horizon => "cursor by transaction and id, behind the oldest open one".to_owned(),
            Self::SkipLocked => "three relays, `SKIP LOCKED` by row, deletion".to_owned(),
            Self::Ours(relays) => {
                format!("ours: number by key, claims by key with leases, deletion; {relays} relays")
            }
        }
    }
}

/// Messages as they arrive, by the number that only they have.
#[derive(Clone, Default)]
struct Arrivals(Arc<Mutex<Vec<i64>>>);

impl Arrivals {
    /// Takes some, each after a moment of its own.
    async fn take(&self, tokens: Vec<i64>) {
        for token in tokens {
            sleep(Duration::from_micros(token.unsigned_abs() * 7919 % 800)).await;
            self.0.lock().expect("nobody panics").push(token);
        }
    }
}

impl Publisher for Arrivals {
    async fn publish(&self, batch: &[Envelope]) -> Vec<Result<(), PublishError>> {
        let token = |it: &Envelope| {
            let text = std::str::from_utf8(&it.payload).ok();
            text.and_then(|text| text.parse().ok()).unwrap_or(-1)
        };
        self.take(batch.iter().map(token).collect()).await;
        vec![Ok(()); batch.len()]
    }
}

/// Writes an order and its message, in either sequence; some transactions roll back. The row of the
/// customer tells in which sequence those of one key have committed.
async fn write<DB: Measured>(
    pool: &Pool<DB>,
    outbox: Option<&Outbox<DB>>,
    token: i64,
) -> Result<(), sqlx::Error> {
    let drawn = token.unsigned_abs().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let key = (drawn >> 40).cast_signed() % KEYS;
    let pause = Duration::from_micros((drawn >> 20) % 6_000);
    let mut tx = pool.begin().await?;
    let customer = [
        format!("UPDATE bench_customers SET version = version + 1 WHERE id = {key}"),
        format!(
            "INSERT INTO bench_commits (token, customer, version) SELECT {token}, id, version FROM bench_customers WHERE id = {key}"
        ),
    ];
    let is_first = (drawn >> 60).is_multiple_of(2);
    if is_first {
        send::<DB>(&mut tx, outbox, key, token).await?;
        sleep(pause).await;
    }
    for statement in customer {
        DB::run(&mut tx, statement).await?;
    }
    if !is_first {
        send::<DB>(&mut tx, outbox, key, token).await?;
        sleep(pause).await;
    }
    match token % 10 {
        7 => tx.rollback().await,
        _ => tx.commit().await,
    }
}

async fn send<DB: Measured>(
    tx: &mut DB::Connection,
    outbox: Option<&Outbox<DB>>,
    key: i64,
    token: i64,
) -> Result<(), sqlx::Error> {
    match outbox {
        Some(outbox) => {
            let message = Message::raw("orders.placed", token.to_string()).key(&key);
            let sent = outbox.send(tx, message).await;
            sent.map(drop)
                .map_err(|error| sqlx::Error::Protocol(error.to_string()))
        }
        None => {
            DB::run(
                tx,
                format!("INSERT INTO bench_plain (token) VALUES ({token})"),
            )
            .await
        }
    }
}

/// A relay without an outbox of ours, until the writers are over and it finds nothing.
async fn relay<DB: Measured>(
    pool: Pool<DB>,
    design: Design,
    arrivals: Arrivals,
    is_over: Arc<AtomicBool>,
) {
    let mut last = (0, 0);
    loop {
        let was_over = is_over.load(Ordering::SeqCst);
        // It tries again if another transaction was in the way.
        let found = round(&pool, design, &arrivals, &mut last).await;
        if found.is_ok_and(|found| found == 0) && was_over {
            return;
        }
        sleep(Duration::from_millis(2)).await;
    }
}

/// Publishes what it finds behind the last one, and tells how many those are.
async fn round<DB: Measured>(
    pool: &Pool<DB>,
    design: Design,
    arrivals: &Arrivals,
    last: &mut (i64, i64),
) -> Result<usize, sqlx::Error> {
    let (transaction, id) = *last;
    let look = match design {
        Design::Horizon => format!(
            "SELECT token, xid::text::bigint, id FROM bench_plain
             WHERE (xid::text::bigint, id) > ({transaction}, {id}) AND xid < pg_snapshot_xmin(pg_current_snapshot())
             ORDER BY xid::text::bigint, id LIMIT 100"
        ),
        Design::SkipLocked => {
            "SELECT token, id - id, id FROM bench_plain ORDER BY id LIMIT 10 FOR UPDATE SKIP LOCKED".to_owned()
        }
        _ => format!(
            "SELECT token, id - id, id FROM bench_plain WHERE id > {id} ORDER BY id LIMIT 100"
        ),
    };
    let mut tx = pool.begin().await?;
    let found = DB::numbers(&mut tx, look).await?;
    arrivals
        .take(found.iter().map(|row| row[0]).collect())
        .await;
    if design == Design::SkipLocked && !found.is_empty() {
        let ids: Vec<_> = found.iter().map(|row| row[2].to_string()).collect();
        let delete = format!("DELETE FROM bench_plain WHERE id IN ({})", ids.join(", "));
        DB::run(&mut tx, delete).await?;
    }
    tx.commit().await?;
    if let Some(row) = found.last() {
        *last = (row[1], row[2]);
    }
    Ok(found.len())
}

async fn prepare<DB: Measured>(pool: &Pool<DB>) {
    let mut connection = pool.acquire().await.expect("a connection");
    let xid = match <DB as Measured>::NAME {
        "Postgres" => ", xid xid8 NOT NULL DEFAULT pg_current_xact_id()",
        _ => "",
    };
    let customers: Vec<_> = (0..KEYS).map(|key| format!("({key}, 0)")).collect();
    for statement in [
        "DROP TABLE IF EXISTS bench_customers".to_owned(),
        "DROP TABLE IF EXISTS bench_commits".to_owned(),
        "DROP TABLE IF EXISTS bench_plain".to_owned(),
        "CREATE TABLE bench_customers (id bigint PRIMARY KEY, version bigint NOT NULL)".to_owned(),
        "CREATE TABLE bench_commits (token bigint PRIMARY KEY, customer bigint NOT NULL, version bigint NOT NULL)".to_owned(),
        format!("CREATE TABLE bench_plain (id {} PRIMARY KEY, token bigint NOT NULL{xid})", DB::SERIAL),
        format!("INSERT INTO bench_customers VALUES {}", customers.join(", ")),
    ] {
        DB::run(&mut connection, statement).await.expect("a table");
    }
}

/// How many were committed, how many of them did not arrive, and how many first arrivals came
/// behind a later one of their key.
async fn judge<DB: Measured>(pool: &Pool<DB>, arrivals: &Arrivals) -> (usize, usize, usize) {
    let mut connection = pool.acquire().await.expect("a connection");
    let commits = "SELECT token, customer, version FROM bench_commits".to_owned();
    let commits = DB::numbers(&mut connection, commits)
        .await
        .expect("it reads");
    let mut place: HashMap<i64, (i64, i64)> = HashMap::new();
    place.extend(commits.iter().map(|row| (row[0], (row[1], row[2]))));
    let mut largest: HashMap<i64, i64> = HashMap::new();
    let (committed, mut late) = (place.len(), 0);
    for token in arrivals.0.lock().expect("nobody panics").iter() {
        let Some((customer, version)) = place.remove(token) else {
            continue;
        };
        let largest = largest.entry(customer).or_default();
        late += usize::from(version < *largest);
        *largest = version.max(*largest);
    }
    (committed, place.len(), late)
}

async fn run<DB: Measured>(pool: &Pool<DB>, design: Design) -> (usize, usize, usize) {
    let outbox = tables(pool).await;
    prepare(pool).await;
    let (arrivals, is_over) = (Arrivals::default(), Arc::new(AtomicBool::new(false)));
    let (mut relays, mut ours) = (JoinSet::new(), Vec::new());
    let (count, sends) = match design {
        Design::Ours(count) => {
            for _ in 0..count {
                let relay = outbox.relay(arrivals.clone()).lease("2s").start().await;
                ours.push(relay.expect("it starts"));
            }
            (0, Some(outbox.clone()))
        }
        Design::SkipLocked => (3, None),
        Design::Cursor | Design::Horizon => (1, None),
    };
    for _ in 0..count {
        let over = Arc::clone(&is_over);
        relays.spawn(relay(pool.clone(), design, arrivals.clone(), over));
    }
    let (next, mut writers) = (Arc::new(AtomicI64::new(1)), JoinSet::new());
    for _ in 0..WRITERS {
        let (pool, sends, next) = (pool.clone(), sends.clone(), Arc::clone(&next));
        writers.spawn(async move {
            for _ in 0..EACH {
                let token = next.fetch_add(1, Ordering::SeqCst);
                // If another transaction is in the way, this one rolls back, too.
                let _ = write(&pool, sends.as_ref(), token).await;
            }
        });
    }
    writers.join_all().await;
    is_over.store(true, Ordering::SeqCst);
    relays.join_all().await;
    if !ours.is_empty() {
        let mut connection = pool.acquire().await.expect("a connection");
        let left = "SELECT count(*) FROM bench_outbox_messages";
        while DB::numbers(&mut connection, left.to_owned())
            .await
            .expect("it counts")
            != [[0]]
        {
            sleep(Duration::from_millis(20)).await;
        }
    }
    for relay in ours {
        relay.stop().await;
    }
    judge(pool, &arrivals).await
}

pub(crate) fn measure<DB: Measured>(runtime: &Runtime, pool: &Pool<DB>) {
    let name = <DB as Measured>::NAME;
    println!("\n| relay, {name} | committed | lost | out of order in their key |");
    println!("|---|---:|---:|---:|");
    let designs = [
        Design::Cursor,
        Design::Horizon,
        Design::SkipLocked,
        Design::Ours(1),
        Design::Ours(3),
    ];
    for design in designs {
        if design == Design::Horizon && name != "Postgres" {
            continue;
        }
        let (committed, lost, late) = runtime.block_on(run(pool, design));
        println!("| {} | {committed} | {lost} | {late} |", design.name());
    }
    println!();
}
