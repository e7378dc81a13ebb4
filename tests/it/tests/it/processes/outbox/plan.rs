//! Which messages the writers send, and in which order they have to arrive.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    path::Path,
    sync::Arc,
    time::Duration,
};

use idempotent_runtime::{
    Error,
    outbox::{Message, Outbox, OutboxDatabase},
};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use crate::transactions::shop::Shop;

const KEYS: u32 = 20;
/// Writers in each of the two processes.
const WRITERS: u32 = 4;
/// How many transactions a writer has at least.
const LEAST: i64 = 30;

/// A message, as it was published.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Arrival {
    pub(super) id: String,
    pub(super) key: String,
    pub(super) number: u64,
    pub(super) order: i64,
}

/// The work of a transaction.
struct Plan {
    /// Names the transaction: those of one writer count up.
    order: i64,
    /// One or two.
    keys: Vec<String>,
    commits: bool,
    /// How long it stays open after it has sent.
    lingers: Duration,
    pause: Duration,
}

/// Orders of one writer differ by less than this.
const OF_A_WRITER: i64 = 1_000_000;

impl Plan {
    fn of(order: i64) -> Self {
        let mut rng = StdRng::seed_from_u64(order.unsigned_abs());
        let first = rng.random_range(0..KEYS);
        let mut keys = vec![format!("key-{first}")];
        if rng.random_bool(0.25) {
            let other = (first + rng.random_range(1..KEYS)) % KEYS;
            keys.push(format!("key-{other}"));
        }
        Self {
            order,
            keys,
            commits: rng.random_bool(0.8),
            lingers: Duration::from_millis([0, 0, 0, 15][rng.random_range(0..4)]),
            pause: Duration::from_millis(rng.random_range(10..80)),
        }
    }

    async fn write<S: Shop<Database: OutboxDatabase>>(
        &self,
        shop: &S,
        outbox: &Outbox<S::Database>,
    ) -> Result<(), Error> {
        let mut tx = shop.begin().await.expect("a transaction");
        shop.order(&mut tx, self.order).await.expect("a row");
        let message = || Message::new("orders.placed", &self.order).expect("it is JSON");
        let messages = self.keys.iter().map(|key| message().key(key));
        outbox.send_all(&mut tx, messages).await?;
        tokio::time::sleep(self.lingers).await;
        match self.commits {
            true => tx.commit().await.expect("it commits"),
            false => tx.rollback().await.expect("it rolls back"),
        }
        Ok(())
    }
}

/// Has four writers write until there is enough.
pub(super) async fn write<S: Shop<Database: OutboxDatabase>>(
    shop: S,
    outbox: &Outbox<S::Database>,
    half: u32,
    enough: &Path,
) {
    let shop = Arc::new(shop);
    let mut writers = JoinSet::new();
    for writer in half * WRITERS..(half + 1) * WRITERS {
        let (shop, outbox, enough) = (Arc::clone(&shop), outbox.clone(), enough.to_owned());
        writers.spawn(async move {
            for step in 0.. {
                if step >= LEAST && enough.exists() {
                    break;
                }
                let plan = Plan::of(i64::from(writer) * OF_A_WRITER + step);
                while let Err(error) = plan.write(&*shop, &outbox).await {
                    assert!(error.is_retryable(), "{error:?}");
                }
                tokio::time::sleep(plan.pause).await;
            }
        });
    }
    writers.join_all().await;
}

/// The messages of the orders that were committed.
pub(super) fn expected(orders: &[i64]) -> BTreeSet<(String, i64)> {
    let plans = orders.iter().map(|order| Plan::of(*order));
    let messages = plans.flat_map(|plan| {
        assert!(plan.commits, "{} was rolled back", plan.order);
        let order = plan.order;
        plan.keys.into_iter().map(move |key| (key, order))
    });
    messages.collect()
}

/// All that was committed arrived, and nothing else, in order within a key; how many messages
/// without their copies.
pub(super) fn assert_in_order(arrivals: &[Arrival], expected: &BTreeSet<(String, i64)>) -> usize {
    let mut seen = HashSet::new();
    let firsts = arrivals.iter().filter(|it| seen.insert(&*it.id));
    let firsts: Vec<_> = firsts.collect();
    let arrived = firsts.iter().map(|it| (it.key.clone(), it.order)).collect();
    assert_eq!(expected, &arrived);
    assert_eq!(firsts.len(), arrived.len(), "each under one id");
    let mut last_numbers = BTreeMap::new();
    let mut last_orders = BTreeMap::new();
    for arrival in &firsts {
        let before = last_numbers.insert(&arrival.key, arrival.number);
        assert!(before < Some(arrival.number), "{before:?} {arrival:?}");
        let writer = (&arrival.key, arrival.order / OF_A_WRITER);
        let before = last_orders.insert(writer, arrival.order);
        assert!(before < Some(arrival.order), "{before:?} {arrival:?}");
    }
    firsts.len()
}
