//! Relays: what was committed is published, in order within a key, at least once.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use idempotent_runtime::{
    Error,
    outbox::{Envelope, Message, OutboxDatabase, PublishError, Publisher},
};

use super::{
    broker::{Answer, Broker, drained, first_arrivals, send, start},
    count, numbers, outbox, placed, prefix,
};
use crate::transactions::shop::Shop;

on_every_database![
    what_was_committed_is_published_in_order_and_once_where_nothing_fails,
    an_envelope_holds_all_that_was_sent,
    three_relays_and_four_writers_lose_nothing_and_keep_the_order_of_a_key,
    a_message_whose_confirmation_is_lost_comes_again_before_the_next_one,
    an_answer_of_the_wrong_length_and_a_panic_lose_nothing,
    an_outage_costs_no_attempt_and_stops_no_other_topic,
    a_rejected_message_parks_its_key_alone,
    every_key_has_its_turn_however_many_there_are,
    a_relay_that_vanishes_while_it_publishes_is_followed_by_another,
    a_relay_that_is_stopped_gives_its_keys_back,
    a_publisher_that_takes_less_than_the_outbox_is_refused,
];

async fn what_was_committed_is_published_in_order_and_once_where_nothing_fails<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    let (outbox, broker) = (outbox(&shop).await, Broker::willing());
    let mut expected: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for order in 0..30 {
        let key = format!("customer-{}", order % 4);
        let mut tx = shop.begin().await.expect("a transaction");
        let sent = outbox.send(&mut tx, placed(order).key(&key)).await;
        sent.expect("it is written");
        match order % 5 {
            3 => tx.rollback().await.expect("it rolls back"),
            _ => {
                tx.commit().await.expect("it commits");
                expected.entry(key).or_default().push(order);
            }
        }
    }
    let relay = start(&outbox, &broker).await;
    drained(&shop).await;
    assert_eq!(broker.by_key(), expected);
    send(&shop, &outbox, [placed(100)]).await;
    relay.wake();
    drained(&shop).await;
    assert_eq!(broker.by_key().get(""), Some(&vec![100]));
    relay.stop().await;
    let claims = format!("SELECT count(*) FROM {}outbox_claims", prefix(&shop));
    assert_eq!(numbers(&shop, claims).await, [0]);
}

