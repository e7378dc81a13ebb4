//! Unused counters are deleted, and numbers grow all the same.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use idempotent_runtime::outbox::OutboxDatabase;

use super::{
    broker::{Broker, drained, first_arrivals, send, start},
    counters, numbers, numbers_of, outbox, placed, prefix,
};
use crate::transactions::shop::Shop;

on_every_database![
    numbers_grow_after_a_purge_and_a_clock_that_steps_back,
    a_purge_beside_writers_whose_clock_steps_back_keeps_the_order,
    what_was_sent_is_kept_as_long_as_it_is_said,
];

/// Days, in microseconds.
const fn days(days: i64) -> i64 {
    days * 24 * 60 * 60 * 1_000_000
}

async fn numbers_grow_after_a_purge_and_a_clock_that_steps_back<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    let outbox = outbox(&shop).await;
    send(&shop, &outbox, [placed(1).key("a").id("one")]).await;
    outbox.purge().await.expect("it purges");
    outbox.purge().await.expect("it purges");
    assert_eq!(counters(&shop).await, 1, "a counter of today stays");
    let later = outbox.clone().clock_ahead(days(2));
    later.purge().await.expect("it purges");
    assert_eq!(counters(&shop).await, 1, "writers see the floor first");
    later.purge().await.expect("it purges");
    assert_eq!(counters(&shop).await, 0);
    let earlier = outbox.clone().clock_ahead(days(-3));
    // The message stands already, and its counter is new all the same.
    send(&shop, &earlier, [placed(1).key("a").id("one")]).await;
    send(&shop, &earlier, [placed(2).key("a")]).await;
    send(&shop, &earlier, [placed(3).key("a")]).await;
    let numbers = numbers_of(&shop, "a").await;
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    let broker = Broker::willing();
    let _relay = start(&outbox, &broker).await;
    drained(&shop).await;
    assert_eq!(broker.by_key()["a"], [1, 2, 3]);
}

async fn a_purge_beside_writers_whose_clock_steps_back_keeps_the_order<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    const EACH: i64 = 24;
    /// So many keys of a writer take turns, and each is silent for longer than two purges take.
    const KEYS: i64 = 8;
    let (outbox, broker, shop) = (outbox(&shop).await, Broker::willing(), Arc::new(shop));
    let is_over = Arc::new(AtomicBool::new(false));
    let later = outbox.clone().clock_ahead(days(2));
    let purging = tokio::spawn({
        let is_over = Arc::clone(&is_over);
        async move {
            let mut purges = 0;
            while !is_over.load(Ordering::SeqCst) {
                // Another writer may be in the way.
                purges += i32::from(later.purge().await.is_ok());
                // This is longer than a statement of a writer.
                tokio::time::sleep(Duration::from_millis(150)).await;
            }
            purges
        }
    });
    let _relay = start(&outbox, &broker).await;
    let writers = (0..4_i64).map(|writer| {
        let (shop, outbox) = (Arc::clone(&shop), outbox.clone());
        tokio::spawn(async move {
            for order in 0..EACH {
                // Each time a key has its turn, it is a day earlier.
                let outbox = outbox.clone().clock_ahead(-days(order / KEYS));
                let message = placed(order).key(&format!("{writer}-{}", order % KEYS));
                send(&*shop, &outbox, [message]).await;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.expect("no panic");
    }
    drained(&*shop).await;
    is_over.store(true, Ordering::SeqCst);
    assert!(purging.await.expect("no panic") > 1, "it has purged");
    let by_key = broker.by_key();
    assert_eq!(by_key.len(), 32);
    let mut numbers: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for envelope in broker.arrived() {
        let key = envelope.key.expect("a key");
        numbers.entry(key).or_default().extend(envelope.number);
    }
    for (key, arrived) in by_key {
        let turns = (0..EACH).filter(|order| key.ends_with(&format!("-{}", order % KEYS)));
        assert_eq!(first_arrivals(&arrived), Vec::from_iter(turns), "{key}");
        assert!(numbers[&key].is_sorted(), "{key}: {:?}", numbers[&key]);
    }
}

async fn what_was_sent_is_kept_as_long_as_it_is_said<S: Shop<Database: OutboxDatabase>>(shop: S) {
    let kept = format!("SELECT number FROM {}outbox_history", prefix(&shop));
    let (outbox, broker) = (outbox(&shop).await, Broker::willing());
    let keeping = outbox.clone().audit_retention("1d").expect("a duration");
    send(&shop, &outbox, [placed(1).key("a"), placed(2)]).await;
    let sent = numbers_of(&shop, "a").await;
    let relay = start(&keeping, &broker).await;
    drained(&shop).await;
    relay.stop().await;
    keeping.purge().await.expect("it purges");
    let found = numbers(&shop, kept.clone()).await;
    assert_eq!((found.len(), found.contains(&sent[0])), (2, true));
    let later = keeping.clone().clock_ahead(days(1) + 1_000_000);
    later.purge().await.expect("it purges");
    assert_eq!(numbers(&shop, kept.clone()).await, [0; 0]);
    let relay = start(&outbox, &broker).await;
    send(&shop, &outbox, [placed(3).key("a")]).await;
    drained(&shop).await;
    relay.stop().await;
    assert_eq!(numbers(&shop, kept).await, [0; 0], "unless it is said");
}