async fn an_envelope_holds_all_that_was_sent<S: Shop<Database: OutboxDatabase>>(shop: S) {
    let (outbox, broker) = (outbox(&shop).await, Broker::willing());
    let message = Message::raw("orders.placed", vec![0, 1, 255]).key("ä'\u{0}");
    let message = message.id("order-7").header("a", "1").header("b", "\"ä'");
    send(&shop, &outbox, [message.clone()]).await;
    let _relay = start(&outbox, &broker).await;
    drained(&shop).await;
    let [envelope] = broker.arrived().try_into().expect("one");
    let made = Envelope::of(&message, envelope.number.expect("it has a key"));
    let seen = |it: &Envelope| {
        let (id, topic, key) = (it.id.clone(), it.topic.clone(), it.key.clone());
        (
            id,
            topic,
            key,
            it.number,
            it.headers.clone(),
            it.payload.clone(),
        )
    };
    assert_eq!(seen(&made), seen(&envelope), "as a test makes it");
    let Envelope {
        id,
        topic,
        key,
        number,
        headers,
        payload,
        ..
    } = envelope;
    assert_eq!((&*id, &*topic), ("order-7", "orders.placed"));
    assert_eq!(key.as_deref(), Some("ä'\u{0}"));
    assert!(number.is_some_and(|number| number > 0));
    let expected = [("a", "1"), ("b", "\"ä'")];
    assert_eq!(
        headers,
        expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
    assert_eq!(&payload[..], [0, 1, 255]);
}

async fn three_relays_and_four_writers_lose_nothing_and_keep_the_order_of_a_key<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    const EACH: i64 = 25;
    let outbox = outbox(&shop).await;
    // Now and then, a confirmation is lost.
    let calls = std::sync::atomic::AtomicU32::new(0);
    let broker = Broker::new(move |batch| {
        let call = calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let lost = |place: usize| (call as usize + place).is_multiple_of(7);
        let answer = |place| {
            if lost(place) {
                Err(PublishError::Unknown)
            } else {
                Ok(())
            }
        };
        (0..batch.len()).map(answer).collect()
    });
    let mut relays = Vec::new();
    for _ in 0..3 {
        relays.push(
            outbox
                .relay(broker.clone())
                .lease("1s")
                .start()
                .await
                .expect("it starts"),
        );
    }
    let shop = Arc::new(shop);
    // Each writer writes to keys of its own, so that its order is that of the commits.
    let writers = (0..4_i64).map(|writer| {
        let (shop, outbox) = (Arc::clone(&shop), outbox.clone());
        tokio::spawn(async move {
            for order in 0..EACH {
                let keys = [format!("{writer}-a"), format!("{writer}-b")];
                send(&*shop, &outbox, keys.map(|key| placed(order).key(&key))).await;
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.expect("no panic");
    }
    drained(&*shop).await;
    let by_key = broker.by_key();
    assert_eq!(by_key.len(), 8);
    for (key, numbers) in by_key {
        assert_eq!(
            first_arrivals(&numbers),
            (0..EACH).collect::<Vec<_>>(),
            "{key}"
        );
    }
    for relay in relays {
        relay.stop().await;
    }
}

async fn a_message_whose_confirmation_is_lost_comes_again_before_the_next_one<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    let outbox = outbox(&shop).await;
    let seen = Mutex::new(HashSet::new());
    let broker = Broker::new(move |batch| {
        let mut seen = seen.lock().expect("nobody panics");
        let mut answer = |it: &Envelope| match seen.insert(it.id.clone()) {
            true => Err(PublishError::Unknown),
            false => Ok(()),
        };
        batch.iter().map(&mut answer).collect()
    });
    send(&shop, &outbox, (0..4).map(|order| placed(order).key("k"))).await;
    let _relay = start(&outbox, &broker).await;
    drained(&shop).await;
    assert_eq!(broker.by_key()["k"], [0, 0, 1, 1, 2, 2, 3, 3]);
}

async fn an_answer_of_the_wrong_length_and_a_panic_lose_nothing<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    let outbox = outbox(&shop).await;
    let calls = std::sync::atomic::AtomicU32::new(0);
    let broker = Broker::new(move |batch| {
        match calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => Vec::new(),
            1 => panic!("the publisher panics"),
            // More answers than there were messages.
            _ => vec![Ok(()); batch.len() + 3],
        }
    });
    send(&shop, &outbox, [placed(1).key("k"), placed(2).key("k")]).await;
    let _relay = start(&outbox, &broker).await;
    drained(&shop).await;
    assert_eq!(first_arrivals(&broker.by_key()["k"]), [1, 2]);
}

async fn an_outage_costs_no_attempt_and_stops_no_other_topic<S: Shop<Database: OutboxDatabase>>(
    shop: S,
) {
    let outbox = outbox(&shop).await;
    let outages = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let counted = Arc::clone(&outages);
    let broker = Broker::new(move |batch| {
        let answer = |it: &Envelope| match &*it.topic {
            // More often than the budget allows for attempts.
            "down" if counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < 5 => {
                Err(PublishError::Outage)
            }
            _ => Ok(()),
        };
        batch.iter().map(answer).collect()
    });
    let down = (0..2).map(|order| Message::raw("down", order.to_string()).key("down"));
    send(&shop, &outbox, down.chain([placed(7).key("up")])).await;
    let relay = start(&outbox, &broker).await;
    while !broker.by_key().contains_key("up") {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    while count(&shop).await > 0 {
        relay.wake();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(first_arrivals(&broker.by_key()["down"]), [0, 1]);
    assert_eq!(broker.by_key()["up"], [7]);
    let tried = format!(
        "SELECT count(*) FROM {}outbox_claims WHERE attempts > 0",
        prefix(&shop)
    );
    assert_eq!(numbers(&shop, tried).await, [0]);
}

async fn a_rejected_message_parks_its_key_alone<S: Shop<Database: OutboxDatabase>>(shop: S) {
    let outbox = outbox(&shop).await;
    let broker = Broker::new(|batch| {
        let answer = |it: &Envelope| match &it.payload[..] {
            b"13" => Err(PublishError::Rejected("it is unlucky".to_owned())),
            _ => Ok(()),
        };
        batch.iter().map(answer).collect()
    });
    let messages = [12, 13, 14].map(|order| placed(order).key("poisoned"));
    send(&shop, &outbox, messages).await;
    let relay = start(&outbox, &broker).await;
    let parked = format!(
        "SELECT attempts FROM {}outbox_claims WHERE blocked_since > 0",
        prefix(&shop)
    );
    while numbers(&shop, parked.clone()).await.is_empty() {
        relay.wake();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(numbers(&shop, parked).await, [3]);
    send(&shop, &outbox, [placed(1).key("sound")]).await;
    while count(&shop).await > 2 {
        relay.wake();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let by_key = broker.by_key();
    assert_eq!(by_key["poisoned"], [12, 13, 13, 13]);
    assert_eq!(by_key["sound"], [1]);
}

/// More keys than are held at once.
async fn every_key_has_its_turn_however_many_there_are<S: Shop<Database: OutboxDatabase>>(shop: S) {
    const KEYS: usize = 1_300;
    let (outbox, broker) = (outbox(&shop).await, Broker::willing());
    for order in 0..3 {
        let messages = (0..KEYS).map(|key| placed(order).key(&format!("{key:04}")));
        send(&shop, &outbox, messages).await;
    }
    let relay = start(&outbox, &broker).await;
    drained(&shop).await;
    relay.stop().await;
    let arrived = broker.arrived();
    let place = |key: &str, order: &[u8]| {
        let is_it = |it: &Envelope| it.key.as_deref() == Some(key) && it.payload == order;
        arrived.iter().position(is_it).expect("it arrived")
    };
    assert!(
        place("1299", b"0") < place("0000", b"2"),
        "the last key waits for no other"
    );
    let by_key = broker.by_key();
    assert_eq!(by_key.len(), KEYS);
    assert!(by_key.values().all(|orders| orders == &[0, 1, 2]));
}

async fn a_relay_that_vanishes_while_it_publishes_is_followed_by_another<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    let outbox = outbox(&shop).await;
    let (hanging, broker) = (
        Broker {
            hangs: true,
            ..Broker::willing()
        },
        Broker::willing(),
    );
    send(&shop, &outbox, (0..3).map(|order| placed(order).key("k"))).await;
    let vanishes = start(&outbox, &hanging).await;
    while hanging.arrived().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let _follows = start(&outbox, &broker).await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert!(
        broker.arrived().is_empty(),
        "its lease is kept while it publishes"
    );
    drop(vanishes);
    drained(&shop).await;
    assert_eq!(broker.by_key()["k"], [0, 1, 2]);
}

async fn a_relay_that_is_stopped_gives_its_keys_back<S: Shop<Database: OutboxDatabase>>(shop: S) {
    let (outbox, broker) = (outbox(&shop).await, Broker::new(|_| Vec::new()));
    send(&shop, &outbox, [placed(1).key("k")]).await;
    let first = outbox.relay(broker.clone()).lease("1h").start().await;
    let first = first.expect("it starts");
    while broker.arrived().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    first.stop().await;
    let held = format!(
        "SELECT count(*) FROM {}outbox_claims WHERE token > 0",
        prefix(&shop)
    );
    assert_eq!(numbers(&shop, held).await, [0]);
    let willing = Broker::willing();
    let _second = start(&outbox, &willing).await;
    drained(&shop).await;
    assert_eq!(willing.by_key()["k"], [1]);
}

#[derive(Debug)]
struct Small;

impl Publisher for Small {
    async fn publish(&self, batch: &[Envelope]) -> Answer {
        vec![Ok(()); batch.len()]
    }

    fn max_payload(&self) -> usize {
        1_000
    }
}

async fn a_publisher_that_takes_less_than_the_outbox_is_refused<
    S: Shop<Database: OutboxDatabase>,
>(
    shop: S,
) {
    let outbox = outbox(&shop).await;
    let refused = outbox.relay(Small).start().await;
    assert!(
        matches!(refused, Err(Error::InvalidPolicy(_))),
        "{refused:?}"
    );
    let fits = outbox.clone().max_payload(1_000).relay(Small).start().await;
    fits.expect("it takes all").stop().await;
    for wrong in ["0s", "soon"] {
        let refused = outbox.relay(Broker::willing()).lease(wrong).start().await;
        assert!(
            matches!(refused, Err(Error::InvalidPolicy(_))),
            "{refused:?}"
        );
    }
}
